"""Ask as one person for what others keep, by a million guessed references; nothing may be served.

    python scripts/torture/guesses.py [--calls 1000000] [--seed 1] [--plant]

Another tenant, and another person of the same one, keep artifacts with a marker in their text. The
guesser asks for them with each tool that takes a reference: random ones, the real ones, those with
one character changed, moved or in another form, names with parts of paths and of queries in them,
the URLs of documents, and lists in which one of its own hides a foreign one. An answer must be an
error, the same line for each kind, and never hold the marker. The same calls, as far as they read
what the guesser itself keeps, are answered; whose calls are whose over HTTP is for tests/service to
say. --plant lets a store look into the other tenant's, which must be found.
"""

import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from fetchstash.config import load
from fetchstash.errors import FetchstashError, UnknownRef
from fetchstash.render import Host
from fetchstash.server.tools import answer, tool_named, tool_specs
from fetchstash.service import Tenants, TenantStore
from fetchstash.stash import Stash
from fetchstash.store import Facts, person_run
from scripts.drive.programs import options
from scripts.torture.kept import dice, put, show

RED, BLUE = "red", "blue"
GUESSER = "guesser"
MARKER = "xylophone-of-blue"
LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
URL = "https://blue.example/secret"


def guessed(chance: random.Random, foreign: list[str]) -> str:
    """Return a reference that leads nowhere for whoever asks."""
    ref = chance.choice(foreign)
    at = chance.randrange(4, len(ref))
    kind = chance.random()
    if kind < 0.1:
        return ref
    if kind < 0.5:
        return "art_" + "".join(chance.choices(LETTERS, k=26))
    if kind < 0.75:
        return ref[:at] + chance.choice(LETTERS.replace(ref[at], "")) + ref[at + 1 :]
    return chance.choice(
        [
            ref.upper(),
            ref[:at],
            ref + chance.choice(LETTERS),
            f" {ref}",
            f"{ref}\n",
            f"{ref}\0",
            ref[:at] + chance.choice("%*?_[") + ref[at + 1 :],
            f"art_{BLUE}/{ref}",
            f"art_../{BLUE}/{ref[4:]}",
            f"{ref}' OR '1'='1",
            ref[:at] + "\u0430" + ref[at + 1 :],
            URL,
            f"{URL}?{chance.randrange(9)}",
        ]
    )


def a_call(chance: random.Random, ref: str, own: str) -> tuple[str, dict[str, Any]]:
    """Return a call that would show what a reference leads to."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("get_search_content", {"artifact_ref": ref}),
        ("artifact_slice", {"artifact_ref": ref, "unit": "lines", "start": 1, "end": 9}),
        ("artifact_slice", {"artifact_ref": ref, "unit": "bytes", "start": 0, "end": 99}),
        ("artifact_grep", {"artifact_ref": ref, "pattern": "xylophone"}),
        ("artifact_grep", {"artifact_refs": [own, ref], "pattern": "xylophone"}),
        ("artifact_search", {"artifact_refs": [ref], "query": "xylophone"}),
        ("artifact_info", {"artifact_ref": ref}),
    ]
    return chance.choice(calls)


async def keep(stash: Stash, text: str, url: str = "") -> str:
    """Keep a text; return its reference."""
    facts = Facts(content_kind="text", media_type="text/plain", source_url=url)
    return (await put(stash.store, text.encode(), text.encode(), facts, url)).artifact_ref


def plant(other: TenantStore) -> None:
    """Let every store look into another one for what it does not have."""
    passed_on = TenantStore.__getattr__

    def leaky(self: TenantStore, name: str) -> Any:
        own = passed_on(self, name)

        async def run(*arguments: Any, **options: Any) -> Any:
            try:
                return await own(*arguments, **options)
            except UnknownRef:
                return await getattr(vars(other)["_store"], name)(*arguments, **options)

        if name not in ("get", "open_artifact", "open_text"):
            return own
        vars(self)[name] = run
        return run

    TenantStore.__getattr__ = leaky  # type: ignore[method-assign]


class Judge:
    """Looks at each answer to a guess, and counts them by code."""

    def __init__(self, foreign: Sequence[str]) -> None:
        self.faults: list[str] = []
        self._codes: Counter[str] = Counter()
        self._lines: set[str] = set()
        self._foreign = frozenset(foreign)

    def look(self, tool: str, arguments: dict[str, Any], ref: str, code: str, text: str) -> None:
        """Note what is wrong with an answer; ``code`` is "" for one that is no error."""
        self._codes[code or "answered"] += 1
        if not code:
            self.faults.append(f"answered: {tool} {arguments}")
        elif code == "unknown_ref" and ref in self._foreign:
            self._lines.add(text.replace(ref, "REF"))
        if MARKER in text.replace(ref, ""):
            self.faults.append(f"shown: {tool} {arguments}")

    def end(self, heading: str, *, planted: bool) -> None:
        """Compare what the references of others were answered, and print the counts."""
        lines = self._lines
        if len(lines) != 1 and not planted:
            self.faults.append(f"the references of others have {len(lines)} answers: {lines}")
        shown = ", ".join(f"{count:,} {code}" for code, count in self._codes.most_common())
        print(f"{heading}: {shown}", flush=True)


async def attack(calls: int, chance: random.Random, folder: Path, *, planted: bool) -> list[str]:
    """Make all calls; return what was wrong."""
    settings = load({"store.folder": str(folder), "quota.requests_per_minute": 0})
    tenants = Tenants(settings)
    red, other, blue = [
        await tenants.stash(tenant, person_run(name))
        for tenant, name in ((RED, GUESSER), (RED, "other"), (BLUE, "other"))
    ]
    foreign = [
        await keep(whose, f"{MARKER} {n}\n" * 20, f"{URL}?{n}")
        for whose in (other, blue)
        for n in range(25)
    ]
    foreign.append(await keep(blue, f"{MARKER}\n", URL))
    own = await keep(red, "a line of red\n" * 20)
    specs = {spec.name: spec for spec in tool_specs(red.settings)}
    host = Host(red.settings.views, local=False)
    if planted:
        assert isinstance(blue.store, TenantStore)
        plant(blue.store)
    judge = Judge(foreign)
    for _ in range(calls):
        ref = guessed(chance, foreign)
        tool, arguments = a_call(chance, ref, own)
        code = ""
        try:
            view = await answer(red, host, tool_named(tool, specs), arguments)
        except FetchstashError as error:
            code, text = error.code, error.line() + json.dumps(error.details)
        else:
            text = view.text + json.dumps(view.records, default=str)
        judge.look(tool, arguments, ref, code, text)
    for tool, arguments in (a_call(chance, own, own) for _ in range(100)):
        await answer(red, host, tool_named(tool, specs), arguments)
    judge.end(f"{calls:,} guessed references", planted=planted)
    print("100 calls for its own were answered")
    await tenants.aclose()
    return judge.faults


def main() -> int:
    """Attack; return the exit code."""
    args = options(__doc__, calls=1_000_000, seed=1, plant=False)
    start = time.monotonic()
    chance = dice(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "store")
        faults = anyio.run(lambda: attack(args.calls, chance, place, planted=args.plant))
    print(f"{time.monotonic() - start:.0f} s")
    return show(faults)


if __name__ == "__main__":
    sys.exit(main())

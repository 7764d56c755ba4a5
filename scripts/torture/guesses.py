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
from collections import Counter
from functools import partial
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
    forms = [ref.upper(), ref[:at], ref + chance.choice(LETTERS), f" {ref}", f"{ref}\n", f"{ref}\0"]
    forms += [ref[:at] + between + ref[at + 1 :] for between in (chance.choice("%*?_["), "\u0430")]
    forms += [f"art_{BLUE}/{ref}", f"art_../{BLUE}/{ref[4:]}", f"{ref}' OR '1'='1"]
    return chance.choice([*forms, URL, f"{URL}?{chance.randrange(9)}"])


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
        vars(self)[name] = run  # where the store keeps what it passed on once
        return run

    TenantStore.__getattr__ = leaky  # type: ignore[method-assign]


async def attack(calls: int, seed: int, folder: Path, *, planted: bool) -> list[str]:
    """Make all calls, and count their answers by code; return what was wrong."""
    chance, faults = dice(seed), list[str]()
    settings = load({"store.folder": str(folder), "quota.requests_per_minute": 0})
    tenants = Tenants(settings)
    red, other, blue = [
        await tenants.stash(tenant, person_run(name))
        for tenant, name in ((RED, "guesser"), (RED, "other"), (BLUE, "other"))
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
    codes, lines = Counter[str](), set[str]()
    for _ in range(calls):
        ref = guessed(chance, foreign)
        tool, arguments = a_call(chance, ref, own)
        try:
            view = await answer(red, host, tool_named(tool, specs), arguments)
        except FetchstashError as error:
            codes[error.code] += 1
            text = error.line() + json.dumps(error.details)
            if error.code == "unknown_ref" and ref in foreign:
                lines.add(text.replace(ref, "REF"))
        else:
            faults.append(f"answered: {tool} {arguments}")
            text = view.text + json.dumps(view.records, default=str)
        if MARKER in text.replace(ref, ""):
            faults.append(f"shown: {tool} {arguments}")
    for tool, arguments in (a_call(chance, own, own) for _ in range(100)):
        await answer(red, host, tool_named(tool, specs), arguments)
    if len(lines) != 1 and not planted:
        faults.append(f"the references of others have {len(lines)} answers: {lines}")
    shown = ", ".join(f"{count:,} {code}" for code, count in codes.most_common())
    print(f"{calls:,} guessed references: {shown}; 100 calls for its own were answered")
    await tenants.aclose()
    return faults


def main() -> int:
    """Attack; return the exit code."""
    args = options(__doc__, calls=1_000_000, seed=1, plant=False)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "store")
        return show(anyio.run(partial(attack, args.calls, args.seed, place, planted=args.plant)))


if __name__ == "__main__":
    sys.exit(main())

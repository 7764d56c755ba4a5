"""Ask as one tenant for what others keep, by a million guessed references; nothing may be served.

    python scripts/torture.d/guesses.py [--calls 1000000] [--seed 1] [--plant]

One tenant keeps artifacts with a marker in their text. Another asks for them with each tool that
takes a reference: random ones, the real ones of the first tenant, those with one character changed,
moved or in another form, names with parts of paths and of queries in them, the URLs of documents,
and lists in which one of its own hides a foreign one. An answer must be an error, the same line for
each kind, and never hold the marker. The same calls, as far as they read what the tenant itself
keeps, are answered. --plant lets a store look into the other tenant's, which must be found.
"""

import argparse
import json
import random
import secrets
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio

from fetchstash.config import load
from fetchstash.errors import FetchstashError, UnknownRef
from fetchstash.ranges import Ranges
from fetchstash.render import Host
from fetchstash.service import Tenants, TenantStore
from fetchstash.stash import Stash
from fetchstash.store import Facts, TextReader
from fetchstash.tools import answer, tool_named, tool_specs

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
    raw, body = (stash.store.spool / secrets.token_hex(8) for _ in range(2))
    raw.write_text(text)
    body.write_text(text)
    facts = Facts(content_kind="text", media_type="text/plain", source_url=url)
    return (await stash.store.put(raw, body, facts, Ranges(), url=url)).artifact_ref


def plant(other: TenantStore) -> None:
    """Let every store look into another one for what it does not have."""
    get, open_text = TenantStore.get, TenantStore.open_text

    async def leaky_get(self: TenantStore, ref_or_url: str) -> Facts:
        try:
            return await get(self, ref_or_url)
        except UnknownRef:
            return await get(other, ref_or_url)

    async def leaky_open(self: TenantStore, ref_or_url: str) -> TextReader:
        try:
            return await open_text(self, ref_or_url)
        except UnknownRef:
            return await open_text(other, ref_or_url)

    TenantStore.get = leaky_get  # type: ignore[method-assign]
    TenantStore.open_text = leaky_open  # type: ignore[method-assign]


async def attack(calls: int, chance: random.Random, folder: Path, *, planted: bool) -> list[str]:
    """Make all calls; return what was wrong."""
    faults: list[str] = []
    codes: Counter[str] = Counter()
    lines: set[str] = set()
    settings = load({"store.folder": str(folder), "quota.requests_per_minute": 0})
    tenants = Tenants(settings)
    red, blue = [await tenants.stash(name) for name in (RED, BLUE)]
    foreign = [await keep(blue, f"{MARKER} {n}\n" * 20, f"{URL}?{n}") for n in range(50)]
    foreign.append(await keep(blue, f"{MARKER}\n", URL))
    own = await keep(red, "a line of red\n" * 20)
    specs = {spec.name: spec for spec in tool_specs(red.settings)}
    host = Host(red.settings.views, local=False)
    if planted:
        assert isinstance(blue.store, TenantStore)
        plant(blue.store)
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
            codes["answered"] += 1
            text = view.text + json.dumps(view.records, default=str)
            faults.append(f"answered: {tool} {arguments}")
        if MARKER in text.replace(ref, ""):
            faults.append(f"shown: {tool} {arguments}")
    for tool, arguments in (a_call(chance, own, own) for _ in range(100)):
        await answer(red, host, tool_named(tool, specs), arguments)
    if len(lines) != 1 and not planted:
        faults.append(f"the references of others have {len(lines)} answers: {lines}")
    await tenants.aclose()
    shown = ", ".join(f"{count:,} {code}" for code, count in codes.most_common())
    print(f"{calls:,} guessed references: {shown}; 100 calls for its own were answered")
    return faults


def main() -> int:
    """Attack; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", action="store_true")
    args = parser.parse_args()
    start = time.monotonic()
    chance = random.Random(args.seed)  # noqa: S311 - it guards nothing
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "store")
        faults = anyio.run(lambda: attack(args.calls, chance, place, planted=args.plant))
    for fault in faults[:20]:
        print(f"FAULT {fault}")
    print(f"{len(faults)} faults, {time.monotonic() - start:.0f} s")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())

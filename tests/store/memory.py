"""A store without a disk: the smallest thing that keeps the contract. The contract's tests must pass on it as on the real one."""

import hashlib
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from fetchstash.errors import BadPattern, ExpiredRef, NoText, OutOfRange, UnknownRef
from fetchstash.ranges import Ranges
from fetchstash.store import (
    REF_PREFIX,
    Facts,
    GrepQuery,
    Line,
    Listing,
    Matches,
    Passage,
    Removed,
    StoreLimits,
)


@dataclass
class Kept:
    """One artifact."""

    run: str
    url: str
    raw: bytes
    text: str | None
    facts: Facts
    ranges: Ranges
    used: int

    @property
    def size(self) -> int:
        return len(self.raw) + len((self.text or "").encode())


@dataclass
class Shelf:
    """What outlives a store that is closed."""

    kept: dict[str, Kept] = field(default_factory=dict[str, Kept])
    expired: set[str] = field(default_factory=set[str])
    uses: int = 0


def take(path: Path) -> bytes:
    """Read a file of the spool and remove it."""
    data = path.read_bytes()
    path.unlink()
    return data


class MemoryReader:
    """A TextReader over a string."""

    def __init__(self, ref: str, text: str, ranges: Ranges) -> None:
        self._ref = ref
        self._text = text
        self._lines = (
            text.splitlines(keepends=True)
            if "\r" not in text
            else re.findall(r"[^\n]*\n|[^\n]+", text)
        )
        self.chars = len(text)
        self.lines = len(self._lines)
        self.bytes = len(text.encode())
        self.ranges = ranges

    async def read_chars(self, start: int, end: int) -> str:
        return self._text[start:end]

    async def read_lines(self, first: int, last: int, max_chars: int) -> str:
        return "".join(self._lines[first - 1 : last])[:max_chars]

    async def char_of_line(self, line: int) -> int:
        if not 1 <= line <= self.lines + 1:
            raise OutOfRange(f"There is no line {line}.", "Ask for another.")
        return sum(len(text) for text in self._lines[: line - 1])

    async def line_of_char(self, char: int) -> int:
        if not 0 <= char <= self.chars:
            raise OutOfRange(f"There is no character {char}.", "Ask for another.")
        return self._text.count("\n", 0, char) + 1

    async def char_of_byte(self, byte: int) -> int:
        return max(len(self._text.encode()[: byte + 1].decode("utf-8", "ignore")) - 1, 0)

    async def grep(self, query: GrepQuery) -> Matches:
        try:
            pattern = re.compile(
                re.escape(query.pattern) if query.literal else query.pattern,
                re.IGNORECASE if query.ignore_case else 0,
            )
        except re.error as error:
            raise BadPattern(str(error), "Mend it.") from error
        hits = [
            n for n, line in enumerate(self._lines, start=1) if pattern.search(line.rstrip("\n"))
        ]
        shown = hits[query.offset : query.offset + query.max_matches]
        groups = tuple((Line(n, self._lines[n - 1].rstrip("\n"), match=True),) for n in shown)
        return Matches(self._ref, groups, query.offset + 1, len(shown), len(hits))

    async def rank(self, query: str, max_results: int) -> tuple[Passage, ...]:
        words = query.lower().split()
        found: list[Passage] = []
        for number, line in enumerate(self._lines, start=1):
            score = sum(line.lower().count(word) for word in words)
            if score:
                found.append(Passage(self._ref, number, number, line.rstrip("\n"), score))
        return tuple(sorted(found, key=lambda passage: -passage.score)[:max_results])

    async def aclose(self) -> None:
        """Nothing is open."""


class MemoryStore:
    """An ArtifactStore in a dict; only its spool is a folder."""

    def __init__(self, limits: StoreLimits, shelf: Shelf) -> None:
        self._limits = limits
        self._shelf = shelf
        self._spool = limits.folder / "spool"
        self._spool.mkdir(parents=True, exist_ok=True)

    @property
    def spool(self) -> Path:
        return self._spool

    async def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        data = take(raw)
        said = take(text).decode() if text else None
        ref = REF_PREFIX + secrets.token_hex(16)
        now = time.time()
        facts = replace(
            facts,
            artifact_ref=ref,
            path=None,
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            created_at=datetime.fromtimestamp(now, UTC),
            expires_at=datetime.fromtimestamp(now + self._limits.max_age_days * 86400, UTC),
            extracted_chars=facts.extracted_chars if said is None else len(said),
            text_bytes=None if said is None else len(said.encode()),
            text_lines=None if said is None else len(re.findall(r"[^\n]*\n|[^\n]+", said)),
        )
        self._shelf.kept[ref] = Kept(self._limits.run, url, data, said, facts, ranges, self._next())
        await self.gc()
        return facts

    async def get(self, ref_or_url: str) -> Facts:
        kept = self._find(ref_or_url)
        kept.used = self._next()
        return kept.facts

    async def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        facts = [
            kept.facts
            for kept in reversed(self._shelf.kept.values())
            if kept.run == self._limits.run
        ]
        return Listing(tuple(facts[offset : offset + limit]), len(facts))

    async def open_text(self, ref_or_url: str) -> MemoryReader:
        kept = self._find(ref_or_url)
        if kept.text is None:
            raise NoText("There is no text.", "Read the facts.")
        kept.used = self._next()
        return MemoryReader(kept.facts.artifact_ref, kept.text, kept.ranges)

    async def open_raw(self, ref_or_url: str) -> Path:
        kept = self._find(ref_or_url)
        path = self._limits.folder / kept.facts.artifact_ref
        path.write_bytes(kept.raw)
        return path

    async def search(
        self, query: str, refs: Sequence[str], max_results: int
    ) -> tuple[Passage, ...]:
        found: list[Passage] = []
        for ref in refs or [
            k.facts.artifact_ref
            for k in self._shelf.kept.values()
            if k.run == self._limits.run and k.text is not None
        ]:
            found += await (await self.open_text(ref)).rank(query, max_results)
        return tuple(sorted(found, key=lambda passage: -passage.score)[:max_results])

    async def touch(self, ref: str, facts: Facts | None = None) -> Facts:
        kept = self._find(ref)
        kept.used = self._next()
        names = (
            "artifact_ref",
            "path",
            "size_bytes",
            "sha256",
            "created_at",
            "extracted_chars",
            "text_bytes",
            "text_lines",
            "pinned",
        )
        own = {name: getattr(kept.facts, name) for name in names}
        own["expires_at"] = datetime.fromtimestamp(
            time.time() + self._limits.max_age_days * 86400, UTC
        )
        kept.facts = replace(facts or kept.facts, **own)
        return kept.facts

    async def pin(self, ref: str, *, pinned: bool = True) -> Facts:
        kept = self._find(ref)
        kept.facts = replace(kept.facts, pinned=pinned)
        return kept.facts

    async def delete(self, ref: str) -> None:
        del self._shelf.kept[self._find(ref).facts.artifact_ref]

    async def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:
        gone: list[Removed] = []
        own = [
            k for k in self._shelf.kept.values() if k.run == self._limits.run and not k.facts.pinned
        ]
        own.sort(key=lambda kept: kept.used)
        now = datetime.fromtimestamp(time.time(), UTC)
        left = [k for k in own if k.facts.expires_at and k.facts.expires_at > now]
        gone += [Removed(k.facts.artifact_ref, k.size, "age") for k in own if k not in left]
        while len(left) > self._limits.max_artifacts:
            gone.append(Removed(left[0].facts.artifact_ref, left.pop(0).size, "count"))
        while sum(k.size for k in left) > self._limits.max_total_bytes:
            gone.append(Removed(left[0].facts.artifact_ref, left.pop(0).size, "bytes"))
        for removed in gone if not dry_run else ():
            del self._shelf.kept[removed.artifact_ref]
            self._shelf.expired.add(removed.artifact_ref)
        return tuple(gone)

    async def aclose(self) -> None:
        if self._limits.ephemeral:
            self._shelf.kept = {
                ref: kept for ref, kept in self._shelf.kept.items() if kept.run != self._limits.run
            }

    def _next(self) -> int:
        self._shelf.uses += 1
        return self._shelf.uses

    def _find(self, ref_or_url: str) -> Kept:
        if ref_or_url in self._shelf.kept:
            return self._shelf.kept[ref_or_url]
        if ref_or_url in self._shelf.expired:
            raise ExpiredRef("It was removed.", "Fetch it again.")
        for kept in reversed(self._shelf.kept.values()):
            if kept.url == ref_or_url and kept.run == self._limits.run:
                return kept
        raise UnknownRef("There is no such artifact.", "Fetch it.")

"""A whole store of a program's own: dictionaries, and the public names of fetchstash.store."""

import hashlib
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from fetchstash import store
from fetchstash.errors import NoText, UnknownRef
from fetchstash.ranges import Ranges
from fetchstash.store import BytesSource, Facts, StoredText, StrideIndex, TextReader


class OwnStore:
    def __init__(self) -> None:
        self.spool = Path(tempfile.mkdtemp())
        self.facts: dict[str, Facts] = {}
        self.refs: dict[str, str] = {}
        self.raws: dict[str, bytes] = {}
        self.texts: dict[str, tuple[bytes, StrideIndex, Ranges]] = {}

    async def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        data = raw.read_bytes()
        words = None if text is None else text.read_bytes()
        index = None if words is None else StrideIndex.of(words)
        sha256 = hashlib.sha256(data).hexdigest()
        facts = store.stamp(facts, sha256, len(data), index, now=time.time(), max_age_days=7)
        ref = self.refs[url or facts.artifact_ref] = facts.artifact_ref
        self.facts[ref], self.raws[ref] = facts, data
        if words is not None and index is not None:
            self.texts[ref] = (words, index, ranges)
        return facts

    async def get(self, ref_or_url: str) -> Facts:
        ref = self.refs.get(ref_or_url, ref_or_url)
        if ref not in self.facts:
            raise UnknownRef(f"There is no artifact {ref_or_url}.", "Fetch it.")
        return self.facts[ref]

    async def list(self, *, limit: int = 100, offset: int = 0) -> store.Listing:
        newest = tuple(reversed(self.facts.values()))
        return store.Listing(newest[offset : offset + limit], len(newest))

    async def open_text(self, ref_or_url: str) -> TextReader:
        ref = (await self.get(ref_or_url)).artifact_ref
        if ref not in self.texts:
            raise NoText(f"{ref} has no text.", "Read its bytes.")
        words, index, ranges = self.texts[ref]
        return TextReader(ref, BytesSource(words), index, ranges)

    @asynccontextmanager
    async def open_raw(self, ref_or_url: str) -> AsyncGenerator[Path]:
        ref = (await self.get(ref_or_url)).artifact_ref
        path = self.spool / f"open-{ref}"
        path.write_bytes(self.raws[ref])
        yield path

    async def search(self, query: str, refs: Sequence[str], max_results: int) -> store.SearchResult:
        texts = {ref: StoredText(BytesSource(t[0]), t[1]) for ref, t in self.texts.items()}
        return store.rank_texts(query, refs or list(texts), texts.get, max_results, lambda: False)

    async def touch(self, ref: str, facts: Facts | None = None) -> Facts:
        self.facts[ref] = store.keep_store_facts(facts or self.facts[ref], self.facts[ref])
        return self.facts[ref]

    async def pin(self, ref: str, *, pinned: bool = True) -> Facts:
        self.facts[ref] = replace(self.facts[ref], pinned=pinned)
        return self.facts[ref]

    async def delete(self, ref: str) -> None:
        del self.facts[ref]

    async def gc(self, **_: bool) -> tuple[store.Removed, ...]:
        return ()

    async def check(self) -> tuple[store.Finding, ...]:
        return ()

    async def repair(self) -> tuple[store.Finding, ...]:
        return ()

    async def aclose(self) -> None:
        shutil.rmtree(self.spool)

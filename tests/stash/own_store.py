"""A whole store of a program's own: dictionaries, and the public names of fetchstash.store."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from fetchstash.errors import NoText, UnknownRef
from fetchstash.store import ArtifactStore, Facts, Listing, TextReader, keep_store_facts, new_facts
from fetchstash.text.ranges import Ranges
from fetchstash.text.urls import key_of


class OwnStore(ArtifactStore):
    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self.facts: dict[str, Facts] = {}
        self.refs: dict[str, str] = {}
        self.texts: dict[str, tuple[bytes, Ranges]] = {}

    @property
    def spool(self) -> Path:
        return self._spool

    async def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        facts = new_facts(facts, raw, text)
        ref = self.refs[key_of(url) or facts.artifact_ref] = facts.artifact_ref
        self.facts[ref] = facts
        if text:
            self.texts[ref] = (text.read_bytes(), ranges)
        raw.replace(self.spool / ref)
        return facts

    async def get(self, ref_or_url: str) -> Facts:
        ref = self.refs.get(key_of(ref_or_url), ref_or_url)
        if ref not in self.facts:
            raise UnknownRef(f"There is no artifact {ref_or_url}.", "Fetch it.")
        return self.facts[ref]

    async def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        newest = tuple(reversed(self.facts.values()))
        return Listing(newest[offset : offset + limit], len(newest))

    async def open_text(self, ref_or_url: str) -> TextReader:
        ref = (await self.get(ref_or_url)).artifact_ref
        if ref not in self.texts:
            raise NoText(f"{ref} has no text.", "Read its bytes.")
        return TextReader.of(ref, *self.texts[ref])

    @asynccontextmanager
    async def open_raw(self, ref_or_url: str) -> AsyncGenerator[Path]:
        yield self.spool / (await self.get(ref_or_url)).artifact_ref

    async def touch(self, ref: str, facts: Facts | None = None) -> Facts:
        self.facts[ref] = keep_store_facts(facts or self.facts[ref], self.facts[ref])
        return self.facts[ref]

    async def pin(self, ref: str, *, pinned: bool = True) -> Facts:
        self.facts[ref] = replace(self.facts[ref], pinned=pinned)
        return self.facts[ref]

    async def delete(self, ref: str) -> None:
        del self.facts[ref]

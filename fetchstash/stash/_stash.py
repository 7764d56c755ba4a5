"""Stash: fetch, take in, read back."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from fetchstash import render, telemetry
from fetchstash.config import Settings, load
from fetchstash.errors import BadArgument, ExpiredRef, FetchstashError, NoText, UnknownRef
from fetchstash.fetch import Fetched, Fetcher, Progress, mask_url, may_keep, open_fetcher
from fetchstash.handlers import (
    TEXT_KINDS,
    Extractor,
    Hints,
    PartRequest,
    Picture,
    Render,
    WorkerPool,
    route_file,
)
from fetchstash.hygiene import clean_line
from fetchstash.ranges import Preview, Unit
from fetchstash.render import Arrival, Failure, Found, Hit, Host, Subject, View
from fetchstash.stash import _read
from fetchstash.stash._files import copy_in, copy_out
from fetchstash.stash._revisit import cached_of, revalidated, said_of, same_again, with_response
from fetchstash.stash._subject import decision_of, hints_of, subject_of, with_findings
from fetchstash.store import (
    ArtifactStore,
    Facts,
    GrepQuery,
    Listing,
    Passage,
    TextReader,
    open_store,
)

MAX_URLS = 10
MAX_REFS = 10
FOCUS_PASSAGES = 8
FOCUS_LINES = 20
"""Lines around the best passage that a preview suggests to read."""


@dataclass(frozen=True, slots=True)
class Stash:
    """Fetches content, keeps it, and shows bounded views of it. ``async with Stash.open() as stash``.

    Every method raises the errors of fetchstash.errors and nothing else. Views are made for
    ``host``. ``passing`` are the artifacts that go when this closes, because their server said
    no-store (RFC 9111, section 5.2.2.5), ``arriving`` the URLs on their way.
    """

    settings: Settings
    host: Host
    fetcher: Fetcher
    extractor: Extractor
    store: ArtifactStore
    passing: set[str]
    arriving: "WeakValueDictionary[str, anyio.Lock]"

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings | None = None, *, local: bool = True
    ) -> AsyncGenerator["Stash"]:
        """Open the store and get ready to fetch. ``local``: whoever reads the views shares our file system."""
        settings = settings or load()
        telemetry.configure(settings.telemetry.event_log, settings.telemetry.event_log_max_bytes)
        fetcher = open_fetcher(settings.fetch)
        extractor = WorkerPool(settings.extract)
        try:
            store = await open_store(settings.store)
            passing: set[str] = set()
            try:
                host = Host(settings.views, local, settings.context)
                yield cls(settings, host, fetcher, extractor, store, passing, WeakValueDictionary())
            finally:
                with anyio.CancelScope(shield=True):
                    for ref in passing:
                        with suppress(FetchstashError):
                            await store.delete(ref)
                    await store.aclose()
        finally:
            with anyio.CancelScope(shield=True):
                await extractor.aclose()
                await fetcher.aclose()

    # --- taking in --------------------------------------------------------------------------------------------------

    async def fetch(
        self,
        urls: Sequence[str],
        *,
        focus: str = "",
        max_chars: int | None = None,
        refresh: bool = False,
        progress: Progress | None = None,
    ) -> View:
        """Fetch one URL, or up to ten in parallel, and show what came: whole where it fits, else a preview and a reference.

        ``focus`` says in words what the caller is after; ``refresh`` asks the server even where a
        kept copy is still fresh. One URL that fails raises its error; of several each that fails
        has its line, and none spoils the others.
        """
        if not 1 <= len(urls) <= MAX_URLS:
            raise BadArgument(f"There are {len(urls)} urls.", f"Give 1 to {MAX_URLS}.")
        limit = self.host.max_chars(max_chars, self.host.limits.inline_threshold)
        if len(urls) == 1:
            arrival = await self._arrive(urls[0], focus, limit, refresh=refresh, progress=progress)
            return render.fetched(self.host, arrival, max_chars)
        results: dict[int, Arrival | Failure] = {}

        async def one(position: int, url: str) -> None:
            try:
                results[position] = await self._arrive(
                    url, focus, limit, refresh=refresh, progress=None
                )
            except FetchstashError as error:
                results[position] = Failure(error, clean_line(mask_url(url)))
            if progress:
                progress(len(results), len(urls))

        async with anyio.create_task_group() as tasks:
            for position, url in enumerate(urls):
                tasks.start_soon(one, position, url)
        return render.fetched_several(
            self.host, [results[position] for position in range(len(urls))], max_chars
        )

    async def add_file(self, path: Path, *, focus: str = "", max_chars: int | None = None) -> View:
        """Take in a file of this machine, as ``fetch`` does a URL. It must lie in one of ``ingest.read_roots``."""
        copy = await anyio.to_thread.run_sync(
            copy_in, path, self.settings.ingest.read_roots, self.store.spool
        )
        try:
            facts = await self._take_in(copy, Hints(name=path.name), Facts(), url="")
        finally:
            copy.unlink(missing_ok=True)
        limit = self.host.max_chars(max_chars, self.host.limits.inline_threshold)
        return render.fetched(self.host, await self._arrival(facts, focus, limit), max_chars)

    async def _arrive(
        self, url: str, focus: str, limit: int, *, refresh: bool, progress: Progress | None
    ) -> Arrival:
        """Bring one URL in by way of what is kept of it: a fresh copy is used, a stale one asked after (RFC 9111, section 4).

        Calls for one URL wait for each other, so that the later ones find what the first one kept.
        """
        async with self.arriving.setdefault(url, anyio.Lock()):
            return await self._arrive_alone(url, focus, limit, refresh=refresh, progress=progress)

    async def _arrive_alone(
        self, url: str, focus: str, limit: int, *, refresh: bool, progress: Progress | None
    ) -> Arrival:
        known = await self._known(url)
        cached = cached_of(known) if known else None
        if (
            known
            and cached
            and not refresh
            and (from_cache := await anyio.to_thread.run_sync(said_of, cached))
        ):
            telemetry.count("cache", outcome="fresh")
            facts = await self.store.touch(known.artifact_ref)
            return await self._arrival(facts, focus, limit, from_cache=from_cache)
        with telemetry.span("fetch"):
            fetched = await self.fetcher.fetch(
                url, self.store.spool, cached=cached, progress=progress
            )
        telemetry.count("bytes_in", fetched.size_bytes)
        telemetry.count(
            "cache",
            outcome="not_modified" if fetched.not_modified else "stale" if known else "miss",
        )
        if fetched.path is None:
            assert known is not None  # only a conditional request is answered without a body
            facts = await self.store.touch(known.artifact_ref, revalidated(known, fetched))
            return await self._arrival(
                facts, focus, limit, from_cache="kept copy; the server says that it has not changed"
            )
        try:
            return await self._arrival(await self._keep(fetched, fetched.path, known), focus, limit)
        finally:
            fetched.path.unlink(missing_ok=True)

    async def _keep(self, fetched: Fetched, raw: Path, known: Facts | None) -> Facts:
        """Take a response in; where it is what is kept already, that stays, with the response's news."""
        if known and same_again(known, renewed := with_response(known, fetched), fetched.sha256):
            return await self.store.touch(known.artifact_ref, renewed)
        declared = fetched.headers.get("content-type", "")
        hints = Hints(url=fetched.masked_final_url, declared_type=declared, name=fetched.name)
        facts = await self._take_in(raw, hints, with_response(Facts(), fetched), url=fetched.url)
        if not may_keep(fetched.headers):
            self.passing.add(facts.artifact_ref)
        return facts

    async def _known(self, url: str) -> Facts | None:
        """Return what is kept of this URL."""
        try:
            return await self.store.get(url)
        except (UnknownRef, ExpiredRef):
            return None

    async def _take_in(self, raw: Path, hints: Hints, facts: Facts, *, url: str) -> Facts:
        """Route, extract and keep one file."""
        shadow = self.settings.ingest.router == "shadow"
        headers = {"content-type": hints.declared_type} if hints.declared_type else {}
        decision = await anyio.to_thread.run_sync(
            lambda: route_file(raw, headers, hints.name or hints.url, shadow=shadow)
        )
        hints = replace(hints, charset=decision.charset)
        with telemetry.span("extract", content_kind=decision.kind):
            extraction = await self.extractor.extract(raw, decision, hints, self.store.spool)
        threshold = self.host.limits.inline_threshold
        facts = with_findings(
            facts, decision, extraction, name=hints.name, inline_threshold=threshold
        )
        try:
            kept = await self.store.put(raw, extraction.text, facts, extraction.ranges, url=url)
        finally:
            if extraction.text is not None:
                extraction.text.unlink(missing_ok=True)
        telemetry.event(
            "ingest.decision",
            artifact_ref=kept.artifact_ref,
            content_kind=kept.content_kind,
            media_type=kept.media_type,
            declared_type=kept.declared_type,
            decided_by=kept.decided_by,
            evidence=list(kept.evidence),
            handler=kept.handler,
            shadow=decision.shadow,
        )
        telemetry.count("extracted_chars", kept.extracted_chars or 0)
        return kept

    async def _arrival(
        self, facts: Facts, focus: str, limit: int, *, from_cache: str = ""
    ) -> Arrival:
        """Return what a view of a fetch needs: the text's beginning, and a better glimpse of a text that does not fit."""
        subject = subject_of(facts, local=self.host.local, from_cache=from_cache)
        if facts.extracted_chars is None:
            return Arrival(subject, picture=await self._picture_of(facts))
        async with self._text(facts.artifact_ref) as reader:
            text = await reader.read_chars(0, limit + 1)
            if len(text) == reader.chars and self.host.measure(text) <= limit:
                return Arrival(subject, text)
            ranked: Sequence[Passage] = (
                await reader.rank(focus, FOCUS_PASSAGES) if focus.strip() else ()
            )
            if ranked:
                hits = [Hit(subject, p.first_line, p.last_line, p.text) for p in ranked]
                body, shown = render.passages(
                    hits, min(self.host.limits.preview_chars, limit), self.host
                )
                glimpse = Preview(body, lines_shown=body.count("\n") + 1 - shown)
                around = (max(hits[0].first_line - FOCUS_LINES, 1), hits[0].last_line + FOCUS_LINES)
                return Arrival(subject, text, glimpse, lines=around)
            ending = ""
            if facts.content_kind in TEXT_KINDS and not reader.ranges.preview.text:
                ending = await reader.read_chars(max(reader.chars - limit, 0), reader.chars)
            return Arrival(
                subject, text, reader.ranges.preview, ending, unfocused=bool(focus.strip())
            )

    async def _picture_of(self, facts: Facts) -> tuple[bytes, str] | None:
        if facts.content_kind != "image" or facts.extraction_error:
            return None
        try:
            found = await self._handler_part(facts, render="image")
        except FetchstashError:
            return None  # its facts are the result; artifact_slice says why there is no picture
        return (found.data, found.media_type) if isinstance(found, Picture) else None

    # --- reading back -----------------------------------------------------------------------------------------------

    async def read(self, ref_or_url: str, offset: int = 0, max_chars: int | None = None) -> View:
        """Show the stored text from character ``offset`` on."""
        facts = await self.store.get(ref_or_url)
        async with self._text(facts.artifact_ref) as reader:
            reading = await _read.onwards(
                reader, self._subject(facts), offset, self._reach(max_chars)
            )
        return render.read(self.host, reading, max_chars)

    async def slice(
        self,
        ref_or_url: str,
        *,
        path: str = "",
        unit: Unit = "lines",
        start: int | None = None,
        end: int | None = None,
        max_chars: int | None = None,
    ) -> View:
        """Show exactly a part of an artifact: lines, characters, bytes, pages or rows, of the whole or of what ``path`` names."""
        facts = await self.store.get(ref_or_url)
        subject, reach = self._subject(facts), self._reach(max_chars)
        if _read.answered_by_handler(facts, path):
            found = await self._handler_part(facts, path=path, unit="chars")
            if isinstance(found, Picture):
                raise BadArgument("That part is a picture.", 'Use render="image".')
            reading = _read.of_value(found, subject, path, unit, start, end)
        elif unit == "bytes" and facts.extracted_chars is None:
            async with self.store.open_raw(facts.artifact_ref) as raw:
                reading = await anyio.to_thread.run_sync(
                    lambda: _read.hex_dump(raw, subject, start, end, reach)
                )
        else:
            async with self._text(facts.artifact_ref) as reader:
                reading = await _read.part(
                    reader, subject, facts.outline, path, unit, start, end, reach
                )
        return render.read(self.host, reading, max_chars)

    async def render(self, ref_or_url: str, *, path: str = "", start: int | None = None) -> View:
        """Show page ``start`` (from 1), or an image, as a picture within the image bounds."""
        facts = await self.store.get(ref_or_url)
        found = await self._handler_part(facts, path=path, start=start, end=start, render="image")
        if not isinstance(found, Picture):
            raise BadArgument("That part is no picture.", 'Use render="text".')
        page = None if facts.content_kind == "image" else start
        return render.picture(
            self._subject(facts), found.data, found.media_type, found.width, found.height, page=page
        )

    async def grep(
        self, refs_or_urls: Sequence[str], query: GrepQuery, *, max_chars: int | None = None
    ) -> View:
        """Show the lines of one or several artifacts that match, with their numbers, their context and the count of all."""
        if not 1 <= len(refs_or_urls) <= MAX_REFS:
            raise BadArgument(
                f"There are {len(refs_or_urls)} artifact_refs.", f"Give 1 to {MAX_REFS}."
            )
        found: list[Found] = []
        skip, wanted = query.offset, query.max_matches
        for ref in refs_or_urls:
            facts = await self.store.get(ref)
            async with self._text(facts.artifact_ref) as reader:
                matches = await reader.grep(replace(query, offset=skip, max_matches=max(wanted, 1)))
            shown = matches.shown if wanted else 0
            groups = matches.groups if wanted else ()
            found.append(
                Found(
                    self._subject(facts),
                    groups,
                    min(skip, matches.total),
                    matches.total,
                    matches.stopped,
                )
            )
            skip, wanted = max(skip - matches.total, 0), max(wanted - shown, 0)
        total = sum(one.total for one in found)
        if (
            total and query.offset >= total and not any(one.stopped for one in found)
        ):  # else there may be more
            raise _read.past_the_matches(query.offset, total)
        return render.grep(
            self.host, found, query.offset, _arguments(refs_or_urls, query), max_chars
        )

    async def search(
        self,
        query: str,
        refs_or_urls: Sequence[str] = (),
        *,
        max_results: int = 8,
        max_chars: int | None = None,
    ) -> View:
        """Show the passages that match ``query`` best, out of the artifacts named or of all the run's."""
        if len(refs_or_urls) > MAX_REFS:
            raise BadArgument(
                f"There are {len(refs_or_urls)} artifact_refs.", f"Give up to {MAX_REFS}."
            )
        named = {
            facts.artifact_ref: facts
            for facts in [await self.store.get(ref) for ref in refs_or_urls]
        }
        result = await self.store.search(query, list(named), max_results)
        searched = len(named) or (await self.store.list(limit=1)).total
        hits = [await self._hit(passage, named) for passage in result.passages]
        return render.search(self.host, hits, searched, max_chars, pending=result.pending)

    async def _hit(self, passage: Passage, known: dict[str, Facts]) -> Hit:
        if passage.artifact_ref not in known:
            known[passage.artifact_ref] = await self.store.get(passage.artifact_ref)
        subject = self._subject(known[passage.artifact_ref])
        return Hit(subject, passage.first_line, passage.last_line, passage.text)

    async def info(self, ref_or_url: str) -> View:
        """Show the facts, the outline and how to read an artifact."""
        facts = await self.store.get(ref_or_url)
        return render.info(self.host, self._subject(facts), facts.outline)

    async def list(self, *, limit: int = 100) -> View:
        """Show the run's artifacts, newest first."""
        listing: Listing = await self.store.list(limit=limit)
        subjects = [self._subject(facts) for facts in listing.facts]
        return render.listing(self.host, self.settings.store.run, subjects, listing.total)

    async def export(self, ref_or_url: str, target: Path, *, raw: bool = False) -> None:
        """Write an artifact's whole text, or its bytes as they came, to ``target``, which is replaced at once or not at all."""
        facts = await self.store.get(ref_or_url)
        if not raw and facts.extracted_chars is None:
            raise NoText(f"{facts.artifact_ref} has no text.", "Ask for its bytes with --raw.")
        if raw:
            async with self.store.open_raw(facts.artifact_ref) as source:
                await anyio.to_thread.run_sync(copy_out, source, target)
            return
        if facts.path is not None:
            await anyio.to_thread.run_sync(copy_out, Path(facts.path), target)
            return
        async with self._text(facts.artifact_ref) as reader:
            text = await reader.read_chars(0, reader.chars)
        copy = self.store.spool / f"export-{facts.artifact_ref}"
        try:
            await anyio.to_thread.run_sync(copy.write_bytes, text.encode())
            await anyio.to_thread.run_sync(copy_out, copy, target)
        finally:
            copy.unlink(missing_ok=True)

    async def pin(self, ref_or_url: str, *, pinned: bool = True) -> None:
        """Keep an artifact whatever its age, or let retention have it again."""
        await self.store.pin((await self.store.get(ref_or_url)).artifact_ref, pinned=pinned)

    async def delete(self, ref_or_url: str) -> None:
        """Forget an artifact."""
        await self.store.delete((await self.store.get(ref_or_url)).artifact_ref)

    def _subject(self, facts: Facts) -> Subject:
        return subject_of(facts, local=self.host.local)

    def _reach(self, max_chars: int | None) -> int:
        """Return how many characters a read needs: one more than fits tells that there are more."""
        return self.host.max_chars(max_chars, self.host.limits.default_max_chars) + 1

    @asynccontextmanager
    async def _text(self, ref: str) -> AsyncGenerator[TextReader]:
        reader = await self.store.open_text(ref)
        try:
            yield reader
        finally:
            with anyio.CancelScope(shield=True):
                await reader.aclose()

    async def _handler_part(
        self,
        facts: Facts,
        *,
        path: str = "",
        unit: Unit = "pages",
        start: int | None = None,
        end: int | None = None,
        render: Render = "text",
    ) -> Any:
        async with self.store.open_raw(facts.artifact_ref) as raw:
            request = PartRequest(
                source=raw,
                path=path,
                unit=unit,
                start=start,
                end=end,
                render=render,
                hints=hints_of(facts),
            )
            return await self.extractor.part(decision_of(facts), request)


def _arguments(refs_or_urls: Sequence[str], query: GrepQuery) -> dict[str, Any]:
    """Return the arguments of a grep that were not the default, as the next call repeats them."""
    default = GrepQuery("")
    options = ("literal", "ignore_case", "context", "max_matches")
    refs = (
        {"artifact_ref": refs_or_urls[0]}
        if len(refs_or_urls) == 1
        else {"artifact_refs": list(refs_or_urls)}
    )
    changed = {
        name: getattr(query, name)
        for name in options
        if getattr(query, name) != getattr(default, name)
    }
    return {**refs, "pattern": query.pattern, **changed}

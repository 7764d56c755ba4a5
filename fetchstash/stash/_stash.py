"""Stash: fetch, keep, read back."""

import logging
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Self
from urllib.parse import urldefrag

import anyio
import anyio.to_thread

from fetchstash import handlers
from fetchstash.config import Settings
from fetchstash.errors import (
    BadArgument,
    Call,
    FetchstashError,
    HttpError,
    NoText,
    OutOfRange,
    StoreError,
    type_checked,
)
from fetchstash.fetch import Progress, mask_url
from fetchstash.stash import _find, _read, _site
from fetchstash.stash._artifact import Artifact
from fetchstash.stash._changes import CHANGES
from fetchstash.stash._documents import Documents, copy_in, copy_out, replacing
from fetchstash.stash._facts import Excerpt
from fetchstash.stash._intake import NEXT, SITE, Intake, is_web_page
from fetchstash.stash._read import Part, asks_for
from fetchstash.stash._refs import whole_refs
from fetchstash.stash._scans import Scans, is_image
from fetchstash.stash._trace import Trace, trace
from fetchstash.stash._values import (
    CacheUse,
    Deleted,
    Failure,
    Listing,
    Matches,
    Passages,
    Picture,
    Slice,
)
from fetchstash.store import REF_PREFIX, ArtifactStore, Facts, Finding, GrepQuery, Removed
from fetchstash.system.processes import new_file
from fetchstash.text import ViewLimits, clip
from fetchstash.text.hygiene import clean_line
from fetchstash.text.ranges import Unit
from fetchstash.text.urls import without_ending

MAX_URLS = 10
MAX_REFS = 10
EXPORT_CHARS = 2**20
"""Characters of a text that an export reads at a time."""
_LEADS_NOWHERE = (400, 404, 410)
_log = logging.getLogger("fetchstash.stash")


@dataclass(frozen=True, slots=True, repr=False)
@type_checked
class Stash:
    """Fetches documents, keeps them as artifacts, and reads them back. ``open_stash`` makes one.

    Every method raises the errors of fetchstash.errors and nothing else. An artifact is named by
    its reference or by the URL that it was fetched from. ``rooms`` closes what the stash opened.
    """

    settings: Settings
    store: ArtifactStore
    documents: Documents
    intake: Intake
    scans: Scans
    rooms: AsyncExitStack = field(default_factory=AsyncExitStack, compare=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close what the stash opened. A second time it does nothing."""
        await self.rooms.aclose()

    # --- taking in --------------------------------------------------------------------------------

    async def fetch(
        self,
        url: str,
        *,
        focus: str = "",
        max_chars: int | None = None,
        refresh: bool = False,
        deadline: float | None = None,
        progress: Progress | None = None,
        reading: Progress | None = None,
    ) -> Artifact:
        """Fetch a URL and return its artifact.

        ``focus`` says in words what the preview of a long text should show. A text of at most
        ``max_chars`` characters (views.inline_threshold if None) needs no preview. ``refresh`` asks
        the server even where the stored copy is still fresh. ``deadline`` is how many seconds the
        call may take (fetch.deadline_seconds if None); what has come by then is kept, and its facts
        say that it is ``incomplete``. ``progress`` is called with the bytes that came, and of how
        many if the server says so, ``reading`` with the pages that were read.
        Where a URL leads to nothing that ends in a full stop or a bracket, as in a sentence, it is
        fetched without that, and ``Artifact.note`` says so.
        """
        _check_one(url)
        limit, until = self._preview_limit(max_chars), self._deadline(deadline)
        take = partial(
            self.intake.url, refresh=refresh, progress=progress, on_page=reading, until=until
        )
        note = ""
        try:
            facts, cache = await take(url)
        except (BadArgument, HttpError) as error:
            shorter = without_ending(url)
            if not shorter or error.details.get("status", 404) not in _LEADS_NOWHERE:
                raise
            try:
                facts, cache = await take(shorter)
            except FetchstashError:
                raise error from None
            note = (
                f"Fetched without the {url[len(shorter) :]!r} at its end: with it {_fate(error)}."
            )
        facts = await self.scans.first_pages(facts, limit, until, reading)
        fragment = urldefrag(url).fragment
        artifact = await self._artifact(facts, focus, limit, cache, fragment=fragment)
        return replace(artifact, note=note)

    async def fetch_many(
        self,
        urls: Sequence[str],
        *,
        focus: str = "",
        max_chars: int | None = None,
        refresh: bool = False,
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> tuple[Artifact | Failure, ...]:
        """Fetch up to ten URLs in parallel; return each one's artifact, or why it failed, in order.

        Their previews share ``max_chars``. With a focus they are the passages of all that answer it
        best, and a document that answers it less than others has none. ``deadline`` is as in
        ``fetch``, of each. ``progress`` is called with the number of URLs that are done, and of
        all.
        """
        _check_list("urls", urls, 1, MAX_URLS)
        limit = self._preview_limit(max_chars)
        results: dict[int, Artifact | Failure] = {}

        async def fetch(position: int, url: str) -> None:
            try:
                results[position] = await self.fetch(
                    url, max_chars=limit, refresh=refresh, deadline=deadline
                )
            except FetchstashError as error:
                if isinstance(error, StoreError):
                    _log.warning("A URL of several was not kept: %s", error)
                results[position] = Failure(clean_line(mask_url(url)), error)
            if progress:
                progress(len(results), len(urls))

        async with anyio.create_task_group() as tasks:
            for position, url in enumerate(urls):
                tasks.start_soon(fetch, position, url)
        ordered = tuple(results[position] for position in range(len(urls)))
        return await self._focused(ordered, focus, limit) if focus.strip() else ordered

    async def _focused(
        self, results: Sequence[Artifact | Failure], focus: str, limit: int
    ) -> tuple[Artifact | Failure, ...]:
        """Return the results of a fetch with the passages that answer a focus."""
        texts = {
            item.ref: item.facts
            for item in results
            if isinstance(item, Artifact) and item.facts.extracted_chars is not None
        }
        excerpts = await self.documents.excerpts([*texts.values()], focus, limit)
        return tuple(
            replace(item, excerpt=excerpts[item.ref])
            if isinstance(item, Artifact) and item.ref in excerpts
            else item
            for item in results
        )

    async def fetch_site(
        self,
        url: str,
        *,
        max_pages: int | None = None,
        max_chars: int | None = None,
        refresh: bool = False,
        progress: Progress | None = None,
    ) -> Artifact:
        """Fetch the pages below a URL, by sitemap, llms.txt or links; return their index.

        Grep and search take the index for all of its pages. At most ``max_pages`` come, within the
        settings ingest.site_*. A call that was cut goes on where it ended; ``refresh`` fetches all
        again. ``progress`` is called with the pages that are there, and how many are known of.
        """
        _check_one(url)
        limit, most = self._preview_limit(max_chars), self.settings.ingest.site_pages
        facts, was_whole = await _site.fetch(
            self.intake, url, most=min(max_pages or most, most), refresh=refresh, progress=progress
        )
        return await self._artifact(facts, "", limit, CacheUse() if was_whole else None)

    async def site_pages(self, ref_or_url: str) -> tuple[str, ...]:
        """Return the references of the pages that the index of a site lists, in its order.

        Of any other artifact it is none.
        """
        facts = await self.store.get(ref_or_url)
        return tuple(await _site.pages(self.store, facts)) if facts.site_prefix else ()

    async def add_file(
        self,
        path: str | Path,
        *,
        within: Sequence[str | Path] | None = None,
        focus: str = "",
        max_chars: int | None = None,
        reading: Progress | None = None,
    ) -> Artifact:
        """Keep a file of this machine as ``fetch`` keeps a URL; return its artifact.

        ``within`` are the folders that it must lie in, links resolved (None: anywhere). ``reading``
        is called with the pages that were read. Raises Refused for a file outside of the folders,
        and TooLarge.
        """
        limit, deadline = self._preview_limit(max_chars), self._deadline()
        limit_bytes = self.settings.fetch.max_decoded_bytes
        # Made out here: a thread that a cancelled call leaves behind could not remove it.
        copy = new_file(self.store.spool, "add-")
        try:
            await anyio.to_thread.run_sync(copy_in, Path(path), within, copy, limit_bytes)
            facts = await self.intake.file(copy, Path(path).name, on_page=reading)
        finally:
            copy.unlink(missing_ok=True)
        facts = await self.scans.first_pages(facts, limit, deadline, reading)
        return await self._artifact(facts, focus, limit)

    async def keep_spooled(
        self, file: Path, name: str, *, label: str = "", max_chars: int | None = None
    ) -> Artifact:
        """Keep a file that was written into the store's spool, under ``label`` or ``name``.

        ``name`` alone helps to tell what it is. The file is gone from the spool afterwards.
        ``max_chars`` is as in ``fetch``.
        """
        try:
            limit = self._preview_limit(max_chars)
            facts = await self.intake.file(file, name, label)
        finally:
            file.unlink(missing_ok=True)  # noqa: ASYNC240 - at once, also when cancelled
        return await self._artifact(facts, "", limit)

    def _preview_limit(self, max_chars: int | None) -> int:
        views = self.settings.views
        return views.max_chars(max_chars, views.inline_threshold)

    def _deadline(self, seconds: float | None = None) -> float:
        """Return the time on the loop's clock by which a call that begins now must end."""
        if seconds is None:
            seconds = self.settings.fetch.deadline_seconds
        return anyio.current_time() + seconds

    async def _artifact(
        self,
        facts: Facts,
        focus: str,
        limit: int,
        cache: CacheUse | None = None,
        *,
        fragment: str = "",
    ) -> Artifact:
        excerpt, image = Excerpt(), None
        if facts.extracted_chars is None or is_image(facts):
            image = await self.documents.image(facts)
        if facts.extracted_chars is not None:
            excerpt = await self.documents.excerpt(facts, focus, limit)
            if fragment and not focus.strip():
                excerpt = await self.documents.at_fragment(excerpt, facts, fragment)
        unread = await self.scans.unread(facts)
        return Artifact(facts, self.settings, excerpt, cache, image, unread, stash=self)

    # --- reading back -----------------------------------------------------------------------------

    async def get(self, ref_or_url: str) -> Artifact:
        """Return an artifact by its reference, or the newest of this run that its URL gave.

        The beginning of a reference will do where no other of the run begins so: "art_k3x7q".
        """
        (whole,) = await whole_refs(self, [ref_or_url])
        facts = await self.store.get(whole)
        excerpt = Excerpt()
        if facts.extracted_chars is not None:
            excerpt = await self.documents.excerpt(facts, "", self._preview_limit(None))
        return Artifact(facts, self.settings, excerpt, stash=self)

    async def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        """Return the facts of the run's artifacts, newest first."""
        page = await self.store.list(limit=limit, offset=offset)
        return Listing(self.settings.store.run, page.facts, page.total)

    async def read(
        self, ref_or_url: str, offset: int = 0, *, max_chars: int | None = None
    ) -> Slice:
        """Return the stored text from character ``offset`` on."""
        async with self.documents.opened(ref_or_url) as (facts, text):
            await self.scans.refuse_scan(facts)
            reader = _read.text_of(facts, text)
            return await _read.from_offset(reader, facts, offset, max_chars)

    async def slice(
        self,
        ref_or_url: str,
        *,
        path: str = "",
        unit: Unit = "lines",
        start: int | None = None,
        end: int | None = None,
        max_chars: int | None = None,
        progress: Progress | None = None,
    ) -> Slice:
        """Return exactly a part of an artifact, or of the part that ``path`` points to.

        Lines, pages and rows count from 1, end included; chars and bytes from 0, end excluded.
        ``max_chars`` cuts at the last whole unit that fits. Pages without a text layer are read by
        OCR first; ``progress`` is called with how many of them are read, and of how many.
        """
        part = Part(path, unit, start, end)
        if path or unit == "pages":
            whole = await self._named_part(ref_or_url, part, max_chars, progress)
        else:
            whole = await self._stored_part(ref_or_url, part, max_chars)
        return whole if max_chars is None else whole.cut(max_chars)

    async def _stored_part(self, ref_or_url: str, part: Part, max_chars: int | None) -> Slice:
        """Return a part of the stored text, or of the raw bytes where there is none."""
        async with self.documents.opened(ref_or_url) as (facts, text):
            if part.unit == "bytes" and text is None:
                async with self.raw(facts.artifact_ref) as raw:
                    dump = partial(_read.hex_dump, raw, facts, part, max_chars)
                    return await anyio.to_thread.run_sync(dump)
            if part.unit != "bytes":
                await self.scans.refuse_scan(facts)
            reader = _read.text_of(facts, text)
            return await _read.of_text(reader, facts, part, max_chars)

    async def _named_part(
        self, ref_or_url: str, part: Part, max_chars: int | None, progress: Progress | None
    ) -> Slice:
        """Return a part that its handler may have to find, or that OCR may have to read."""
        deadline = self._deadline()
        facts = await self.store.get(ref_or_url)
        path, unit, start, end = part.path, part.unit, part.start, part.end
        unread: int | None = None
        if asks_for(facts, path, CHANGES):
            changed = await self.documents.changes(facts, path.partition("/")[2])
            return _read.of_value(changed, facts, part)
        if asks_for(facts, path, SITE) and is_web_page(facts):
            facts = await _site.outline(self.intake, facts, full=path == f"{SITE}/full")
            path = ""
        if asks_for(facts, path, NEXT) and facts.next_url:
            facts, _ = await self.intake.url(facts.next_url)
            path = ""
        if path == "text" and is_image(facts):
            facts, path = await self.scans.image(facts, deadline), ""
        elif unit == "pages":
            facts, unread = await self.scans.pages(facts, start, end, max_chars, deadline, progress)
        if unit != "bytes":
            await self.scans.refuse_scan(facts)
        part = Part(path, unit, start, end if unread is None else unread - 1)
        if _read.answered_by_handler(facts, path):
            try:
                value = await self.documents.part(facts, path=path, unit="chars")
            except OutOfRange as error:
                raise _read.with_list_of_parts(error, facts, path) from None
            if isinstance(value, handlers.Picture):
                picture = Call("picture", {"ref": facts.artifact_ref, "path": path})
                raise BadArgument("That part is a picture.", "Try {}.", picture)
            whole = _read.of_value(value, facts, part)
        else:
            whole = await self._stored_part(facts.artifact_ref, part, max_chars)
        return whole if unread is None else replace(whole, unread=unread, asked_end=end)

    async def picture(self, ref_or_url: str, page: int | None = None, *, path: str = "") -> Picture:
        """Return page ``page`` (from 1), or an image, as a picture within the image bounds.

        A picture of a web page is fetched as ``fetch`` does it, and kept as an artifact of its own.
        Without a path a web page is its screenshot, where a browser is switched on.
        """
        facts = await self.store.get(ref_or_url)
        if not path and self.intake.renderer and is_web_page(facts):
            return await self.intake.screenshot(facts)
        shown = await self.documents.picture(facts, page, path)
        if isinstance(shown, str):
            facts, _ = await self.intake.url(shown)
            shown = await self.documents.picture(facts, None, "")
            assert isinstance(shown, Picture)  # only a path leads to an address
        return shown

    async def grep(
        self,
        pattern: str,
        refs_or_urls: Sequence[str],
        *,
        literal: bool = False,
        ignore_case: bool = False,
        context: int = 2,
        max_matches: int = 30,
        offset: int = 0,
    ) -> Matches:
        """Return the lines of one to ten artifacts that match an RE2 pattern, and the count of all.

        The index of a site stands for all of its pages. ``literal``: the pattern is plain text.
        ``context`` lines come with each match; ``offset`` skips that many matches.
        """
        _check_list("artifacts", refs_or_urls, 1, MAX_REFS)
        query = GrepQuery(pattern, literal, ignore_case, context, max_matches, offset)
        return await _find.grep(self.scans, query, refs_or_urls, self._deadline())

    async def search(
        self, query: str, refs_or_urls: Sequence[str] = (), *, max_results: int = 8
    ) -> Passages:
        """Return the passages that match the words of ``query`` best.

        They come out of up to ten artifacts, the index of a site standing for its pages, or of all
        of the run's where none is named.
        """
        _check_list("artifacts", refs_or_urls, 0, MAX_REFS)
        return await _find.search(self.documents, query, refs_or_urls, max_results)

    async def trace(self, text: str) -> Trace:
        """Return for each sentence of ``text`` the passage of the run that supports it best.

        With it come the calls that showed it to a model. Sentences of less than two words of
        content are left out. Raises TooLarge for more than 100,000 characters or 300 sentences.
        """
        return await trace(self.documents, text)

    def raw(self, ref_or_url: str) -> AbstractAsyncContextManager[Path]:
        """Yield a file with an artifact's own bytes, valid while the context is open."""
        return self.store.open_raw(ref_or_url)

    async def export(self, ref_or_url: str, target: str | Path, *, raw: bool = False) -> None:
        """Write an artifact's text, or with ``raw`` its own bytes, to a file.

        The file is replaced at once or not at all.
        """
        facts = await self.store.get(ref_or_url)
        ref, target = facts.artifact_ref, Path(target)
        if raw:
            async with self.raw(ref) as source:
                await anyio.to_thread.run_sync(copy_out, source, target)
            return
        if facts.extracted_chars is None:
            own_bytes = Call("export", {"ref": ref, "target": str(target), "raw": True})
            raise NoText(f"{ref} has no text.", "Try {}.", own_bytes)
        async with self.documents.text(ref) as reader:
            with replacing(target) as file:
                for start in range(0, reader.chars, EXPORT_CHARS):
                    text = await reader.read_chars(start, start + EXPORT_CHARS)
                    await anyio.to_thread.run_sync(file.write, text.encode())

    # --- housekeeping -----------------------------------------------------------------------------

    async def pin(self, ref_or_url: str, *, pinned: bool = True) -> None:
        """Keep an artifact whatever its age, or with ``pinned=False`` let retention remove it."""
        await self.store.pin((await self.store.get(ref_or_url)).artifact_ref, pinned=pinned)

    async def delete(self, ref_or_url: str) -> Deleted:
        """Delete an artifact; return its facts."""
        facts = await self.store.get(ref_or_url)
        await self.store.delete(facts.artifact_ref)
        return Deleted(facts)

    async def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:
        """Apply retention now; return the removed artifacts, or those that would be removed."""
        return await self.store.gc(dry_run=dry_run)

    async def check(self) -> tuple[Finding, ...]:
        """Examine the store, every file's hash included, and change nothing."""
        return await self.store.check()

    async def repair(self) -> tuple[Finding, ...]:
        """Examine the store and mend its faults."""
        return await self.store.repair()


def with_views(stash: Stash, views: ViewLimits) -> Stash:
    """Return the same stash for a reader with other limits."""
    if views == stash.settings.views:
        return stash
    settings = replace(stash.settings, views=views)
    return replace(stash, settings=settings, documents=replace(stash.documents, settings=settings))


def _fate(error: BadArgument | HttpError) -> str:
    """Return how a URL failed, as a clause."""
    if isinstance(error, HttpError):
        return f"the server answers {error.details['status']}"
    return "it is no URL"


def _check_one(url: str) -> None:
    """Raise BadArgument for a reference."""
    if url.startswith(REF_PREFIX):
        what = f"{clip(url, 60)} is a reference, not a URL."
        raise BadArgument(what, "{} reads it.", Call("read", {"ref": url}))


def _check_list(name: str, values: Sequence[str], low: int, high: int) -> None:
    """Raise BadArgument for too few or too many."""
    if not low <= len(values) <= high:
        raise BadArgument(f"There are {len(values)} {name}.", f"Give {low} to {high}.")

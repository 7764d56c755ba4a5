"""Fetch a whole site: the pages below an address, from sitemaps, llms.txt or links.

The pages are artifacts like any other, and an index lists them: an artifact whose text is also the
state of the work, so that a call that was cut goes on. Every address goes through the one fetcher,
which vets it, asks robots.txt, and follows no redirect that leads out of the site.
"""

import heapq
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from fetchstash.errors import (
    BadArgument,
    Call,
    FetchFailed,
    FetchstashError,
    HttpError,
    NoText,
    OverQuota,
    Refused,
    StoreError,
    TimedOut,
)
from fetchstash.fetch import Progress, mask_url
from fetchstash.handlers import PageLinks, kind_of_name
from fetchstash.stash._changes import with_earlier
from fetchstash.stash._index import (
    MOST_KNOWN,
    MOST_SITEMAPS,
    Failed,
    Index,
    Page,
    links_below,
    prefix_of,
    read_sitemap,
)
from fetchstash.stash._intake import Intake
from fetchstash.stash._read import beginning
from fetchstash.store import ArtifactStore, Facts
from fetchstash.system.processes import new_file
from fetchstash.text import clip, counted, tokens
from fetchstash.text.hygiene import clean_line
from fetchstash.text.ranges import Heading, Ranges
from fetchstash.text.urls import normal_url

_KEY = "site:"
"""Begins the name of an index in the store, which is no URL that can be fetched."""
_INDEX_NAME = "index.md"
_OUTLINES = frozenset({"markdown", "text"})
_SITEMAP_DEPTH = 3
_MOST_FAILURES = 10
"""Failures in a row that may pass; then the site is taken to be down."""
_SAVE_SECONDS = 1.0


async def outline(intake: Intake, facts: Facts, *, full: bool = False) -> Facts:
    """Return the facts of the llms.txt, or with ``full`` the llms-full.txt, of a page's site.

    It stands in the first folder of the page's path, or at the root (llmstxt.org). Where there
    is no llms.txt the llms-full.txt is taken. A web page or an error in its place is none, and
    is not kept. Raises NoText for a site that has none.
    """
    parts = urlsplit(facts.final_url)
    origin = f"{parts.scheme}://{parts.netloc}/"
    first, slash, _ = parts.path.removeprefix("/").partition("/")
    folders = [f"{origin}{first}/", origin] if slash else [origin]
    names = ("llms-full.txt",) if full else ("llms.txt", "llms-full.txt")
    for url in (folder + name for name in names for folder in folders):
        try:
            return (await intake.url(url, within=origin, kinds=_OUTLINES))[0]
        except NoText:
            continue
        except HttpError as error:
            if error.details["status"] >= 500:
                raise
        except Refused as error:
            if not error.details.get("redirected"):
                raise
    links = Call("slice", {"ref": facts.artifact_ref, "path": "links"})
    what = f"{clip(parts.netloc, 200)} has no {' and no '.join(names)}."
    raise NoText(what, "{} lists the links of the page.", links)


async def fetch(
    intake: Intake, url: str, *, most: int, refresh: bool, progress: Progress | None
) -> tuple[Facts, bool]:
    """Fetch up to ``most`` more pages; return the facts of the index, and whether it was complete.

    An index that is not whole goes on, unless ``refresh`` begins a new one. ``progress`` is
    called with the pages that are there, and how many there will be as far as is known.
    """
    start = normal_url(url, intake.settings.fetch.max_url_chars)
    prefix = prefix_of(start)
    if not start or mask_url(prefix) != prefix:
        await intake.fetcher.check(url)
        what = "The address holds a secret, and a site's address is kept."
        raise BadArgument(what, "Give an address without one.")
    key = _KEY + prefix
    async with intake.in_flight.setdefault(key, anyio.Lock()):
        facts = None if refresh else await intake.known(key)
        if facts is None:
            # Facts keep whole seconds; a refresh takes nothing for new that was there before.
            begun = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=refresh)
            index = Index(prefix, begun)
        else:
            await intake.fetcher.check(facts.site_prefix)
            index = await _read_index(intake.store, facts)
            if not index.is_due:
                return await intake.store.touch(facts.artifact_ref), True
        earlier = await intake.known(key) if refresh else None
        most += len(index.pages)
        crawl = _Crawl(intake, index, key, facts, most, refresh=refresh, progress=progress)
        return await with_earlier(intake.store, await crawl.run(start), earlier), False


async def pages(store: ArtifactStore, facts: Facts) -> list[str]:
    """Return the references of the pages that an index lists, in its order."""
    return [page.ref for page in (await _read_index(store, facts)).pages.values()]


async def _read_index(store: ArtifactStore, facts: Facts) -> Index:
    """Return an index out of the store. It may have 10,000 lines: they are read in a thread."""
    text = await beginning(store, facts.artifact_ref)
    return await anyio.to_thread.run_sync(Index.read, text, facts)


@dataclass(slots=True)
class _Crawl:
    """One call that fetches pages into an index.

    ``queue`` orders what waits: addresses with a query last, as calendars and filters have them,
    then those that fewer links lead to. ``stopped`` says why it ended before all was fetched.
    """

    intake: Intake
    index: Index
    key: str
    facts: Facts | None
    most: int
    refresh: bool
    progress: Progress | None
    queue: list[tuple[bool, int, int, str]] = field(
        default_factory=list[tuple[bool, int, int, str]]
    )
    stopped: str = ""
    broken: FetchstashError | None = None
    received: int = 0
    asked: int = 0
    running: int = 0
    failures: int = 0
    delay: float = 0.0
    next_at: float = 0.0
    saved_at: float = 0.0
    begun_with: int = 0
    changed: anyio.Event = field(default_factory=anyio.Event)
    saving: anyio.Lock = field(default_factory=anyio.Lock)

    async def run(self, start: str) -> Facts:
        """Fetch until all pages are there or a limit is reached; keep them even if cancelled."""
        self.begun_with = len(self.index.pages)
        seconds = self.intake.settings.ingest.site_seconds
        with anyio.move_on_after(seconds) as scope:
            if not self.index.pages:
                await self._start(start)
            await self._save()
            try:
                await self._ask_robots()
                if not self.index.source:
                    await self._discover()
                self.index.retry()
                self.queue = [("?" in url, 0, n, url) for n, url in enumerate(self.index.waiting)]
                heapq.heapify(self.queue)
                count = 1 if self.delay else self.intake.settings.fetch.per_host_concurrency
                async with anyio.create_task_group() as tasks:
                    for _ in range(count):
                        tasks.start_soon(self._work)
            finally:
                with anyio.CancelScope(shield=True):
                    if scope.cancelled_caught or scope.cancel_called:
                        self.stopped = self.stopped or f"{seconds:g} s have passed"
                    await self._save()
        if self.broken:
            raise self.broken
        if self.facts is None:
            what = f"{urlsplit(start).hostname} did not answer within {seconds:g} s."
            raise TimedOut(what, "Try again later.")
        return self.facts

    async def _start(self, start: str) -> None:
        """Fetch the first page. Where it redirects to on its own host is the site."""
        facts, _ = await self.intake.url(start, refresh=self.refresh)
        final = normal_url(facts.final_url) or start
        places = {
            ((parts.hostname or "").removeprefix("www."), parts.port)
            for parts in map(urlsplit, (start, final))
        }
        if len(places) > 1:  # another port is another server
            what = f"{urlsplit(start).hostname} redirects to another site."
            raise BadArgument(what, "Fetch that, if it is the right one.")
        if mask_url(final) == final:
            self.index.prefix = prefix_of(final)
        self.received += facts.size_bytes
        await self._add(start, facts, 0)

    async def _ask_robots(self) -> None:
        """Read the crawl delay and the sitemaps from robots.txt."""
        with suppress(Refused, FetchFailed, TimedOut):
            self.delay, sitemaps = await self.intake.fetcher.site_rules(self._origin)
            self.index.sitemaps = tuple(sitemaps)

    async def _discover(self) -> None:
        """Find the pages: by sitemaps, else by llms.txt, else by links as pages come in."""
        usual = (f"{self.index.prefix}sitemap.xml", f"{self._origin}sitemap.xml")
        found = await self._of_sitemaps(self.index.sitemaps) or await self._of_sitemaps(usual)
        if found:
            self.index.source = "sitemap"
        elif found := await self._of_outline():
            self.index.source = "llms.txt"
        else:
            self.index.source = "links"
        if found:
            self.index.waiting.clear()  # the links of the first page
        self._learn(found, 1)

    async def _of_sitemaps(self, places: Iterable[str]) -> list[str]:
        """Return the addresses below the prefix that sitemaps of this host name."""
        found: dict[str, None] = {}
        origin, prefix = self._origin, self.index.prefix
        due = deque((url, 1) for place in places if (url := normal_url(place)).startswith(origin))
        seen: set[str] = set()
        while due and len(seen) < MOST_SITEMAPS and len(found) < MOST_KNOWN:
            url, depth = due.popleft()
            if url in seen:
                continue
            seen.add(url)
            if self.received > self.intake.settings.ingest.site_bytes:
                break
            with suppress(FetchstashError):
                await self._turn()
                path = await self._download(url)
                try:
                    sitemap = await anyio.to_thread.run_sync(read_sitemap, path, prefix)
                finally:
                    path.unlink(missing_ok=True)
                self.index.is_cut |= sitemap.has_more
                if not sitemap.is_index:
                    found |= dict.fromkeys(sitemap.addresses)
                elif depth < _SITEMAP_DEPTH:
                    due += [(address, depth + 1) for address in sitemap.addresses]
        self.index.is_cut |= bool(due)
        return [url for url in found if url not in self.index.pages]

    async def _of_outline(self) -> list[str]:
        """Return the addresses below the prefix that the site's llms.txt links to."""
        first = next(iter(self.index.pages.values()))
        try:
            facts = await self.intake.store.get(first.ref)
            llms_txt = await outline(self.intake, facts)
        except FetchstashError:
            return []
        links = await self._links(llms_txt)
        return [url for url in links.addresses if url not in self.index.pages]

    async def _links(self, facts: Facts) -> PageLinks:
        """Return the pages below the prefix that a document links to, and its canonical address."""
        kind = facts.content_kind
        if kind not in ("html", "markdown", "text"):
            return PageLinks("", (), has_more=False)
        async with self.intake.store.open_raw(facts.artifact_ref) as raw:
            read = partial(links_below, raw, facts, self.index.prefix)
            return await anyio.to_thread.run_sync(read)

    def _learn(self, urls: Iterable[str], depth: int) -> None:
        """Queue new addresses behind the waiting ones."""
        new = [url for url in urls if not self.index.knows(url)]
        room = max(MOST_KNOWN - self.index.count, 0)
        self.index.is_cut |= len(new) > room
        for url in new[:room]:
            self.index.wait(url)
            self._push(url, depth)

    def _push(self, url: str, depth: int) -> None:
        heapq.heappush(self.queue, ("?" in url, depth, len(self.queue) + self.asked, url))

    async def _work(self) -> None:
        """Fetch pages until none waits or a limit is reached; an error of the store ends all."""
        try:
            while not self.stopped and (self.queue or self.running):
                self.stopped = self._limit()
                if self.stopped:
                    break
                if not self.queue or len(self.index.pages) + self.running >= self.most:
                    await self.changed.wait()  # a page that is on its way may bring more, or none
                    continue
                _, depth, _, url = heapq.heappop(self.queue)
                if url not in self.index.waiting:  # listed meanwhile, by another address
                    continue
                self.running, self.asked = self.running + 1, self.asked + 1
                try:
                    await self._page(url, depth)
                finally:
                    self.running -= 1
                    self.changed.set()
                    self.changed = anyio.Event()
                if anyio.current_time() - self.saved_at > _SAVE_SECONDS:
                    await self._save()
        except FetchstashError as error:
            self.broken, self.stopped = error, error.what

    def _limit(self) -> str:
        """Return why no further page may be fetched, "" if one may."""
        most_bytes = self.intake.settings.ingest.site_bytes
        if len(self.index.pages) >= self.most and self.queue:
            return f"a call fetches {counted(self.most - self.begun_with, 'page')} at the most"
        if self.received >= most_bytes:
            return f"{most_bytes:,} bytes were fetched, which is the limit"
        if self.asked >= 2 * (self.most - self.begun_with) + _MOST_FAILURES:
            return "too many addresses lead to no page"
        return "the site answers no more" if self.failures >= _MOST_FAILURES else ""

    async def _page(self, url: str, depth: int) -> None:
        """Fetch one page, or record why it failed; pages that it kept already are skipped."""
        try:
            facts = await self.intake.known(url)
            if not (facts and facts.validated_at and facts.validated_at >= self.index.begun):
                await self._turn()
                facts, _ = await self.intake.url(
                    url, refresh=self.refresh, within=self.index.prefix
                )
                self.received += facts.size_bytes
            await self._add(url, facts, depth)
            self.failures = 0
        except StoreError:
            raise
        except OverQuota as error:
            self.stopped = error.what.removesuffix(".")
        except FetchstashError as error:
            failed = Failed.of(error)
            self.index.fail(url, failed)
            self.failures = self.failures + 1 if failed.is_passing else 0

    async def _add(self, url: str, facts: Facts, depth: int) -> None:
        """List a page, unless it is listed under another address; learn what it links to."""
        links = await self._links(facts)
        final = normal_url(facts.final_url) or url
        canonical = links.canonical or final
        names = {url, final, canonical}
        if same := self.index.same_as(names):
            if url in self.index.names:
                self.index.waiting.pop(url, None)
            else:
                self.index.fail(url, Failed("duplicate", 0, f"the same page as {same.ref}"))
            is_new = facts.created_at and facts.created_at >= self.index.begun
            if same.ref != facts.artifact_ref and is_new:
                with suppress(FetchstashError):
                    await self.intake.store.delete(facts.artifact_ref)
        else:
            title = clean_line(facts.title or facts.name)
            address = mask_url(canonical)
            page = Page(facts.artifact_ref, facts.extracted_chars or 0, address, clip(title, 200))
            if not self.index.pages:
                self.index.beside = links.beside
            self.index.add(page, names)
            if self.progress:
                there = len(self.index.pages)
                self.progress(there, max(min(there + len(self.index.waiting), self.most), there))
        if self.index.source in ("", "links"):
            self.index.is_cut |= links.has_more
            self._learn(links.addresses, depth + 1)

    async def _turn(self) -> None:
        """Wait until the site may be asked again."""
        rate = self.intake.settings.ingest.site_rate
        now = anyio.current_time()
        at = max(now, self.next_at)
        self.next_at = at + max(self.delay, 1 / rate if rate else 0)
        await anyio.sleep(at - now)

    async def _download(self, url: str) -> Path:
        """Fetch a file that is not kept as an artifact; it belongs to the caller."""
        fetched = await self.intake.fetcher.fetch(url, self.intake.store.spool, within=self._origin)
        self.received += fetched.size_bytes
        assert fetched.path is not None  # the request was not conditional
        return fetched.path

    @property
    def _origin(self) -> str:
        parts = urlsplit(self.index.prefix)
        return f"{parts.scheme}://{parts.netloc}/"

    async def _save(self) -> None:
        """Write the index as it is now."""
        async with self.saving:
            index = self.index.snapshot()
            path = new_file(self.intake.store.spool, "site-")
            write = partial(_written, index, path)
            length, outline, cost = await anyio.to_thread.run_sync(write)
            store = self.intake.store
            reason = self.stopped or "it is not all fetched yet"
            left = len(index.waiting)
            known = self.facts or Facts(
                content_kind=kind_of_name(_INDEX_NAME),
                media_type="text/markdown",
                word="site index",
                paths=("changes",),
                source_url=self.key.removeprefix(_KEY),
                final_url=index.prefix,
                name=clean_line(index.prefix.partition("://")[2].rstrip("/")),
                title=f"Pages of {index.prefix}",
                handler="site",
                validated_at=index.begun,
                site_prefix=index.prefix,
            )
            facts = replace(
                known,
                members=len(index.pages),
                structure_info=index.summary,
                evidence=index.evidence,
                incomplete=f"{counted(left, 'page')} not fetched: {reason}" if left else "",
                outline=outline,
                text_tokens=cost,
                text_tokens_exact=False,
                is_oversized=length > self.intake.settings.views.inline_threshold,
            )
            if self.facts is None:
                raw = new_file(store.spool, "site-")
                raw.write_text(f"{index.prefix}\n", encoding="utf-8")
                self.facts = await store.put(raw, path, facts, Ranges(), url=self.key)
            else:
                ref = self.facts.artifact_ref
                self.facts = await store.replace_text(ref, path, facts, Ranges(), known=self.facts)
            self.saved_at = anyio.current_time()


def _written(index: Index, path: Path) -> tuple[int, tuple[Heading, ...], int]:
    """Write an index as text; return its characters, its outline and its tokens. Blocking."""
    text, outline = index.text()
    path.write_text(text, encoding="utf-8")
    return len(text), outline, tokens.estimate(text)

"""Work of a service's calls: each fetch is recorded, each tenant's work counted and limited."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio

from fetchstash.config import Settings
from fetchstash.fetch import (
    Cached,
    Fetched,
    Fetcher,
    FetchLimits,
    Gates,
    HttpFetcher,
    Progress,
    Rendered,
    Renderer,
    browser_of,
)
from fetchstash.handlers import (
    Decision,
    Extraction,
    Extractor,
    Hints,
    PageReader,
    PageText,
    PartRequest,
    PartText,
    Picture,
    WorkerPool,
    ocr_is_installed,
    ocr_limits,
)
from fetchstash.service._fair import FairLimiter
from fetchstash.service._quota import Quotas, limits_of
from fetchstash.service._request import AuditLog
from fetchstash.service._tenant_store import TenantStore
from fetchstash.stash import Stash, open_stash, with_parts
from fetchstash.store import ArtifactStore, Turns, open_store
from fetchstash.text.urls import host_of

_FETCHES, _FETCHES_OF_ONE = 64, 16
_GREPS = 8
"""In threads, as RE2 gives the interpreter up. Each has 2 s of a processor at most."""

_NICENESS = 10
"""Of the workers: the event loop, which all tenants wait for, comes first."""


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """Limits across tenants: slots, the pace of a site, and each one's use of its quotas."""

    fetches: FairLimiter
    conversions: FairLimiter
    greps: FairLimiter
    searches: FairLimiter
    quotas: Quotas
    gates: Gates

    @classmethod
    def of(
        cls,
        processors: int,
        workers: int,
        quotas: Quotas,
        fetch: FetchLimits,
        *,
        apart: bool = True,
    ) -> "SharedLimits":
        """Return the limits of one of the workers of a machine.

        If there are several, ``apart``, no tenant has all slots of one.
        """
        slots = max(processors // workers, 2)
        fetches = max(_FETCHES // workers, 4)

        def limiter(what: str, slots: int, of_one: int) -> FairLimiter:
            return FairLimiter(what, slots, of_one if apart else slots)

        return cls(
            limiter("fetches", fetches, fetches * _FETCHES_OF_ONE // _FETCHES),
            limiter("conversions", slots, slots - 1),
            limiter("greps", _GREPS, _GREPS - 2),
            limiter("searches", slots, slots - 1),
            quotas,
            Gates(fetch.per_host_concurrency, fetch.per_host_rate, quotas.pace),
        )


@dataclass(frozen=True, slots=True)
class TenantWork:
    """A Fetcher, Extractor, PageReader and Renderer of one tenant, or of one ``person`` of it.

    It records each URL, counts the bytes, and waits for a slot of what it takes. A rendered page is
    one line of the audit log; what it loads is vetted like it, and not recorded.
    """

    tenant: str
    settings: Settings
    shared: SharedLimits
    audit: AuditLog
    store: TenantStore
    fetcher: Fetcher
    pool: Extractor
    ocr: PageReader
    renderer: Renderer | None
    person: str = ""

    @property
    def _bytes(self) -> dict[str, int]:
        quota = self.settings.quota
        limit = quota.fetched_bytes_per_day
        return limits_of(self.tenant, self.person, limit, quota.person_part)

    def _slot(
        self, limiter: FairLimiter, seconds: float, most: int = 0
    ) -> AbstractAsyncContextManager[None]:
        """Hold a slot, after ``seconds`` at the most."""
        part = self.settings.quota.person_part
        return limiter.slot(self.tenant, most, person=self.person, part=part, patience=seconds)

    def _conversion(self, seconds: float | None = None) -> AbstractAsyncContextManager[None]:
        """Hold a slot, after ``seconds`` at the most (None: the time that a conversion has)."""
        patience = self.settings.extract.wall_seconds if seconds is None else seconds
        return self._slot(
            self.shared.conversions, patience, self.settings.quota.concurrent_conversions
        )

    async def fetch(
        self,
        url: str,
        folder: Path,
        *,
        cached: Cached | None = None,
        progress: Progress | None = None,
        after: Fetched | None = None,
        seconds: float | None = None,
        within: str = "",
    ) -> Fetched:
        """Fetch and record a URL (see Fetcher). The time of waiting counts.

        Raises OverQuota and Busy before anything is sent, and StoreError for a line that is lost.
        """
        received = 0

        def count(now: int, total: int | None) -> None:
            nonlocal received
            received = now
            if progress:
                progress(now, total)

        with self.audit.fetching(url) as facts:
            self.shared.quotas.may_fetch(self._bytes)
            who, hosts = f"{self.tenant}/{self.person}", self.settings.quota.hosts_per_minute
            await self.shared.quotas.check_host(who, host_of(url), hosts)
            if cached is None:  # what is kept already may be revalidated
                await self.store.check_room()
            left = self.settings.fetch.fetch_seconds if seconds is None else seconds
            deadline = anyio.current_time() + left
            async with self._slot(self.shared.fetches, left):
                try:
                    fetched = await self.fetcher.fetch(
                        url,
                        folder,
                        cached=cached,
                        progress=count,
                        after=after,
                        seconds=deadline - anyio.current_time(),
                        within=within,
                    )
                    received = max(received, fetched.size_bytes)
                finally:
                    self.shared.quotas.fetched(self._bytes, received)
            facts |= {
                "final_host": urlsplit(fetched.final_url).netloc,
                "address": fetched.address,
                "status": fetched.status,
                "bytes": fetched.size_bytes,
                "redirects": fetched.redirects,
                "path": fetched.path,
            }
        return fetched

    async def site_rules(self, url: str) -> tuple[float, Sequence[str]]:
        """Return what robots.txt states (see Fetcher). Like its rules it is asked unrecorded."""
        return await self.fetcher.site_rules(url)

    async def check(self, url: str, final_url: str = "") -> None:
        """Raise Refused where a stored copy may not be used, and record it; see Fetcher."""
        with self.audit.fetching(url, stored=True):
            await self.fetcher.check(url, final_url)

    def prepare(self) -> None:
        """Start nothing: a worker is started in a slot (see Extractor)."""

    async def extract(
        self,
        source: Path,
        decision: Decision,
        hints: Hints,
        folder: Path,
        *,
        seconds: float | None = None,
        on_page: Progress | None = None,
    ) -> Extraction:
        """Read a document (see Extractor). The time of waiting counts."""
        started = anyio.current_time()
        async with self._conversion(seconds):
            if seconds is not None:
                seconds = max(seconds - (anyio.current_time() - started), 1)
            return await self.pool.extract(
                source, decision, hints, folder, seconds=seconds, on_page=on_page
            )

    async def part(self, decision: Decision, request: PartRequest) -> PartText | Picture:
        """Read one part of a document (see Extractor)."""
        async with self._conversion():
            return await self.pool.part(decision, request)

    async def read_page(self, decision: Decision, source: Path, page: int) -> PageText:
        """Read the text of a page by OCR (see PageReader)."""
        async with self._conversion():
            return await self.ocr.read_page(decision, source, page)

    async def render(
        self, url: str, folder: Path, *, seconds: float, edge: int = 0, max_bytes: int = 0
    ) -> Rendered:
        """Render a page and record it (see Renderer). The time of waiting counts, and its size.

        Raises OverQuota and Busy before anything is sent, and StoreError for a line that is lost.
        """
        assert self.renderer
        with self.audit.fetching(url, rendered=True) as facts:
            self.shared.quotas.may_fetch(self._bytes)
            deadline = anyio.current_time() + seconds
            async with self._conversion(seconds):
                left = deadline - anyio.current_time()
                page = await self.renderer.render(
                    url, folder, seconds=left, edge=edge, max_bytes=max_bytes
                )
            status = await anyio.Path(page.path).stat()
            self.shared.quotas.fetched(self._bytes, status.st_size)
            facts |= {"final_host": urlsplit(page.url).netloc, "path": page.path}
        return page

    async def aclose(self) -> None:
        """No-op: the parts are closed by their opener."""


OfPerson = Callable[[str], Stash]


@asynccontextmanager
async def open_service_stash(
    tenant: str, settings: Settings, shared: SharedLimits, audit: AuditLog
) -> AsyncGenerator[tuple[OfPerson, tuple[WorkerPool, ...]]]:
    """Open a tenant; yield a function from person ("": the tenant) to Stash, and its workers.

    The fetcher has the connections, the rules of robots.txt and the granted hosts of this tenant
    alone; a worker that has read a document of it reads none of another.
    """
    async with AsyncExitStack() as opened:
        fetcher = HttpFetcher(settings.fetch, gates=shared.gates)
        opened.push_async_callback(_close, fetcher)
        turns = Turns(*(partial(kind.slot, tenant) for kind in (shared.greps, shared.searches)))
        store = await open_store(settings.store, turns)
        opened.push_async_callback(_close, store)
        pool = partial(WorkerPool, folder=store.spool, niceness=_NICENESS)
        most = shared.conversions.most
        conversions = min(settings.quota.concurrent_conversions or most, most)
        pools = [pool(settings.extract, workers=conversions)]
        if settings.extract.ocr == "auto" and ocr_is_installed():
            pools.append(pool(ocr_limits(settings.extract), workers=1))
        for opened_pool in pools:
            opened.push_async_callback(_close, opened_pool)
        kept, renderer = TenantStore(store, settings), browser_of(fetcher, settings.fetch)
        parts = fetcher, pools[0], pools[-1], renderer
        work = TenantWork(tenant, settings, shared, audit, kept, *parts)

        def parts_of(person: str) -> dict[str, Any]:
            own = replace(work, store=kept.of_person(person), person=person)
            return {
                "store": own.store,
                "fetcher": own,
                "extractor": own,
                "page_reader": own if len(pools) > 1 else None,
                "renderer": own if renderer else None,
            }

        whole = await opened.enter_async_context(open_stash(settings, **parts_of("")))
        yield (lambda who: with_parts(whole, who, **parts_of(who)) if who else whole), tuple(pools)


async def _close(part: Fetcher | Extractor | ArtifactStore) -> None:
    with anyio.CancelScope(shield=True):
        await part.aclose()

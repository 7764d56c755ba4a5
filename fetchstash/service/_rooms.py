"""The rooms of one tenant: nothing in them is shared but the turns that it waits for."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import anyio

from fetchstash.config import Settings
from fetchstash.fetch import (
    Cached,
    Fetched,
    Fetcher,
    HttpFetcher,
    Progress,
    Rendered,
    Renderer,
    browser_of,
)
from fetchstash.handlers import (
    Decision,
    Extraction,
    ExtractLimits,
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
from fetchstash.service._audit import AuditedFetcher, AuditedRenderer, AuditLog
from fetchstash.service._pace import Rest, Turns
from fetchstash.service._quota import Quotas
from fetchstash.service._tenant_store import TenantStore, metered
from fetchstash.stash import Stash, open_stash
from fetchstash.store import ArtifactStore, open_store

_FETCHES, _FETCHES_OF_ONE = 64, 16
_NICENESS = 10
"""Of the workers: the event loop, which all tenants wait for, comes first."""


@dataclass(frozen=True, slots=True)
class SharedTurns:
    """What all tenants of a replica take turns at."""

    fetches: Turns
    conversions: Turns
    scans: Turns

    @classmethod
    def of(cls, processors: int, is_greedy: Callable[[str], bool]) -> "SharedTurns":
        """Return the turns of a machine. No tenant has all processors while it has two.

        ``is_greedy`` says whether a tenant has more requests here than another that has some.
        """
        slots = max(processors, 2)
        return cls(
            Turns("fetches", _FETCHES, _FETCHES_OF_ONE),
            Turns("conversions", slots, slots - 1),
            Turns("searches", slots, slots - 1, is_greedy=is_greedy),
        )


@asynccontextmanager
async def open_rooms(
    tenant: str, settings: Settings, turns: SharedTurns, quotas: Quotas, audit: AuditLog
) -> AsyncGenerator[tuple[Stash, "Pools"]]:
    """Open the Stash of a tenant, and the pools of its workers.

    Its fetcher has the connections, the rules of robots.txt and the granted hosts of this tenant
    alone; a worker that has read a document of it reads none of another.
    """
    most = turns.conversions.most_of(settings.quota.concurrent_conversions)
    async with AsyncExitStack() as opened:
        fetcher = HttpFetcher(settings.fetch)
        opened.push_async_callback(_closed, fetcher)
        store = metered(await open_store(settings.store, turns.scans.of(tenant)))
        opened.push_async_callback(_closed, store)
        pool = partial(WorkerPool, folder=store.spool, niceness=_NICENESS)
        pools = [pool(settings.extract, workers=most)]
        reading = settings.extract.ocr == "auto" and ocr_is_installed()
        if reading:
            limits = ocr_limits(settings.extract)
            pools.append(pool(limits, workers=1))
        for opened_pool in pools:
            opened.push_async_callback(_closed, opened_pool)
        counted = Counted(tenant, quotas, settings.quota.fetched_bytes_per_day)
        conversions = FairConversions(tenant, turns.conversions, most, settings.extract)
        renderer = browser_of(fetcher, settings.fetch)
        own = TenantStore(tenant, store, settings, quotas)
        seconds = settings.fetch.fetch_seconds
        fair = FairFetcher(fetcher, turns.fetches, counted, own, seconds)
        if renderer:
            renderer = AuditedRenderer(FairRenderer(renderer, conversions, counted), audit)
        stash = open_stash(
            settings,
            store=cast("ArtifactStore", own),
            fetcher=AuditedFetcher(fair, audit),
            extractor=FairExtractor(pools[0], conversions),
            page_reader=FairReader(pools[1], conversions) if reading else None,
            renderer=renderer,
        )
        yield await opened.enter_async_context(stash), Pools(tuple(pools))


@dataclass(frozen=True, slots=True)
class Pools:
    """The worker pools of a tenant."""

    pools: tuple[WorkerPool, ...]

    def end_idle(self) -> None:
        """End the workers that have nothing to do."""
        for pool in self.pools:
            pool.end_idle()


async def _closed(room: Fetcher | Extractor | PageReader | ArtifactStore) -> None:
    with anyio.CancelScope(shield=True):
        await room.aclose()


@dataclass(frozen=True, slots=True)
class Counted:
    """What a tenant fetches, counted against its quota of bytes a day (0: none)."""

    tenant: str
    quotas: Quotas
    limit: int

    def check(self) -> None:
        """Raise OverQuota if it has fetched that much."""
        self.quotas.may_fetch(self.tenant, self.limit)

    def add(self, size: int) -> None:
        """Count bytes that were fetched."""
        self.quotas.fetched(self.tenant, size)


@dataclass(frozen=True, slots=True)
class FairFetcher:
    """A Fetcher that waits for its turn, and counts what it fetches."""

    fetcher: Fetcher
    turns: Turns
    counted: Counted
    store: TenantStore
    limit_seconds: float

    async def fetch(
        self,
        url: str,
        folder: Path,
        *,
        cached: Cached | None = None,
        progress: Progress | None = None,
        after: Fetched | None = None,
        seconds: float | None = None,
    ) -> Fetched:
        """Fetch (see Fetcher). Raises OverQuota and Busy before anything is sent."""
        self.counted.check()
        if cached is None:  # what is kept already may be revalidated
            await self.store.check_room()
        received = 0

        def count(now: int, total: int | None) -> None:
            nonlocal received
            received = now
            if progress:
                progress(now, total)

        left = self.limit_seconds if seconds is None else seconds
        deadline = anyio.current_time() + left
        async with self.turns.turn(self.counted.tenant, patience=left):
            try:
                fetched = await self.fetcher.fetch(
                    url,
                    folder,
                    cached=cached,
                    progress=count,
                    after=after,
                    seconds=deadline - anyio.current_time(),
                )
                received = max(received, fetched.size_bytes)
            finally:
                self.counted.add(received)
        return fetched

    async def check(self, url: str, final_url: str = "") -> None:
        """Raise BadArgument or Refused if ``url`` may not be fetched now."""
        await self.fetcher.check(url, final_url)

    async def aclose(self) -> None:
        """Do nothing: who opened the fetcher closes it."""


@dataclass(frozen=True, slots=True)
class FairConversions:
    """The turns of one tenant's conversions, at most ``most`` at a time (0: as all have)."""

    tenant: str
    turns: Turns
    most: int
    limits: ExtractLimits

    def turn(self, patience: float | None = None) -> AbstractAsyncContextManager[Rest]:
        """Hold a turn, after ``patience`` seconds at the most (None: those of a conversion)."""
        seconds = self.limits.wall_seconds if patience is None else patience
        return self.turns.turn(self.tenant, self.most, patience=seconds)


@dataclass(frozen=True, slots=True)
class FairExtractor:
    """An Extractor that waits for its turn."""

    pool: Extractor
    conversions: FairConversions

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
        async with self.conversions.turn(seconds):
            if seconds is not None:
                seconds = max(seconds - (anyio.current_time() - started), 1)
            return await self.pool.extract(
                source, decision, hints, folder, seconds=seconds, on_page=on_page
            )

    async def part(self, decision: Decision, request: PartRequest) -> PartText | Picture:
        """Read one part of a document (see Extractor)."""
        async with self.conversions.turn():
            return await self.pool.part(decision, request)

    async def aclose(self) -> None:
        """Do nothing: who opened the pool closes it."""


@dataclass(frozen=True, slots=True)
class FairReader:
    """A PageReader that waits for its turn at each page."""

    pool: PageReader
    conversions: FairConversions

    async def read_page(self, decision: Decision, source: Path, page: int) -> PageText:
        """Read the text of a page by OCR (see PageReader)."""
        async with self.conversions.turn():
            return await self.pool.read_page(decision, source, page)

    async def aclose(self) -> None:
        """Do nothing: who opened the pool closes it."""


@dataclass(frozen=True, slots=True)
class FairRenderer:
    """A Renderer that waits for its turn: a browser takes a processor, as a conversion does."""

    renderer: Renderer
    conversions: FairConversions
    counted: Counted

    async def render(
        self, url: str, folder: Path, *, seconds: float, edge: int = 0, max_bytes: int = 0
    ) -> Rendered:
        """Render a page (see Renderer). The time of waiting counts, and the size of the result."""
        self.counted.check()
        deadline = anyio.current_time() + seconds
        async with self.conversions.turn(seconds):
            left = deadline - anyio.current_time()
            rendered = await self.renderer.render(
                url, folder, seconds=left, edge=edge, max_bytes=max_bytes
            )
        status = await anyio.Path(rendered.path).stat()
        self.counted.add(status.st_size)
        return rendered

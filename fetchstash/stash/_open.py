"""Open a Stash with the settings of its environment, or with rooms of the caller's own."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio

from fetchstash.config import Settings, load
from fetchstash.fetch import Fetcher, Renderer, browser_of, open_fetcher
from fetchstash.handlers import (
    Extractor,
    PageReader,
    WorkerPool,
    ocr_is_installed,
    ocr_limits,
)
from fetchstash.stash._documents import Documents
from fetchstash.stash._intake import Intake
from fetchstash.stash._rendering import Screenshots
from fetchstash.stash._scans import Scans
from fetchstash.stash._stash import Stash
from fetchstash.store import ArtifactStore, open_store, with_run
from fetchstash.system import telemetry


@asynccontextmanager
async def open_stash(
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    store: ArtifactStore | None = None,
    fetcher: Fetcher | None = None,
    extractor: Extractor | None = None,
    page_reader: PageReader | None = None,
    renderer: Renderer | None = None,
) -> AsyncGenerator[Stash]:
    """Open a Stash and close it again.

    Settings come from the environment and the settings file, as for the command. A mapping such as
    ``{"fetch.allow_hosts": ["localhost:8000"]}`` overrides those that it names; a Settings object
    replaces all. ``store``, ``fetcher``, ``extractor``, ``page_reader`` (OCR) and ``renderer``
    (a browser) may be anything that keeps the Protocol of its room; the caller closes what the
    caller opened. Raises BadArgument for a setting that is wrong, and StoreError.
    """
    if not isinstance(settings, Settings):
        settings = load(settings, os.environ)
    settings = replace(settings, store=with_run(settings.store))
    telemetry.configure(settings.telemetry.event_log, settings.telemetry.event_log_max_bytes)
    async with AsyncExitStack() as opened:
        if fetcher is None:
            fetcher = open_fetcher(settings.fetch)
            opened.push_async_callback(_close, fetcher)
        if store is None:
            store = await open_store(settings.store)
            opened.push_async_callback(_close, store)
        if extractor is None:
            extractor = WorkerPool(settings.extract, folder=store.spool)
            opened.push_async_callback(_close, extractor)
        if page_reader is None and settings.extract.ocr == "auto" and ocr_is_installed():
            page_reader = WorkerPool(ocr_limits(settings.extract), workers=1, folder=store.spool)
            opened.push_async_callback(_close, page_reader)
        if renderer is None:
            renderer = browser_of(fetcher, settings.fetch)
        intake = Intake(settings, fetcher, extractor, store, renderer)
        screenshots = Screenshots(settings, store, renderer)
        documents = Documents(settings, store, extractor)
        try:
            scans = Scans(settings, documents, page_reader)
            yield Stash(settings, store, documents, intake, scans, screenshots)
        finally:
            with anyio.CancelScope(shield=True):
                await intake.delete_ephemeral()


async def _close(room: Fetcher | Extractor | PageReader | ArtifactStore) -> None:
    with anyio.CancelScope(shield=True):
        await room.aclose()

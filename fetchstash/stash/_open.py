"""Open a Stash, for async code and for other."""

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from fetchstash.config import Settings, load
from fetchstash.errors import StoreError, type_checked
from fetchstash.fetch import Fetcher, HttpFetcher, Renderer, browser_of
from fetchstash.handlers import Extractor, PageReader, WorkerPool, ocr_is_installed, ocr_limits
from fetchstash.stash._artifact import Artifact, StoredDocument
from fetchstash.stash._documents import Documents
from fetchstash.stash._intake import Intake
from fetchstash.stash._scans import Scans
from fetchstash.stash._stash import Stash
from fetchstash.stash._values import Failure
from fetchstash.store import ArtifactStore, open_store, with_run
from fetchstash.system import telemetry


@type_checked
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
            fetcher = HttpFetcher(settings.fetch)
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
        documents = Documents(settings, store, extractor)
        try:
            scans = Scans(settings, documents, page_reader)
            yield Stash(settings, store, documents, intake, scans)
        finally:
            with anyio.CancelScope(shield=True):
                await intake.delete_ephemeral()


def with_parts(
    stash: Stash,
    run: str,
    *,
    store: ArtifactStore,
    fetcher: Fetcher,
    extractor: Extractor,
    page_reader: PageReader | None,
    renderer: Renderer | None,
) -> Stash:
    """Return a stash of somebody else, whose run this is. It closes with this one."""
    settings = replace(stash.settings, store=replace(stash.settings.store, run=run))
    documents = Documents(settings, store, extractor)
    kept = stash.intake.ephemeral_refs  # this one deletes them
    intake = Intake(settings, fetcher, extractor, store, renderer, kept)
    return Stash(settings, store, documents, intake, Scans(settings, documents, page_reader))


async def _close(room: Fetcher | Extractor | PageReader | ArtifactStore) -> None:
    with anyio.CancelScope(shield=True):
        await room.aclose()


_log = logging.getLogger("fetchstash.stash")
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
Target = TypeVar("Target")
Target_co = TypeVar("Target_co", covariant=True)


@dataclass(slots=True)
class Portal:
    """The way into the loop of a stash, until that is closed. ``entered``: what nobody left yet."""

    into_loop: BlockingPortal
    is_closed: bool = False
    entered: list[AbstractContextManager[Any]] = field(
        default_factory=list[AbstractContextManager[Any]]
    )

    def close(self) -> None:
        """Leave what was entered and not left: the loop waits for it."""
        self.is_closed = True
        if self.entered:
            _log.warning("A raw() was never left: use each in a `with` block.")
        while self.entered:
            self.entered[-1].__exit__(None, None, None)


class _Wrapper(Protocol[Target_co]):
    """An object of this module: ``target`` is its asynchronous counterpart."""

    @property
    def target(self) -> Target_co: ...
    @property
    def portal(self) -> Portal: ...


class _Method(Generic[Target, P, R, S]):
    """A method of the target that blocks: ``run`` makes its value of what the target returned.

    Raises StoreError after the end.
    """

    def __init__(
        self, method: Callable[Concatenate[Target, P], R], run: Callable[[Portal, R], S]
    ) -> None:
        self._method = method
        self._run = run
        self.__doc__ = method.__doc__

    def __get__(self, wrapper: _Wrapper[Target], owner: type) -> Callable[P, S]:
        @wraps(self._method)
        def call(*args: P.args, **kwargs: P.kwargs) -> S:
            if wrapper.portal.is_closed:
                raise StoreError("The stash is closed.", "Use it inside its `with` block.")
            return self._run(wrapper.portal, self._method(wrapper.target, *args, **kwargs))

        return call


def _awaited(portal: Portal, work: Awaitable[R]) -> R:
    async def result() -> R:
        return await work

    return portal.into_loop.call(result)


def _entered(portal: Portal, context: AbstractAsyncContextManager[R]) -> AbstractContextManager[R]:
    """Return a context of the loop for a `with` block outside: leaving it again does nothing."""

    @contextmanager
    def entered() -> Generator[R]:
        with portal.into_loop.wrap_async_context_manager(context) as value:
            portal.entered.append(own)
            try:
                yield value
            finally:
                portal.entered.remove(own)

    own = entered()
    return own


def _artifact(portal: Portal, work: Awaitable[Artifact]) -> "SyncArtifact":
    return _blocking_artifact(portal, _awaited(portal, work))


def _artifacts(
    portal: Portal, work: Awaitable[tuple[Artifact | Failure, ...]]
) -> "tuple[SyncArtifact | Failure, ...]":
    return tuple(
        _blocking_artifact(portal, result) if isinstance(result, Artifact) else result
        for result in _awaited(portal, work)
    )


def _blocking_artifact(portal: Portal, artifact: Artifact) -> "SyncArtifact":
    known: dict[str, Any] = {f.name: getattr(artifact, f.name) for f in fields(StoredDocument)}
    return SyncArtifact(**known, target=artifact, portal=portal)


@dataclass(frozen=True, slots=True, repr=False)
class SyncArtifact(StoredDocument):
    """An Artifact whose methods block."""

    target: Artifact = field(kw_only=True, compare=False)
    portal: Portal = field(kw_only=True, compare=False)

    text = _Method(Artifact.text, _awaited)
    read = _Method(Artifact.read, _awaited)
    slice = _Method(Artifact.slice, _awaited)
    grep = _Method(Artifact.grep, _awaited)
    search = _Method(Artifact.search, _awaited)
    picture = _Method(Artifact.picture, _awaited)
    raw = _Method(Artifact.raw, _entered)


@dataclass(frozen=True, slots=True, repr=False)
class SyncStash:
    """A Stash whose methods block. ``open_stash_sync`` makes one."""

    target: Stash
    portal: Portal

    fetch = _Method(Stash.fetch, _artifact)
    fetch_many = _Method(Stash.fetch_many, _artifacts)
    fetch_site = _Method(Stash.fetch_site, _artifact)
    site_pages = _Method(Stash.site_pages, _awaited)
    add_file = _Method(Stash.add_file, _artifact)
    keep_spooled = _Method(Stash.keep_spooled, _artifact)
    get = _Method(Stash.get, _artifact)
    list = _Method(Stash.list, _awaited)
    read = _Method(Stash.read, _awaited)
    slice = _Method(Stash.slice, _awaited)
    picture = _Method(Stash.picture, _awaited)
    grep = _Method(Stash.grep, _awaited)
    search = _Method(Stash.search, _awaited)
    trace = _Method(Stash.trace, _awaited)
    raw = _Method(Stash.raw, _entered)
    export = _Method(Stash.export, _awaited)
    pin = _Method(Stash.pin, _awaited)
    delete = _Method(Stash.delete, _awaited)
    gc = _Method(Stash.gc, _awaited)
    check = _Method(Stash.check, _awaited)
    repair = _Method(Stash.repair, _awaited)


def _blocking(
    opened: Callable[P, AbstractAsyncContextManager[Stash]],
) -> Callable[P, AbstractContextManager[SyncStash]]:
    @contextmanager
    @wraps(opened)
    def opened_sync(*args: P.args, **kwargs: P.kwargs) -> Generator[SyncStash]:
        with start_blocking_portal() as into_loop:
            portal = Portal(into_loop)
            with into_loop.wrap_async_context_manager(opened(*args, **kwargs)) as stash:
                try:
                    yield SyncStash(stash, portal)
                finally:
                    portal.close()

    return opened_sync


open_stash_sync = _blocking(open_stash)

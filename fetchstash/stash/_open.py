"""Open a Stash, for asynchronous and for blocking code."""

import logging
import os
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    contextmanager,
    suppress,
)
from dataclasses import dataclass, field, fields, replace
from functools import partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

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


class Opening(AbstractAsyncContextManager[Stash]):
    """A Stash that is opened by ``await``, or by ``async with``, which closes it, too."""

    def __init__(self, opened: Callable[[], Awaitable[Stash]]) -> None:
        self._opened = opened
        self._stash: Stash | None = None

    def __await__(self) -> Generator[Any, Any, Stash]:
        return self._opened().__await__()

    async def __aenter__(self) -> Stash:
        self._stash = await self._opened()
        return self._stash

    async def __aexit__(self, *_: object) -> None:
        if self._stash:
            await self._stash.aclose()


@type_checked
def open_stash(
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    store: ArtifactStore | None = None,
    fetcher: Fetcher | None = None,
    extractor: Extractor | None = None,
    page_reader: PageReader | None = None,
    renderer: Renderer | None = None,
) -> Opening:
    """Open a Stash: by ``async with``, which closes it, or by ``await``, and then its ``aclose``.

    Settings come from the environment and the settings file, as for the command. A mapping such as
    ``{"fetch.allow_hosts": ["localhost:8000"]}`` overrides those that it names; a Settings object
    replaces all. ``store``, ``fetcher``, ``extractor``, ``page_reader`` (OCR) and ``renderer``
    (a browser) may be anything that keeps the Protocol of its room; the caller closes what the
    caller opened. Raises BadArgument for a setting that is wrong, and StoreError.
    """
    return Opening(partial(_opened, settings, store, fetcher, extractor, page_reader, renderer))


async def _opened(
    settings: Settings | Mapping[str, Any] | None,
    store: ArtifactStore | None,
    fetcher: Fetcher | None,
    extractor: Extractor | None,
    page_reader: PageReader | None,
    renderer: Renderer | None,
) -> Stash:
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
        opened.push_async_callback(_delete_ephemeral, intake)
        documents = Documents(settings, store, extractor)
        scans = Scans(settings, documents, page_reader)
        return Stash(settings, store, documents, intake, scans, opened.pop_all())
    raise AssertionError  # no room of the stack swallows an exception


async def _delete_ephemeral(intake: Intake) -> None:
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
    """Return a stash over parts that somebody else opened; its run closes with it."""
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


class Portal:
    """The loop of a stash, in a thread of its own, until that is closed.

    ``entered``: what was entered by a ``raw()`` and nobody left yet.
    """

    def __init__(self) -> None:
        self.entered: list[AbstractContextManager[Any]] = []
        self._process = os.getpid()
        self._is_closed = False
        self._loop: Future[BlockingPortal] = Future()
        # No thread of an executor: Python joins those before it can be told that the program ends.
        self._thread = threading.Thread(target=self._run, name="fetchstash")
        self._thread.start()
        self.into_loop = self._loop.result()

    def _run(self) -> None:
        anyio.run(self._serve)

    async def _serve(self) -> None:
        async with BlockingPortal() as into_loop:
            self._loop.set_result(into_loop)
            await into_loop.sleep_until_stopped()

    def check(self) -> None:
        """Raise StoreError where no call can come in any more."""
        if self._is_closed:
            raise StoreError("The stash is closed.", "Open another.")
        if os.getpid() != self._process:  # its loop and its connections are the parent's
            what = "The stash was opened before this process was forked."
            raise StoreError(what, "Open one in each process.")

    def close(self, stash: "Stash | None" = None) -> None:
        """Close the stash and end its loop; a second time, and in a forked child, do nothing."""
        if self._is_closed or os.getpid() != self._process:
            return
        self._is_closed = True
        if self.entered:  # the loop waits for it
            _log.warning("A raw() was never left: use each in a `with` block.")
        while self.entered:
            self.entered[-1].__exit__(None, None, None)
        try:
            if stash:
                self.into_loop.call(stash.aclose)
        finally:
            self.into_loop.call(self.into_loop.stop)
            self._thread.join()


_left_open: "set[SyncStash]" = set()
_watched: set[int] = set()
"""The processes in which a thread waits for the end of the program."""


def _close_at_the_end(stash: "SyncStash") -> None:
    """Close a stash when the program ends.

    At its end Python waits for threads before it calls what ``atexit`` knows, and that of the loop
    would never end. A thread that waits for the main one comes before that.
    """
    _left_open.add(stash)
    if os.getpid() not in _watched:  # a fork leaves the parent's thread behind
        _watched.add(os.getpid())
        threading.Thread(target=_close_all, name="fetchstash-end", daemon=True).start()


def _close_all() -> None:
    threading.main_thread().join()
    for stash in tuple(_left_open):
        with suppress(Exception):  # the program is over, and there is nobody to be told
            stash.close()


class _Wrapper(Protocol[Target_co]):
    """An object of this module: ``target`` is its asynchronous counterpart."""

    @property
    def target(self) -> Target_co: ...
    @property
    def portal(self) -> Portal: ...


class _Method(Generic[Target, P, R, S]):
    """A blocking method of the target; ``run`` converts its result.

    Raises StoreError after the end, and in a forked child.
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
            wrapper.portal.check()
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


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SyncStash:
    """A Stash whose methods block. ``open_stash_sync`` makes one.

    It is closed by ``close``, at the end of its ``with`` block, or with the program.
    """

    target: Stash
    portal: Portal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what the stash opened. A second time, and in a forked child, it does nothing."""
        _left_open.discard(self)
        self.portal.close(self.target)

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


def _blocking(opened: Callable[P, Opening]) -> Callable[P, SyncStash]:
    @wraps(opened)
    def opened_sync(*args: P.args, **kwargs: P.kwargs) -> SyncStash:
        opening = opened(*args, **kwargs)
        portal = Portal()
        try:
            stash = SyncStash(_awaited(portal, opening), portal)
        except BaseException:
            portal.close()
            raise
        _close_at_the_end(stash)
        return stash

    return opened_sync


open_stash_sync = _blocking(open_stash)

"""The stores of tenants: kept apart, and measured."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, cast

import anyio

from fetchstash.config import Settings
from fetchstash.errors import Call, ExpiredRef, UnknownRef
from fetchstash.service._quota import over_stored
from fetchstash.store import REF_PREFIX, ArtifactStore, Facts
from fetchstash.system import telemetry
from fetchstash.text import clip
from fetchstash.text.hygiene import clean_line
from fetchstash.text.ranges import Ranges

_Operation = Callable[..., Awaitable[Any]]

_WRAPPED = frozenset((
    "get", "list", "open_artifact", "open_text", "search",
    "put", "replace_text", "touch", "pin", "delete", "gc",
))  # fmt: skip


def metered(store: ArtifactStore) -> ArtifactStore:
    """Return the store with each operation timed as ``store``, by its name."""
    return cast("ArtifactStore", _Metered(store))


class _Wrapper:
    """Passes everything on. Not one method for each of the Protocol: they would all be alike."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if name in _WRAPPED:  # once: then the wrapper is found without this method
            attribute = self.wrapped(name, attribute)
            setattr(self, name, attribute)
        return attribute

    def wrapped(self, name: str, operation: _Operation) -> _Operation:
        raise NotImplementedError


class _Metered(_Wrapper):
    def wrapped(self, name: str, operation: _Operation) -> _Operation:
        @wraps(operation)
        async def run(*arguments: Any, **options: Any) -> Any:
            with telemetry.timed("store", operation=name):
                return await operation(*arguments, **options)

        return run


_SHOWN_CHARS = 40


class TenantStore(_Wrapper):
    """An ArtifactStore that refuses what is over a tenant's quota.

    A reference of another tenant, one that has expired and one that was never given are one error,
    UnknownRef, with the same words.
    """

    def __init__(self, store: ArtifactStore, settings: Settings) -> None:
        super().__init__(store)
        self._limits = settings.quota
        self._pending: dict[Path, int] = {}  # on their way into the store, and not counted yet

    async def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        """Keep two files of the spool. Raises OverQuota, and then leaves none of them."""
        size = 0
        files = [anyio.Path(path) for path in (raw, text) if path]
        for file in files:
            size += (await file.stat()).st_size
        try:
            await self.check_room(size)
        except BaseException:
            with anyio.CancelScope(shield=True):
                for file in files:
                    await file.unlink(missing_ok=True)
            raise
        self._pending[raw] = size
        try:
            return await self._store.put(raw, text, facts, ranges, url=url)
        finally:
            del self._pending[raw]

    async def check_room(self, size: int = 1) -> None:
        """Raise OverQuota if so many bytes more would be too many.

        What other replicas are storing at this moment is not counted.
        """
        most_bytes, most = self._limits.stored_bytes, self._limits.artifacts
        if not most_bytes and not most:
            return
        kept = await self._store.usage()
        held = kept.bytes + sum(self._pending.values())
        artifacts = kept.artifacts + len(self._pending)
        wait = kept.first_expiry - datetime.now(UTC).timestamp()
        if most_bytes and held + size > most_bytes:
            what = f"You keep {held:,} bytes, this would be {size:,} more, and you may keep "
            raise over_stored(f"{what}{most_bytes:,}.", wait, "quota.stored_bytes", held + size)
        if most and artifacts >= most:
            what = f"You keep {artifacts:,} artifacts, as many as you may."
            raise over_stored(what, wait, "quota.artifacts", artifacts + 1)

    async def aclose(self) -> None:
        """Do nothing: who opened the store closes it."""

    @asynccontextmanager
    async def open_raw(self, ref_or_url: str) -> AsyncGenerator[Path]:
        """Lend a file with the raw bytes."""
        with _alike(ref_or_url):
            async with self._store.open_raw(ref_or_url) as path:
                yield path

    def wrapped(self, name: str, operation: _Operation) -> _Operation:
        @wraps(operation)
        async def run(*arguments: Any, **options: Any) -> Any:
            with _alike(*(arguments[1] if name == "search" else arguments[:1])):
                return await operation(*arguments, **options)

        return run


@contextmanager
def _alike(*refs: str) -> Generator[None]:
    """Make one error of a reference that expired and of one that was never given.

    Both cost the store the same look-ups. Of another tenant's this store knows nothing.
    """
    try:
        yield
    except (UnknownRef, ExpiredRef) as error:
        named = [ref for ref in refs if ref.startswith(REF_PREFIX)]
        if not named:
            raise  # a URL, of which every tenant is told what it fetched itself
        shown = next((ref for ref in named if ref in error.what), named[0])
        raise UnknownRef(
            f"There is no artifact {clip(clean_line(shown), _SHOWN_CHARS)}.",
            "Check the reference, or list what there is with {}.",
            Call("list"),
        ) from None

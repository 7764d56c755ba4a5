"""The stores of tenants: kept apart, and measured."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, cast

import anyio

from fetchstash.config import Settings
from fetchstash.errors import Call, ExpiredRef, UnknownRef
from fetchstash.service._quota import Quotas, over_stored
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


_BELIEVED_SECONDS = 60
_RECOUNTED_SECONDS = 1
_PAGE = 1_000
_SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a tenant kept when it was counted: when, and what all replicas had put by then."""

    at: float = -float(_BELIEVED_SECONDS)
    size: int = 0
    artifacts: int = 0
    puts: tuple[int, int] = (0, 0)
    first_expiry: float = 0.0


class TenantStore(_Wrapper):
    """An ArtifactStore that refuses what is over a tenant's quota.

    A reference of another tenant, one that has expired and one that was never given are one error,
    UnknownRef, with the same words.
    """

    def __init__(
        self, tenant: str, store: ArtifactStore, settings: Settings, quotas: Quotas
    ) -> None:
        super().__init__(store)
        self._tenant = tenant
        self._limits = settings.quota
        self._quotas = quotas
        self._kept = _Kept()
        self._counting = anyio.Lock()
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
            kept = await self._store.put(raw, text, facts, ranges, url=url)
        finally:
            del self._pending[raw]
        self._quotas.put(self._tenant, size)
        return kept

    async def check_room(self, size: int = 1) -> None:
        """Raise OverQuota if so many bytes more would be too many."""
        limits = self._limits
        if not limits.stored_bytes and not limits.artifacts:
            return
        async with self._counting:
            if anyio.current_time() - self._kept.at >= _BELIEVED_SECONDS:
                self._kept = await self._count()
            kept, held, artifacts = self._held()
            if self._is_over(held + size, artifacts):
                # Deleted or expired since?
                if (held, artifacts) != (kept.size, kept.artifacts) or self._is_old():
                    self._kept = await self._count()
                kept, held, artifacts = self._held()
            if not self._is_over(held + size, artifacts):
                return
        wait = kept.first_expiry - datetime.now(UTC).timestamp()
        if limits.stored_bytes and held + size > limits.stored_bytes:
            what = f"You keep {held:,} bytes, this would be {size:,} more, and you may keep "
            what += f"{limits.stored_bytes:,}."
            raise over_stored(what, wait, "quota.stored_bytes", held + size)
        what = f"You keep {artifacts:,} artifacts, as many as you may."
        raise over_stored(what, wait, "quota.artifacts", artifacts + 1)

    def _held(self) -> tuple[_Kept, int, int]:
        """Return the last count, and the bytes and artifacts with what was put since."""
        kept, puts = self._kept, self._quotas.puts(self._tenant)
        size = kept.size + max(puts[0] - kept.puts[0], 0)
        artifacts = kept.artifacts + max(puts[1] - kept.puts[1], 0)
        return kept, size + sum(self._pending.values()), artifacts + len(self._pending)

    def _is_over(self, size: int, artifacts: int) -> bool:
        most_bytes, most = self._limits.stored_bytes, self._limits.artifacts
        return bool((most_bytes and size > most_bytes) or (most and artifacts >= most))

    def _is_old(self) -> bool:
        return anyio.current_time() - self._kept.at >= _RECOUNTED_SECONDS

    async def _count(self) -> _Kept:
        """Count what is kept. Puts meanwhile are counted twice until the next time."""
        puts, at = self._quotas.puts(self._tenant), anyio.current_time()
        size = artifacts = 0
        expiries: list[float] = []
        while True:
            page = await self._store.list(limit=_PAGE, offset=artifacts)
            size += sum(facts.size_bytes + (facts.text_bytes or 0) for facts in page.facts)
            artifacts += len(page.facts)
            expiries += [f.expires_at.timestamp() for f in page.facts if f.expires_at]
            if not page.facts or artifacts >= page.total:
                break
        return _Kept(at, size, artifacts, puts, min(expiries, default=0.0))

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

"""The stores of tenants: kept apart, and measured."""

import math
from collections.abc import AsyncGenerator, Collection, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any

import anyio

from fetchstash.config import Settings
from fetchstash.errors import BadArgument, Call, ExpiredRef, UnknownRef
from fetchstash.service._quota import over_stored
from fetchstash.store import ALL_RUNS, REF_PREFIX, ArtifactStore, Facts, Usage, View
from fetchstash.system import telemetry
from fetchstash.text import clip, counted
from fetchstash.text.hygiene import clean_line
from fetchstash.text.ranges import Ranges

_MEASURED = frozenset(
    (
        "get",
        "list",
        "open_artifact",
        "open_text",
        "search",
        "replace_text",
        "touch",
        "pin",
        "gc",
    )
)


_SHOWN_CHARS = 40


class TenantStore:
    """An ArtifactStore that enforces the quota of a tenant, or of a ``person`` of it.

    A reference of another tenant, one that has expired and one that was never given are one error,
    UnknownRef, with the same words. Each operation is timed as ``store``, by its name.
    """

    def __init__(self, store: ArtifactStore, settings: Settings, person: str = "") -> None:
        self._store = store
        self._settings, self._limits = settings, settings.quota
        self._person = person
        # Whose puts are on their way into the store, with their bytes, and not counted yet.
        self._pending: dict[Path, tuple[str, int]] = {}

    def of_person(self, run: str) -> "TenantStore":
        """Return the store as the person of a run sees it, "" for the whole tenant."""
        if not run:
            return self
        rules = self._settings.tenant
        lists = ALL_RUNS if rules.share == "all" else run
        # What is listed can be opened, too.
        refs = ALL_RUNS if rules.share == "all" or rules.refs == "tenant" else run
        own = TenantStore(self._store.seen_from(View(run, lists, refs)), self._settings, run)
        own._pending = self._pending
        return own

    async def delete(self, ref: str) -> None:
        """Delete an artifact. Raises BadArgument for what another person of the tenant fetched."""
        with _alike(ref), telemetry.timed("store", operation="delete"):
            if self._person:
                await self._store.get(ref)
                own = self._store.seen_from(View(self._person, self._person, self._person))
                try:
                    await own.get(ref)
                except UnknownRef:
                    what = f"{ref} was fetched by another of your tenant."
                    step = "Only that person can delete it; {} lists what there is."
                    raise BadArgument(what, step, Call("list")) from None
            await self._store.delete(ref)

    async def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        """Keep two files of the spool. Raises OverQuota, and then leaves none of them."""
        files = [anyio.Path(path) for path in (raw, text) if path]
        size = sum([(await file.stat()).st_size for file in files])
        try:
            await self.check_room(size)
        except BaseException:
            with anyio.CancelScope(shield=True):
                for file in files:
                    await file.unlink(missing_ok=True)
            raise
        self._pending[raw] = self._person, size
        try:
            with telemetry.timed("store", operation="put"):
                return await self._store.put(raw, text, facts, ranges, url=url)
        finally:
            del self._pending[raw]

    async def check_room(self, size: int = 1) -> None:
        """Raise OverQuota if so many bytes more would be too many, of the tenant or the person.

        What other replicas are storing at this moment is not counted.
        """
        limits, part = self._limits, self._limits.person_part
        if not limits.stored_bytes and not limits.artifacts:
            return
        if part == 1 or not self._person:
            self._check(await self._store.usage(), self._pending.values(), size, 1, "You")
            return
        pending = [item for item in self._pending.values() if item[0] == self._person]
        self._check(await self._store.usage(own=True), pending, size, part, "You")
        whose = "You and the others of your tenant"
        self._check(await self._store.usage(), self._pending.values(), size, 1, whose)

    def _check(
        self, kept: Usage, pending: Collection[tuple[str, int]], size: int, part: float, whose: str
    ) -> None:
        most_bytes = math.ceil(self._limits.stored_bytes * part)
        most = math.ceil(self._limits.artifacts * part)
        held = kept.bytes + sum(of_put for _, of_put in pending)
        artifacts = kept.artifacts + len(pending)
        first = kept.first_expiry - datetime.now(UTC).timestamp(), self._settings.tenant.delete
        share = (
            f" That is {part:.0%} of your tenant's quota (quota.person_part)." if part < 1 else ""
        )
        if most_bytes and held + size > most_bytes:
            what = f"{whose} keep {counted(held, 'byte')}, this would be {size:,} more, and you "
            value = math.ceil((held + size) / part)
            what += f"may keep {most_bytes:,}.{share}"
            raise over_stored(what, *first, "quota.stored_bytes", value)
        if most and artifacts >= most:
            what = f"{whose} keep {counted(artifacts, 'artifact')}, as many as you may.{share}"
            value = math.ceil((artifacts + 1) / part)
            raise over_stored(what, *first, "quota.artifacts", value)

    async def aclose(self) -> None:
        """No-op: the store is closed by its opener."""

    @asynccontextmanager
    async def open_raw(self, ref_or_url: str) -> AsyncGenerator[Path]:
        with _alike(ref_or_url):
            async with self._store.open_raw(ref_or_url) as path:
                yield path

    def __getattr__(self, name: str) -> Any:
        """Forward all other methods to the store, measured and with uniform errors."""
        operation = getattr(self._store, name)
        if name not in _MEASURED:
            return operation

        @wraps(operation)
        async def run(*arguments: Any, **options: Any) -> Any:
            named = arguments[1] if name == "search" else arguments[:1]
            with _alike(*named), telemetry.timed("store", operation=name):
                return await operation(*arguments, **options)

        setattr(self, name, run)  # once: then it is found without this method
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

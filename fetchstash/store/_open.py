"""Open, examine and copy stores: in a folder of this machine, or of a team."""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from anyio import CancelScope

from fetchstash.errors import BadArgument, ExpiredRef, FetchstashError, UnknownRef
from fetchstash.store._catalog_store import CatalogStore
from fetchstash.store._contract import Finding
from fetchstash.store._disk import NotWritable, store_is_gone
from fetchstash.store._folder import LocalStore, TemporaryStore
from fetchstash.store._health import check_folder, repair_folder
from fetchstash.store._limits import (
    ALL_RUNS,
    StoreLimits,
    is_private,
    is_shared,
    store_folder,
    store_of_tenant,
    with_run,
)
from fetchstash.store._objects import open_objects
from fetchstash.store._place import was_store
from fetchstash.store._protocol import ArtifactStore
from fetchstash.store._threads import Threads, Turns
from fetchstash.system.processes import new_file

_log = logging.getLogger("fetchstash.store")


async def open_store(limits: StoreLimits, turns: Turns | None = None) -> ArtifactStore:
    """Open the store that the settings pick, making or migrating it where needed.

    Each grep and each search holds one of ``turns``. Where the folder may not be written, an
    ephemeral run without a name has a temporary one, and the log says so. Raises BadArgument for a
    URL that is no store; StoreError for a folder of another user and for a catalogue that is
    damaged or of a newer version; Busy.
    """
    limits = with_run(limits)
    if is_shared(limits):
        from fetchstash.store._team import TeamStore  # noqa: PLC0415 - few need it

        return await TeamStore.open(limits, turns)
    folder = store_folder(limits)
    if folder is None:
        return await TemporaryStore.open(limits, Threads(turns=turns))
    try:
        return await LocalStore.open(replace(limits, folder=folder), Threads(turns=turns))
    except NotWritable as error:
        if not is_private(limits):
            raise
        _log.warning("a temporary folder keeps this run: %s", error.what)
        return await TemporaryStore.open(limits, Threads(turns=turns))


async def check_store(limits: StoreLimits, *, repair: bool = False) -> tuple[Finding, ...]:
    """Examine a store, one that cannot be opened too, and change nothing, or ``repair`` it."""
    if is_shared(limits):
        try:
            store = await open_store(limits)
        except FetchstashError as error:
            return (Finding("fault", error.what, error.next_step, calls=error.calls),)
        try:
            return await (store.repair() if repair else store.check())
        finally:
            await store.aclose()
    folder = store_folder(limits)
    work = repair_folder if repair else check_folder
    return () if folder is None else await Threads().run(lambda: work(folder))


Progress = Callable[[int, int], None]
"""Called with how many artifacts are done, and of how many."""

_OF_THE_SERVICE = "tokens"
"""The keys of the objects that are copied begin so."""


@dataclass(frozen=True, slots=True)
class Copied:
    """How many artifacts were copied, were there already, and have lost their bytes."""

    copied: int = 0
    there: int = 0
    lost: int = 0

    def __add__(self, other: "Copied") -> "Copied":
        """Return the sums."""
        return Copied(self.copied + other.copied, self.there + other.there, self.lost + other.lost)


async def tenants_of(limits: StoreLimits) -> list[str]:
    """Return the names of the tenants whose stores lie beside a service's store."""
    if is_shared(limits):
        from fetchstash.store._postgres import tenants  # noqa: PLC0415 - few need it

        return await Threads().run(partial(tenants, limits.catalog))
    folder = store_folder(limits)
    if folder is None:
        raise BadArgument("store.url is memory:, which keeps nothing.", "Name another store.")
    places = folder / "tenants"
    if not places.is_dir():
        return []
    return sorted(path.name for path in places.iterdir() if was_store(path))


async def stores_of(limits: StoreLimits) -> list[str]:
    """Return the tenants whose stores the settings lead to; "" is the base store.

    A service in a folder keeps nothing in its own: where that never was a store, it is none. In a
    new folder there is none at all.
    """
    if limits.url == "memory:" or limits.tenant:
        return [""]
    names = await tenants_of(limits)
    folder = None if is_shared(limits) else store_folder(limits)
    if folder and not was_store(folder):
        return names
    return ["", *names]


@asynccontextmanager
async def open_whole(limits: StoreLimits, run: str = ALL_RUNS) -> AsyncGenerator[CatalogStore]:
    """Open a store to look at all of it, or at one run. Raises BadArgument for one in memory."""
    if limits.url == "memory:":
        raise BadArgument("store.url is memory:, which keeps nothing.", "Name another store.")
    store = await open_store(replace(limits, run=run, ephemeral=False))
    async with _closing(store) as opened:
        yield opened


@asynccontextmanager
async def open_existing(limits: StoreLimits) -> AsyncGenerator[CatalogStore]:
    """Open all of a store, and make none. Raises StoreError where there is none any more."""
    whole = replace(limits, run=ALL_RUNS, ephemeral=False)
    folder = store_folder(limits)
    if is_shared(limits):
        from fetchstash.store._team import TeamStore  # noqa: PLC0415 - few need it

        store: ArtifactStore = await TeamStore.open(whole, make=False)
    elif folder and was_store(folder):
        store = await open_store(whole)
    else:
        raise store_is_gone()
    async with _closing(store) as opened:
        yield opened


@asynccontextmanager
async def _closing(store: ArtifactStore) -> AsyncGenerator[CatalogStore]:
    assert isinstance(store, CatalogStore)  # all but those of others are
    try:
        yield store
    finally:
        with CancelScope(shield=True):
            await store.aclose()


async def remove_rest(limits: StoreLimits, older_than: float) -> int:
    """Remove bytes of a team's tenant that was deleted, and return how many objects.

    A put that was under way may have written them after; it has ended ``older_than`` seconds later.
    """
    if not is_shared(limits):
        return 0
    from fetchstash.store._team import remove_bytes  # noqa: PLC0415 - few need it

    return await Threads().run(partial(remove_bytes, limits, older_than))


async def copy_service(source: StoreLimits, target: StoreLimits, progress: Progress) -> Copied:
    """Copy a service's store with those of all tenants, and the tokens."""
    done = await copy_store(source, target, progress)
    for name in await tenants_of(source):
        own, other = store_of_tenant(source, name), store_of_tenant(target, name)
        done += await copy_store(own, other, progress)
    async with AsyncExitStack() as stack:
        objects = [await open_objects(limits) for limits in (source, target)]
        for opened in objects:
            stack.push_async_callback(opened.aclose)
        for key, value in (await objects[0].items()).items():
            if key.startswith(_OF_THE_SERVICE):
                await objects[1].write(key, value)
    return done


async def copy_store(
    source: StoreLimits,
    target: StoreLimits,
    progress: Progress,
    *,
    run: str = ALL_RUNS,
    into: str = "",
) -> Copied:
    """Copy the artifacts of a store, or of one run, with references, pins, dates and URLs.

    They keep their runs, unless one is given to put them ``into``. What is there already is left
    alone: a copy that was cut short goes on. Raises BadArgument where the target has no room.
    """
    async with open_whole(source, run) as one, open_whole(target) as other:
        refs, there = await one.refs(), set(await other.refs())
        missing = [ref for ref in refs if ref not in there]
        await _check_room(one, other, len(missing), target)
        copied = lost = 0
        keys = await one.url_keys()
        for done, ref in enumerate(missing, start=1):
            raw, text = (new_file(other.spool, "copy-") for _ in range(2))
            try:
                if record := await one.hand_over(ref, raw, text):
                    record["run"] = into or record["run"]
                    await other.take_over(record, keys, raw, text if record["text"] else None)
                    copied += 1
                else:
                    lost += 1
            except (ExpiredRef, UnknownRef):
                pass  # expired, or deleted meanwhile
            finally:
                for path in (raw, text):
                    path.unlink(missing_ok=True)
            progress(done, len(missing))
        return Copied(copied, len(refs) - len(missing), lost)


async def _check_room(
    one: CatalogStore, other: CatalogStore, artifacts: int, target: StoreLimits
) -> None:
    kept, size = await other.usage(), (await one.usage()).bytes
    if kept.artifacts + artifacts > target.max_artifacts:
        most, here = f"store.max_artifacts is {target.max_artifacts:,}", kept.artifacts
        what = f"{most}; {here:,} are here, and {artifacts:,} would come."
        raise BadArgument(what, "Raise store.max_artifacts.")
    if artifacts and kept.artifacts == 0 and size > target.max_total_bytes:
        what = f"{size:,} bytes would come, and store.max_total_bytes is "
        raise BadArgument(f"{what}{target.max_total_bytes:,}.", "Raise store.max_total_bytes.")

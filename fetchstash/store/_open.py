"""Open a store: a folder of this machine, that of a team, or memory."""

from dataclasses import replace

from fetchstash.errors import FetchstashError
from fetchstash.store._contract import Finding
from fetchstash.store._folder import LocalStore
from fetchstash.store._health import check_folder, repair_folder
from fetchstash.store._limits import StoreLimits, is_shared, store_folder, with_run
from fetchstash.store._protocol import ArtifactStore
from fetchstash.store._threads import Threads, Turns


async def open_store(limits: StoreLimits, turns: Turns | None = None) -> ArtifactStore:
    """Open the store that the settings pick, making or migrating it where needed.

    Each grep and each search holds one of ``turns``. Raises BadArgument for a URL that is no store;
    StoreError for a folder of another user and for a catalogue that is damaged or of a newer
    version; Busy.
    """
    limits = with_run(limits)
    if is_shared(limits):
        from fetchstash.store._team import TeamStore  # noqa: PLC0415 - few need it

        return await TeamStore.open(limits, turns)
    folder = store_folder(limits)
    if folder is None:
        from fetchstash.store._memory import MemoryStore  # noqa: PLC0415 - few need it

        return MemoryStore(limits, Threads(turns=turns))
    return await LocalStore.open(replace(limits, folder=folder), Threads(turns=turns))


async def check_store(limits: StoreLimits) -> tuple[Finding, ...]:
    """Examine a store, one that cannot be opened too, and change nothing."""
    return await _examine(limits, repair=False)


async def repair_store(limits: StoreLimits) -> tuple[Finding, ...]:
    """Examine a store, one that cannot be opened too, and mend what can be mended."""
    return await _examine(limits, repair=True)


async def _examine(limits: StoreLimits, *, repair: bool) -> tuple[Finding, ...]:
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

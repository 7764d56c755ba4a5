"""Open a store: a folder of this machine, a bucket, or memory."""

from contextlib import nullcontext
from dataclasses import replace

from fetchstash.store._contract import Finding
from fetchstash.store._folder import LocalStore
from fetchstash.store._health import check_folder, repair_folder
from fetchstash.store._limits import StoreLimits, bucket_url, store_folder, with_run
from fetchstash.store._memory import MemoryStore
from fetchstash.store._protocol import ArtifactStore
from fetchstash.store._threads import Threads, Turn


async def open_store(limits: StoreLimits, turn: Turn = nullcontext) -> ArtifactStore:
    """Open the store that ``limits.url`` picks, making or migrating its folder where needed.

    Each scan holds a ``turn``. Raises BadArgument for a URL that is no store; StoreError for a
    folder of another user and for a catalogue that is damaged or of a newer version; Busy.
    """
    limits = with_run(limits)
    folder = store_folder(limits)
    if bucket_url(limits.url):
        from fetchstash.store._bucket_contents import BucketStore  # noqa: PLC0415 - few need it

        return await BucketStore.open(limits, turn=turn)
    if folder is None:
        return MemoryStore(limits, threads=Threads(turn=turn))
    return await LocalStore.open(replace(limits, folder=folder), Threads(turn=turn))


async def check_store(limits: StoreLimits) -> tuple[Finding, ...]:
    """Examine a store, one that cannot be opened too, and change nothing."""
    if bucket_url(limits.url):
        return await _examine_bucket(limits, repair=False)
    folder = store_folder(limits)
    return () if folder is None else await Threads().run(lambda: check_folder(folder))


async def repair_store(limits: StoreLimits) -> tuple[Finding, ...]:
    """Examine a store, one that cannot be opened too, and mend what can be mended."""
    if bucket_url(limits.url):
        return await _examine_bucket(limits, repair=True)
    folder = store_folder(limits)
    return () if folder is None else await Threads().run(lambda: repair_folder(folder))


async def _examine_bucket(limits: StoreLimits, *, repair: bool) -> tuple[Finding, ...]:
    from fetchstash.store._bucket_health import check_bucket_of  # noqa: PLC0415 - few need it

    return await Threads().run(lambda: check_bucket_of(limits, repair=repair))


async def set_lifecycle(limits: StoreLimits) -> bool:
    """Set the lifecycle rules of the bucket that ``limits.url`` names, and keep all others.

    Returns False where that cannot be done from here: a bucket of Google or Azure, or no keys in
    the environment. Raises StoreError where the bucket refuses.
    """
    from fetchstash.store._bucket_health import set_rules  # noqa: PLC0415 - few need it

    return await Threads().run(lambda: set_rules(limits))


def lifecycle_rules(limits: StoreLimits) -> tuple[str, str]:
    """Return the lifecycle rules as the provider reads them, and the command that applies them."""
    from fetchstash.store._bucket_health import printed_rules  # noqa: PLC0415 - few need it

    return printed_rules(limits)

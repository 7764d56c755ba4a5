"""Which store ``store.url`` picks, and how it is opened or examined."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from fetchstash.errors import BadArgument
from fetchstash.store._bucket import bucket_url
from fetchstash.store._contract import DEFAULT_RUN, Finding, StoreLimits
from fetchstash.store._health import check_folder, repair_folder
from fetchstash.store._local import LocalStore
from fetchstash.store._memory import MemoryStore
from fetchstash.store._protocol import ArtifactStore
from fetchstash.store._runs import with_run
from fetchstash.store._threads import Threads, Turn


def store_folder(limits: StoreLimits) -> Path | None:
    """Return the folder of a store, None for one in memory or in a bucket. Raises BadArgument."""
    scheme, colon, place = limits.url.partition(":")
    if not limits.url or (scheme == "file" and colon and not place):
        return limits.folder
    if scheme == "file" and colon:
        if place.startswith("//"):  # RFC 8089: an authority, which must be this machine
            authority, slash, path = place[2:].partition("/")
            if authority not in ("", "localhost"):
                raise BadArgument(
                    f"store.url names another machine, {authority!r}.", "Set it to file:FOLDER."
                )
            place = unquote(slash + path)
        return Path(place).expanduser()
    if limits.url == "memory:" or bucket_url(limits.url):
        return None
    raise BadArgument(
        f"store.url is {limits.url!r}, which is no store.",
        "Set it to file:FOLDER, s3://BUCKET/PREFIX, gs://, az:// or memory:.",
    )


def store_of_tenant(limits: StoreLimits, name: str) -> StoreLimits:
    """Return the limits of a tenant's own store, under the place of the store of all.

    The name has been checked (access.is_tenant). Clients over HTTP have no project, so that a
    tenant has one run; replicas share it, so that none may delete it at its end.
    """
    folder = (store_folder(limits) or limits.folder) / "tenants" / name
    url = limits.url
    if bucket_url(url):
        url = f"{url.rstrip('/')}/tenants/{name}"
    elif url != "memory:":
        url = ""  # the folder says it
    return replace(limits, folder=folder, url=url, run=DEFAULT_RUN, ephemeral=False)


async def open_store(limits: StoreLimits, turn: Turn = nullcontext) -> ArtifactStore:
    """Open the store that ``limits.url`` picks, making or migrating its folder where needed.

    Each scan holds a ``turn``. Raises BadArgument for a URL that is no store; StoreError for a
    folder of another user and for a catalogue that is damaged or of a newer version; Busy.
    """
    limits = with_run(limits)
    folder = store_folder(limits)
    if bucket_url(limits.url):
        from fetchstash.store._bucket_store import BucketStore  # noqa: PLC0415 - few need it

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

"""The limits of a store: the settings store.*, and the place that they name."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fetchstash.errors import BadArgument

DEFAULT_RUN = "default"
AUTO_RUN = "auto"
"""One run for each project (_runs.py)."""
ALL_RUNS = "*"
"""Lists, searches and finds by URL in all runs. What is put goes into the default one."""

SCHEMES = ("s3", "gs", "az")
_BUCKET = re.compile(r"[\w.$-]+", re.ASCII)
_TENANT = re.compile("(?:(.*)/)?(tenants/[a-z0-9][a-z0-9-]*)")


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """The settings store.*: where artifacts are kept, and for how long. Ages are in days.

    ``url`` picks the kind of store: "" or ``file:FOLDER`` a folder (``file:`` alone: ``folder``),
    ``memory:`` one that keeps nothing, ``s3://BUCKET/PREFIX``, ``gs://`` or ``az://`` a bucket, for
    which ``folder`` holds a cache of ``cache_bytes``. The limits are of the whole store, pinned
    artifacts aside. ``open_store`` reads AUTO_RUN.
    """

    folder: Path
    url: str = ""
    run: str = AUTO_RUN
    ephemeral: bool = False
    max_age_days: float = 7
    max_total_bytes: int = 2 * 2**30
    max_artifacts: int = 10_000
    endpoint: str = ""
    region: str = ""
    encryption: str = ""
    cache_bytes: int = 2**30


@dataclass(frozen=True, slots=True)
class BucketUrl:
    """The parts of ``scheme://bucket/prefix/tenants/NAME``. ``tenant`` is "tenants/NAME" or ""."""

    scheme: str
    bucket: str
    prefix: str
    tenant: str = ""

    def __str__(self) -> str:
        parts = (f"{self.scheme}:/", self.bucket, self.prefix, self.tenant)
        return "/".join(part for part in parts if part)

    def path(self, folder: str) -> str:
        """Return the beginning of the names of all objects of a folder, those of tenants too."""
        return f"{self.prefix}/{folder}/" if self.prefix else f"{folder}/"


def bucket_url(url: str) -> BucketUrl | None:
    """Return the parts of the URL of a bucket, None for any other URL. Raises BadArgument."""
    scheme, colon, rest = url.partition(":")
    if scheme not in SCHEMES or not colon:
        return None
    parts = urlsplit(url)
    if "@" in rest or parts.query or parts.fragment:
        raise BadArgument(
            "store.url holds more than a bucket and a prefix.",
            "Set it to SCHEME://BUCKET/PREFIX; credentials come from the environment.",
        )
    prefix = parts.path.strip("/")
    if (
        not rest.startswith("//")
        or not _BUCKET.fullmatch(parts.netloc)
        or (prefix and {"", ".", ".."} & set(prefix.split("/")))
    ):
        raise BadArgument(f"store.url is {url!r}.", f"Set it to {scheme}://BUCKET/PREFIX.")
    match = _TENANT.fullmatch(prefix)
    prefix, tenant = (match[1] or "", match[2]) if match else (prefix, "")
    return BucketUrl(scheme, parts.netloc, prefix, tenant)


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

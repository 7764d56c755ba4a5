"""Limits of a store, and the runs that share it."""

import hashlib
import os
import re
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fetchstash.errors import BadArgument
from fetchstash.text import Setting, setting

REF_PREFIX = "art_"
DEFAULT_RUN = "default"
AUTO_RUN = "auto"
"""One run for each project (project_run)."""
ALL_RUNS = "*"
"""Lists, searches and finds by URL in all runs. What is put goes into the default one."""

SCHEMES = ("s3", "gs", "az")
_BUCKET = re.compile(r"[\w.$-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """The settings store.*: where artifacts are kept, and for how long. Ages are in days.

    ``url`` picks the kind of store: "" or ``file:FOLDER`` a folder (``file:`` alone: ``folder``),
    ``memory:`` one that keeps nothing, ``s3://BUCKET/PREFIX``, ``gs://`` or ``az://`` a bucket, for
    which ``folder`` holds a cache of ``cache_bytes``. The limits are of the whole store, pinned
    artifacts aside. ``open_store`` reads AUTO_RUN.
    """

    folder: Path = field(
        metadata={
            "setting": Setting(
                "Where artifacts are kept, or the cache of a bucket; empty: the user's data "
                "folder, or cache folder"
            )
        }
    )
    url: str = setting(
        "",
        "The store: file:FOLDER, a bucket (s3://BUCKET/PREFIX, gs://, az://), or memory: to "
        "keep nothing; empty: store.folder",
    )
    run: str = setting(
        AUTO_RUN,
        "Scope of lists, search, look-up by URL and clean-up; auto: one for each project "
        "(the first of the client's roots, else the working folder); *: all",
    )
    ephemeral: bool = setting(False, "Delete the run's artifacts at shutdown")
    max_age_days: float = setting(7, "Days after which an artifact is deleted", low=0)
    max_total_bytes: int = setting(
        2 * 2**30, "Most bytes of all artifacts; the least recently used are evicted", low=1
    )
    max_artifacts: int = setting(
        10_000, "Most artifacts; the least recently used are evicted", low=1
    )
    catalog: str = setting(
        "",
        "PostgreSQL for the catalogue of a team: postgresql://USER@HOST/DATABASE, the password "
        "from USER:env:NAME, passfile= or libpq's variables; empty: SQLite in the folder",
    )
    endpoint: str = setting(
        "", "Endpoint of a bucket, such as https://s3.example.org; empty: the provider's"
    )
    region: str = setting("", "Region of an s3 bucket; empty: that of the environment")
    encryption: str = setting(
        "",
        "Encryption of an s3 bucket on the server: AES256, aws:kms or aws:kms:KEY; empty: "
        "the bucket's default",
    )
    cache_bytes: int = setting(
        2**30,
        "Most bytes of a bucket's artifacts in the cache on this machine, for each tenant",
        low=0,
    )
    tenant: str = ""
    """Whose store it is. No setting: see store_of_tenant."""


@dataclass(frozen=True, slots=True)
class BucketUrl:
    """The parts of ``scheme://bucket/prefix``."""

    scheme: str
    bucket: str
    prefix: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.prefix}".rstrip("/")


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
    return BucketUrl(scheme, parts.netloc, prefix)


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


def is_shared(limits: StoreLimits) -> bool:
    """Return whether its catalogue is in PostgreSQL. Raises BadArgument if the url does not fit."""
    if bucket_url(limits.url) and not limits.catalog:
        what = f"store.url is {limits.url}: a store in a bucket has its catalogue in PostgreSQL."
        raise BadArgument(what, "Set store.catalog to postgresql://USER@HOST/DATABASE.")
    if limits.catalog and limits.url == "memory:":
        raise BadArgument("store.catalog is set, and store.url is memory:.", "Set one of them.")
    return bool(limits.catalog)


def store_of_tenant(limits: StoreLimits, name: str) -> StoreLimits:
    """Return the limits of a tenant's own store, under the place of the store of all.

    The name has been checked (access.is_tenant). Its persons have runs (View); replicas share them,
    so that none may delete one at its end.
    """
    folder = (store_folder(limits) or limits.folder) / "tenants" / name
    url = limits.url
    if bucket_url(url):
        url = f"{url.rstrip('/')}/tenants/{name}"
    elif url != "memory:":
        url = ""  # the folder says it
    return replace(limits, folder=folder, url=url, tenant=name, run=ALL_RUNS, ephemeral=False)


_OF_THIS_PROCESS = f"process-{secrets.token_hex(6)}"


_projects: dict[str, str] = {}
"""The folders whose runs this process asked for. A run is a hash: no folder can be read from it."""


def folder_run(folder: Path) -> str:
    """Return the run of a folder: a hash of its path, links resolved."""
    path = os.path.realpath(folder)
    digest = hashlib.sha256(os.fsencode(os.path.normcase(path))).hexdigest()
    run = f"project-{digest[:12]}"
    _projects[run] = path
    return run


def project_of(run: str) -> str:
    """Return the folder of a run, "" if this process never asked for it."""
    return _projects.get(run, "")


def project_run(folder: Path) -> str:
    """Return the run of a project's folder; outside any project the process's own run.

    Hosts without a project start servers in / or in the home folder.
    """
    path = Path(os.path.realpath(folder))
    if path == path.parent or path == Path(os.path.realpath(Path.home())):
        return _OF_THIS_PROCESS
    return folder_run(path)


def own_run(limits: StoreLimits) -> str:
    """Return the run of a store. An ephemeral one without a name gets a private run.

    It deletes its run when it closes, and must not delete shared artifacts.
    """
    return f"ephemeral-{secrets.token_hex(8)}" if is_private(limits) else limits.run


def is_private(limits: StoreLimits) -> bool:
    """Return whether only this process will use the store, so that any folder will do."""
    return limits.ephemeral and limits.run in (AUTO_RUN, DEFAULT_RUN, ALL_RUNS)


def person_run(name: str, issuer: str = "") -> str:
    """Return the run of a person of a tenant: of an identity provider, or of a token of our own.

    A hash, as a provider may call a person anything. The same name of two providers is two persons.
    """
    named = f"{issuer}\0{name}".encode("utf-8", "surrogatepass")
    return f"person-{hashlib.sha256(named).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True)
class View:
    """The scope of a user of the store: its run for puts, for lists, and for references.

    Lists, searches, look-ups by URL and clean-up are of ``lists``; a reference opens if its
    artifact is of ``refs``, or of DEFAULT_RUN: what was put before there were persons has no other
    owner. Either may be ALL_RUNS.
    """

    puts: str
    lists: str
    refs: str = ALL_RUNS

    @classmethod
    def of(cls, run: str) -> "View":
        """Return the view of a run: a reference is valid in every run."""
        return cls(DEFAULT_RUN if run == ALL_RUNS else run, run)


def with_run(limits: StoreLimits) -> StoreLimits:
    """Return the limits with the run of the working folder in place of "auto".

    An ephemeral store is left alone: it has a private run, unless one is named.
    """
    if limits.run != AUTO_RUN or limits.ephemeral:
        return limits
    return replace(limits, run=project_run(Path.cwd()))

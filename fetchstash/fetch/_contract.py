"""The contract of fetch: a URL in, a file or one clear error out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The settings fetch.* of one fetcher. Sizes in bytes, times in seconds."""

    max_wire_bytes: int = 128 * 2**20
    max_decoded_bytes: int = 256 * 2**20
    deadline_seconds: float = 60
    max_redirects: int = 10
    max_header_bytes: int = 64 * 2**10
    max_url_chars: int = 8_192
    ports: tuple[int, ...] = (80, 443, 8080, 8443)
    allow_hosts: tuple[str, ...] = ()
    allow_nets: tuple[str, ...] = ()
    allow_domains: tuple[str, ...] = ()
    deny_domains: tuple[str, ...] = ()
    respect_robots: bool = True
    user_agent: str = ""
    proxy: str = ""
    per_host_concurrency: int = 4
    per_host_rate: float = 0


@dataclass(frozen=True, slots=True)
class Cached:
    """A stored response, described by what a conditional request needs (RFC 9110, section 13).

    ``stored_at`` is when it was fetched or last revalidated. ``headers`` and ``status`` decide
    whether it is fresh.
    """

    stored_at: datetime
    etag: str = ""
    last_modified: str = ""
    headers: Mapping[str, str] | None = None
    status: int = 200


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response whose body is in a file that now belongs to the caller.

    ``url`` and ``final_url`` may hold secrets: show and keep ``masked_url`` and
    ``masked_final_url`` instead. ``headers`` have lower-case names; repeated ones are joined by
    ", ". ``incomplete`` says why the body is not whole, "" if it is. ``not_modified``: the server
    answered 304, and ``path`` is None.
    """

    path: Path | None
    url: str
    final_url: str
    masked_url: str
    masked_final_url: str
    status: int
    headers: Mapping[str, str]
    size_bytes: int
    sha256: str
    fetched_at: datetime
    name: str
    incomplete: str = ""
    not_modified: bool = False


Progress = Callable[[int, int | None], None]
"""Called with the bytes received and the total, if known, at most ten times a second."""


class Fetcher(Protocol):
    """Fetches one URL per call; calls may run concurrently in one event loop."""

    async def fetch(
        self,
        url: str,
        folder: Path,
        *,
        cached: Cached | None = None,
        progress: Progress | None = None,
    ) -> Fetched:
        """Fetch ``url`` with GET and spool its decoded body to a new 0600 file in ``folder``.

        With ``cached``, the request is conditional (``not_modified``). A body that is not whole is
        kept and marked (``incomplete``), unless nothing of it came.

        Raises one of these and then leaves no file in ``folder``:

        - BadArgument: no URL, or one that is too long
        - Refused: a scheme, host, port, domain or address that policy forbids (details: host,
          port, address)
        - RobotsRefused: robots.txt forbids it
        - HttpError: a 4xx or 5xx (details: status, excerpt of at most 500 characters,
          retry_after_seconds)
        - FetchFailed: no such name, no connection, no HTTP, too many redirects, or an empty body
          that should not be
        - TimedOut: the deadline passed before anything came
        - TooLarge: a header or body above its limit
        - StoreError: the file could not be created or written
        """
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...

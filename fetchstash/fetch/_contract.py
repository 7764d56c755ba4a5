"""What the fetch room promises: a URL in, bytes on disk out, or one clear error."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits and manners of one fetcher: the settings fetch.*. Sizes in bytes, times in seconds."""

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
    """What the store still has of a URL: enough to ask the server whether it changed (RFC 9110, section 13).

    ``stored_at`` is when it was fetched or last found unchanged. ``headers`` and ``status`` say
    whether it is fresh.
    """

    stored_at: datetime
    etag: str = ""
    last_modified: str = ""
    headers: Mapping[str, str] | None = None
    status: int = 200


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response whose body lies in a file that now belongs to the caller.

    ``url`` and ``final_url`` are whole, secrets and all: they are for the caller alone.
    ``masked_url`` and ``masked_final_url`` are what may be shown and kept. ``headers`` have
    lower-case names and were joined by ", " where they repeat. ``incomplete`` says why the body is
    not whole ("" if it is). ``not_modified``: the server answered 304, and ``path`` is None.
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
"""Called with the bytes received so far and the total where the server told it; at most some ten times a second."""


class Fetcher(Protocol):
    """Fetches one URL at a time for each call; calls may run side by side in one event loop."""

    async def fetch(
        self,
        url: str,
        folder: Path,
        *,
        cached: Cached | None = None,
        progress: Progress | None = None,
    ) -> Fetched:
        """Fetch ``url`` with GET and spool its decoded body to a new 0600 file in ``folder``.

        With ``cached``, the server is asked whether that is still what it has (``not_modified``). A
        body that is not whole is kept and says so (``incomplete``), unless nothing of it came.
        Raises, and then leaves ``folder`` as it was:

        BadArgument    what is no URL, or too long a one Refused        a scheme, host, port, domain
        or address that policy forbids (details: host, port, address) RobotsRefused  robots.txt
        forbids it HttpError      a 4xx or 5xx (details: status, excerpt of at most 500 characters,
        retry_after_seconds where it was told) FetchFailed    no such name, no connection, no HTTP,
        too many redirects, or nothing of the body came TimedOut       the deadline passed before
        there was anything to keep TooLarge       a header or body above its limit StoreError
        the file could not be made or written
        """
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...

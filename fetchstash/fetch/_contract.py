"""The contract of fetch: a URL in, a file or one clear error out; and the settings fetch.*."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fetchstash.text import setting

if TYPE_CHECKING:
    from fetchstash.fetch._cookies import Jar

Progress = Callable[[int, int | None], None]
"""Called with the bytes received and the total, if known, at most ten times a second."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The settings fetch.* of one fetcher. Sizes in bytes, times in seconds.

    ``deadline_seconds`` is for the whole call of a user, extraction included. ``headers`` are the
    request headers that the operator sets for an origin; they are secrets. ``ask`` is for front
    ends that can ask a person about a private host. ``browser``: "off", or "auto" to render pages
    that are only scripts, or the domains whose pages are always rendered.
    """

    max_wire_bytes: int = setting(128 * 2**20, "One body as it is sent, in bytes", low=1)
    max_decoded_bytes: int = setting(
        256 * 2**20, "One body after its content coding is decoded, in bytes", low=1
    )
    deadline_seconds: float = setting(
        45, "One call in all: look-up, redirects, retries, body, extraction", low=0.1, high=3600
    )
    max_redirects: int = setting(10, "Redirects that are followed", low=0, high=50)
    max_header_bytes: int = setting(64 * 2**10, "Header fields of one response, in bytes", low=1024)
    max_url_chars: int = setting(8_192, "Characters of a URL", low=1)
    ports: tuple[int, ...] = setting(
        (80, 443, 8080, 8443), "Ports that may be used", low=1, high=65_535
    )
    allow_hosts: tuple[str, ...] = setting(
        (), "Exceptions from the address and port rules: NAME, NAME:PORT or [ADDRESS]:PORT"
    )
    allow_nets: tuple[str, ...] = setting(
        (), "Exceptions from the address rules: networks in CIDR notation"
    )
    allow_domains: tuple[str, ...] = setting(
        (), "Fetch only these domains and their sub-domains; empty: all"
    )
    deny_domains: tuple[str, ...] = setting((), "Never fetch these domains and their sub-domains")
    respect_robots: bool = setting(True, "Ask robots.txt before a fetch and obey it")
    user_agent: str = setting("", "User-Agent header; empty: fetchstash and its version")
    proxy: str = setting(
        "", "HTTP proxy (http://HOST:PORT); empty: none, whatever the environment says"
    )
    proxy_resolves: bool = setting(
        False,
        "fetch.proxy looks names up: CONNECT by name. Then the proxy alone keeps fetches away "
        "from private addresses",
    )
    ca_file: str = setting(
        "", "File of certificates in PEM that are trusted beside the system's (a private CA)"
    )
    per_host_concurrency: int = setting(4, "Requests to one host at a time", low=1, high=1000)
    per_host_rate: float = setting(0, "Requests a second to one host; 0: no limit", low=0)
    rules_off: tuple[str, ...] = setting(
        (), "Rules for addresses that are not used, by their names (docs/rules.md)"
    )
    browser: tuple[str, ...] = setting(
        ("auto",),
        "auto: pages that are only scripts are rendered in a browser behind the guard, where "
        "Chromium and the extra browser are there (serve --http: off, unless set); off; or the "
        "domains whose pages always are",
    )
    ask: bool = setting(
        True,
        "Ask the person about a private host that is refused, where the client can ask "
        "(stdio only); the person types the host's name",
    )
    headers: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict[str, Mapping[str, str]], repr=False, hash=False
    )

    @property
    def fetch_seconds(self) -> float:
        """Return the share of the deadline that a fetch may take: the rest is for extraction."""
        return self.deadline_seconds * 8 / 9


@dataclass(frozen=True, slots=True)
class Cached:
    """A stored response's validators and freshness, for a conditional request (RFC 9110, 13).

    ``stored_at`` is when it was fetched or last revalidated. ``headers`` and ``status`` decide
    whether it is fresh. ``url`` is the masked final URL that gave the validators, to which alone
    they are sent; "" is the fetched URL itself.
    """

    stored_at: datetime
    etag: str = ""
    last_modified: str = ""
    headers: Mapping[str, str] | None = None
    status: int = 200
    url: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response, with its body in a file that the caller now owns.

    ``url`` and ``final_url`` may hold secrets: show and keep ``masked_url`` and
    ``masked_final_url`` instead. ``headers`` have lower-case names; repeated ones are joined by
    ", ". ``incomplete`` says why the body is not whole or empty, "" if it is neither.
    ``not_modified``: the server answered 304, and ``path`` is None. ``redirects`` is how many were
    followed, ``left_origin`` whether one of them led to another origin. ``address`` is that of the
    peer: of the proxy where there is one. ``cookies`` are for pages that this one leads to.
    ``rule`` names the rule that led to the document.
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
    name: str = ""
    incomplete: str = ""
    not_modified: bool = False
    redirects: int = 0
    left_origin: bool = False
    address: str = ""
    cookies: "Jar | None" = field(default=None, repr=False, compare=False)
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page as a browser rendered it: its DOM as HTML, or a picture, in the caller's file.

    ``url`` is the address after its scripts ran, ``browser`` a name with its version. ``width`` and
    ``height`` are those of a picture, in pixels. ``incomplete`` says why the page is not whole.
    """

    path: Path
    url: str
    browser: str
    media_type: str
    width: int = 0
    height: int = 0
    incomplete: str = ""


class Renderer(Protocol):
    """Renders pages in a browser that reaches no address which policy forbids."""

    async def render(
        self, url: str, folder: Path, *, seconds: float, edge: int = 0, max_bytes: int = 0
    ) -> Rendered:
        """Render ``url`` into a new 0600 file in ``folder``, within ``seconds``.

        With ``edge`` the result is a picture of at most so many pixels each way; it has at most
        ``max_bytes`` (0: fetch.max_decoded_bytes). Raises Refused, FetchFailed, TimedOut or
        TooLarge, and then leaves no file.
        """
        ...


class Fetcher(Protocol):
    """Fetches one URL per call; calls may run concurrently in one event loop."""

    async def fetch(
        self,
        url: str,
        folder: Path,
        *,
        cached: Cached | None = None,
        progress: Progress | None = None,
        after: Fetched | None = None,
        seconds: float | None = None,
        within: str = "",
    ) -> Fetched:
        """Fetch ``url`` with GET and spool its decoded body to a new 0600 file in ``folder``.

        With ``cached``, the request is conditional (``not_modified``). A body that is not whole is
        kept and marked (``incomplete``), unless nothing of it came. ``after`` is the page that
        leads to ``url``, a reference, by a refresh or a lone frame: it counts as a redirect of
        ``after``, whose ``url`` the result has. ``seconds``: the time that is left, if less than
        the limits allow. ``within``: the address, ending in "/", below which every redirect must
        stay; another one is refused before a request.

        Raises BadArgument, Refused (details: host, port, address; private, what it is, if a person
        may be asked to allow it), RobotsRefused, HttpError (details: status, retry_after_seconds;
        an excerpt of at most 300 characters), FetchFailed, TimedOut, TooLarge or StoreError, and
        then leaves no file.
        """
        ...

    async def site_rules(self, url: str) -> tuple[float, Sequence[str]]:
        """Return the crawl delay in seconds and the sitemaps that ``url``'s robots.txt states.

        Raises BadArgument, Refused, FetchFailed or TimedOut.
        """
        ...

    async def check(self, url: str, final_url: str = "") -> None:
        """Raise BadArgument or Refused if ``url`` may not be fetched now; send no request.

        Ask before a stored copy is used. ``final_url`` is where ``url`` redirected to; it may be
        masked. A name that cannot be looked up passes.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...

"""The limits of a fetcher: the settings fetch.*."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The settings fetch.* of one fetcher. Sizes in bytes, times in seconds.

    ``deadline_seconds`` is for the whole call of a user, extraction included. ``headers`` are the
    request headers that the operator sets for an origin; they are secrets. ``ask`` is for faces
    that can ask a person about a private host. ``browser``: "off", or "auto" to render pages that
    are only scripts, or the domains whose pages are always rendered.
    """

    max_wire_bytes: int = 128 * 2**20
    max_decoded_bytes: int = 256 * 2**20
    deadline_seconds: float = 45
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
    browser: tuple[str, ...] = ("off",)
    ask: bool = True
    headers: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict[str, Mapping[str, str]], repr=False, hash=False
    )

    @property
    def fetch_seconds(self) -> float:
        """Return the share of the deadline that a fetch may take: the rest is for extraction."""
        return self.deadline_seconds * 8 / 9

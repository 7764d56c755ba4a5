"""Read robots.txt and decide what it allows us (RFC 9309)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protego import Protego

MAX_BYTES = 500 * 1024  # RFC 9309, section 2.5: what a crawler has to read at least
MAX_REDIRECTS = 5  # section 2.3.1.2
SECONDS = 10  # a robots.txt that takes longer counts as unreachable
MAX_BYTES_KEPT = 2 * 2**20  # of all sites together: rules take twenty times the room of their text
_DAY = 24 * 3600.0  # section 2.4
_A_WHILE = 300.0


@dataclass(frozen=True, slots=True)
class Robots:
    """One origin's rules. Without ``rules`` all is allowed, or nothing if ``unreachable``."""

    keep_seconds: float
    rules: "Protego | None" = None
    unreachable: bool = False
    size_bytes: int = 0

    def allows(self, url: str, agent: str) -> bool:
        """Say whether ``agent`` may fetch ``url``. Call it in a thread: it may take some 10 ms."""
        if self.rules is None:
            return not self.unreachable
        return self.rules.can_fetch(url, product_token(agent))


UNREACHABLE = Robots(_A_WHILE, unreachable=True)
UNAVAILABLE = Robots(_DAY)


def read_robots(status: int, body: bytes) -> Robots:
    """Parse a robots.txt. A 4xx allows everything, a 5xx nothing for a while (section 2.3.1)."""
    if status >= 500:
        return UNREACHABLE
    if not 200 <= status < 300:
        return UNAVAILABLE
    from protego import Protego  # noqa: PLC0415 -- not needed before the first fetch

    text = body[:MAX_BYTES].decode("utf-8", "replace")
    return Robots(_DAY, Protego.parse(text), size_bytes=len(body))


def product_token(agent: str) -> str:
    """Return the product token of a user agent: fetchstash of ``fetchstash/1.0`` (2.2.1)."""
    return agent.partition("/")[0].partition(" ")[0]

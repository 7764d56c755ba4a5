"""Shared by the tests of fetch: the type that makes fetchers, and servers that send raw bytes."""

import time
from collections.abc import Callable, Coroutine
from http.server import BaseHTTPRequestHandler
from typing import Any

from fetchstash.errors import FetchFailed
from fetchstash.fetch import Address, Fetched, HttpFetcher, plain
from tests.loopback import Site

Make = Callable[..., HttpFetcher]
Fetch = Callable[..., Coroutine[Any, Any, Fetched]]
OK = b"HTTP/1.1 200 OK\r\n"


def sends(
    *parts: bytes, pause: float = 0, times: int = 1
) -> Callable[[BaseHTTPRequestHandler], None]:
    """Return a script that sends ``parts``, the last one ``times`` times, and closes."""

    def script(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        try:
            for part in (*parts[:-1], *(parts[-1] for _ in range(times))):
                handler.connection.sendall(part)
                time.sleep(pause)
        except OSError:
            pass  # the client had enough

    return script


def raw(site: Site, *parts: bytes, pause: float = 0, times: int = 1) -> str:
    """Serve ``parts`` as ``sends`` does; return the URL."""
    return site.put("/x", script=sends(*parts, pause=pause, times=times))


def content(fetched: Fetched) -> bytes:
    """Return the body that was fetched."""
    assert fetched.path is not None
    return fetched.path.read_bytes()


class Answers:
    """A resolver that gives every name the same addresses, or none."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = [plain(address) for address in addresses]

    async def look_up(self, host: str) -> list[Address]:
        if not self.addresses:
            raise FetchFailed(f"There is no address for the name {host}.", "Check the spelling.")
        return self.addresses

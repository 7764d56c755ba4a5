"""Shared by the tests of fetch: the type that makes fetchers, and servers that send raw bytes."""

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

from fetchstash.fetch import HttpFetcher

Make = Callable[..., HttpFetcher]


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

"""What tests of the fetch room share: how fetchers are made, and servers that send what they are told."""

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

from fetchstash.fetch import HttpFetcher

Make = Callable[..., HttpFetcher]


def sends(
    *parts: bytes, pause: float = 0, times: int = 1
) -> Callable[[BaseHTTPRequestHandler], None]:
    """Return a script that sends ``parts`` as they are, the last ``times`` times over, and closes the connection."""

    def script(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        try:
            for part in (*parts[:-1], *(parts[-1] for _ in range(times))):
                handler.connection.sendall(part)
                time.sleep(pause)
        except OSError:
            pass  # the client had enough

    return script

"""A web site on loopback for tests, and what an MCP client reads out of a result."""

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Quiet(BaseHTTPRequestHandler):
    """A handler that logs nothing."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        pass


@contextmanager
def serving(server: ThreadingHTTPServer) -> Generator[int]:
    """Serve while the context is open; yield the port."""
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.002})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@dataclass
class Page:
    """What a path answers. ``script`` takes over and writes to the connection itself."""

    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    status: int = 200
    script: Callable[[BaseHTTPRequestHandler], None] | None = None


@dataclass
class Site:
    """A web site on loopback: put pages on it, and see what was asked."""

    port: int = 0
    pages: dict[str, Page] = field(default_factory=dict[str, Page])
    asked: list[str] = field(default_factory=list[str])

    def put(
        self,
        path: str,
        body: bytes | str = b"",
        media_type: str | None = "text/html; charset=utf-8",
        **more: Any,
    ) -> str:
        """Put a page there and return its URL."""
        headers = {
            **({"Content-Type": media_type} if media_type else {}),
            **more.pop("headers", {}),
        }
        self.pages[path] = Page(body.encode() if isinstance(body, str) else body, headers, **more)
        return self.url(path)

    def settings(self, **given: Any) -> dict[str, Any]:
        """Return settings with which it may be fetched, and ``given`` ones: "__" is a dot."""
        own = {"fetch.allow_hosts": [f"127.0.0.1:{self.port}"], "fetch.respect_robots": False}
        return own | {name.replace("__", "."): value for name, value in given.items()}

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

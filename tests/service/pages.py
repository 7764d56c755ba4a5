"""Pages that end when a test says so, and requests that fetch them."""

import threading
from contextlib import suppress
from typing import Any

import anyio

from tests.loopback import Site


class Hanging:
    """A page that begins and never ends. Knows when it was asked for, and when it was left."""

    def __init__(self, site: Site) -> None:
        self.begun, self.left = anyio.Event(), anyio.Event()
        self.url = site.put("/slow", script=self._answer)
        self._loop = anyio.lowlevel.current_token()

    def _answer(self, handler: Any) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 500000\r\n\r\n"
        handler.wfile.write(head + b"begin" * 40_000)
        handler.wfile.flush()
        anyio.from_thread.run_sync(self.begun.set, token=self._loop)
        with suppress(OSError):
            handler.rfile.read(1)  # returns when the client closes
        anyio.from_thread.run_sync(self.left.set, token=self._loop)
        handler.close_connection = True


class Waiting:
    """A page whose end is sent when the test says so. Knows when it was asked for."""

    def __init__(self, site: Site) -> None:
        self.begun = anyio.Event()
        self.url = site.put("/waiting", script=self._answer)
        self._may_end = threading.Event()
        self._loop = anyio.lowlevel.current_token()

    def end(self) -> None:
        """Send the rest."""
        self._may_end.set()

    def _answer(self, handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n")
        handler.wfile.write(b"Content-Length: 17\r\n\r\nThe text and ")
        handler.wfile.flush()
        anyio.from_thread.run_sync(self.begun.set, token=self._loop)
        self._may_end.wait(20)
        handler.wfile.write(b"end.")


def calling(url: str, era: str, request: int = 1) -> dict[str, Any]:
    """Return the keywords of a request that calls fetch_content, in the way of an era."""
    params: dict[str, Any] = {"name": "fetch_content", "arguments": {"url": url}}
    headers = {"accept": "application/json, text/event-stream"}
    if era == "legacy":
        headers["mcp-protocol-version"] = "2025-11-25"
    else:
        headers |= {
            "mcp-protocol-version": era,
            "mcp-method": "tools/call",
            "mcp-name": "fetch_content",
        }
        prefix = "io.modelcontextprotocol/"
        params["_meta"] = {
            f"{prefix}protocolVersion": era,
            f"{prefix}clientInfo": {"name": "test", "version": "1"},
            f"{prefix}clientCapabilities": {},
        }
    body = {"jsonrpc": "2.0", "id": request, "method": "tools/call", "params": params}
    return {"json": body, "headers": headers}

"""A server over streamable HTTP without an SDK, whose one tool answers with as much as is asked.

The SDK's would hold the result.
"""

import contextlib
import json
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from typing import Any

from tests.loopback import Quiet

PIECE = "some words and more\\n" * 3_000
ABOUT: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "flood", "version": "1"},
}
TOOLS = [{"name": "flood", "inputSchema": {"type": "object"}}]


def answer(request: dict[str, Any]) -> Iterator[str]:
    """Yield the pieces of an answer."""
    begin, end = f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":', "}"
    if request["method"] == "initialize":
        yield begin + json.dumps(ABOUT) + end
    elif request["method"] == "tools/list":
        yield begin + json.dumps({"tools": TOOLS}) + end
    else:
        yield begin + '{"content":[{"type":"text","text":"'
        for _ in range(request["params"]["arguments"]["size"] // len(PIECE)):
            yield PIECE
        yield 'the last line"}]}' + end


class Handler(Quiet):
    """Answers each message on its own."""

    protocol_version = "HTTP/1.1"
    events = False

    def do_GET(self) -> None:
        """Offer no stream."""
        self.send_error(405)

    def do_POST(self) -> None:
        """Answer a request; accept a notification."""
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in request:
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        self.send_response(200)
        kind = "text/event-stream" if self.events else "application/json"
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if self.events:
            self._write("event: message\ndata: ")
        for piece in answer(request):
            self._write(piece)
        if self.events:
            self._write("\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def handle(self) -> None:
        """Take a client that closes in the middle, as at its end, for one that is done."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def _write(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def listening(style: str) -> ThreadingHTTPServer:
    """Return a server on a free port of loopback; ``style`` is "json" or "events"."""
    handler = type("Styled", (Handler,), {"events": style == "events"})
    return ThreadingHTTPServer(("127.0.0.1", 0), handler)

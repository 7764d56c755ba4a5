"""A server over streamable HTTP behind the gateway."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from mcp.shared.exceptions import MCPError

from tests.gateway.conftest import Wrapped, both_eras
from tests.gateway.servers.http_flood import ABOUT, TOOLS, listening
from tests.gateway.test_faults import FLOOD_BYTES, MOST_KB, peak_of_gateway
from tests.gateway.test_shortening import refs, texts
from tests.loopback import Quiet, serving

pytestmark = [pytest.mark.long, pytest.mark.anyio]

PROGRAM = """
import sys
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
server = MCPServer("http")
@server.tool()
def words(count: int) -> str:
    return "".join(f"line {number}\\n" for number in range(count))
@server.tool()
def rows(count: int) -> dict[str, list[int]]:
    return {"rows": list(range(count))}
@server.tool()
def key(ctx: Context) -> str:
    return ctx.headers["x-key"]
server.run("streamable-http", port=int(sys.argv[1]), json_response=sys.argv[2] == "json")
"""


@pytest.fixture(params=["json", "events"])
def url(request: pytest.FixtureRequest) -> Generator[str]:
    """Serve with the SDK on loopback, with JSON answers or with event streams."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [sys.executable, "-P", "-c", PROGRAM, str(port), request.param]
    with subprocess.Popen(program, stderr=subprocess.DEVNULL) as process:
        for _ in range(300):
            with closing(socket.socket()) as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


@both_eras
async def test_short_results_pass_and_long_ones_are_kept(
    wrapped: Wrapped, mode: str, url: str
) -> None:
    flags = ("--url", url, "--header", "x-key=some value")
    async with wrapped(mode, flags=flags) as client:
        assert texts(await client.call_tool("key", {})) == "some value"
        assert texts(await client.call_tool("words", {"count": 2})) == "line 0\nline 1\n"
        long = await client.call_tool("words", {"count": 100_000})
        [ref] = refs(long)
        found = await client.call_tool(
            "artifact_grep", {"artifact_ref": ref, "pattern": "line 99999$"}
        )
        table = await client.call_tool("rows", {"count": 100_000})
    assert len(texts(long)) < 4_000
    assert "100000:line 99999" in texts(found)
    assert "rows: array of 100,000 integers" in texts(table)
    assert table.structured_content is None


@pytest.mark.parametrize("style", ["json", "events"])
async def test_a_flood_goes_to_disk_and_not_to_memory(wrapped: Wrapped, style: str) -> None:
    with serving(listening(style)) as port:
        flags = ("--url", f"http://127.0.0.1:{port}/mcp")
        async with wrapped("legacy", flags=flags) as client:
            await client.call_tool("flood", {"size": 1_000_000})
            before = peak_of_gateway(client)
            result = await client.call_tool("flood", {"size": FLOOD_BYTES})
            after = peak_of_gateway(client)
            [ref] = refs(result)
            found = await client.call_tool(
                "artifact_grep", {"artifact_ref": ref, "pattern": "the last line", "literal": True}
            )
    assert "the last line" in texts(found)
    assert after - before < MOST_KB


class Scripted(Quiet):
    """A server of one tool, whose answers are the event streams in ``streams``, one a call.

    It forgets its session after ``calls`` of them.
    """

    protocol_version = "HTTP/1.1"
    streams: ClassVar[list[Iterable[str]]] = []
    session = 0
    calls = -1

    def do_GET(self) -> None:
        """Offer no stream."""
        self.send_error(405)

    def do_DELETE(self) -> None:
        """End a session that is forgotten already."""
        self.send_error(404)

    def do_POST(self) -> None:
        """Answer a request; accept a notification."""
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        own, number = type(self), json.dumps(request.get("id"))
        if request["method"] == "initialize":
            own.session += 1
            self._send(200, [json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": ABOUT})])
        elif "id" not in request:
            self._send(202, [])
        elif self.headers["mcp-session-id"] != str(own.session):
            self._send(404, [])
        elif request["method"] == "tools/list":
            result = {"tools": TOOLS}
            self._send(200, [json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})])
        else:
            pieces = own.streams.pop(0)
            own.calls -= 1
            own.session += not own.calls
            self._send(200, (piece.replace("ID", number) for piece in pieces), "text/event-stream")

    def _send(self, status: int, pieces: Iterable[str], kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("mcp-session-id", str(self.session))
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for piece in pieces:
            self.wfile.write(piece.encode())


@contextmanager
def scripted(streams: list[Iterable[str]], calls: int = -1) -> Generator[tuple[str, str]]:
    """Serve on loopback, and yield the flags for the gateway."""
    handler = type("Once", (Scripted,), {"streams": streams, "calls": calls})
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as port:
        yield "--url", f"http://127.0.0.1:{port}/mcp"


DONE = '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"done"}]}}'


@both_eras
async def test_a_session_that_the_server_forgot_is_begun_anew(
    wrapped: Wrapped, mode: str, tmp_path: Path
) -> None:
    done = [f"data: {DONE}\n\n"]
    with scripted([done, done], calls=1) as flags:
        async with wrapped(mode, flags=flags) as client:
            await client.list_tools()  # the SDK would list them after the first call
            results = [texts(await client.call_tool("flood", {})) for _ in range(3)]
    assert results[0] == results[2] == "done"
    assert results[1].startswith("[server_failed]")
    assert "the connection failed (its session is gone)" in (tmp_path / "stderr").read_text()


async def test_odd_event_streams_are_read(wrapped: Wrapped, tmp_path: Path) -> None:
    lines = DONE.replace(",", ",\n").splitlines()
    streams: list[Iterable[str]] = [
        ["id: 1\ndata:\n\n", f"event: message\r\ndata: {DONE}\r\n\r\n"],
        [f"data: {line}\n" for line in lines] + ["\n"],
        ["da", "ta: {", DONE[1:30], DONE[30:], "\n\n"],
        ["data: " + DONE.replace("done", r"\ud800 done") + "\n\n"],
        ["data: {nonsense}\n\n"],
    ]
    with scripted(streams) as flags:
        async with wrapped("legacy", flags=flags) as client:
            for text in ("done", "done", "done", "� done"):
                assert texts(await client.call_tool("flood", {})) == text
            with pytest.raises(MCPError, match="sent a line that is no JSON"):
                await client.call_tool("flood", {})
    assert "Traceback" not in (tmp_path / "stderr").read_text()


async def test_a_comment_without_end_is_not_held(wrapped: Wrapped) -> None:
    done = f"\n\ndata: {DONE}\n\n"
    comment = [":", *["some words and more " * 5_000] * (FLOOD_BYTES // 100_000)]
    with scripted([[done], [*comment, done]]) as flags:
        async with wrapped("legacy", flags=flags) as client:
            await client.call_tool("flood", {})
            before = peak_of_gateway(client)
            assert texts(await client.call_tool("flood", {})) == "done"
            assert peak_of_gateway(client) - before < MOST_KB


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (0, "the connection failed (All connection attempts failed); it is tried again in 0.5 s."),
        (401, "HTTP 401: it wants other headers (--header, or headers in the settings file)."),
        (404, "it refused the connection (Not Found); it is tried again in 0.5 s."),
    ],
)
async def test_why_a_server_cannot_be_reached_is_said_in_one_line(
    wrapped: Wrapped, tmp_path: Path, status: int, reason: str
) -> None:
    class Refusing(Quiet):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_error(status)

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Refusing)) as served:
        port = served if status else 9  # discard (RFC 863): nobody listens
        async with wrapped("legacy", flags=("--url", f"http://127.0.0.1:{port}/mcp")) as client:
            await client.list_tools()
    assert f"[127.0.0.1] fetchstash: {reason}\n" in (tmp_path / "stderr").read_text()

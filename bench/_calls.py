"""Call tools by hand, over HTTP and over stdio, so that a client's own cost does not count."""

import asyncio
import itertools
import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ERAS = (LEGACY, MODERN)
MAX_ANSWER = 2**24

_PREFIX = "io.modelcontextprotocol/"
_CLIENT = {
    f"{_PREFIX}protocolVersion": MODERN,
    f"{_PREFIX}clientInfo": {"name": "bench", "version": "1"},
    f"{_PREFIX}clientCapabilities": {},
}
_HELLO = {
    "protocolVersion": LEGACY,
    "clientInfo": {"name": "bench", "version": "1"},
    "capabilities": {
        "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
    },
}
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Answer:
    """An HTTP status and the JSON-RPC message, {} where there was none."""

    status: int
    message: Mapping[str, Any]

    @property
    def code(self) -> str:
        """The code of a tool's error, or what else went wrong, "" for a result."""
        if self.status != 200:
            return f"HTTP {self.status}"
        if "result" not in self.message:
            return str(self.message.get("error", "no message"))
        if not self.message["result"].get("isError"):
            return ""
        meta = self.message["result"].get("_meta", {})
        return str(meta.get("fetchstash/error", {}).get("code", "error"))

    @property
    def text(self) -> str:
        """The text of a tool's result."""
        blocks = self.message.get("result", {}).get("content", [])
        return "\n".join(block["text"] for block in blocks if block["type"] == "text")

    @property
    def ref(self) -> str:
        """The reference of its first artifact."""
        meta = self.message["result"]["_meta"]
        return str(meta["fetchstash/artifact"][0]["artifact_ref"])


class Caller:
    """One client with one connection, opened again where the server closed it.

    ``fields`` are the header fields of the last answer, also of one that broke off.
    """

    def __init__(self, port: int, *, token: str = "", era: str = MODERN, host: str = "") -> None:
        self._port = port
        self._era = era
        self._ids = itertools.count(1)
        self.fields: Mapping[str, str] = {}
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        head = [
            "POST /mcp HTTP/1.1",
            f"Host: {host or f'127.0.0.1:{port}'}",
            "Accept: application/json, text/event-stream",
            "Content-Type: application/json",
            f"MCP-Protocol-Version: {era}",
            *([f"Authorization: Bearer {token}"] if token else []),
        ]
        self._head = "\r\n".join(head)

    async def tool(self, name: str, **arguments: Any) -> Answer:
        """Call a tool. Raises OSError or EOFError where the connection breaks."""
        return await self.request("tools/call", name, {"name": name, "arguments": arguments})

    async def request(self, method: str, name: str = "", params: Any = None) -> Answer:
        """Send one request of JSON-RPC; the era says how (streamable HTTP, both versions)."""
        parameters = dict(params or {})
        head = self._head
        if self._era == MODERN:
            parameters["_meta"] = _CLIENT
            head += f"\r\nMcp-Method: {method}" + (f"\r\nMcp-Name: {name}" if name else "")
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": parameters}
        body = json.dumps(message).encode()
        return await self.send(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    async def send(self, request: bytes) -> Answer:
        """Send the bytes of one request, and read its answer."""
        if self._ends is None or self._ends[0].at_eof():
            await self.aclose()
            self._ends = await asyncio.open_connection("127.0.0.1", self._port, limit=MAX_ANSWER)
        reader, writer = self._ends
        whole = False
        self.fields = {}
        try:
            writer.write(request)
            await writer.drain()
            status, self.fields = await _head(reader)
            body = await _body(reader, self.fields)
            whole = self.fields.get("connection") != "close"
        finally:
            if not whole:  # what comes next on it would be read as another answer
                await self.aclose()
        return Answer(status, _message(body))

    async def aclose(self) -> None:
        """Close the connection."""
        if self._ends:
            self._ends[1].close()
            with suppress(OSError):
                await self._ends[1].wait_closed()
            self._ends = None


async def timed(
    caller: Caller,
    tool: str,
    arguments: Mapping[str, Any],
    times: dict[str, list[float]],
    errors: Counter[str],
) -> None:
    """Call a tool; note its seconds, and what went wrong."""
    start = time.perf_counter()
    try:
        answer = await caller.tool(tool, **arguments)
    except (OSError, EOFError) as error:
        errors[f"{tool}: {type(error).__name__}"] += 1
        return
    times.setdefault(tool, []).append(time.perf_counter() - start)
    if answer.code:
        errors[f"{tool}: {answer.code} {answer.text[:100]}"] += 1


async def fetched(caller: Caller, urls: Sequence[str]) -> list[str]:
    """Fetch pages; return their references."""
    refs: list[str] = []
    for url in urls:
        answer = await caller.tool("fetch_content", url=url)
        if answer.code:
            raise RuntimeError(f"fetch_content: {answer.code} {answer.text[:200]}")
        refs.append(answer.ref)
    return refs


async def _head(reader: asyncio.StreamReader) -> tuple[int, Mapping[str, str]]:
    """Return the status and the header fields of an answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    return int(head.split(" ", 2)[1]), fields


async def _body(reader: asyncio.StreamReader, fields: Mapping[str, str]) -> bytes:
    """Return the body that follows a head (RFC 9112, section 6.3)."""
    if "chunked" not in fields.get("transfer-encoding", ""):
        return await reader.readexactly(int(fields.get("content-length", "0")))
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return body


def _message(body: bytes) -> Mapping[str, Any]:
    """Return the message of a body: JSON, or the last event of a stream (WHATWG HTML, 9.2)."""
    if not body.startswith(b"{"):
        events = [line[5:] for line in body.splitlines() if line.startswith(b"data:")]
        body = next((event for event in reversed(events) if event.strip()), b"")
    with suppress(ValueError):
        message: dict[str, Any] = json.loads(body)
        return message
    return {}


class Pipe:
    """A server over stdin and stdout, in the handshake era, as a host that shows MCP Apps."""

    def __init__(self, server: "subprocess.Popen[bytes]") -> None:
        assert server.stdin
        assert server.stdout
        self._sent, self._lines = server.stdin, server.stdout

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        self._sent.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._sent.flush()

    def answer(self, method: str, params: Mapping[str, Any]) -> bytes:
        """Return the result of a request, or its error, as the server wrote it."""
        self.tell({"id": method, "method": method, "params": params})
        for line in self._lines:
            message = json.loads(line)
            if message.get("id") == method and "method" not in message:
                name = '"result":' if "result" in message else '"error":'
                text = line.decode()
                start = text.index(name) + len(name)
                return text[start : _DECODER.raw_decode(text, start)[1]].encode()
        raise RuntimeError(f"The server ended at {method}.")

    def ask(self, method: str, **params: Any) -> Any:
        """Return the same as JSON."""
        return json.loads(self.answer(method, params))

    def tool(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool."""
        return Answer(200, {"result": self.ask("tools/call", name=name, arguments=arguments)})


@contextmanager
def piped(
    words: Sequence[str], env: Mapping[str, str] = os.environ, folder: Path | None = None
) -> Generator[Pipe]:
    """Run a server over stdin and stdout until the block ends."""
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        words, env=env, cwd=folder, stdin=pipe, stdout=pipe, stderr=nothing
    ) as server:
        one = Pipe(server)
        one.ask("initialize", **_HELLO)
        one.tell({"method": "notifications/initialized"})
        try:
            yield one
        finally:
            assert server.stdin
            server.stdin.close()
            server.kill()

"""Stand between a store and its bucket, and behave as networks and busy services do.

    python scripts/replicas/faults.py PORT

Prints the port it listens on, and forwards HTTP/1.1 to PORT of loopback. Each line on stdin is a
JSON object that replaces the faults from then on; the process ends with stdin.
"""

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from email.parser import BytesHeaderParser
from urllib.parse import urlsplit

HEAD_BYTES = 65_536
CHUNK = 65_536

BUSY = (
    b"<?xml version='1.0' encoding='UTF-8'?>"
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)


@dataclass(frozen=True)
class Faults:
    """Shares are of all requests, from 0 to 1."""

    latency: float = 0  # seconds before a request is forwarded
    throttled: float = 0  # answered 503 SlowDown, and not forwarded
    unheard: float = 0  # taken, never forwarded and never answered
    unanswered: float = 0  # forwarded, so that it takes effect, and never answered
    cut: float = 0  # the connection closes in the middle of the answer
    outage: bool = False  # connections are reset, and new ones are refused


class Broken(Exception):
    """A fault ended this connection."""


class Proxy:
    """Forwards to one port, with the faults of the moment."""

    def __init__(self, upstream: int) -> None:
        self.faults = Faults()
        self._upstream = upstream
        self._port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._chance = random.Random(1)  # noqa: S311 - it guards nothing

    async def listen(self) -> int:
        """Accept connections, at the same port as before; return it."""
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._port, limit=HEAD_BYTES
        )
        self._port = int(self._server.sockets[0].getsockname()[1])
        return self._port

    async def change(self, faults: Faults) -> None:
        """Replace the faults; an outage resets what is open and refuses what comes."""
        self.faults = faults
        if faults.outage and self._server is not None:
            self._server.close()
            self._server = None
            for writer in self._open:
                writer.transport.abort()
        elif not faults.outage and self._server is None:
            await self.listen()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        upstream: asyncio.StreamWriter | None = None
        # EOFError: a peer closed between two requests, or a fault cut it.
        with suppress(OSError, EOFError, Broken):
            answers, upstream = await asyncio.open_connection(
                "127.0.0.1", self._upstream, limit=HEAD_BYTES
            )
            while True:
                await self._exchange(reader, writer, answers, upstream)
        self._open.discard(writer)
        for end in (writer, upstream):
            if end:
                end.close()

    async def _exchange(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
    ) -> None:
        """Pass one request and its answer, or one fault in their place."""
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(int(headers(head).get("content-length", "0")))
        faults, draw = self.faults, self._chance.random()
        await asyncio.sleep(faults.latency)
        if draw < faults.throttled:
            length = b"Content-Length: %d\r\n" % len(BUSY)
            kind = b"Content-Type: application/xml\r\nRetry-After: 1\r\n\r\n"
            writer.write(b"HTTP/1.1 503 Slow Down\r\n" + length + kind)
            writer.write(b"" if head.startswith(b"HEAD ") else BUSY)
            await writer.drain()
            return
        draw -= faults.throttled
        if draw < faults.unheard:
            await reader.read()  # until the client gives up
            raise Broken
        upstream.write(head + body)
        await upstream.drain()
        draw -= faults.unheard
        if draw < faults.unanswered:
            await answers.readuntil(b"\r\n\r\n")  # by now it took effect
            await reader.read()
            raise Broken
        draw -= faults.unanswered
        await self._answer(answers, writer, head, cut=draw < faults.cut)

    async def _answer(
        self,
        answers: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        request: bytes,
        *,
        cut: bool,
    ) -> None:
        """Pass one answer (RFC 9112, section 6.3), or half of it."""
        head = await answers.readuntil(b"\r\n\r\n")
        if cut:
            length = int(headers(head).get("content-length", "0"))
            writer.write(head if length > 1 else head[: len(head) // 2])
            if not request.startswith(b"HEAD ") and length > 1:
                writer.write(await answers.readexactly(length // 2))
            await writer.drain()
            raise Broken
        writer.write(head)
        status = int(head.split(b" ", 2)[1])
        if request.startswith(b"HEAD ") or status in (204, 304):
            pass
        elif "chunked" in headers(head).get("transfer-encoding", "").lower():
            size = -1
            while size:
                line = await answers.readuntil(b"\r\n")
                size = int(line.split(b";")[0], 16)
                writer.write(line + await answers.readexactly(size + 2))
                await writer.drain()
        else:
            left = int(headers(head).get("content-length", "0"))
            while left:
                part = await answers.read(min(left, CHUNK))
                if not part:
                    raise Broken
                left -= len(part)
                writer.write(part)
                await writer.drain()
        await writer.drain()


def headers(head: bytes) -> Mapping[str, str]:
    """Return the fields of a head, their names in lower case."""
    parsed = BytesHeaderParser().parsebytes(head.split(b"\r\n", 1)[1])
    return {name.lower(): value for name, value in parsed.items()}


async def serve(upstream: int) -> None:
    """Forward until stdin ends; take new faults from its lines."""
    proxy = Proxy(upstream)
    print(await proxy.listen(), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        await proxy.change(Faults(**json.loads(line)))
        print("changed", flush=True)


class FaultProxy:
    """A proxy in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        assert process.stdout
        self._in, self._out = process.stdin, process.stdout
        self.origin = f"http://127.0.0.1:{int(self._out.readline())}"

    def before(self, endpoint: str) -> str:
        """Return an endpoint as it is reached through this proxy."""
        return self.origin + urlsplit(endpoint).path

    def set(self, faults: Faults) -> None:
        """Replace the faults; they hold when this returns."""
        self._in.write(json.dumps(asdict(faults)) + "\n")
        self._in.flush()
        if not self._out.readline():
            raise RuntimeError("the fault proxy ended")


@contextmanager
def fault_proxy(endpoint: str) -> Generator[FaultProxy]:
    """Run a proxy in front of an endpoint of loopback."""
    command = [sys.executable, "-P", __file__, str(urlsplit(endpoint).port)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe) as process:
        try:
            yield FaultProxy(process)
        finally:
            process.kill()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(int(sys.argv[1])))

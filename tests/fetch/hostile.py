"""Hostile web servers (bombs, slow and endless responses), and a client that measures a fetch.

``python -P hostile.py URL COUNT DEADLINE`` fetches ``URL`` COUNT times at once in a
process of its own, and prints JSON.
"""

import gzip
import json
import os
import socket
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import fetchstash

MIB = 2**20
BLOCK = 16 * MIB  # of zeros; bombs repeat one block of it


@cache
def bomb(coding: str, size: int) -> tuple[bytes, bytes, int, bytes]:
    """Return head, repeated part, its count and tail of ``size`` encoded zero bytes."""
    times = size // BLOCK
    zeros = bytes(BLOCK)
    if coding == "gzip":
        return b"", gzip.compress(zeros), times, b""
    if coding == "zstd":
        return b"", _zstd(zeros), times, b""
    if coding == "deflate":
        squeezer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        block = squeezer.compress(zeros) + squeezer.flush(
            zlib.Z_FULL_FLUSH
        )  # refers to nothing before it
        return b"", block, times, squeezer.flush()
    if coding == "br":
        import brotli

        return b"", brotli.compress(bytes(min(size, 512 * MIB)), quality=1), 1, b""
    outer, _, inner = coding.partition(", ")[::-1]
    parts = bomb(inner, size)
    squeezed = parts[0] + parts[1] * parts[2] + parts[3]
    return b"", gzip.compress(squeezed) if outer == "gzip" else _zstd(squeezed), 1, b""


def _zstd(data: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.compress(data)


BOMBS = ("gzip", "deflate", "br", "zstd", "gzip, gzip", "br, gzip")


def answers(path: str, size: int) -> Iterator[tuple[bytes, float]]:
    """Yield what to send for ``path``, and how long to wait after it."""
    ok = b"HTTP/1.1 200 OK\r\n"
    if path.startswith("/bomb/"):
        coding = path.removeprefix("/bomb/").replace("+", ", ")
        head, part, times, tail = bomb(coding, size)
        length = len(head) + len(part) * times + len(tail)
        fields = f"Content-Encoding: {coding}\r\nContent-Length: {length}\r\n\r\n".encode()
        return chain([(ok + fields + head, 0.0)], repeat((part, 0.0), times), [(tail, 0.0)])
    endless: dict[str, tuple[bytes, bytes, float]] = {
        "/slow-header": (ok, b"X-A: b\r\n", 0.2),
        "/slow-body": (ok + b"\r\n", b"drop ", 0.2),
        "/silent": (b"", b"", 0.2),
        "/endless-body": (ok + b"\r\n", bytes(64 * 1024), 0.0),
        "/endless-1xx": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 0.0),
        "/huge-header": (ok, b"X-Long: " + b"a" * 4_000 + b"\r\n", 0.0),
        "/blank-header": (ok + b"A:" + b" \t" * 30_000 + b"\0\r\n\r\n", b"", 0.2),
        "/one-byte-chunks": (
            ok + b"Transfer-Encoding: chunked\r\n\r\n",
            b"1\r\na\r\n" * 5_000,
            0.0,
        ),
        "/lying-length": (ok + b"Content-Length: 1000\r\n\r\nshort", b"", 0.2),
        "/lying-length-long": (ok + b"Content-Length: 5\r\n\r\n", b"much longer than that", 0.0),
    }
    if path in endless:
        begin, part, pause = endless[path]
        return chain([(begin, pause)], repeat((part, pause)))
    return iter([(ok + b"Content-Length: 2\r\n\r\nok", 0.0)])


def serve(size: int = 10 * 2**30) -> tuple[int, Callable[[], None]]:
    """Serve on loopback; return the port and how to stop."""
    server = socket.create_server(("127.0.0.1", 0), backlog=200)

    def respond(connection: socket.socket) -> None:
        with connection, suppress(OSError, IndexError):
            path = connection.recv(65_536).split(b" ")[1].decode()
            for data, pause in answers(path, size):
                connection.sendall(data)
                time.sleep(pause)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=respond, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()

    def stop() -> None:
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        server.close()

    return server.getsockname()[1], stop


def time_of_our_own() -> float:
    """Return a clock of this thread that stands while others have the processor.

    It is the time since some moment without what the thread has waited in the run queue: the
    second field of /proc/PID/schedstat (Linux, scheduler/sched-stats). Elsewhere it is monotonic.
    """
    waited = 0
    with suppress(OSError):
        waited = int(Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()[1])
    return time.monotonic() - waited / 1e9


async def measure(url: str, count: int, deadline: float) -> dict[str, Any]:
    """Fetch ``url`` ``count`` times at once; return time, memory, longest stall and outcomes."""
    import resource  # not on Windows

    import anyio

    from fetchstash.errors import FetchstashError
    from fetchstash.fetch import FetchLimits, HttpFetcher

    limits = FetchLimits(
        allow_hosts=("127.0.0.1",), respect_robots=False, per_host_concurrency=count
    )
    first, fetcher = HttpFetcher(limits), HttpFetcher(replace(limits, deadline_seconds=deadline))
    outcomes: dict[str, int] = {}
    longest_stall = 0.0

    async def watch() -> None:
        nonlocal longest_stall
        while True:
            before = time_of_our_own()
            await anyio.sleep(0.005)
            longest_stall = max(longest_stall, time_of_our_own() - before - 0.005)

    async def fetch(folder: Path) -> None:
        try:
            fetched = await fetcher.fetch(url, folder)
            assert fetched.path is not None
            fetched.path.unlink()
            outcome = fetched.incomplete or "whole"
        except FetchstashError as error:
            outcome = error.code
        outcomes[outcome] = outcomes.get(outcome, 0) + 1

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        await first.fetch(
            url[: url.index("/", 8)] + "/good", folder
        )  # libraries are in memory from here on
        await first.aclose()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began, cpu_began = time_of_our_own(), time.process_time()
        async with anyio.create_task_group() as watching:
            watching.start_soon(watch)
            async with anyio.create_task_group() as tasks:
                for _ in range(count):
                    tasks.start_soon(fetch, folder)
            watching.cancel_scope.cancel()
        seconds, cpu_seconds = time_of_our_own() - began, time.process_time() - cpu_began
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await fetcher.aclose()
    return {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        "extra_mb": round((after - before) / 1024, 1),
        "stall_ms": round(longest_stall * 1000),
        "outcomes": outcomes,
    }


def measured(port: int, path: str, count: int = 1, deadline: float = 60) -> dict[str, Any]:
    """Run ``measure`` in a process of its own."""
    import subprocess

    home = str(Path(fetchstash.__file__).parents[1])  # the checkout's, or the one that is installed
    words = f"http://127.0.0.1:{port}{path}", str(count), str(deadline)
    command, environment = [sys.executable, "-P", __file__, *words], {"PYTHONPATH": home}
    output = subprocess.check_output(command, text=True, env=os.environ | environment)
    return dict[str, Any](json.loads(output))


if __name__ == "__main__":
    import anyio

    result = anyio.run(partial(measure, sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
    print(json.dumps(result))  # noqa: T201

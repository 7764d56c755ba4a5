"""Measure fetchstash's fetch against bare httpx2: one run, one server on loopback, alternating.

New connections: the median time of a small fetch, each over a connection of its own. Throughput: a
body of 100 MB, read to its end by httpx2 (and, for fairness, read and written to a file by it), and
fetched, hashed and spooled by fetchstash.
"""

import argparse
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from threading import Thread

import anyio
import httpx2

from fetchstash.fetch import FetchLimits, HttpFetcher

CHUNK = bytes(range(256)) * 1024


def serve(megabytes: int) -> None:
    """Serve in a process of its own: ``/small`` and a large body, and print the port."""
    server = socket.create_server(("127.0.0.1", 0), backlog=100)
    print(server.getsockname()[1], flush=True)

    def respond(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            small = b"/small" in connection.recv(65_536)
            size = 2 if small else megabytes * 10**6
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % size
            )
            while size > 0:
                size -= connection.send(CHUNK[:size])

    while True:
        Thread(target=respond, args=(server.accept()[0],), daemon=True).start()


async def timed(fetch: Callable[[], Awaitable[object]]) -> float:
    """Return how many seconds one call takes."""
    began = time.perf_counter()
    await fetch()
    return time.perf_counter() - began


async def compare(port: int, megabytes: int, connections: int, rounds: int) -> None:
    """Measure both, turn and turn about, and print medians and ratios."""
    small, large = f"http://127.0.0.1:{port}/small", f"http://127.0.0.1:{port}/large"
    limits = FetchLimits(
        allow_hosts=("127.0.0.1",),
        respect_robots=False,
        max_wire_bytes=2**40,
        max_decoded_bytes=2**40,
    )
    fetcher = HttpFetcher(limits)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with httpx2.AsyncClient(timeout=None) as client:

            async def guarded(url: str) -> None:
                fetched = await fetcher.fetch(url, folder)
                assert fetched.path is not None
                fetched.path.unlink()

            async def bare(url: str, *, to_file: bool = False) -> None:
                async with client.stream("GET", url) as response:
                    with (folder / "bare").open("wb") as file:
                        async for chunk in response.aiter_raw():
                            if to_file:
                                file.write(chunk)

            await guarded(small)
            await bare(small)
            times: dict[str, list[float]] = {"guarded": [], "bare": [], "bare to a file": []}
            for _ in range(connections):
                times["guarded"].append(await timed(lambda: guarded(small)))
                times["bare"].append(await timed(lambda: bare(small)))
            p50 = {who: median(found) * 1000 for who, found in times.items() if found}
            print(
                f"new connection, p50 of {connections}: guarded {p50['guarded']:.2f} ms, "
                f"bare {p50['bare']:.2f} ms, added {p50['guarded'] - p50['bare']:+.2f} ms (at "
                "most +5)"
            )

            times = {who: [] for who in times}
            for _ in range(rounds):
                times["guarded"].append(await timed(lambda: guarded(large)))
                times["bare"].append(await timed(lambda: bare(large)))
                times["bare to a file"].append(await timed(lambda: bare(large, to_file=True)))
            rate = {who: megabytes / median(found) for who, found in times.items()}
            print(
                f"{megabytes} MB body, median of {rounds}: "
                + ", ".join(f"{who} {found:.0f} MB/s" for who, found in rate.items())
            )
            print(
                f"throughput against bare: {rate['guarded'] / rate['bare']:.2f} (at least 0.8)",
                end="",
            )
            print(f", against bare to a file: {rate['guarded'] / rate['bare to a file']:.2f}")
    await fetcher.aclose()


def main() -> None:
    """Start the server and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--connections", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.megabytes)
    command = [sys.executable, __file__, "--serve", "--megabytes", str(args.megabytes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            anyio.run(
                compare,
                int(server.stdout.readline()),
                args.megabytes,
                args.connections,
                args.rounds,
            )
        finally:
            server.kill()


if __name__ == "__main__":
    main()

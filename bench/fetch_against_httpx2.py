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
from functools import partial
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


async def timed(fetch: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Return how many seconds one call takes, and how many of them are CPU of this process."""
    began, cpu = time.perf_counter(), time.process_time()
    await fetch()
    return time.perf_counter() - began, time.process_time() - cpu


async def paired(
    ours: Callable[[], Awaitable[object]], theirs: Callable[[], Awaitable[object]], rounds: int
) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Time both in each round, the first one in turn, so that both meet the same load."""
    pairs: list[tuple[tuple[float, float], tuple[float, float]]] = []
    for number in range(rounds):
        if number % 2:
            second = await timed(theirs)
            pairs.append((await timed(ours), second))
        else:
            pairs.append((await timed(ours), await timed(theirs)))
    return pairs


async def compare(port: int, megabytes: int, connections: int, rounds: int) -> None:
    """Measure both in pairs, and print medians and the median ratio of the pairs."""
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
            pairs = await paired(lambda: guarded(small), lambda: bare(small), connections)
            ours, theirs = (median(pair[side][0] for pair in pairs) * 1000 for side in (0, 1))
            print(
                f"new connection, p50 of {connections} pairs: guarded {ours:.2f} ms, "
                f"bare {theirs:.2f} ms, added {ours - theirs:+.2f} ms (at most +5)"
            )
            for to_file, bound in ((True, " (at least 0.8)"), (False, "")):
                pairs = await paired(
                    lambda: guarded(large), partial(bare, large, to_file=to_file), rounds
                )
                what = "bare to a file" if to_file else "bare"
                rates = [megabytes / median(pair[side][0] for pair in pairs) for side in (0, 1)]
                ratio = median(second[0] / first[0] for first, second in pairs)
                cpu = [median(pair[side][1] for pair in pairs) for side in (0, 1)]
                print(
                    f"{megabytes} MB, {rounds} pairs: guarded {rates[0]:.0f} MB/s, {what} "
                    f"{rates[1]:.0f} MB/s, median ratio {ratio:.2f}{bound}; "
                    f"CPU {cpu[0]:.2f} s and {cpu[1]:.2f} s"
                )
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
    command = [sys.executable, "-P", __file__, "--serve", "--megabytes", str(args.megabytes)]
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

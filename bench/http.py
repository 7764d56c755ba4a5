"""Measure the service over HTTP: its load, its latency, its memory, its rate against a bare server.

    python -P bench/http.py [--seconds 60] [--clients 100] [--calls 10000]

    python -P bench/http.py --cores [--seconds 60] [--calls 10000]

    python -P bench/http.py --bucket s3://stash --endpoint http://127.0.0.1:7480

All figures are of one run, each beside what it is compared with, in turns. The load is measured
twice. Clients that take --think seconds between two calls, as a model does, show the latency, which
has bounds. Clients without a pause fill any machine: they show how many calls end in a second, and
that none fails; their latency is the number of clients over that rate. With --cores it measures
both on one processor with one worker, then on two with two, and the rate against a bare server:
some six minutes. With --bucket it measures slices of a store in a bucket, whose keys stand in the
environment; scripts/ci replicas runs it so. Ends with 1 if a bound is missed.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench._http_calls import ERAS, MODERN, Answer, Caller, fetched, listening, p99, serving
from fetchstash.cli.demo._tour import command
from fetchstash.cli.demo.site import Document, Site
from scripts.drive.service import free_port

DISK_BOUND = 0.025
"""Seconds that the p99 of a slice over HTTP may take more than over stdio."""

BUCKET_BOUND = 3
"""How many GETs of the endpoint a slice from a bucket may take."""

RATE_BOUND = 0.8
"""The requests for each second of CPU, over those of a bare server."""

P99_BOUNDS = {"artifact_grep": 0.5, "fetch_content": 1.0}
"""Seconds of a grep of milliseconds, and of a fetch of what is kept and was not changed."""

MEMORY_BOUND = 1.05
"""The memory after all calls, over that after the first tenth."""

LINES = 40_000

BARE = """
import sys
import uvicorn
from mcp.server import MCPServer
from mcp_types import CallToolResult
result = CallToolResult.model_validate_json(open(sys.argv[2]).read())
server = MCPServer("bare")
@server.tool()
def artifact_slice(artifact_ref: str, unit: str, start: int, end: int) -> CallToolResult:
    return result
app = server.streamable_http_app(stateless_http=True)
uvicorn.run(
    app, host="127.0.0.1", port=int(sys.argv[1]), http="h11", ws="none", log_config=None,
    access_log=False, server_header=False, proxy_headers=False,
)
"""
"""The SDK's own server, with uvicorn's options that the service has."""


def page(number: int) -> Document:
    """Return a text of 40,000 lines, different for each number."""
    lines = (f"document {number} line {n}: {n * 7919 % 10_007} things\n" for n in range(LINES))
    return Document("text/plain", "".join(lines).encode())


PAGES = {f"/{number}.txt": page(number) for number in range(8)}


def flags(site: Site, *store: str) -> list[str]:
    """Return the flags of a server that may fetch from the site."""
    return ["--config", os.devnull, "--allow-host", f"127.0.0.1:{site.port}", *store]


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(below for child in children for below in family(int(child)))]


def memory(pid: int) -> float:
    """Return the proportional memory of a process in MB."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(x.split()[1]) / 1024 for x in rollup.splitlines() if x.startswith("Pss:"))


def cpu_seconds(pid: int) -> float:
    """Return the seconds of CPU that a process and its descendants used, ended ones too."""
    ticks = 0
    for member in family(pid):
        fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def sliced(chance: random.Random) -> dict[str, Any]:
    """Return the arguments of a slice of 50 lines somewhere."""
    start = chance.randrange(1, LINES - 50)
    return {"unit": "lines", "start": start, "end": start + 49}


def a_call(refs: Sequence[str], site: Site, chance: random.Random) -> tuple[str, dict[str, Any]]:
    """Return one of the mixed calls: mostly reads, some searches, a few fetches."""
    ref, kind = chance.choice(refs), chance.random()
    if kind < 0.5:
        return "artifact_slice", {"artifact_ref": ref, **sliced(chance)}
    if kind < 0.65:
        line = chance.randrange(LINES)
        return "artifact_grep", {"artifact_ref": ref, "pattern": f"line {line}:", "literal": True}
    if kind < 0.75:
        return "artifact_search", {"artifact_refs": [ref], "query": "document things 4711"}
    if kind < 0.9:
        offset = chance.randrange(100_000)
        return "get_search_content", {"artifact_ref": ref, "offset": offset, "maxChars": 2_000}
    if kind < 0.97:
        return "artifact_info", {"artifact_ref": ref}
    return "fetch_content", {"url": site.url(f"/{chance.randrange(8)}.txt")}


async def load(
    port: int, site: Site, refs: Sequence[str], options: argparse.Namespace, think: float
) -> tuple[bool, float]:
    """Let clients call for a while; print what they saw. Each takes ``think`` seconds on average.

    Return whether no call failed and, with a pause, the bounds held, and how many calls ended in a
    second.
    """
    clients: int = options.clients
    seconds: float = options.seconds
    times: dict[str, list[float]] = {}
    errors: Counter[str] = Counter()
    began = time.monotonic()
    end = began + seconds

    async def client(number: int) -> None:
        chance = random.Random(number)
        caller = Caller(port, era=ERAS[number % 2])
        while True:
            await asyncio.sleep(chance.uniform(0, 2 * think))
            if time.monotonic() >= end:
                break
            tool, arguments = a_call(refs, site, chance)
            start = time.perf_counter()
            try:
                answer = await caller.tool(tool, **arguments)
            except (OSError, EOFError) as error:
                errors[f"{tool}: {type(error).__name__}"] += 1
                continue
            times.setdefault(tool, []).append(time.perf_counter() - start)
            if answer.code:
                errors[f"{tool}: {answer.code} {answer.text[:100]}"] += 1
        await caller.aclose()

    await asyncio.gather(*(client(number) for number in range(clients)))
    calls = sum(map(len, times.values()))
    seconds = time.monotonic() - began  # with the calls that were under way at the end
    print(
        f"{clients} clients, {think:g} s between two calls, for {seconds:.0f} s: {calls:,} calls, "
        f"{calls / seconds:,.0f} a second, {errors.total()} errors (bound 0)"
    )
    held = not errors
    for tool, seen in sorted(times.items()):
        median, late = statistics.median(seen), p99(seen) if len(seen) > 1 else 0.0
        bound = P99_BOUNDS.get(tool) if think else None
        held = held and (bound is None or late < bound)
        shown = f"(bound {bound * 1000:.0f})" if bound else ""
        times_shown = f"p50 {median * 1000:7.1f} ms  p99 {late * 1000:7.1f} ms"
        print(f"  {tool:20}{len(seen):8,}  {times_shown} {shown}".rstrip())
    for error, count in errors.most_common(5):
        print(f"  {count} × {error}")
    return held, calls / seconds


class Stdio:
    """The same server over stdin and stdout, spoken to by hand."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin
        assert process.stdout
        self._in, self._out = process.stdin, process.stdout

    async def request(self, method: str, params: Any) -> Answer:
        """Send a request and wait for its answer."""
        await self.notify(method, params, 1)
        while True:
            message = json.loads(await self._out.readline())
            if "result" in message or "error" in message:
                return Answer(200, message)

    async def notify(self, method: str, params: Any, number: int | None = None) -> None:
        """Send a message."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        message |= {} if number is None else {"id": number}
        self._in.write(json.dumps(message).encode() + b"\n")
        await self._in.drain()

    async def tool(self, name: str, **arguments: Any) -> Answer:
        """Call a tool."""
        return await self.request("tools/call", {"name": name, "arguments": arguments})


@asynccontextmanager
async def over_stdio(words: Sequence[str]) -> AsyncGenerator[Stdio]:
    """Run the server over stdio, in the handshake era."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        command(), "serve", *words, stdin=pipe, stdout=pipe, limit=2**24
    )
    stdio = Stdio(process)
    info = {"name": "bench", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    await stdio.request("initialize", hello)
    await stdio.notify("notifications/initialized", {})
    try:
        yield stdio
    finally:
        process.terminate()
        await process.wait()


async def timed(times: list[float], call: Any) -> Answer:
    """Await a call, and note its seconds."""
    start = time.perf_counter()
    answer: Answer = await call
    times.append(time.perf_counter() - start)
    if answer.code:
        raise RuntimeError(f"{answer.code} {answer.text[:200]}")
    return answer


async def on_disk(caller: Caller, stdio: Stdio, refs: Sequence[str], calls: int) -> bool:
    """Compare slices over HTTP and over stdio of one store, in turns."""
    chance = random.Random(1)
    web: list[float] = []
    pipe: list[float] = []
    for _ in range(calls):
        arguments = {"artifact_ref": chance.choice(refs), **sliced(chance)}
        one = await timed(web, caller.tool("artifact_slice", **arguments))
        two = await timed(pipe, stdio.tool("artifact_slice", **arguments))
        assert len(one.text) == len(two.text)
    added = p99(web) - p99(pipe)
    print(
        f"artifact_slice on disk, {calls} in turns: p99 {p99(web) * 1000:.1f} ms over HTTP, "
        f"{p99(pipe) * 1000:.1f} ms over stdio, {added * 1000:+.1f} ms "
        f"(bound {DISK_BOUND * 1000:.0f})"
    )
    return added <= DISK_BOUND


async def stays_flat(caller: Caller, pid: int, site: Site, refs: Sequence[str], calls: int) -> bool:
    """Compare the memory after a tenth of the calls with that after all."""
    chance = random.Random(2)
    early = 0.0
    for number in range(calls):
        if number == calls // 10:
            early = memory(pid)
        tool, arguments = a_call(refs, site, chance)
        await caller.tool(tool, **arguments)
    late = memory(pid)
    print(
        f"memory of the server after {calls // 10:,} calls {early:.1f} MB, after {calls:,} "
        f"{late:.1f} MB: {late / early:.3f} × (bound {MEMORY_BOUND})"
    )
    return late / early <= MEMORY_BOUND


async def rate(port: int, pid: int, refs: Sequence[str], calls: int, era: str) -> float:
    """Return the slices that a server answers in each second of its CPU, with eight clients."""

    async def client(number: int) -> None:
        chance = random.Random(number)
        caller = Caller(port, era=era)
        for _ in range(calls // 8):
            answer = await caller.tool(
                "artifact_slice", artifact_ref=chance.choice(refs), **sliced(chance)
            )
            assert not answer.code, answer
        await caller.aclose()

    before = cpu_seconds(pid)
    await asyncio.gather(*map(client, range(8)))
    return calls / (cpu_seconds(pid) - before)


async def against_bare(port: int, pid: int, refs: Sequence[str], calls: int, folder: Path) -> bool:
    """Compare requests for each second of CPU with those of a bare server, in turns, by era."""
    caller = Caller(port)
    answer = await caller.tool("artifact_slice", artifact_ref=refs[0], **sliced(random.Random(4)))
    await caller.aclose()
    result = json.dumps(answer.message["result"])
    (folder / "result").write_text(result)
    bare_port = free_port()
    words = [sys.executable, "-P", "-c", BARE, str(bare_port), str(folder / "result")]
    pipes = subprocess.DEVNULL
    with subprocess.Popen(words, stdin=pipes, stderr=pipes) as bare:  # noqa: ASYNC220 - it only starts
        try:
            await listening(bare_port, bare)
            ratios: list[float] = []
            for era in ERAS:
                ours: list[float] = []
                theirs: list[float] = []
                for _ in range(7):
                    theirs.append(await rate(bare_port, bare.pid, refs, calls, era))
                    ours.append(await rate(port, pid, refs, calls, era))
                each = sorted(own / its for own, its in zip(ours, theirs, strict=True))
                ratios.append(each[3])
                print(
                    f"results of {len(result.encode()):,} bytes for each second of CPU, {era}: "
                    f"{statistics.median(ours):,.0f}, a bare mcp server "
                    f"{statistics.median(theirs):,.0f}: {each[3]:.2f} × ({each[0]:.2f} to "
                    f"{each[-1]:.2f} in seven turns, bound {RATE_BOUND})"
                )
        finally:
            bare.kill()
    return min(ratios) >= RATE_BOUND


def one_get(bucket: str, endpoint: str) -> Callable[[], Any]:
    """Return what GETs 128 KiB of an object of the bucket, as a slice may at most."""
    from obstore.store import from_url  # noqa: PLC0415 - of the extra team

    # "endpoint" is the name of the option for s3:// and az:// alike.
    config: Any = {"endpoint": endpoint}
    store = from_url(bucket, config=config, client_options={"allow_http": True})
    store.put("bench/get", bytes(2**17))

    async def get() -> Answer:
        response = await store.get_async("bench/get")
        await response.bytes_async()
        return Answer(200, {"result": {}})

    return get


async def from_bucket(
    caller: Caller, refs: Sequence[str], calls: int, get: Callable[[], Any], name: str
) -> bool:
    """Compare slices with single GETs of the same endpoint, in turns."""
    chance = random.Random(3)
    slices: list[float] = []
    gets: list[float] = []
    for _ in range(calls):
        arguments = {"artifact_ref": chance.choice(refs), **sliced(chance)}
        await timed(slices, caller.tool("artifact_slice", **arguments))
        await timed(gets, get())
    ratio = p99(slices) / p99(gets)
    print(
        f"artifact_slice {name}: {calls} in turns: p99 {p99(slices) * 1000:.1f} ms, one GET "
        f"{p99(gets) * 1000:.1f} ms: {ratio:.1f} × (bound {BUCKET_BOUND}); p50 "
        f"{statistics.median(slices) * 1000:.1f} and {statistics.median(gets) * 1000:.1f} ms"
    )
    return ratio <= BUCKET_BOUND


async def measure(options: argparse.Namespace, folder: Path) -> list[bool]:
    """Print a line for each figure; return which bounds hold."""
    held: list[bool] = []
    async with Site(PAGES) as site:
        if options.bucket:
            return await of_bucket(options, folder, site)
        if options.cores:
            return await of_cores(options, folder, site)
        # With one worker the memory is that of the process.
        port, words = free_port(), flags(site, "--folder", str(folder / "store"))
        log = folder / "log"
        one = serving(port, *words, "--workers", "1", log=log)
        async with one as process, over_stdio(words) as stdio:
            caller = Caller(port, era=MODERN)
            refs = await fetched(caller, [site.url(path) for path in PAGES])
            held.append(await on_disk(caller, stdio, refs, options.calls // 10))
            rated = min(options.calls, 800)  # fewer take too few ticks of the clock
            held.append(await against_bare(port, process.pid, refs, rated, folder))
            held.append((await load(port, site, refs, options, options.think))[0])
            held.append((await load(port, site, refs, options, 0))[0])
            held.append(await stays_flat(caller, process.pid, site, refs, options.calls))
            await caller.aclose()
    return held


async def of_cores(options: argparse.Namespace, folder: Path, site: Site) -> list[bool]:
    """Measure the load on one and two processors, then the rate against a bare server."""
    held: list[bool] = []
    rates: list[float] = []
    mine = os.sched_getaffinity(0)
    print(f"load average of the machine before: {os.getloadavg()[0]:.1f}")
    for cores in (1, 2):
        port, log = free_port(), folder / f"log-{cores}"
        words = flags(site, "--folder", str(folder / str(cores)), "--workers", str(cores))
        os.sched_setaffinity(0, set(sorted(mine)[:cores]))  # which the server inherits
        async with serving(port, *words, log=log) as process:
            os.sched_setaffinity(0, mine)
            caller = Caller(port)
            refs = await fetched(caller, [site.url(path) for path in PAGES])
            await caller.aclose()
            print(f"{cores} processors, {cores} workers:")
            held.append((await load(port, site, refs, options, options.think))[0])
            is_held, rate_now = await load(port, site, refs, options, 0)
            held.append(is_held)
            rates.append(rate_now)
            if cores == 1:
                rated = min(options.calls, 800)
                held.append(await against_bare(port, process.pid, refs, rated, folder))
    held.append(rates[1] > rates[0])
    print(
        f"calls a second: {rates[0]:,.0f} with one processor, {rates[1]:,.0f} with two: "
        f"{rates[1] / rates[0]:.2f} × (bound: more)"
    )
    return held


async def of_bucket(options: argparse.Namespace, folder: Path, site: Site) -> list[bool]:
    """Measure slices of a server whose store is a bucket, without a local cache and with it."""
    held: list[bool] = []
    place = {
        "FETCHSTASH_STORE_URL": f"{options.bucket}/bench",
        "FETCHSTASH_STORE_ENDPOINT": options.endpoint,
    }
    get = one_get(options.bucket, options.endpoint)
    for cache, name in (("0", "uncached"), (str(2**30), "cached")):
        port = free_port()
        env = {**os.environ, **place, "FETCHSTASH_STORE_CACHE_BYTES": cache}
        words = flags(site, "--folder", str(folder / name))
        async with serving(port, *words, env=env, log=folder / "log"):
            caller = Caller(port, era=MODERN)
            refs = await fetched(caller, [site.url(path) for path in PAGES])
            shown = f"of {options.name}, {name}"
            held.append(await from_bucket(caller, refs, options.calls // 10, get, shown))
            await caller.aclose()
    return held


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--think", type=float, default=3, help="seconds between two calls")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--cores", action="store_true", help="measure one and two processors")
    parser.add_argument("--bucket", default="", help="measure slices from it instead")
    parser.add_argument("--endpoint", default="", help="of the bucket")
    parser.add_argument("--name", default="a bucket", help="of the bucket")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        held = asyncio.run(measure(options, Path(folder)))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Take the database away from a service, and measure how long its calls wait.

    python -P scripts/replicas/away.py [--seconds 40]

A replica on a folder serves one person. The database is stopped, and then frozen, as a machine that
hangs is: it takes connections and answers nothing. It goes away while calls are under way. For so
many seconds each tool is called again and again, and /readyz is asked beside them: no answer may
take longer than docs/operations.md says. Once the database is back, all must be as before. Exit
code 3: something of it did not hold.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from bench._calls import Caller
from scripts.drive.programs import options
from scripts.drive.service import token_of
from scripts.replicas.nginx import HOST, Replica, Web, settings_file
from scripts.torture.kept import FAULTS_FOUND, show
from tests.store.postgres import server

MOST_SECONDS = 10.0
"""What docs/operations.md says that a call waits for a database that is away."""

BACK_SECONDS = 60.0


class Waits:
    """The longest wait for each kind of call, and the answers that it got."""

    def __init__(self) -> None:
        self.longest: dict[str, float] = {}
        self.codes: dict[str, set[str]] = {}

    async def note(self, name: str, call: Callable[[], Awaitable[str]]) -> None:
        """Make a call that returns its code, and note it."""
        begin = time.monotonic()
        try:
            code = await call()
        except (OSError, EOFError) as error:
            code = f"no answer: {type(error).__name__}"
        self.longest[name] = max(self.longest.get(name, 0), time.monotonic() - begin)
        self.codes.setdefault(name, set()).add(code or "answered")

    def report(self, how: str) -> list[str]:
        """Print a line for each kind; return those that took too long."""
        for name, seconds in self.longest.items():
            codes = ", ".join(sorted(self.codes[name]))
            print(f"  {how}: {name} at most {seconds:.1f} s ({codes})", flush=True)
        return [
            f"{how}: {name} took {seconds:.1f} s"
            for name, seconds in self.longest.items()
            if seconds > MOST_SECONDS
        ]


def readiness(port: int) -> str:
    """Return what /readyz says, "" if it is ready."""
    probe = HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        probe.request("GET", "/readyz")
        answer = probe.getresponse()
        line = answer.read().decode().strip().rpartition(": ")[2]
        return "" if answer.status == 200 else f"{answer.status} {line}"
    finally:
        probe.close()


async def use(port: int, token: str, web: Web, kept: tuple[str, str], end: float) -> Waits:
    """Call everything, again and again, until the end."""
    waits, (url, ref) = Waits(), kept
    calls: dict[str, dict[str, Any]] = {
        "get_search_content": {"artifact_ref": ref},
        "artifact_slice": {"artifact_ref": ref, "start": 2, "end": 3},
        "artifact_grep": {"artifact_ref": ref, "pattern": "line 7:"},
        "artifact_search": {"query": "document line"},
        "artifact_info": {},
        "fetch_content": {"url": url},
    }

    async def again(name: str, call: Callable[[], Awaitable[str]]) -> None:
        while time.monotonic() < end:
            await waits.note(name, call)
            await asyncio.sleep(0.2)

    async def tool(name: str, arguments: dict[str, Any]) -> None:
        caller = Caller(port, token=token, host=HOST)

        async def call() -> str:
            return (await caller.tool(name, **arguments)).code

        await again(name, call)
        await caller.aclose()

    async def fetch_new() -> None:
        caller, number = Caller(port, token=token, host=HOST), 1_000

        async def call() -> str:
            nonlocal number
            number += 1
            new = f"http://127.0.0.1:{web.port}/{number}.txt"
            return (await caller.tool("fetch_content", url=new)).code

        await again("fetch_content of a new page", call)
        await caller.aclose()

    await asyncio.gather(
        *(tool(name, arguments) for name, arguments in calls.items()),
        fetch_new(),
        again("/readyz", lambda: asyncio.to_thread(readiness, port)),
    )
    return waits


async def play(seconds: float, folder: Path) -> list[str]:
    """Stop the database, then freeze it; return the faults."""
    web, faults = Web(), list[str]()
    await web.start()
    file = settings_file(folder, f"file:{folder}/store", "", web.port)
    token = token_of("red", "--config", str(file))
    replica, database = Replica(folder, file, {**os.environ}), server()
    await replica.start()
    try:
        caller = Caller(replica.port, token=token, host=HOST)
        url = f"http://127.0.0.1:{web.port}/1.txt"
        ref = (await caller.tool("fetch_content", url=url)).ref
        ways: list[tuple[str, Callable[[], None], Callable[[], None]]] = [
            ("stopped", database.stop, database.start),
            ("frozen", database.freeze, database.thaw),
        ]
        for how, leave, back in ways:
            end = time.monotonic() + 1 + seconds
            using = asyncio.create_task(use(replica.port, token, web, (url, ref), end))
            await asyncio.sleep(1)
            await asyncio.to_thread(leave)
            waits = await using
            await asyncio.to_thread(back)
            faults += waits.report(how)
            begin = time.monotonic()
            while reason := await asyncio.to_thread(readiness, replica.port):
                if time.monotonic() > begin + BACK_SECONDS:
                    faults.append(f"{how}: not ready after all: {reason}")
                    break
                await asyncio.sleep(0.2)
            print(f"  ready {time.monotonic() - begin:.1f} s after it was back", flush=True)
            answer = await caller.tool("artifact_info", artifact_ref=ref)
            faults += [f"{how}: afterwards {answer.text[:200]}"] if answer.code else []
        await caller.aclose()
    finally:
        replica.close()
    log = replica.log.read_text(errors="replace")
    return [*faults, *([f"it logged: {log[-2_000:]}"] if "Traceback" in log else [])]


def main() -> int:
    """Play it; return the exit code."""
    args = options(__doc__, seconds=40.0)
    print("a service whose database is away", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        faults = asyncio.run(play(args.seconds, Path(folder).resolve()))
    return FAULTS_FOUND if show(faults) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Run three replicas behind nginx on one store; kill one, drain one, and look at what was promised.

    python -P scripts/replicas/nginx.py [--url URL --endpoint URL] [--seconds 20]

scripts/ci replicas runs it on a bucket whose keys stand in the environment. Each replica must take
a new token, and refuse it within 30 s once it is revoked. Then clients of two tenants
fetch and read through nginx, which sends each call to another replica. A third into the run one
replica is killed by SIGKILL, and started again; two thirds into it another is drained by SIGTERM
while it has a slow call. Every acknowledged artifact must be there whole at the end, every text
that was read must be right, and a call may have failed only where the killed replica had it.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from http.client import HTTPConnection
from pathlib import Path

from bench._calls import Caller
from scripts.drive.programs import options
from scripts.replicas.clients import (
    GRACE_SECONDS,
    HOST,
    TENANTS,
    Client,
    Ledger,
    Replica,
    Web,
    settings_file,
    token,
    token_for,
)
from scripts.replicas.machines import nginx
from scripts.torture.kept import show

TOKEN_SECONDS = 30.0
"""What a replica may take to see that a token was created or revoked."""
FAULTS_FOUND = 3
"""The exit code: an exception ends with 1."""


async def use(client: Client, ledger: Ledger, number: int, end: float) -> None:
    """Fetch, read, search and trespass until the end."""
    chance = random.Random(number)  # noqa: S311 - it guards nothing
    while time.monotonic() < end:
        kind = chance.random()
        if kind < 0.35 or not ledger.kept[client.tenant]:
            await client.fetch()
        elif kind < 0.8:
            await client.read(chance)
        elif kind < 0.9:
            await client.grep(chance)
        else:
            await client.trespass(chance)
    await client.caller.aclose()


async def seconds_until(status: int, replica: Replica, text: str) -> float:
    """Return after how many seconds a replica answers a token with a status."""
    begin = time.monotonic()
    while (seconds := time.monotonic() - begin) < 2 * TOKEN_SECONDS:
        caller = Caller(replica.port, token=text, host=HOST)
        answer = await caller.tool("artifact_info")
        await caller.aclose()
        if answer.status == status:
            break
        await asyncio.sleep(0.2)
    return seconds


async def create_and_revoke(replicas: Sequence[Replica], settings: Path, ledger: Ledger) -> None:
    """Create a token and revoke it; each replica must see that in time."""
    text, known_as = await asyncio.to_thread(token_for, "gone", settings)
    for status, what in ((200, "a new token is taken"), (401, "a revoked one is refused")):
        if status == 401:
            await asyncio.to_thread(token, settings, "revoke", known_as)
        waits = await asyncio.gather(*(seconds_until(status, each, text) for each in replicas))
        shown = f"{what} after {', '.join(f'{wait:.1f}' for wait in waits)} s"
        print(f"  {shown}")
        if max(waits) > TOKEN_SECONDS:
            ledger.faults.append(shown)


async def drain(replica: Replica, ledger: Ledger, site: Web, web: int, token: str) -> str:
    """End a replica by SIGTERM while it has a slow call; return what was seen of it."""
    slow = Client(ledger, web, replica.port, TENANTS[0], token)
    idle = Client(ledger, web, replica.port, TENANTS[0], token)
    late = Client(ledger, web, replica.port, TENANTS[0], token)
    before = len(ledger.kept[TENANTS[0]])
    if not before:
        ledger.faults.append("nothing was acknowledged before the drain")
        return "not drained"
    ref = next(iter(ledger.kept[TENANTS[0]]))
    await idle.one_line(ref)  # its connection is open by now
    call = asyncio.create_task(slow.fetch("/slow"))
    asked = asyncio.create_task(site.slow_asked.wait())
    await asyncio.wait({asked, call}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    start = time.monotonic()
    replica.process.terminate()
    while not await asyncio.to_thread(is_draining, replica.port):  # noqa: ASYNC110 - a process
        await asyncio.sleep(0.1)
    refusals: list[str] = []
    for client in (idle, late):
        answer = await client.one_line(ref)
        refusals.append(str(answer.status) if answer else "refused")
        await client.caller.aclose()
    site.slow_may_end.set()
    await call
    await slow.caller.aclose()
    exit_code = await replica.ended()
    seconds = time.monotonic() - start
    if len(ledger.kept[TENANTS[0]]) == before:
        ledger.faults.append("the drained replica did not finish its slow call")
    if exit_code or seconds > GRACE_SECONDS:
        ledger.faults.append(f"the drained replica ended with {exit_code} after {seconds:.0f} s")
    if "503" not in refusals or "200" in refusals:
        ledger.faults.append(f"while it drained, new calls were answered: {refusals}")
    return (
        f"drained in {seconds:.1f} s with exit code {exit_code}, its slow call finished, new calls "
        f"answered {' and '.join(refusals)}"
    )


def is_draining(port: int) -> bool:
    """Return whether a replica says that it takes no more calls. Raises OSError."""
    probe = HTTPConnection("127.0.0.1", port, timeout=GRACE_SECONDS)
    try:
        probe.request("GET", "/readyz")
        answer = probe.getresponse()
        return answer.status == 503 and b"shutting down" in answer.read()
    finally:
        probe.close()


async def play(url: str, endpoint: str, seconds: float, clients: int, folder: Path) -> Ledger:
    """Run all of it; return the ledger."""
    ledger, web = Ledger(), Web()
    port = await web.start()
    settings = settings_file(folder, url, endpoint, port)
    tokens = {
        tenant: (await asyncio.to_thread(token_for, tenant, settings))[0] for tenant in TENANTS
    }
    # Each keeps a cache of its own, as on a machine of its own.
    own = [
        {"FETCHSTASH_STORE_FOLDER": str(folder / f"cache-{n}")} if endpoint else {} for n in "123"
    ]
    replicas = [Replica(folder, settings, {**os.environ, **more}) for more in own]
    killed, drained, rest = replicas
    async with AsyncExitStack() as stack:
        for replica in replicas:
            stack.callback(replica.close)
        await asyncio.gather(*(replica.start() for replica in replicas))
        await create_and_revoke(replicas, settings, ledger)
        servers = "\n".join(
            f"server 127.0.0.1:{replica.port} max_fails=1 fail_timeout=1s;" for replica in replicas
        )
        front = stack.enter_context(nginx(folder / "nginx", servers))
        door = int(front.rpartition(":")[2])
        everybody = [
            Client(ledger, port, door, TENANTS[n % 2], tokens[TENANTS[n % 2]])
            for n in range(clients)
        ]
        # The workers start with the first calls, which takes seconds where the machine is busy.
        await asyncio.gather(*(client.fetch() for client in everybody))
        start = time.monotonic()
        users = [
            asyncio.create_task(use(client, ledger, number, start + seconds))
            for number, client in enumerate(everybody)
        ]
        await asyncio.sleep(seconds / 3)
        kill = time.monotonic()
        killed.process.kill()
        await killed.ended()
        died = time.monotonic()
        await killed.start()
        await asyncio.sleep(max(start + seconds * 2 / 3 - time.monotonic(), 0))
        story = await drain(drained, ledger, web, port, tokens[TENANTS[0]])
        await asyncio.gather(*users)
        judge(ledger, killed.port, kill, died)
        report(ledger, seconds, replicas, story)
        for tenant in TENANTS:
            reader = Client(ledger, port, rest.port, tenant, tokens[tenant])
            calls = len(ledger.calls)
            for ref, number in ledger.kept[tenant].items():
                await reader.read_all(ref, number)
            await reader.caller.aclose()
            unread = [call.code for call in ledger.calls[calls:] if call.code]
            ledger.faults.extend(f"not read at the end: {code}" for code in unread)
        for replica in replicas:
            if "Traceback" in (log := replica.log.read_text(errors="replace")):
                ledger.faults.append(f"a replica logged: {log[-2_000:]}")
    return ledger


def judge(ledger: Ledger, port: int, kill: float, died: float) -> None:
    """Count as faults the calls that failed though the killed replica did not have them."""
    for call in ledger.calls:
        had_it = f"127.0.0.1:{port}" in call.upstreams and call.start <= died and call.end >= kill
        if call.code and not had_it:
            after = call.start - kill
            where = call.upstreams or "nobody"
            ledger.faults.append(
                f"{call.tool} failed at {where}, {after:+.1f} s from the kill: {call.code}"
            )


def report(ledger: Ledger, seconds: float, replicas: list[Replica], story: str) -> None:
    """Print what happened."""
    calls = [call for call in ledger.calls if call.upstreams]
    served = Counter(call.upstreams.rpartition(", ")[2] for call in calls)
    shares = ", ".join(f"{served[f'127.0.0.1:{replica.port}']:,}" for replica in replicas)
    again = sum("," in call.upstreams for call in calls)
    failed = sum(bool(call.code) for call in ledger.calls)
    kept = sum(map(len, ledger.kept.values()))
    print(
        f"  {len(calls):,} calls in {seconds:.0f} s through nginx, {shares} by each replica, "
        f"{again} of them tried again elsewhere, {failed} failed; {kept:,} artifacts acknowledged"
    )
    print(f"  one replica killed by SIGKILL and started again; one {story}")


def main() -> int:
    """Play it on one store; return the exit code."""
    args = options(__doc__, url="", endpoint="", seconds=20.0, clients=12)
    print(f"three replicas behind nginx on {args.url or 'a folder'}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        url = args.url or f"file:{folder}/store"
        place = Path(folder).resolve()
        ledger = asyncio.run(play(url, args.endpoint, args.seconds, args.clients, place))
    return FAULTS_FOUND if show(ledger.faults) else 0


if __name__ == "__main__":
    sys.exit(main())

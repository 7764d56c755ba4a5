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
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from bench._calls import ERAS, Answer, Caller
from fetchstash.cli.demo._tour import command
from scripts.drive.programs import options
from scripts.drive.service import free_port, serving, token_of
from scripts.replicas.machines import nginx
from scripts.torture.kept import FAULTS_FOUND, dice, show
from tests.store.postgres import server

TENANTS = ("red", "blue")
HOST = "stash.example"
GRACE_SECONDS = 20
BUSY_SECONDS = 30
TOKEN_SECONDS = 30.0
"""What a replica may take to see that a token was created or revoked."""
LINES = 120


def text_of(number: int) -> str:
    """Return a document of 120 lines, different for each number."""
    return "".join(f"document {number} line {n}: {number * n % 9973}\n" for n in range(LINES))


class Web:
    """A web site on loopback: /N.txt at once, /slow/N.txt when it may."""

    async def start(self) -> None:
        """Listen."""
        self.slow_asked, self.slow_may_end = asyncio.Event(), asyncio.Event()
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, ValueError):
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
            if path.startswith("/slow/"):
                self.slow_asked.set()
                await self.slow_may_end.wait()
            name = path.rpartition("/")[2]
            found = name.endswith(".txt") and name != "robots.txt"
            body = text_of(int(name.removesuffix(".txt"))).encode() if found else b"none\n"
            status = b"200 OK" if found else b"404 Not Found"
            head = b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
            writer.write(head % (status, len(body)) + b"Connection: close\r\n\r\n" + body)
            await writer.drain()
        writer.close()


class Replica:
    """One process of the service."""

    def __init__(self, folder: Path, settings: Path, environment: Mapping[str, str]) -> None:
        self.port = free_port()
        self.log = folder / f"replica-{self.port}.log"
        self._settings, self._environment = settings, environment
        self._stack = ExitStack()

    async def start(self) -> None:
        """Run it until it listens."""
        flags = ("--config", str(self._settings))
        service = serving(self.port, self.log, *flags, environment=self._environment)
        self.process = await asyncio.to_thread(self._stack.enter_context, service)

    async def ended(self) -> int:
        """Wait for its end; return its exit code."""
        return await asyncio.to_thread(self.process.wait, GRACE_SECONDS + 20)

    def close(self) -> None:
        """End it."""
        self._stack.close()


@dataclass
class Call:
    """A call through nginx: when it ran, who had it, and how it failed, "" if it did not."""

    start: float
    end: float
    tool: str
    upstreams: str
    code: str


@dataclass
class Promises:
    """What clients were promised, and what went wrong."""

    kept: dict[str, dict[str, int]] = field(
        default_factory=lambda: {tenant: dict[str, int]() for tenant in TENANTS}
    )
    calls: list[Call] = field(default_factory=list[Call])
    faults: list[str] = field(default_factory=list[str])
    numbers: int = 0


class Client:
    """Calls through nginx, and remembers what it was promised."""

    def __init__(self, promises: Promises, web: Web, port: int, tenant: str, token: str) -> None:
        self._promises, self._web, self.tenant = promises, web, tenant
        self.caller = Caller(port, token=token, era=ERAS[len(token) % 2], host=HOST)

    async def call(self, tool: str, **arguments: Any) -> Answer | None:
        """Call a tool, and note how it went; None where no answer came.

        Who is told to try again does so: many first fetches at once are more than a quota allows.
        """
        start = time.monotonic()
        answer: Answer | None = None
        try:
            answer = await self.caller.tool(tool, **arguments)
            while answer.code == "busy" and time.monotonic() < start + BUSY_SECONDS:
                await asyncio.sleep(1)
                answer = await self.caller.tool(tool, **arguments)
            code = answer.code and f"{answer.code} {answer.text[:200]}"
        except (OSError, EOFError) as error:
            code = f"no answer: {type(error).__name__}: {error}"
        upstreams = self.caller.fields.get("x-upstream", "")
        self._promises.calls.append(Call(start, time.monotonic(), tool, upstreams, code))
        return answer

    async def fetch(self, path: str = "") -> None:
        """Fetch a document that nobody fetched before."""
        self._promises.numbers += 1
        number = self._promises.numbers
        url = f"http://127.0.0.1:{self._web.port}{path}/{number}.txt"
        answer = await self.call("fetch_content", url=url)
        if answer and not answer.code:
            if f"document {number} line 0:" not in answer.text:
                self._promises.faults.append(f"wrong bytes: {url}: {answer.text[:200]}")
            self._promises.kept[self.tenant][answer.ref] = number

    async def read(self, tool: str, ref: str, wanted: str, **arguments: Any) -> None:
        """Read what any client of the tenant was promised, and look for what it must show."""
        answer = await self.call(tool, artifact_ref=ref, **arguments)
        if answer is None or answer.status != 200:
            return  # no answer is judged with the calls
        if answer.code in ("unknown_ref", "expired"):
            self._promises.faults.append(f"lost: {ref}: {answer.text[:200]}")
        elif not answer.code and wanted not in answer.text:
            self._promises.faults.append(f"wrong bytes: {ref}: {answer.text[:200]}")

    async def read_all(self, ref: str, number: int) -> None:
        """Read a whole document."""
        await self.read("get_search_content", ref, text_of(number).rstrip(), maxChars=20_000)

    async def read_some(self, chance: random.Random) -> None:
        """Read ten lines of a document, or find one of its lines again."""
        ref, number = chance.choice(list(self._promises.kept[self.tenant].items()))
        lines = text_of(number).splitlines()
        if chance.random() < 0.2:
            line = chance.choice(lines)
            await self.read("artifact_grep", ref, line, pattern=line, literal=True)
        else:
            first = chance.randrange(1, LINES - 10)
            place = {"unit": "lines", "start": first, "end": first + 9}
            await self.read("artifact_slice", ref, "\n".join(lines[first - 1 : first + 9]), **place)

    async def trespass(self, chance: random.Random) -> None:
        """Ask for what another tenant keeps: as unknown as any."""
        other = next(tenant for tenant in TENANTS if tenant != self.tenant)
        ref = chance.choice([*self._promises.kept[other], "art_" + "a" * 26])
        answer = await self.one_line(ref)
        if answer and answer.code != "unknown_ref" and answer.status == 200:
            self._promises.faults.append(f"{ref} of {other}: {answer.code} {answer.text[:100]}")

    async def one_line(self, ref: str) -> Answer | None:
        """Ask for one line, outside the books."""
        place = {"artifact_ref": ref, "unit": "lines", "start": 1, "end": 1}
        with suppress(OSError, EOFError):
            return await self.caller.tool("artifact_slice", **place)
        return None

    async def use(self, number: int, end: float) -> None:
        """Fetch, read, search and trespass until the end."""
        chance = dice(number)
        while time.monotonic() < end:
            kind = chance.random()
            if kind < 0.35 or not self._promises.kept[self.tenant]:
                await self.fetch()
            elif kind < 0.9:
                await self.read_some(chance)
            else:
                await self.trespass(chance)
        await self.caller.aclose()


def settings_file(folder: Path, url: str, endpoint: str, web: int) -> Path:
    """Write the settings of all replicas; each has the same, and a new database."""
    path = folder / "config.toml"
    place = f'url = "{url}"\ncatalog = "{server().new_database()}"\n'
    place += f'endpoint = "{endpoint}"\n' if endpoint else ""
    path.write_text(
        f'[fetch]\nallow_hosts = ["127.0.0.1:{web}"]\n'
        f'[store]\n{place}[http]\nhosts = ["{HOST}"]\nforwarded = ["127.0.0.1"]\n'
        f"grace_seconds = {GRACE_SECONDS}\n[quota]\nrequests_per_minute = 0\n"
    )
    return path


async def seconds_until(status: int, replica: Replica, token: str) -> float:
    """Return after how many seconds a replica answers a token with a status."""
    begin = time.monotonic()
    while (seconds := time.monotonic() - begin) < 2 * TOKEN_SECONDS:
        caller = Caller(replica.port, token=token, host=HOST)
        answer = await caller.tool("artifact_info")
        await caller.aclose()
        if answer.status == status:
            break
        await asyncio.sleep(0.2)
    return seconds


async def create_and_revoke(
    replicas: Sequence[Replica], settings: Path, promises: Promises
) -> None:
    """Create a token and revoke it; each replica must see that in time."""
    config = ("--config", str(settings))
    token = await asyncio.to_thread(token_of, "gone", *config)
    for status, what in ((200, "a new token is taken"), (401, "a revoked one is refused")):
        if status == 401:
            revoke = [command(), "token", "revoke", "--all", "--of", "drive", "--tenant", "gone"]
            await asyncio.to_thread(subprocess.run, [*revoke, *config], check=True)
        waits = await asyncio.gather(*(seconds_until(status, each, token) for each in replicas))
        shown = f"{what} after {', '.join(f'{wait:.1f}' for wait in waits)} s"
        print(f"  {shown}", flush=True)
        if max(waits) > TOKEN_SECONDS:
            promises.faults.append(shown)


async def drain(replica: Replica, promises: Promises, web: Web, token: str) -> str:
    """End a replica by SIGTERM while it has a slow call; return what was seen of it."""
    kept = promises.kept[TENANTS[0]]
    slow, idle, late = [Client(promises, web, replica.port, TENANTS[0], token) for _ in range(3)]
    before = len(kept)
    if not before:
        promises.faults.append("nothing was acknowledged before the drain")
        return "not drained"
    ref = next(iter(kept))
    await idle.one_line(ref)  # its connection is open by now
    call = asyncio.create_task(slow.fetch("/slow"))
    asked = asyncio.create_task(web.slow_asked.wait())
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
    web.slow_may_end.set()
    await call
    await slow.caller.aclose()
    exit_code = await replica.ended()
    seconds = time.monotonic() - start
    if len(kept) == before:
        promises.faults.append("the drained replica did not finish its slow call")
    if exit_code or seconds > GRACE_SECONDS:
        promises.faults.append(f"the drained replica ended with {exit_code} after {seconds:.0f} s")
    if "503" not in refusals or "200" in refusals:
        promises.faults.append(f"while it drained, new calls were answered: {refusals}")
    return f"drained in {seconds:.1f} s, new calls answered {' and '.join(refusals)}"


def is_draining(port: int) -> bool:
    """Return whether all processes of a replica say that they take no more calls. Raises OSError.

    Each drains as soon as its loop turns, and any of them may answer a probe.
    """
    for _ in range(5):
        probe = HTTPConnection("127.0.0.1", port, timeout=GRACE_SECONDS)
        try:
            probe.request("GET", "/readyz")
            answer = probe.getresponse()
            if answer.status != 503 or b"shutting down" not in answer.read():
                return False
        finally:
            probe.close()
    return True


async def play(url: str, endpoint: str, seconds: float, clients: int, folder: Path) -> list[str]:
    """Run all of it; return the faults."""
    promises, web = Promises(), Web()
    await web.start()
    settings = settings_file(folder, url, endpoint, web.port)
    tokens = {tenant: token_of(tenant, "--config", str(settings)) for tenant in TENANTS}
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
        await create_and_revoke(replicas, settings, promises)
        front = stack.enter_context(nginx(folder / "nginx", [each.port for each in replicas]))
        users = [
            Client(promises, web, front, TENANTS[n % 2], tokens[TENANTS[n % 2]])
            for n in range(clients)
        ]
        # The workers start with the first calls, which takes seconds where the machine is busy.
        await asyncio.gather(*(user.fetch() for user in users))
        start = time.monotonic()
        using = [
            asyncio.create_task(user.use(number, start + seconds))
            for number, user in enumerate(users)
        ]
        await asyncio.sleep(seconds / 3)
        kill = time.monotonic()
        killed.process.kill()
        await killed.ended()
        died = time.monotonic()
        await killed.start()
        await asyncio.sleep(max(start + seconds * 2 / 3 - time.monotonic(), 0))
        story = await drain(drained, promises, web, tokens[TENANTS[0]])
        await asyncio.gather(*using)
        judge(promises, killed.port, kill, died)
        report(promises, seconds, replicas, story)
        for tenant in TENANTS:
            reader = Client(promises, web, rest.port, tenant, tokens[tenant])
            calls = len(promises.calls)
            for ref, number in promises.kept[tenant].items():
                await reader.read_all(ref, number)
            await reader.caller.aclose()
            unread = [call.code for call in promises.calls[calls:] if call.code]
            promises.faults.extend(f"not read at the end: {code}" for code in unread)
        for replica in replicas:
            if "Traceback" in (log := replica.log.read_text(errors="replace")):
                promises.faults.append(f"a replica logged: {log[-2_000:]}")
    return promises.faults


def judge(promises: Promises, port: int, kill: float, died: float) -> None:
    """Count as faults the calls that failed though the killed replica did not have them."""
    for call in promises.calls:
        had_it = f"127.0.0.1:{port}" in call.upstreams and call.start <= died and call.end >= kill
        if call.code and not had_it:
            where = f"{call.upstreams or 'nobody'}, {call.start - kill:+.1f} s from the kill"
            promises.faults.append(f"{call.tool} failed at {where}: {call.code}")


def report(promises: Promises, seconds: float, replicas: list[Replica], story: str) -> None:
    """Print what happened."""
    calls = [call for call in promises.calls if call.upstreams]
    served = Counter(call.upstreams.rpartition(", ")[2] for call in calls)
    shares = ", ".join(f"{served[f'127.0.0.1:{replica.port}']:,}" for replica in replicas)
    again = sum("," in call.upstreams for call in calls)
    failed = sum(bool(call.code) for call in promises.calls)
    kept = sum(map(len, promises.kept.values()))
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
        faults = asyncio.run(play(url, args.endpoint, args.seconds, args.clients, place))
    return FAULTS_FOUND if show(faults) else 0


if __name__ == "__main__":
    sys.exit(main())

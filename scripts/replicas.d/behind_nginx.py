"""Run three replicas behind nginx on one store; kill one, drain one, and look at what was promised.

    python scripts/replicas.d/behind_nginx.py NAME URL ENDPOINT [--seconds 20] [--other COMMAND]

scripts/replicas runs it on a bucket whose keys stand in the environment. Clients of two tenants
fetch and read through nginx, which sends each call to another replica. A third into the run one
replica is killed by SIGKILL, and started again; two thirds into it another is drained by SIGTERM
while it has a slow call. Every acknowledged artifact must be there whole at the end, every text
that was read must be right, and a call may have failed only where the killed replica had it.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[2]))

from machines import free_port, nginx

from bench._http_calls import ERAS, Answer, Caller, listening
from fetchstash.demo.driver import command

TENANTS = ("red", "blue")
HOST = "stash.example"
GRACE_SECONDS = 20
SLOW_SECONDS = 3
FAULTS_FOUND = 3
"""The exit code: an exception ends with 1."""

LINES = 120

NGINX = """
worker_processes 1;
pid nginx.pid;
error_log error.log;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    upstream replicas {
        {servers}
        keepalive 16;
    }
    server {
        listen 127.0.0.1:{port};
        location /mcp {
            proxy_pass http://replicas;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_buffering off;
            proxy_read_timeout 120s;
            # Every tool may be called twice: a fetch that was kept is answered from the store.
            proxy_next_upstream error timeout http_503 non_idempotent;
            proxy_next_upstream_tries 3;
            add_header X-Upstream $upstream_addr always;
        }
    }
}
"""


def text_of(number: int) -> str:
    """Return a document of 120 lines, different for each number."""
    return "".join(f"document {number} line {n}: {number * n % 9973}\n" for n in range(LINES))


class Web:
    """A web site on loopback: /N.txt at once, /slow/N.txt after three seconds."""

    async def start(self) -> int:
        """Listen; return the port."""
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, ValueError):
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
            if path.startswith("/slow/"):
                await asyncio.sleep(SLOW_SECONDS)
            name = path.rpartition("/")[2]
            found = name.endswith(".txt") and name != "robots.txt"
            body = text_of(int(name.removesuffix(".txt"))).encode() if found else b"none\n"
            status = b"200 OK" if found else b"404 Not Found"
            head = b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
            writer.write(head % (status, len(body)) + b"Connection: close\r\n\r\n" + body)
            await writer.drain()
        writer.close()


@dataclass
class Call:
    """A call through nginx: when it ran, who had it, and how it failed, "" if it did not."""

    start: float
    end: float
    tool: str
    upstreams: str
    code: str


@dataclass
class Ledger:
    """What clients were promised, and what went wrong."""

    kept: dict[str, dict[str, int]] = field(
        default_factory=lambda: {tenant: dict[str, int]() for tenant in TENANTS}
    )
    calls: list[Call] = field(default_factory=list[Call])
    faults: list[str] = field(default_factory=list[str])
    numbers: int = 0


class Replica:
    """One process of the service."""

    def __init__(
        self, folder: Path, settings: Path, environment: dict[str, str], program: str = ""
    ) -> None:
        self.port = free_port()
        self._program = program or command()
        self._log = folder / f"replica-{self.port}.log"
        self._settings = settings
        self._environment = environment
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Run it until it listens."""
        words = [self._program, "serve", "--http", f"127.0.0.1:{self.port}"]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: ASYNC220 - it only starts
                [*words, "--config", str(self._settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        await listening(self.port, self.process)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Wait for its end; return its exit code."""
        assert self.process
        return await asyncio.to_thread(self.process.wait, GRACE_SECONDS + 20)

    def kill(self) -> None:
        """End it in any case."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def complaints(self) -> str:
        """What it wrote of errors of its own."""
        return self._log.read_text(errors="replace")


def settings_file(folder: Path, url: str, endpoint: str, web: int) -> Path:
    """Write the settings of all replicas; each has the same."""
    path = folder / "config.toml"
    place = f'url = "{url}"\n' + (f'endpoint = "{endpoint}"\n' if endpoint else "")
    path.write_text(
        f'[fetch]\nallow_hosts = ["127.0.0.1:{web}"]\n'
        f'[store]\n{place}[http]\nhosts = ["{HOST}"]\nforwarded = ["127.0.0.1"]\n'
        f"grace_seconds = {GRACE_SECONDS}\n[quota]\nrequests_per_minute = 0\n"
    )
    return path


def token_for(tenant: str, settings: Path) -> str:
    """Create a token with the command, as an operator does."""
    words = [command(), "token", "create", "--tenant", tenant, "--name", "rig", "--json"]
    done = subprocess.run([*words, "--config", str(settings)], stdout=subprocess.PIPE, check=True)
    return str(json.loads(done.stdout)["token"])


class Client:
    """Calls through nginx, and remembers what it was promised."""

    def __init__(self, ledger: Ledger, web: int, port: int, tenant: str, token: str) -> None:
        self._ledger, self._web, self.tenant = ledger, web, tenant
        era = ERAS[len(token) % 2]
        self.caller = Caller(port, token=token, era=era, host=HOST)

    async def call(self, tool: str, **arguments: Any) -> Answer | None:
        """Call a tool, and note how it went; None where no answer came."""
        start = time.monotonic()
        answer: Answer | None = None
        code = "no answer"
        try:
            answer = await self.caller.tool(tool, **arguments)
            code = answer.code
        except (OSError, EOFError) as error:
            code = f"no answer: {type(error).__name__}: {error}"
        upstreams = self.caller.fields.get("x-upstream", "")
        end = time.monotonic()
        self._ledger.calls.append(Call(start, end, tool, upstreams, code))
        return answer

    async def fetch(self, path: str = "") -> None:
        """Fetch a document that nobody fetched before."""
        self._ledger.numbers += 1
        number = self._ledger.numbers
        url = f"http://127.0.0.1:{self._web}{path}/{number}.txt"
        answer = await self.call("fetch_content", url=url)
        if answer and not answer.code:
            if f"document {number} line 0:" not in answer.text:
                self._ledger.faults.append(f"wrong bytes: {url}: {answer.text[:200]}")
            self._ledger.kept[self.tenant][answer.ref] = number

    async def read(self, chance: random.Random) -> None:
        """Read some lines of what any client of the tenant was promised."""
        ref, number = chance.choice(list(self._ledger.kept[self.tenant].items()))
        first = chance.randrange(1, LINES - 10)
        answer = await self.call(
            "artifact_slice", artifact_ref=ref, unit="lines", start=first, end=first + 9
        )
        wanted = "".join(text_of(number).splitlines(keepends=True)[first - 1 : first + 9])
        self._check(answer, ref, wanted.rstrip())

    async def read_all(self, ref: str, number: int) -> None:
        """Read a whole document."""
        answer = await self.call("get_search_content", artifact_ref=ref, maxChars=20_000)
        self._check(answer, ref, text_of(number).rstrip())

    async def grep(self, chance: random.Random) -> None:
        """Find a line again."""
        ref, number = chance.choice(list(self._ledger.kept[self.tenant].items()))
        line = text_of(number).splitlines()[chance.randrange(LINES)]
        answer = await self.call("artifact_grep", artifact_ref=ref, pattern=line, literal=True)
        self._check(answer, ref, line)

    async def trespass(self, chance: random.Random) -> None:
        """Ask for what another tenant keeps: as unknown as any."""
        other = next(tenant for tenant in TENANTS if tenant != self.tenant)
        ref = chance.choice([*self._ledger.kept[other], "art_" + "a" * 26])
        answer = await self.caller_answer(ref)
        if answer and answer.code != "unknown_ref" and answer.status == 200:
            self._ledger.faults.append(f"{ref} of {other}: {answer.code} {answer.text[:100]}")

    async def caller_answer(self, ref: str) -> Answer | None:
        """Ask for one line, outside the books."""
        with suppress(OSError, EOFError):
            return await self.caller.tool(
                "artifact_slice", artifact_ref=ref, unit="lines", start=1, end=1
            )
        return None

    def _check(self, answer: Answer | None, ref: str, wanted: str) -> None:
        if answer is None or answer.status != 200:
            return  # no answer is judged with the calls
        if answer.code in ("unknown_ref", "expired"):
            self._ledger.faults.append(f"lost: {ref}: {answer.text[:200]}")
        elif not answer.code and wanted not in answer.text:
            self._ledger.faults.append(f"wrong bytes: {ref}: {answer.text[:200]}")


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


async def drain(replica: Replica, ledger: Ledger, web: int, token: str) -> str:
    """End a replica by SIGTERM while it has a slow call; return what was seen of it."""
    slow = Client(ledger, web, replica.port, TENANTS[0], token)
    idle = Client(ledger, web, replica.port, TENANTS[0], token)
    late = Client(ledger, web, replica.port, TENANTS[0], token)
    before = len(ledger.kept[TENANTS[0]])
    if not before:
        ledger.faults.append("nothing was acknowledged before the drain")
        return "not drained"
    ref = next(iter(ledger.kept[TENANTS[0]]))
    await idle.caller_answer(ref)  # its connection is open by now
    call = asyncio.create_task(slow.fetch("/slow"))
    await asyncio.sleep(1)
    start = time.monotonic()
    replica.send(signal.SIGTERM)
    await asyncio.sleep(0.5)
    refusals: list[str] = []
    for client in (idle, late):
        answer = await client.caller_answer(ref)
        refusals.append(str(answer.status) if answer else "refused")
        await client.caller.aclose()
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


def planted_command(folder: Path, bug: str) -> str:
    """Write a command that is ours with a bug of planted.py in it; return its path."""
    path = folder / "planted"
    path.write_text(
        f"#!{sys.executable} -P\nimport sys\nsys.path.append({str(Path(__file__).parent)!r})\n"
        f"from planted import plant\nplant({bug!r})\n"
        "from fetchstash.cli import main\nsys.exit(main())\n"
    )
    path.chmod(0o700)
    return str(path)


async def play(
    url: str, endpoint: str, seconds: float, clients: int, folder: Path, other: str, bug: str
) -> Ledger:
    """Run all of it, the second replica as another version of the program; return the ledger.

    With ``bug`` all of them are our own with that bug.
    """
    ledger, web = Ledger(), Web()
    port = await web.start()
    settings = settings_file(folder, url, endpoint, port)
    tokens = {tenant: await asyncio.to_thread(token_for, tenant, settings) for tenant in TENANTS}
    # Each keeps a cache of its own, as on a machine of its own.
    own = [
        {"FETCHSTASH_STORE_FOLDER": str(folder / f"cache-{n}")} if endpoint else {} for n in "123"
    ]
    programs = [planted_command(folder, bug)] * 3 if bug else ["", other, ""]
    replicas = [
        Replica(folder, settings, {**os.environ, **more}, program)
        for more, program in zip(own, programs, strict=True)
    ]
    killed, drained, rest = replicas
    async with AsyncExitStack() as stack:
        for replica in replicas:
            stack.callback(replica.kill)
        await asyncio.gather(*(replica.start() for replica in replicas))
        servers = "\n".join(
            f"server 127.0.0.1:{replica.port} max_fails=1 fail_timeout=1s;" for replica in replicas
        )
        front = stack.enter_context(nginx(folder / "nginx", NGINX, servers=servers))
        door = int(front.rpartition(":")[2])
        start = time.monotonic()
        everybody = [
            Client(ledger, port, door, TENANTS[n % 2], tokens[TENANTS[n % 2]])
            for n in range(clients)
        ]
        users = [
            asyncio.create_task(use(client, ledger, number, start + seconds))
            for number, client in enumerate(everybody)
        ]
        await asyncio.sleep(seconds / 3)
        kill = time.monotonic()
        killed.send(signal.SIGKILL)
        await killed.ended()
        died = time.monotonic()
        await killed.start()
        await asyncio.sleep(max(start + seconds * 2 / 3 - time.monotonic(), 0))
        story = await drain(drained, ledger, port, tokens[TENANTS[0]])
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
            if "Traceback" in replica.complaints:
                ledger.faults.append(f"a replica logged: {replica.complaints[-2_000:]}")
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name")
    parser.add_argument("url", help="of the store; empty: a folder")
    parser.add_argument("endpoint")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument(
        "--other", default="", help="the command of another version, for one of them"
    )
    parser.add_argument("--plant", default="", help="a bug of planted.py, which must be found")
    args = parser.parse_args()
    bug = f" with {args.plant!r}" if args.plant else ""
    print(f"three replicas behind nginx on {args.name}{bug}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        url = args.url or f"file:{folder}/store"
        place = Path(folder).resolve()
        options = (args.seconds, args.clients, place, args.other, args.plant)
        ledger = asyncio.run(play(url, args.endpoint, *options))
    for fault in ledger.faults[: 3 if args.plant else 20]:
        print(f"FAULT {fault}")
    print(f"{len(ledger.faults)} faults")
    return FAULTS_FOUND if ledger.faults else 0


if __name__ == "__main__":
    sys.exit(main())

"""Replicas of the service, a web site, and clients that remember what they were promised."""

import asyncio
import json
import random
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench._calls import ERAS, Answer, Caller
from fetchstash.cli.demo._tour import command
from scripts.drive.service import free_port, serving
from tests.store.postgres import server

TENANTS = ("red", "blue")
HOST = "stash.example"
GRACE_SECONDS = 20
BUSY_SECONDS = 30
LINES = 120


def text_of(number: int) -> str:
    """Return a document of 120 lines, different for each number."""
    return "".join(f"document {number} line {n}: {number * n % 9973}\n" for n in range(LINES))


class Web:
    """A web site on loopback: /N.txt at once, /slow/N.txt when it may."""

    async def start(self) -> int:
        """Listen; return the port."""
        self.slow_asked, self.slow_may_end = asyncio.Event(), asyncio.Event()
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

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

    def __init__(self, folder: Path, settings: Path, environment: Mapping[str, str]) -> None:
        self.port = free_port()
        self.log = folder / f"replica-{self.port}.log"
        self._settings = settings
        self._environment = environment
        self._stack = ExitStack()

    async def start(self) -> None:
        """Run it until it listens."""
        flags = ("--config", str(self._settings))
        server = serving(self.port, self.log, *flags, environment=self._environment)
        self.process = await asyncio.to_thread(self._stack.enter_context, server)

    async def ended(self) -> int:
        """Wait for its end; return its exit code."""
        return await asyncio.to_thread(self.process.wait, GRACE_SECONDS + 20)

    def close(self) -> None:
        """End it."""
        self._stack.close()


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


def token(settings: Path, *words: str) -> str:
    """Run the command ``token``, as an operator does; return what it printed."""
    whole = [command(), "token", *words, "--config", str(settings)]
    return subprocess.run(whole, stdout=subprocess.PIPE, check=True, text=True).stdout


def token_for(tenant: str, settings: Path) -> tuple[str, str]:
    """Create a token of a tenant; return it and its name for ``token revoke``."""
    made = json.loads(token(settings, "create", "--tenant", tenant, "--name", "rig", "--json"))
    return str(made["token"]), str(made["id"])


class Client:
    """Calls through nginx, and remembers what it was promised."""

    def __init__(self, ledger: Ledger, web: int, port: int, tenant: str, token: str) -> None:
        self._ledger, self._web, self.tenant = ledger, web, tenant
        era = ERAS[len(token) % 2]
        self.caller = Caller(port, token=token, era=era, host=HOST)

    async def call(self, tool: str, **arguments: Any) -> Answer | None:
        """Call a tool, and note how it went; None where no answer came.

        Who is told to try again does so: many first fetches at once are more than a quota allows.
        """
        start = time.monotonic()
        answer: Answer | None = None
        code = "no answer"
        try:
            answer = await self.caller.tool(tool, **arguments)
            while answer.code == "busy" and time.monotonic() < start + BUSY_SECONDS:
                await asyncio.sleep(1)
                answer = await self.caller.tool(tool, **arguments)
            code = answer.code and f"{answer.code} {answer.text[:200]}"
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
        answer = await self.one_line(ref)
        if answer and answer.code != "unknown_ref" and answer.status == 200:
            self._ledger.faults.append(f"{ref} of {other}: {answer.code} {answer.text[:100]}")

    async def one_line(self, ref: str) -> Answer | None:
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

"""Fetch hostile files of all formats through a real server over stdio, and ping it meanwhile.

    python scripts/torture/handlers.py [KIND ...] [--only WORDS] [--length 1048576]

KINDs are texts, pages, pdfs, documents, archives and pictures; ``--only`` runs the files whose
title has these words, ``--length`` is that of what is long by repetition, of pages ten times.
Each file of tests/handlers/hostile is served on loopback and fetched by fetch_content under the
default limits. Each must end in text, in facts or in one clear line; the server's own process must
stay under 150 MB and answer each ping within half a second. A page of HTML must besides cost at
most 2 seconds of CPU, or on a slow or busy machine a multiple of what an ordinary page of its
length costs beside it, and 300 MB more in its worker, and become at most twice as much text. Exit
code: 0 if all is well.
"""

import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import anyio
from mcp import Client

from bench._run import cpu_seconds, family, peak
from fetchstash.cli.demo._tour import Answer, ask, started
from fetchstash.cli.demo.site import Document, Site
from scripts.drive.programs import options
from tests.handlers.hostile import KINDS, files_of

MAX_PING_SECONDS = 0.5
MAX_SERVER_BYTES = 150_000_000
MAX_LINE = 300
MAX_PAGE_SECONDS, MAX_PAGE_BYTES, MAX_PAGE_GROWTH = 2.0, 300_000_000, 2
MAX_PAGE_TIMES = 6
"""A page may cost so many times what an ordinary one costs beside it, where that is more."""
ATTEMPTS = 3
"""A file that took too long is fetched anew: what is ours to mend takes its time each time."""
ORDINARY = (
    '<h2>A heading</h2><p>Some words of an ordinary page, with <a href="/a">a link</a> in them, '
    "<b>something bold</b> and a few more words that say nothing at all.</p>\n"
)
UNNAMED = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Ending:
    """How one file ended: what the server answered, and what that took."""

    title: str
    size: int
    answer: Answer
    seconds: float
    cpu_seconds: float
    worker_bytes: int
    ping_seconds: float
    max_cpu_seconds: float = MAX_PAGE_SECONDS

    @property
    def is_page(self) -> bool:
        """Whether it is a page of HTML."""
        return self.title.startswith("HTML:")

    def is_slow(self) -> bool:
        """Return whether it took more time than it may: others on the machine can cause that."""
        return self.ping_seconds > MAX_PING_SECONDS or (
            self.is_page and self.cpu_seconds > self.max_cpu_seconds
        )

    def reason(self) -> str:
        """Return the line that says why there is no text, "" if there is some."""
        facts = self.answer.facts
        return str(facts[0]["extraction_error"] if facts else self.answer.text)

    def chars(self) -> int:
        """Return the characters of its text."""
        return (self.answer.facts[0]["extracted_chars"] or 0) if self.answer.facts else 0

    def faults(self) -> list[str]:
        """Return what is wrong with it."""
        answer, reason, chars = self.answer, self.reason(), self.chars()
        is_clear = "\n" not in reason and not reason.startswith("[internal]")
        if answer.facts:
            is_clear = is_clear and not answer.is_error and len(reason) <= MAX_LINE
        else:
            is_clear = is_clear and answer.is_error
        is_html = bool(answer.facts) and answer.facts[0]["content_kind"] == "html"
        bounds = [
            (not is_clear, "no clear line"),
            (self.ping_seconds > MAX_PING_SECONDS, f"ping {self.ping_seconds:.2f} s"),
        ]
        if self.is_page and answer.facts:
            bounds += [
                (is_html and not chars, "no text"),
                (self.cpu_seconds > self.max_cpu_seconds, f"{self.cpu_seconds:.1f} s of CPU"),
                (self.worker_bytes > MAX_PAGE_BYTES, f"{self.worker_bytes / 1e6:.0f} MB"),
                (chars > MAX_PAGE_GROWTH * self.size, f"{chars / self.size:.1f} times the text"),
            ]
        return [fault for is_broken, fault in bounds if is_broken]

    def line(self) -> str:
        """Return it for people."""
        took = f"{self.seconds:6.2f} s  CPU {self.cpu_seconds:5.2f} s  worker "
        took += f"+{self.worker_bytes / 1e6:4.0f} MB  ping {self.ping_seconds * 1e3:4.0f} ms"
        said = self.reason().partition("\n")[0] or f"{self.chars():,} characters"
        wrong = self.faults()
        verdict = f"  <-- {', '.join(wrong)}" if wrong else ""
        return f"{'WRONG' if wrong else 'ok   '} {took}  {self.title}: {said}{verdict}"


def forget_peak(pid: int) -> int:
    """Let the peak of a process begin anew (proc_pid_clear_refs(5)); return what it begins from."""
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak(pid)


async def slowest_ping(client: Client, work: Callable[[], Awaitable[object]]) -> float:
    """Ping every 10 ms while ``work`` runs; return the seconds of the slowest answer."""
    slowest = 0.0

    async def ping() -> None:
        nonlocal slowest
        while True:
            began = time.perf_counter()
            await client.session.send_ping()
            slowest = max(slowest, time.perf_counter() - began)
            await anyio.sleep(0.01)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ping)
        await work()
        tasks.cancel_scope.cancel()
    return slowest


async def run(kinds: Sequence[str], length: int, only: str) -> tuple[list[Ending], int]:
    """Fetch each file and print how it ended; return that and the server's most bytes."""
    endings: list[Ending] = []
    served, numbers = dict[str, Document](), count()
    async with Site(served) as site, started(site, mode="legacy") as client:
        _, server, *_ = family(os.getpid())
        served["/warm"] = Document("text/html", b"<p>What a server does once it has done now.")
        await ask(client, "fetch_content", url=site.url("/warm"))

        async def fetch(title: str, name: str, data: bytes) -> Ending:
            path = f"/{next(numbers)}/{name}"
            served[path] = Document("text/html" if title.startswith("HTML:") else UNNAMED, data)
            held = max(map(forget_peak, family(server)[1:]), default=0)
            before = sum(map(cpu_seconds, family(server)[1:]))
            begun = time.perf_counter()
            answers: list[Answer] = []

            async def work() -> None:
                answers.append(await ask(client, "fetch_content", url=site.url(path)))

            slowest = await slowest_ping(client, work)
            seconds, workers = time.perf_counter() - begun, family(server)[1:]
            del served[path]
            # A worker that was killed takes its time along.
            cpu = max(sum(map(cpu_seconds, workers)) - before, 0.0)
            grown = max(max(map(peak, workers), default=0) - held, 0)
            return Ending(title, len(data), answers[0], seconds, cpu, grown, slowest)

        async def judged(title: str, name: str, data: bytes) -> Ending:
            ending = await fetch(title, name, data)
            if ending.is_slow() and ending.is_page:
                page = (ORDINARY * (len(data) // len(ORDINARY))).encode()
                ordinary = await fetch("HTML: an ordinary page", name, page)
                print(ordinary.line(), flush=True)
                most = max(MAX_PAGE_SECONDS, MAX_PAGE_TIMES * ordinary.cpu_seconds)
                ending = replace(ending, max_cpu_seconds=most)
            print(ending.line(), flush=True)
            return ending

        for kind in kinds:
            for title, (name, data) in files_of(kind, length).items():
                if only not in title:
                    continue
                ending = await judged(title, name, data)
                for _ in range(ATTEMPTS - 1):
                    if ending.is_slow():
                        ending = await judged(title, name, data)
                endings.append(ending)
        return endings, peak(server)


def main() -> int:
    """Parse the arguments, run, and print what all came to."""
    chosen = options(__doc__, names=KINDS, only="", length=2**20)
    endings, held = anyio.run(run, chosen.names, chosen.length, chosen.only)
    wrong = sum(bool(ending.faults()) for ending in endings)
    slowest = max(endings, key=lambda ending: ending.seconds)
    ping = max(ending.ping_seconds for ending in endings)
    small = held < MAX_SERVER_BYTES
    print(f"{len(endings)} files, {wrong} of them wrong.")
    print(f"The slowest took {slowest.seconds:.1f} s: {slowest.title}.")
    print(f"The slowest ping took {ping * 1e3:.0f} ms.")
    print(f"The server held {held / 1e6:.0f} MB{'' if small else ', which is too much'}.")
    return 1 if wrong or not small else 0


if __name__ == "__main__":
    sys.exit(main())

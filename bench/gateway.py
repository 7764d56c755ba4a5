"""Count the tokens that reach a model from real MCP servers, with the gateway and without it.

    python -P bench/gateway.py [--short]        (or scripts/ci gateway)

Installs the servers: filesystem, everything, memory, sequential-thinking, postgres, Playwright and
three MCP Apps from npm, git and sqlite from PyPI, with the PostgreSQL and the Chromium of Debian.
Each task is a call whose result holds an answer. Without the gateway the whole result reaches the
model; with it the preview, and the result of one artifact_grep where the answer is not in the
preview. Then the tokens of all servers' tools as a host lists them, bare and behind gateways; their
lists and results beside those of the bare server, byte by byte; and the times of a short call, a
long result and the start; --short leaves out the times and the gateway for each server. Ends with 1
if an answer is not found or anything differs.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench._calls import Answer, Pipe, piped
from bench._gateway import PRICES, entry_of, fill, install, servers
from bench._gateway_same import same
from bench._run import load
from fetchstash.cli.demo._tour import command
from fetchstash.cli.demo.site import Document, Site
from fetchstash.text.tokens import count
from scripts.drive.programs import options

CALLS = 200
LONG_CALLS = 40
STARTS = 8
GATEWAY = [command(), "wrap"]

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """A call of a tool, and the pattern and the words of the answer that its result holds."""

    server: str
    tool: str
    arguments: Arguments
    pattern: str
    answer: str
    before: tuple[tuple[str, Arguments], ...] = ()


def tasks(data: Path, url: str) -> list[Task]:
    """Return the tasks."""
    people = [
        {"name": f"person {n}", "entityType": "person", "observations": [f"likes number {n * 13}"]}
        for n in range(800)
    ]
    log, cities, tree = ({"path": str(data / name)} for name in ("app.log", "cities.json", "tree"))
    repo, filled = {"repo_path": str(data / "repo")}, ("create_entities", {"entities": people})
    shown = ("browser_navigate", {"url": url})
    history, head = {**repo, "max_count": 300}, {**repo, "revision": "HEAD"}
    sales = {"query": "SELECT * FROM sales"}
    return [
        Task("filesystem", "read_text_file", log, "ERROR", "E4711"),
        Task("filesystem", "directory_tree", tree, "plan", "secret_plan"),
        Task("filesystem", "read_text_file", cities, "City 3210\\b", str(3210 * 17)),
        Task("everything", "echo", {"message": "short"}, "short", "short"),
        Task("memory", "read_graph", {}, "person 654", str(654 * 13), (filled,)),
        Task("git", "git_log", history, "nail", "nail"),
        Task("git", "git_show", head, r"\+limit", "limit = 4242"),
        Task("sqlite", "read_query", sales, "buyer 4321", "30247"),
        Task("sqlite", "list_tables", {}, "sales", "sales"),
        Task("postgres", "query", {"sql": "SELECT * FROM cities"}, "city 4040\\b", "52520"),
        Task("playwright", "browser_snapshot", {}, "Item 777", "2332.95", (shown,)),
    ]


def run(words: list[str], data: Path, **env: str) -> AbstractContextManager[Pipe]:
    """Run a server, bare or behind the gateway, beside its data: Playwright's writes logs there."""
    store = {"FETCHSTASH_STORE_FOLDER": str(data.parent / "store")}
    return piped(words, {**os.environ, **store, **env}, data.parent)


def behind(words: list[str]) -> list[str]:
    """Return how the gateway is started in front of one server."""
    return [*GATEWAY, "--", *words]


def text_of(answer: Answer) -> str:
    """Return what a model sees of a result: its text, else its structured content."""
    return answer.text or json.dumps(answer.message["result"].get("structuredContent"))


def solve(server: Pipe, task: Task) -> tuple[int, bool]:
    """Return the tokens that reach a model in one task, and whether the answer is in them."""
    for tool, arguments in task.before:
        server.tool(tool, arguments)
    answer = server.tool(task.tool, task.arguments)
    shown = text_of(answer)
    facts = answer.message["result"].get("_meta", {}).get("fetchstash/artifact")
    if task.answer not in shown and facts:
        refs = [fact["artifact_ref"] for fact in facts]
        # One line of JSON is long: the lines around a match tell nothing more.
        asked = {"pattern": task.pattern, "artifact_refs": refs, "context": 3}
        shown += text_of(server.tool("artifact_grep", asked))
    return count(shown).tokens, task.answer in shown


def tokens(known: Mapping[str, list[str]], data: Path, url: str) -> bool:
    """Print a line for each task; return whether every answer was found."""
    print(f"{'task':32}{'bare':>10}{'gateway':>10}{'share':>9}  answer found in both")
    sums, good = [0, 0], True
    for task in tasks(data, url):
        if task.server not in known:
            print(f"SKIPPED: {task.server} {task.tool}: the server is not installed")
            continue
        figures: list[tuple[int, bool]] = []
        for words in (known[task.server], behind(known[task.server])):
            memory = str(data / f"memory-{len(figures)}.json")
            with run(words, data, MEMORY_FILE_PATH=memory) as server:
                figures.append(solve(server, task))
        (bare, there), (short, found) = figures
        good = good and there and found
        sums = [sums[0] + bare, sums[1] + short]
        both = "yes" if there and found else f"bare {there}, gateway {found}"
        print(f"{task.server + ' ' + task.tool:32}{bare:10,}{short:10,}{short / bare:9.1%}  {both}")
    print(f"{'together':32}{sums[0]:10,}{sums[1]:10,}{sums[1] / max(sums[0], 1):9.1%}")
    return good


def cost(tools: list[dict[str, Any]]) -> int:
    """Return the tokens of tools as a model gets them: name, description and arguments."""
    kept = ("name", "description", "inputSchema")
    return count(json.dumps([{key: tool.get(key) for key in kept} for tool in tools])).tokens


def listed(known: Mapping[str, list[str]], data: Path, *, short: bool) -> None:
    """Print the tokens of the tools of all servers: bare, and behind gateways."""
    one = entry_of(known, {})
    ways: dict[str, list[tuple[list[str], dict[str, str]]]] = {
        "bare": [(words, {}) for words in known.values()],
        "a gateway for each": [(GATEWAY, entry_of({n: w}, {})) for n, w in known.items()],
        "one gateway": [(GATEWAY, one)],
        "one gateway, lean": [(GATEWAY, {**one, "FETCHSTASH_WRAP_LEAN": "true"})],
    }
    if short:
        del ways["a gateway for each"]
    print(f"\ntools of {len(known)} servers: {', '.join(known)}")
    for way, runs in ways.items():
        tools: list[dict[str, Any]] = []
        for words, env in runs:
            with run(words, data, **env) as server:
                tools += server.ask("tools/list")["tools"]
        print(f"{way:24}{len(tools):5} tools {cost(tools):10,} tokens")


def write_log(data: Path, first: int) -> None:
    """Write a log of 330 KB, which differs by the number of its first request."""
    lines = (f"2026-11-23 INFO request {first + n} is well\n" for n in range(9_000))
    (data / "long.log").write_text("".join(lines))


def shown(what: str, times: tuple[list[float], list[float]]) -> None:
    """Print the medians of both sides."""
    bare, wrapped = (median(taken) * 1_000 for taken in times)
    pairs = f"p50 of {len(times[0])} pairs"
    print(f"{what}, {pairs}: {bare:.1f} → {wrapped:.1f} ms, {wrapped / bare:.2f} × bare ({load()})")


def latency(
    words: list[str], data: Path, tool: str, asked: Arguments, calls: int, *, fresh: bool = False
) -> None:
    """Print what the gateway adds to the time of a call; the two take turns.

    ``fresh``: the log has another text for each pair, which is then kept each time.
    """
    times: tuple[list[float], list[float]] = ([], [])
    chars = 0
    with run(words, data) as one, run(behind(words), data) as two:
        for server in (one, two):
            server.ask("tools/list")
        for number in range(calls):
            if fresh:
                write_log(data, number)
            for server, taken in zip((one, two), times, strict=True):
                start = time.perf_counter()
                answer = server.tool(tool, asked)
                taken.append(time.perf_counter() - start)
                chars = max(chars, len(text_of(answer)))
    shown(f"{tool}{', another text each time' * fresh}, {chars:,} characters", times)


def starts(name: str, words: list[str], data: Path) -> None:
    """Print how long a server takes to the answered tools/list, bare and behind ``--``."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(STARTS):
        for program, taken in zip((words, behind(words)), times, strict=True):
            begin = time.perf_counter()
            with run(program, data) as server:
                server.ask("tools/list")
                taken.append(time.perf_counter() - begin)
    shown(f"start of {name}", times)


def measure(folder: Path, url: str, *, short: bool) -> int:
    """Print all of it; return the exit code. ``short``: without what only measures time."""
    install()
    data = folder.resolve() / "data"
    data.mkdir()
    fill(data)
    known = servers(data)
    good = tokens(known, data, url)
    listed(known, data, short=short)
    good = same(known, data, url) and good
    if short:
        return 0 if good else 1
    if "sqlite" in known:
        latency(known["sqlite"], data, "list_tables", {}, CALLS)
    if "filesystem" in known:
        write_log(data, 0)
        read = ("read_text_file", {"path": str(data / "long.log")}, LONG_CALLS)
        latency(known["filesystem"], data, *read)
        latency(known["filesystem"], data, *read, fresh=True)
    for name in {"filesystem", "sqlite"} & known.keys():
        starts(name, known[name], data)
    return 0 if good else 1


async def main() -> int:
    short: bool = options(__doc__, short=False).short
    with tempfile.TemporaryDirectory() as folder:
        async with Site({"/prices.html": Document("text/html", PRICES.encode())}) as site:
            url = site.url("/prices.html")
            return await asyncio.to_thread(measure, Path(folder), url, short=short)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

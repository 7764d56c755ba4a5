"""Count the tokens that reach a model from real MCP servers, with the gateway and without it.

    python -P bench/gateway.py FOLDER        (scripts/ci gateway installs the servers and runs it)

FOLDER has the servers, each tool of requirements/tools in a folder of its own. Each task is a call
whose result holds an answer. Without the gateway the whole result reaches the model; with it
the preview, and the result of one artifact_grep where the answer is not in the preview. Then the
tokens of all servers' tools as a host lists them, bare and behind gateways; their lists and results
beside those of the bare server, byte by byte; and the times of a short call, a long result and the
start. Ends with 1 if an answer is not found or anything differs.
"""

import argparse
import asyncio
import json
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from bench._gateway import Quiet, entry_of, host, postgres, repository, servers
from bench._gateway_same import same
from fetchstash.cli.demo._tour import command
from fetchstash.cli.demo.site import make_pdf
from fetchstash.text.tokens import count

CALLS = 200
LONG_CALLS = 40
STARTS = 8


@dataclass(frozen=True)
class Task:
    """A call of a tool, and the pattern and the words of the answer that its result holds."""

    server: str
    tool: str
    arguments: Mapping[str, Any]
    pattern: str
    answer: str
    before: tuple[tuple[str, Mapping[str, Any]], ...] = field(default=())


def prepared(folder: Path, url: str) -> list[Task]:
    """Write what the servers serve; return the tasks."""
    chance = random.Random(7)
    log = "".join(
        f"10:{n // 60 % 60:02}:{n % 60:02} INFO request {n} took {chance.random():.3f} s\n"
        for n in range(12_000)
    ).splitlines(keepends=True)
    log[7_777] = "2026-11-22T12:00:00 ERROR payment failed: code E4711\n"
    (folder / "app.log").write_text("".join(log))
    for number in range(900):
        place = folder / "tree" / f"part{number % 30}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"module_{number}.py").write_text(f"VALUE = {number}\n")
    (folder / "tree" / "part7" / "secret_plan.md").write_text("# Plan\n")
    records = [{"id": n, "city": f"City {n}", "people": n * 17} for n in range(4_000)]
    (folder / "cities.json").write_text(json.dumps(records))
    rows = "".join(f"<tr><td>Item {n}</td><td>{n * 3 + 1}.95 EUR</td></tr>" for n in range(1_200))
    icon = '<link rel="icon" href="data:,">'  # else a browser asks for one, sooner or later
    page = f"<title>Prices</title>{icon}<h1>Prices</h1><table>{rows}</table>"
    (folder / "prices.html").write_text(page)
    with sqlite3.connect(folder / "shop.db") as database:
        database.execute("CREATE TABLE sales (id INTEGER, buyer TEXT, amount INTEGER)")
        values = [(n, f"buyer {n}", n * 7) for n in range(5_000)]
        database.executemany("INSERT INTO sales VALUES (?, ?, ?)", values)
    database.close()
    repository(folder / "repo")
    entities = [
        {"name": f"person {n}", "entityType": "person", "observations": [f"likes number {n * 13}"]}
        for n in range(800)
    ]
    (folder / "report.pdf").write_bytes(make_pdf(["The lamp burns.", "It stands."], "Report"))
    log_file, cities = str(folder / "app.log"), str(folder / "cities.json")
    repo, shown = str(folder / "repo"), {"url": url}
    filled = ("create_entities", {"entities": entities})
    return [
        Task("filesystem", "read_text_file", {"path": log_file}, "ERROR", "E4711"),
        Task("filesystem", "directory_tree", {"path": str(folder / "tree")}, "plan", "secret_plan"),
        Task("filesystem", "read_text_file", {"path": cities}, "City 3210\\b", str(3210 * 17)),
        Task("everything", "echo", {"message": "short"}, "short", "short"),
        Task("memory", "read_graph", {}, "person 654", str(654 * 13), (filled,)),
        Task("git", "git_log", {"repo_path": repo, "max_count": 300}, "nail", "nail"),
        Task(
            "git", "git_show", {"repo_path": repo, "revision": "HEAD"}, r"\+limit", "limit = 4242"
        ),
        Task("sqlite", "read_query", {"query": "SELECT * FROM sales"}, "buyer 4321", "30247"),
        Task("sqlite", "list_tables", {}, "sales", "sales"),
        Task("postgres", "query", {"sql": "SELECT * FROM cities"}, "city 4040\\b", "52520"),
        Task(
            "playwright",
            "browser_snapshot",
            {},
            "Item 777",
            "2332.95",
            (("browser_navigate", shown),),
        ),
    ]


def parameters(words: list[str], data: Path, *, wrapped: bool) -> StdioServerParameters:
    """Return how a server is started, bare or behind the gateway."""
    program = command()
    if wrapped:
        words = [program, "wrap", "--", *words]
    store = {"FETCHSTASH_STORE_FOLDER": str(data.parent / "store")}
    memory = {"MEMORY_FILE_PATH": str(data / f"memory-{wrapped}.json")}
    # Playwright's writes its logs into the working folder.
    return StdioServerParameters(
        command=words[0], args=words[1:], env={**store, **memory}, cwd=data.parent
    )


def text_of(result: Any) -> str:
    """Return what a model sees of a result: its text, else its structured content."""
    texts = "\n".join(block.text for block in result.content if block.type == "text")
    return texts or json.dumps(result.structured_content)


async def solve(client: Client, task: Task, *, wrapped: bool) -> tuple[int, bool]:
    """Return the tokens that reach a model in one task, and whether the answer is in them."""
    for tool, arguments in task.before:
        await client.call_tool(tool, dict(arguments))
    result: Any = await client.call_tool(task.tool, dict(task.arguments))
    shown = text_of(result)
    meta: dict[str, Any] = result.meta or {}
    facts: list[dict[str, Any]] = meta.get("fetchstash/artifact") or []
    if wrapped and task.answer not in shown and facts:
        refs = [fact["artifact_ref"] for fact in facts]
        # One line of JSON is long: the lines around a match tell nothing more.
        asked: dict[str, Any] = {"pattern": task.pattern, "artifact_refs": refs, "context": 3}
        shown += text_of(await client.call_tool("artifact_grep", asked))
    return count(shown).tokens, task.answer in shown


async def tokens(known: Mapping[str, list[str]], data: Path, tasks: list[Task]) -> bool:
    """Print a line for each task; return whether every answer was found."""
    print(f"{'task':32}{'bare':>10}{'gateway':>10}{'share':>9}  answer found in both")
    sums, good = [0, 0], True
    for task in tasks:
        if task.server not in known:
            print(f"SKIPPED: {task.server} {task.tool}: the server is not installed")
            continue
        figures: list[tuple[int, bool]] = []
        for wrapped in (False, True):
            server = parameters(known[task.server], data, wrapped=wrapped)
            async with Client(server, mode="legacy") as client:
                figures.append(await solve(client, task, wrapped=wrapped))
        (bare, there), (short, found) = figures
        good = good and there and found
        sums = [sums[0] + bare, sums[1] + short]
        both = "yes" if there and found else f"bare {there}, gateway {found}"
        print(f"{task.server + ' ' + task.tool:32}{bare:10,}{short:10,}{short / bare:9.1%}  {both}")
    print(f"{'together':32}{sums[0]:10,}{sums[1]:10,}{sums[1] / max(sums[0], 1):9.1%}")
    return good


def cost(tools: list[dict[str, Any]]) -> int:
    """Return the tokens of tools as a model gets them: name, description and arguments."""
    shown = [
        {key: tool.get(key) for key in ("name", "description", "inputSchema")} for tool in tools
    ]
    return count(json.dumps(shown)).tokens


def listed(known: Mapping[str, list[str]], data: Path) -> None:
    """Print the tokens of the tools of all servers: bare, and behind gateways."""
    gateway = [command(), "wrap"]
    ways: dict[str, list[tuple[list[str], dict[str, str]]]] = {
        "bare": [(words, {}) for words in known.values()],
        "a gateway for each": [
            (gateway, entry_of({name: words}, data, {})) for name, words in known.items()
        ],
        "one gateway": [(gateway, entry_of(known, data, {}))],
        "one gateway, lean": [(gateway, entry_of(known, data, {}, FETCHSTASH_WRAP_LEAN="true"))],
    }
    print(f"\ntools of {len(known)} servers: {', '.join(known)}")
    for way, runs in ways.items():
        tools: list[dict[str, Any]] = []
        for words, env in runs:
            with host(words, env, data) as one:
                tools += one.ask("tools/list")["tools"]
        print(f"{way:24}{len(tools):5} tools {cost(tools):10,} tokens")


def write_log(data: Path, first: int) -> None:
    """Write a log of 330 KB, which differs by the number of its first request."""
    lines = (f"2026-11-23 INFO request {first + n} is well\n" for n in range(9_000))
    (data / "long.log").write_text("".join(lines))


async def latency(
    words: list[str],
    data: Path,
    tool: str,
    asked: Mapping[str, Any],
    calls: int,
    *,
    fresh: bool = False,
) -> None:
    """Print what the gateway adds to the time of a call; the two take turns.

    ``fresh``: the log has another text for each pair, which is then kept each time.
    """
    bare, wrapped = (parameters(words, data, wrapped=wrapped) for wrapped in (False, True))
    times: tuple[list[float], list[float]] = ([], [])
    chars = 0
    async with Client(bare, mode="legacy") as one, Client(wrapped, mode="legacy") as two:
        for client in (one, two):
            await client.list_tools()
        for number in range(calls):
            if fresh:
                write_log(data, number)
            for client, found in zip((one, two), times, strict=True):
                start = time.perf_counter()
                result = await client.call_tool(tool, dict(asked))
                found.append(time.perf_counter() - start)
                chars = max(chars, len(text_of(result)))
    middle = [statistics.median(found) * 1_000 for found in times]
    shown = f"{middle[0]:.1f} → {middle[1]:.1f} ms, {middle[1] / middle[0]:.2f} × bare"
    load = os.getloadavg()[0]
    tool += ", another text each time" if fresh else ""
    print(f"{tool}, {chars:,} characters, p50 of {calls} pairs: {shown} (load {load:.1f})")


def starts(known: Mapping[str, list[str]], data: Path) -> None:
    """Print how long a server takes to the answered tools/list, bare and behind ``--``."""
    store = {"FETCHSTASH_STORE_FOLDER": str(data.parent / "store")}
    for name, words in known.items():
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(STARTS):
            for program, found in zip(
                (words, [command(), "wrap", "--", *words]), times, strict=True
            ):
                begin = time.perf_counter()
                with host(program, store, data) as one:
                    one.ask("tools/list")
                    found.append(time.perf_counter() - begin)
        bare, wrapped = map(statistics.median, times)
        shown = f"{bare * 1_000:.0f} → {wrapped * 1_000:.0f} ms, {wrapped / bare:.2f} × bare"
        print(f"start of {name}, p50 of {STARTS} pairs: {shown} (load {os.getloadavg()[0]:.1f})")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the servers are installed")
    home: Path = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder).resolve() / "data"
        data.mkdir()
        handler = partial(Quiet, directory=str(data))
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as site:
            threading.Thread(target=site.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{site.server_port}/prices.html"
            tasks = prepared(data, url)
            with postgres() as database:
                known = servers(home, data, database)
                good = asyncio.run(tokens(known, data, tasks))
                listed(known, data)
                good = same(known, data, url) and good
            site.shutdown()
        if "sqlite" in known:
            asyncio.run(latency(known["sqlite"], data, "list_tables", {}, CALLS))
        if "filesystem" in known:
            read = {"path": str(data / "long.log")}
            write_log(data, 0)
            for fresh in (False, True):
                call = ("read_text_file", read, LONG_CALLS)
                asyncio.run(latency(known["filesystem"], data, *call, fresh=fresh))
        starts({name: known[name] for name in ("filesystem", "sqlite") if name in known}, data)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Count the tokens that reach a model from real MCP servers, with the gateway and without it.

    python -P bench/gateway.py FOLDER        (scripts/ci gateway installs the servers and runs it)

FOLDER has the servers, each tool of requirements/tools in a folder of its own. Each task is a call
 whose result holds an answer. Without the gateway the whole result reaches the model; with it
the preview, and the result of one artifact_grep where the answer is not in the preview. Then the
time that the gateway adds to a short call. Ends with 1 if an answer is not found.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from fetchstash.cli.demo.driver import command
from fetchstash.text.tokens import count

CALLS = 200


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@dataclass(frozen=True)
class Task:
    """A call of a tool, and the pattern and the words of the answer that its result holds."""

    server: str
    tool: str
    arguments: Mapping[str, Any]
    pattern: str
    answer: str
    before: tuple[tuple[str, Mapping[str, Any]], ...] = field(default=())


def prepared(folder: Path, site: str) -> list[Task]:
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
    page = f"<title>Prices</title><h1>Prices</h1><table>{rows}</table>"
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
    log_file, cities = str(folder / "app.log"), str(folder / "cities.json")
    repo, shown = str(folder / "repo"), {"url": f"{site}/prices.html"}
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


def repository(folder: Path) -> None:
    """Make a repository with 300 commits, the last of them large."""
    folder.mkdir()
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    lines = "".join(f"value_{n} = {n}\n" for n in range(4_000))
    for number in range(300):
        word = "mend the nail" if number == 123 else f"change number {number}"
        words = [*git, "commit", "-q", "--allow-empty", "-m", word]
        subprocess.run(words, check=True)
    (folder / "values.py").write_text(lines.replace("value_3000 = 3000", "limit = 4242"))
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "all values"], check=True)


@contextmanager
def postgres() -> Generator[str]:
    """Run PostgreSQL with 5,000 rows on loopback, and give its URL; "" where there is none."""
    program = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None)
    if program is None:
        yield ""
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # It refuses to run as root; Debian's package makes a user for it.
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    place = Path(tempfile.mkdtemp())
    if user:
        shutil.chown(place, "postgres")
    run = partial(subprocess.run, check=True, cwd=place, stdout=subprocess.DEVNULL)
    control = [*user, str(program.with_name("pg_ctl")), "-D", str(place / "db"), "-w"]
    try:
        run([*user, str(program), "-D", str(place / "db"), "-U", "bench", "-A", "trust"])
        options = f"-p {port} -k {place} -c listen_addresses=127.0.0.1"
        run([*control, "-o", options, "-l", str(place / "log"), "start"])
        columns = "n AS id, 'city ' || n AS name, n * 13 AS people"
        rows = f"SELECT {columns} FROM generate_series(1, 5000) n"
        url = f"postgresql://bench@127.0.0.1:{port}/postgres"
        run([str(program.with_name("psql")), url, "-qc", f"CREATE TABLE cities AS {rows}"])
        yield url
    finally:
        run([*control, "-m", "immediate", "stop"], check=False)
        shutil.rmtree(place, ignore_errors=True)


def servers(home: Path, data: Path, database: str = "") -> dict[str, list[str]]:
    """Return the commands of the servers that are installed."""
    npm, playwright = (home / name / "node_modules/.bin" for name in ("servers", "playwright-mcp"))
    chromium = shutil.which("chromium") or ""
    browser = ["--headless", "--isolated", "--no-sandbox", "--executable-path", chromium]
    known = {
        "filesystem": [str(npm / "mcp-server-filesystem"), str(data)],
        "everything": [str(npm / "mcp-server-everything")],
        "memory": [str(npm / "mcp-server-memory")],
        "git": [str(home / "server-git" / "bin" / "mcp-server-git")],
        "sqlite": [
            str(home / "server-sqlite" / "bin" / "mcp-server-sqlite"),
            "--db-path",
            str(data / "shop.db"),
        ],
        "postgres": [str(npm / "mcp-server-postgres"), database],
        "playwright": [str(playwright / "playwright-mcp"), *browser],
    }
    return {name: words for name, words in known.items() if Path(words[0]).exists() and all(words)}


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


async def latency(words: list[str], data: Path) -> None:
    """Print what the gateway adds to the time of a short call; the two take turns."""
    bare, wrapped = (parameters(words, data, wrapped=wrapped) for wrapped in (False, True))
    calls: tuple[list[float], list[float]] = ([], [])
    async with Client(bare, mode="legacy") as one, Client(wrapped, mode="legacy") as two:
        for client in (one, two):
            await client.list_tools()
        for _ in range(CALLS):
            for client, times in zip((one, two), calls, strict=True):
                start = time.perf_counter()
                await client.call_tool("list_tables", {})
                times.append(time.perf_counter() - start)
    added = (statistics.median(calls[1]) - statistics.median(calls[0])) * 1_000
    print(f"a short call, p50 of {CALLS} pairs: added {added:.2f} ms (at most 5)")


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
            tasks = prepared(data, f"http://127.0.0.1:{site.server_port}")
            with postgres() as database:
                known = servers(home, data, database)
                good = asyncio.run(tokens(known, data, tasks))
            site.shutdown()
        if "sqlite" in known:
            asyncio.run(latency(known["sqlite"], data))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

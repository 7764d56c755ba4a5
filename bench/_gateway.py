"""The servers that the gateway's benchmark runs, and what they serve."""

import json
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psycopg

from fetchstash.cli.demo.site import make_pdf
from fetchstash.config import SERVERS_VARIABLE
from scripts.drive.tools import CACHE, debian, node_tool, postgresql, python_tool
from tests.store.postgres import server

ICON = '<link rel="icon" href="data:,">'  # else a browser asks for one, sooner or later
ROWS = "".join(f"<tr><td>Item {n}</td><td>{n * 3 + 1}.95 EUR</td></tr>" for n in range(1_200))
PRICES = f"<title>Prices</title>{ICON}<h1>Prices</h1><table>{ROWS}</table>"


def install() -> None:
    """Install the servers that can be had here, PostgreSQL and Chromium; say which cannot."""
    for tool in ("apps", "servers", "playwright-mcp"):
        node_tool(tool)
    for tool in ("server-git", "server-sqlite"):
        python_tool(tool)
    debian("chromium", "chromium")


def database() -> str:
    """Return the URL of a database with 5,000 rows, "" where there is no PostgreSQL."""
    if not postgresql():
        return ""
    url = server().new_database().replace("@/", "@localhost/")  # Node wants a host, and ignores it
    columns = "n AS id, 'city ' || n AS name, n * 13 AS people"
    with psycopg.connect(url, autocommit=True) as connection:
        rows = f"SELECT {columns} FROM generate_series(1, 5000) n"
        connection.execute(f"CREATE TABLE cities AS {rows}".encode())
    return url


def fill(data: Path) -> None:
    """Write what the servers serve."""
    chance = random.Random(7)
    log = "".join(
        f"10:{n // 60 % 60:02}:{n % 60:02} INFO request {n} took {chance.random():.3f} s\n"
        for n in range(12_000)
    ).splitlines(keepends=True)
    log[7_777] = "2026-11-22T12:00:00 ERROR payment failed: code E4711\n"
    (data / "app.log").write_text("".join(log))
    for number in range(900):
        place = data / "tree" / f"part{number % 30}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"module_{number}.py").write_text(f"VALUE = {number}\n")
    (data / "tree" / "part7" / "secret_plan.md").write_text("# Plan\n")
    records = [{"id": n, "city": f"City {n}", "people": n * 17} for n in range(4_000)]
    (data / "cities.json").write_text(json.dumps(records))
    (data / "report.pdf").write_bytes(make_pdf(["The lamp burns.", "It stands."], "Report"))
    with sqlite3.connect(data / "shop.db") as shop:
        shop.execute("CREATE TABLE sales (id INTEGER, buyer TEXT, amount INTEGER)")
        values = [(n, f"buyer {n}", n * 7) for n in range(5_000)]
        shop.executemany("INSERT INTO sales VALUES (?, ?, ?)", values)
    shop.close()
    fill_repository(data / "repo")


def fill_repository(folder: Path) -> None:
    """Make a repository with 300 commits, the last of them large."""
    folder.mkdir()
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    lines = "".join(f"value_{n} = {n}\n" for n in range(4_000))
    for number in range(300):
        word = "mend the nail" if number == 123 else f"change number {number}"
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", word], check=True)
    (folder / "values.py").write_text(lines.replace("value_3000 = 3000", "limit = 4242"))
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "all values"], check=True)


def servers(data: Path) -> dict[str, list[str]]:
    """Return the commands of the servers that are installed."""
    apps, npm, playwright = (
        CACHE / tool / "node_modules" / ".bin" for tool in ("apps", "servers", "playwright-mcp")
    )
    browser = ["--headless", "--isolated", "--no-sandbox"]
    browser += ["--executable-path", shutil.which("chromium") or ""]
    sqlite = CACHE / "server-sqlite" / "bin" / "mcp-server-sqlite"
    known: dict[str, list[str | Path]] = {
        "cohort-heatmap": [apps / "mcp-cohort-heatmap-server", "--stdio"],
        "customer-segmentation": [apps / "mcp-customer-segmentation-server", "--stdio"],
        "pdf": [apps / "mcp-pdf-server", "--stdio", data / "report.pdf"],
        "sequential-thinking": [apps / "mcp-server-sequential-thinking"],
        "filesystem": [npm / "mcp-server-filesystem", data],
        "everything": [npm / "mcp-server-everything"],
        "memory": [npm / "mcp-server-memory"],
        "git": [CACHE / "server-git" / "bin" / "mcp-server-git"],
        "sqlite": [sqlite, "--db-path", data / "shop.db"],
        "postgres": [npm / "mcp-server-postgres", database()],
        "playwright": [playwright / "playwright-mcp", *browser],
    }
    there = {name: words for name, words in known.items() if Path(words[0]).exists() and all(words)}
    return {name: list(map(str, words)) for name, words in there.items()}


Each = Mapping[str, Mapping[str, str]]
"""Variables of single servers."""


def entry_of(known: Mapping[str, list[str]], each: Each) -> dict[str, str]:
    """Return the variable of the gateway's entry, as ``register --wrap`` writes it."""
    entries = {
        name: {"command": words[0], "args": words[1:], "env": dict(each.get(name, {}))}
        for name, words in known.items()
    }
    return {SERVERS_VARIABLE: json.dumps(entries)}

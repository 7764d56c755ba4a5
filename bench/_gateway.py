"""The servers that the gateway's benchmarks run, what they serve, and a host that asks them."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

from fetchstash.config import SERVERS_VARIABLE

_DECODER = json.JSONDecoder()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Say nothing."""


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
    apps = home / "apps" / "node_modules" / ".bin"
    known = {
        **{
            name: [str(apps / f"mcp-{name}-server"), "--stdio"]
            for name in ("cohort-heatmap", "customer-segmentation")
        },
        "pdf": [str(apps / "mcp-pdf-server"), "--stdio", str(data / "report.pdf")],
        "sequential-thinking": [str(apps / "mcp-server-sequential-thinking")],
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


UI = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}


class Host:
    """A host that shows MCP Apps, connected to a server over stdio."""

    def __init__(self, server: "subprocess.Popen[bytes]") -> None:
        assert server.stdin
        assert server.stdout
        self._sent, self._lines = server.stdin, server.stdout

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        self._sent.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._sent.flush()

    def answer(self, method: str, params: Mapping[str, Any]) -> bytes:
        """Return the result of a request, or its error, as the server wrote it."""
        self.tell({"id": method, "method": method, "params": params})
        for line in self._lines:
            message = json.loads(line)
            if message.get("id") == method and "method" not in message:
                name = '"result":' if "result" in message else '"error":'
                text = line.decode()
                start = text.index(name) + len(name)
                return text[start : _DECODER.raw_decode(text, start)[1]].encode()
        raise RuntimeError(f"The server ended at {method}.")

    def ask(self, method: str, **params: Any) -> Any:
        """Return the same as JSON."""
        return json.loads(self.answer(method, params))


@contextmanager
def host(words: list[str], env: Mapping[str, str], data: Path) -> Generator[Host]:
    """Run a server for a host, and yield the host."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words,
        env={**os.environ, **env},
        cwd=data.parent,
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
    ) as server:
        one = Host(server)
        info, capabilities = {"name": "bench", "version": "1"}, {"extensions": UI}
        one.ask(
            "initialize", protocolVersion="2025-11-25", clientInfo=info, capabilities=capabilities
        )
        one.tell({"method": "notifications/initialized"})
        try:
            yield one
        finally:
            assert server.stdin
            server.stdin.close()
            server.kill()


Each = Mapping[str, Mapping[str, str]]
"""Variables of single servers."""


def entry_of(known: Mapping[str, list[str]], data: Path, each: Each, **more: str) -> dict[str, str]:
    """Return the variables of the gateway's entry, as ``register --wrap`` writes them."""
    entries = {
        name: {"command": words[0], "args": words[1:], "env": dict(each.get(name, {}))}
        for name, words in known.items()
    }
    store = {"FETCHSTASH_STORE_FOLDER": str(data.parent / "store"), **more}
    return {SERVERS_VARIABLE: json.dumps(entries), **store}

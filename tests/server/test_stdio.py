"""The real server, as a host starts it: a process, its stdin and its stdout."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.loopback import Site
from tests.server.test_tools import ERAS, REPORT, call, fail, ref_in

pytestmark = pytest.mark.slow

FETCHSTASH = shutil.which("fetchstash", path=str(Path(sys.executable).parent)) or "fetchstash"


def flags(site: Site, tmp_path: Path, *more: str) -> list[str]:
    allowed = ["--allow-host", f"127.0.0.1:{site.port}", "--no-respect-robots"]
    return [*allowed, "--folder", str(tmp_path / "store"), *more]


@asynccontextmanager
async def started(
    arguments: list[str],
    cwd: Path,
    *,
    mode: str = "auto",
    env: dict[str, str] | None = None,
    **more: Any,
) -> AsyncGenerator[Client]:
    server = StdioServerParameters(command=FETCHSTASH, args=["serve", *arguments], cwd=cwd, env=env)
    async with Client(server, mode=mode, **more) as client:
        yield client


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ERAS)
async def test_a_host_registers_it_and_reads_a_pdf(mode: str, site: Site, tmp_path: Path) -> None:
    async with started(flags(site, tmp_path), tmp_path, mode=mode) as client:
        assert len((await client.list_tools()).tools) == 6
        ref = ref_in(
            await call(
                client, "fetch_content", url=site.put("/r", REPORT, "text/html"), maxChars=1_000
            )
        )
        assert "number of this page is 210" in await call(
            client, "artifact_grep", artifact_ref=ref, pattern="is 210"
        )


HOSTILE = (
    "selectolax",
    "json",
    "mcp",
    "pypdfium2",
    "fetchstash",
    "anyio",
    "encodings",
    "site",
    "sitecustomize",
    "re2",
    "tiktoken",
    "ssl",
)


@pytest.mark.anyio
async def test_it_imports_and_obeys_nothing_of_the_folder_it_is_started_in(
    site: Site, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    for name in HOSTILE:
        package = folder / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(
            f"open({str(tmp_path / 'imported')!r}, 'a').write('{name} ')\n"
        )
    (folder / "fetchstash.toml").write_text(
        "[fetch]\nallow_nets = ['0.0.0.0/0']\nports = [1, 65535]\n"
    )
    page = site.put("/a.html", "<h1>Hello</h1><p>world</p>")
    async with started(["--folder", str(tmp_path / "store")], folder) as client:
        assert (await fail(client, "fetch_content", url=page)).startswith("[refused] ")
    async with started(flags(site, tmp_path), folder) as client:
        assert "world" in await call(client, "fetch_content", url=page)
        ref = ref_in(
            await call(client, "fetch_content", url=site.put("/r.pdf", REPORT, "application/pdf"))
        )
        assert "page is 7." in await call(
            client, "artifact_grep", artifact_ref=ref, pattern=r"is 7\."
        )
    assert not (tmp_path / "imported").exists()


def messages(*parts: dict[str, Any]) -> bytes:
    return b"".join(json.dumps({"jsonrpc": "2.0", **part}).encode() + b"\n" for part in parts)


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
OPENING: tuple[dict[str, Any], ...] = (
    {"id": 1, "method": "initialize", "params": HELLO},
    {"method": "notifications/initialized"},
)


def fetching(number: int, url: str) -> dict[str, Any]:
    return {
        "id": number,
        "method": "tools/call",
        "params": {"name": "fetch_content", "arguments": {"url": url}},
    }


def answers_of(output: IO[bytes], count: int) -> list[dict[str, Any]]:
    """Return so many answers; between them only the news that the list of artifacts changed."""
    answers: list[dict[str, Any]] = []
    while len(answers) < count:
        line = json.loads(output.readline())
        if "id" in line:
            answers.append(line)
        else:
            assert line["method"] == "notifications/resources/list_changed"
    return answers


class Pipes(subprocess.Popen[bytes]):
    """A server whose three streams are pipes, never None as in any Popen."""

    stdin: IO[bytes]  # pyright: ignore[reportIncompatibleVariableOverride]
    stdout: IO[bytes]  # pyright: ignore[reportIncompatibleVariableOverride]
    stderr: IO[bytes]  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, *command: str, cwd: Path | None = None) -> None:
        pipe = subprocess.PIPE
        super().__init__(command, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe)

    def send(self, *parts: dict[str, Any]) -> None:
        """Send messages at once."""
        self.stdin.write(messages(*parts))
        self.stdin.flush()

    def ended(self) -> tuple[bytes, str]:
        """Close stdin, and return the rest of stdout and what was written to stderr."""
        self.stdin.close()
        rest, errors = self.stdout.read(), self.stderr.read().decode()
        assert self.wait(60) == 0
        return rest, errors


def test_only_json_rpc_goes_to_stdout_and_the_server_ends_with_stdin(
    site: Site, tmp_path: Path
) -> None:
    urls = [site.put("/r.pdf", REPORT, "text/html"), "http://127.0.0.2/", "javascript:alert(1)"]
    with Pipes(FETCHSTASH, *flags(site, tmp_path), cwd=tmp_path) as server:
        server.send(*OPENING, *(fetching(number, url) for number, url in enumerate(urls, start=2)))
        lines = answers_of(server.stdout, 4)
        rest, _ = server.ended()
    assert not rest
    assert all(line["jsonrpc"] == "2.0" for line in lines)
    assert sorted(line["id"] for line in lines) == [1, 2, 3, 4]


def test_a_store_that_fails_is_logged_in_the_words_of_its_operator(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "store").write_text("no folder")
    with Pipes(FETCHSTASH, *flags(site, tmp_path)) as server:
        server.send(*OPENING, fetching(2, site.url("/")))
        assert answers_of(server.stdout, 2)[1]["result"]["isError"]
        _, logged = server.ended()
    assert "[store_error] " in logged
    assert "can change store.folder" in logged
    assert "open_stash" not in logged


def test_a_host_that_closes_our_stdout_ends_it_without_a_traceback(
    site: Site, tmp_path: Path
) -> None:
    url = site.put("/r.pdf", REPORT, "text/html")
    with Pipes(FETCHSTASH, *flags(site, tmp_path)) as server:
        server.send(*OPENING)
        assert json.loads(server.stdout.readline())["id"] == 1
        server.stdout.close()
        server.send(fetching(2, url), {"id": 3, "method": "ping"})
        assert server.wait(60) == 0
        assert not server.stderr.read()


def blobs(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and len(file.name) == 64]


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to end a server by")
def test_an_ephemeral_server_that_is_ended_by_a_signal_leaves_no_artifact(
    site: Site, tmp_path: Path
) -> None:
    url = site.put("/r.pdf", REPORT, "text/html")
    with Pipes(FETCHSTASH, *flags(site, tmp_path, "--ephemeral")) as server:
        server.send(*OPENING, fetching(2, url))
        assert [line["id"] for line in answers_of(server.stdout, 2)] == [1, 2]
        assert blobs(tmp_path)
        os.kill(server.pid, signal.SIGTERM)
        server.wait(60)
    assert not blobs(tmp_path)


def big_page() -> str:
    """A page of 2.3 MB that takes a while to convert."""
    section = (
        "<h2>Section {0}</h2><p>Some <b>words</b> and a <a href='/x{0}'>link</a> about the {0}th "
        "thing, which is a thing.</p>"
    )
    return (
        "<html><body><article>"
        + "".join(section.format(n) for n in range(21_500))
        + "</article></body></html>"
    )


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.parametrize("mode", ERAS)
async def test_it_answers_others_while_a_big_page_is_converted(
    mode: str, site: Site, tmp_path: Path
) -> None:
    page = big_page()
    assert len(page) > 2_300_000
    url = site.put("/big.html", page)
    answered = 0
    done = anyio.Event()

    async with started(flags(site, tmp_path), tmp_path, mode=mode) as client:
        await call(client, "fetch_content", url=site.put("/small.html", "<p>warm</p>"))

        async def fetch() -> None:
            await call(client, "fetch_content", url=url)
            done.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fetch)
            while not done.is_set():
                if mode == "legacy":
                    await client.session.send_ping()
                else:
                    await client.session.list_tools()
                answered += 1
                await anyio.sleep(0.01)
    assert answered > 10  # how soon is for scripts/ci torture handlers to say


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_other_processes_cannot_trace_the_server() -> None:
    program = (
        "import ctypes; from fetchstash.server import hide_memory; hide_memory();"
        "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"  # PR_GET_DUMPABLE
    )
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "0"


def test_half_of_a_surrogate_pair_and_a_request_longer_than_a_pipe_are_answered(
    site: Site, tmp_path: Path
) -> None:
    search = {"name": "artifact_search", "arguments": {"query": "\ud800"}}
    long = {"id": 4, "method": "ping", "params": {"_meta": {"x": "ë" * 200_000}}}
    with Pipes(FETCHSTASH, *flags(site, tmp_path)) as server:
        server.send(*OPENING, {"id": 2, "method": "tools/call", "params": search})
        server.send({"id": 3, "method": "ping"}, long)
        answers = {answer["id"]: answer for answer in answers_of(server.stdout, 4)}
        server.ended()
    assert answers[2]["error"]["message"].startswith("[bad_argument] ")
    assert answers[3]["result"] == answers[4]["result"] == {}


COUNT_THREAD_CALLS = """
import atexit, sys
import anyio.to_thread
from fetchstash.cli import main

calls = 0
run_sync = anyio.to_thread.run_sync

def counted(*args, **options):
    global calls
    calls += 1
    return run_sync(*args, **options)

anyio.to_thread.run_sync = counted
atexit.register(lambda: print(calls, file=sys.stderr))
main()
"""


def test_requests_that_wait_together_are_read_and_answered_together(tmp_path: Path) -> None:
    pings = [{"id": number, "method": "ping"} for number in range(2, 102)]
    command = [sys.executable, "-P", "-c", COUNT_THREAD_CALLS, "--folder", str(tmp_path / "store")]
    with Pipes(*command) as server:
        server.send(*OPENING, *pings)
        answers = answers_of(server.stdout, 101)
        _, printed = server.ended()
    assert [answer["id"] for answer in answers] == list(range(1, 102))
    assert int(printed.splitlines()[-1]) < len(pings)

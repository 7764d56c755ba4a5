"""What stands between the start of the gateway and its first answer."""

import json
import secrets
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from fetchstash.gateway import start_early, stop
from tests.gateway.conftest import FETCHSTASH, plain
from tests.gateway.memory import initialize


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    file = tmp_path / "servers.toml"
    file.write_text("""
        [wrap.servers.first]
        command = "cat"
        args = ["-"]
        [wrap.servers.second]
        command = "cat"
        env = {PLACE = "here"}
        [wrap.servers.missing]
        command = "there-is-no-such-command"
        [wrap.servers.unset]
        command = "cat"
        env = {TOKEN = "env:THERE_IS_NO_SUCH_VARIABLE"}
        [wrap.servers.elsewhere]
        url = "http://127.0.0.1:9/mcp"
    """)
    return file


@pytest.mark.slow
def test_nothing_that_takes_long_is_imported_before_a_server_is_started() -> None:
    heavy = {"asyncio", "click", "dataclasses", "inspect", "pathlib", "fetchstash.config"}
    code = f"import sys, fetchstash.cli, fetchstash.gateway; print({heavy} & set(sys.modules))"
    words = [sys.executable, "-S", "-P", "-c", f"import sys; sys.path += {sys.path}; {code}"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "set()\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("--config FILE", ["first", "second"]),
        ("--config=FILE --with-fetch", ["first", "second"]),
        ("--server second --config FILE", ["second"]),
        ("--server=second --server second --config FILE", ["second"]),
        ("--server missing --server unset --server elsewhere --config FILE", []),
        ("--server unknown --config FILE", []),
        ("-- cat -", ["cat"]),
        ("-- npx -y @scope/cat@1.2", []),
        # Click refuses these, or starts something else.
        ("--server first --config FILE -- cat", []),
        ("--config FILE --help", []),
        ("--config FILE --url http://127.0.0.1:9/", []),
        ("--config FILE cat", []),
        ("--config", []),
        ("--config FILE.missing", []),
    ],
)
def test_the_servers_of_a_command_line_are_started_before_it_is_read(
    settings_file: Path, words: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/bin:/usr/bin" if "npx" not in words else "")
    processes = start_early(words.replace("FILE", str(settings_file)).split())
    try:
        assert sorted(processes) == names
        assert all(process.poll() is None for process in processes.values())
    finally:
        for process in processes.values():
            stop(process)
            process.communicate()


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("named_by", ["the command line", "the settings"])
async def test_a_server_that_was_started_before_the_settings_proved_wrong_is_ended(
    named_by: str, tmp_path: Path
) -> None:
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("There is no /proc here to see processes in.")
    mark = secrets.token_hex(8)
    program = ["sh", "-c", "sleep 99; true", mark]
    file = tmp_path / "settings.toml"
    file.write_text(f"[wrap.servers.idle]\ncommand = 'sh'\nargs = {program[1:]}\n[fetch]\nport = 1")
    words = ["--config", str(file), *(["--", *program] if named_by == "the command line" else [])]
    started = start_early(words)
    for process in started.values():
        stop(process)
        process.communicate()
    assert started
    done = subprocess.run([FETCHSTASH, "wrap", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "There is no setting 'fetch.port'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    with anyio.fail_after(60):
        while any(mark in line for line in _command_lines()):
            await anyio.lowlevel.checkpoint()


def _command_lines() -> list[str]:
    lines: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines.append((process / "cmdline").read_text())
        except OSError:
            continue
    return lines


# --- The gateway's own stdin and stdout.


@contextmanager
def opened(folder: Path) -> Generator[tuple[subprocess.Popen[bytes], Any, Any]]:
    """Yield an initialized gateway in front of ``plain.py``, its stdin and its stdout."""
    (folder / "fetchstash.toml").write_text(f'[store]\nfolder = "{folder}/store"\n')
    command = [FETCHSTASH, "wrap", "--config", str(folder / "fetchstash.toml")]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, "--", *plain("legacy")], stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(line(1, "initialize", initialize()))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        yield process, process.stdin, process.stdout


def line(number: int, method: str, params: dict[str, Any] | None = None) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
    return json.dumps(message).encode() + b"\n"


@pytest.mark.slow
def test_requests_in_one_write_are_all_answered_before_the_gateway_ends(tmp_path: Path) -> None:
    with opened(tmp_path) as (process, stdin, stdout):
        burst = b"".join(line(number, "ping") for number in range(2, 2_002))
        stdin.write(burst + b"\nnonsense\n" + line(2_002, "ping")[:20])
        stdin.flush()
        numbers = {json.loads(stdout.readline())["id"] for _ in range(2_000)}
        stdin.write(line(2_002, "ping")[20:])
        stdin.flush()
        last = json.loads(stdout.readline())["id"]
        stdin.close()
        assert process.wait(60) == 0
    assert numbers == set(range(2, 2_002))
    assert last == 2_002


@pytest.mark.slow
def test_a_host_that_closes_our_stdout_ends_the_gateway_without_a_word(tmp_path: Path) -> None:
    with opened(tmp_path) as (process, stdin, stdout):
        stdout.close()
        stdin.write(line(2, "ping"))
        stdin.flush()
        assert process.wait(60) == 0
        assert process.stderr
        assert not process.stderr.read()

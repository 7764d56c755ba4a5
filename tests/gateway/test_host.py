"""The gateway's own stdin and stdout."""

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.conftest import FETCHSTASH, plain
from tests.gateway.memory import initialize

pytestmark = pytest.mark.slow


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


def test_a_host_that_closes_our_stdout_ends_the_gateway_without_a_word(tmp_path: Path) -> None:
    with opened(tmp_path) as (process, stdin, stdout):
        stdout.close()
        stdin.write(line(2, "ping"))
        stdin.flush()
        assert process.wait(60) == 0
        assert process.stderr
        assert not process.stderr.read()

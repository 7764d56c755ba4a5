"""Several processes share a folder: the order of a put on the disk, and a short torture."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from fetchstash.store import StoreLimits, open_store

pytestmark = pytest.mark.slow

TORTURE = Path(__file__).parents[2] / "scripts" / "torture.d" / "store.py"

PUT = """
import anyio, sys
from pathlib import Path
from fetchstash.ranges import Ranges
from fetchstash.store import Facts, StoreLimits, open_store

async def main():
    store = await open_store(StoreLimits(Path(sys.argv[1])))
    files = (write(store.spool / name) for name in ("the-raw", "the-text"))
    await store.put(*files, Facts(), Ranges())
    print("acknowledged", flush=True)

def write(path):
    path.write_bytes(path.name.encode())
    return path

anyio.run(main)
"""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", *arguments], capture_output=True, text=True, check=False, timeout=300
    )


@dataclass
class Call:
    """A system call, and the lines of the trace on which it began and ended."""

    text: str
    began: int
    ended: int


def calls_of(trace: str) -> list[Call]:
    """Read what `strace -f` wrote."""
    calls: list[Call] = []
    begun: dict[str, Call] = {}
    for number, line in enumerate(trace.splitlines()):
        thread, text = line.split(maxsplit=1)
        if text.startswith("<..."):
            begun.pop(thread).ended = number
            continue
        calls.append(Call(text, number, number))
        if text.endswith("<unfinished ...>"):
            begun[thread] = calls[-1]
    return calls


def ended(calls: list[Call], pattern: str, after: int = -1) -> int:
    """Return when the first call ended that matches and began later than ``after``."""
    return next(
        call.ended for call in calls if call.began > after and re.search(pattern, call.text)
    )


@pytest.mark.skipif(sys.platform != "linux", reason="strace is Linux's")
def test_a_put_is_on_the_disk_step_by_step_before_it_is_acknowledged(tmp_path: Path) -> None:
    if not shutil.which("strace"):
        pytest.skip("strace is missing: the order of the system calls was not looked at")
    trace = tmp_path / "trace"
    traced = "trace=write,pwrite64,fsync,fdatasync,rename,renameat,renameat2"
    command: list[str | Path] = [
        "strace",
        "-f",
        "-y",
        "-o",
        trace,
        "-e",
        traced,
        sys.executable,
        "-P",
        "-c",
        PUT,
        tmp_path / "store",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if "ptrace" in done.stderr:
        pytest.skip(
            "strace may trace nothing here: the order of the system calls was not looked at"
        )
    assert done.returncode == 0, done.stderr
    calls = calls_of(trace.read_text(encoding="utf-8", errors="replace"))
    on_disk: list[int] = []
    for kind in ("raw", "text"):
        written = ended(calls, rf"write\(.*spool/the-{kind}")
        synced = ended(calls, rf"fsync\(.*spool/the-{kind}", written)
        renamed = ended(calls, rf"rename.*spool/the-{kind}.*/{kind}/", synced)
        on_disk.append(ended(calls, rf"fsync\(.*/store/{kind}>", renamed))
    log_written = ended(calls, r"pwrite64\(.*catalog\.db-wal", max(on_disk))
    committed = ended(calls, r"(fsync|fdatasync)\(.*catalog\.db-wal", log_written)
    assert ended(calls, r"write\(.*acknowledged", committed)


def test_kills_at_random_and_at_every_step_lose_nothing() -> None:
    done = run(TORTURE, "--kills", "12")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_torture_finds_a_planted_bug() -> None:
    done = run(TORTURE, "--plant")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAULT lost" in done.stdout


def test_several_processes_put_into_one_folder_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    writers = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", PUT.replace("the-", f"{n}-"), folder],
            stdout=subprocess.DEVNULL,
        )
        for n in range(4)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]

    async def count() -> int:
        store = await open_store(StoreLimits(folder))
        total = (await store.list()).total
        assert await store.gc() == ()
        await store.aclose()
        return total

    assert anyio.run(count) == 4

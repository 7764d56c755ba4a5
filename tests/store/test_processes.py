"""Several processes and one folder: the order in which a put reaches the disk, and a share of the torture."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from fetchstash.store import StoreLimits, open_store

TORTURE = Path(__file__).parents[2] / "scripts" / "torture.d" / "store.py"

PUT = """
import anyio, sys
from pathlib import Path
from fetchstash.ranges import Ranges
from fetchstash.store import Facts, StoreLimits, open_store

async def main():
    store = await open_store(StoreLimits(Path(sys.argv[1])))
    await store.put(*(write(store.spool / name) for name in ("the-raw", "the-text")), Facts(), Ranges())
    print("acknowledged", flush=True)

def write(path):
    path.write_bytes(path.name.encode())
    return path

anyio.run(main)
"""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", *arguments], capture_output=True, text=True, check=False, timeout=300)


def place(calls: list[str], pattern: str, after: int = -1) -> int:
    """Return where the first call that matches stands, later than ``after``."""
    return next(n for n, call in enumerate(calls) if n > after and re.search(pattern, call))


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
        pytest.skip("strace may trace nothing here: the order of the system calls was not looked at")
    assert done.returncode == 0, done.stderr
    calls = trace.read_text(encoding="utf-8", errors="replace").splitlines()
    renames: list[int] = []
    for kind in ("raw", "text"):
        written = place(calls, rf"write\(.*spool/the-{kind}")
        synced = place(calls, rf"fsync\(.*spool/the-{kind}", written)
        renamed = place(calls, rf"rename.*spool/the-{kind}.*/{kind}/", synced)
        renames.append(place(calls, rf"fsync\(.*/store/{kind}>", renamed))
    log_written = place(calls, r"pwrite64\(.*catalog\.db-wal", max(renames))
    committed = place(calls, r"(fsync|fdatasync)\(.*catalog\.db-wal", log_written)
    assert place(calls, r"acknowledged") > committed


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
        subprocess.Popen([sys.executable, "-P", "-c", PUT.replace("the-", f"{n}-"), folder], stdout=subprocess.DEVNULL)
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

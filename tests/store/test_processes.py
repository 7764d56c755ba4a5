"""Several processes share a folder: the order of a put on the disk, and a short torture."""

import hashlib
import re
import shutil
import signal
import subprocess
import sys
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest

from fetchstash.store import Finding, StoreLimits, check_store, open_store
from tests.store.contents import text_of

pytestmark = [pytest.mark.slow, pytest.mark.long]

KINDS = ("raw", "text")
TORTURE = Path(__file__).parents[2] / "scripts" / "torture" / "store.py"

PUT = """
import anyio, sys
from pathlib import Path
from fetchstash.text.ranges import Ranges
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

repair = partial(check_store, repair=True)


KILLED_PUT = """
import anyio, os, signal, sys
from pathlib import Path
from fetchstash.text.ranges import Ranges
from fetchstash.store import Facts, StoreLimits, _disk, open_store

def reached(step):
    if step == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    store = await open_store(StoreLimits(Path(sys.argv[1])))
    for name in ("acknowledged", "killed"):
        if name == "killed":
            _disk.reached = reached
        files = [store.spool / f"{name}-{kind}" for kind in ("raw", "text")]
        for file in files:
            file.write_text(file.name)
        await store.put(*files, Facts(), Ranges(), url=f"https://example.org/{name}")

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
    words = ["strace", "-f", "-y", "-o", str(trace), "-e", traced, sys.executable, "-P", "-c", PUT]
    command = [*words, str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if "ptrace" in done.stderr:
        pytest.skip("strace may trace nothing here: no order of system calls was looked at")
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


def files_of(folder: Path) -> set[str]:
    kinds = ("raw", "text", "facts", "spool", "quarantine")
    return {str(path.relative_to(folder)) for kind in kinds for path in (folder / kind).glob("*")}


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("step", ["measured", "locked", "renamed", "folders_synced"])
def test_a_put_that_was_killed_is_no_fault_goes_at_gc_and_is_never_revived(
    step: str, tmp_path: Path
) -> None:
    killed = tmp_path / "killed"
    assert run("-c", KILLED_PUT, killed, step).returncode == -signal.SIGKILL
    (ref,) = anyio.run(refs_of, copy_of(killed, "looked at"))

    checked = copy_of(killed, "checked")
    assert wrong(anyio.run(check_store, StoreLimits(checked))) == []
    anyio.run(collect, checked)
    raw, text = (hashlib.sha256(f"acknowledged-{kind}".encode()).hexdigest() for kind in KINDS)
    assert files_of(checked) == {f"raw/{raw}", f"text/{text}", f"facts/{ref}"}
    assert wrong(anyio.run(check_store, StoreLimits(checked))) == []

    repaired = copy_of(killed, "repaired")
    anyio.run(repair, StoreLimits(repaired))
    assert anyio.run(refs_of, repaired) == [ref]
    anyio.run(collect, repaired)
    assert files_of(repaired) == files_of(checked)

    lost = copy_of(killed, "lost")
    for path in lost.glob("catalog.db*"):
        path.unlink()
    anyio.run(repair, StoreLimits(lost))
    assert anyio.run(refs_of, lost) == [ref]


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("step", ["committed", "put_done"])
def test_a_put_that_was_killed_after_its_commit_is_an_artifact_and_no_fault(
    step: str, tmp_path: Path
) -> None:
    killed = tmp_path / "killed"
    assert run("-c", KILLED_PUT, killed, step).returncode == -signal.SIGKILL
    assert wrong(anyio.run(check_store, StoreLimits(killed))) == []
    refs = anyio.run(refs_of, killed)
    assert len(refs) == 2
    anyio.run(repair, StoreLimits(killed))
    for path in killed.glob("catalog.db*"):
        path.unlink()
    anyio.run(repair, StoreLimits(killed))
    assert anyio.run(refs_of, killed) == refs


def copy_of(folder: Path, name: str) -> Path:
    return shutil.copytree(folder, folder.with_name(name))


def wrong(findings: tuple[Finding, ...]) -> list[Finding]:
    return [finding for finding in findings if finding.level != "note"]


async def refs_of(folder: Path) -> list[str]:
    """Return the artifacts of a store, each of which is read."""
    async with aclosing(await open_store(StoreLimits(folder))) as store:
        refs = [facts.artifact_ref for facts in (await store.list()).facts]
        for ref in refs:
            await text_of(store, ref)
        return refs


async def collect(folder: Path) -> None:
    async with aclosing(await open_store(StoreLimits(folder))) as store:
        await store.gc()

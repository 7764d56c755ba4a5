"""Kill -9 what writes, reads and cleans a store, and see that nothing acknowledged is lost.

    python scripts/torture/store.py [--kills 1000] [--seed 1] [--plant]

Two writers put artifacts into one run and report each that was acknowledged. A third process puts,
deletes and collects the same bytes in another run, so that files are shared. A reader reads
whatever is there. They are killed at random and at each step of put and gc. In other rounds the
folder is moved away while they run, the clock of one process is 30 days ahead, and the disk is
full (a small tmpfs, which takes root). After each round every acknowledged artifact must be whole,
nothing half-written may be seen, and gc must leave no file that no artifact names. --plant puts in
a bug that must be found: gc unlinks after it has released the lock. Exit code: 0 if all is well.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio

# Tests run it with the wheel alone: the checkout comes last, so that the wheel's fetchstash counts.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from fetchstash.errors import FetchstashError, UnknownRef
from fetchstash.store import ALL_RUNS, StoreLimits, check_store, open_store, repair_store
from scripts.torture.store_children import dice, is_half

PUT_STEPS = ("measured", "locked", "renamed", "folders_synced", "committed", "put_done")
GC_STEPS = ("locked", "committed", "unlinked", "gc_done")


@dataclass
class Tally:
    """What happened so far."""

    kills: Counter[str] = field(default_factory=Counter[str])
    acknowledged: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    faults: list[str] = field(default_factory=list[str])


RUNNING: list[subprocess.Popen[bytes]] = []
"""The processes of the current round: none may outlive its folder."""


class Child:
    """A process of ours."""

    def __init__(
        self,
        folder: Path,
        role: str,
        *arguments: str,
        hold: str = "",
        announce: bool = False,
        plant: bool = False,
    ) -> None:
        program = str(Path(__file__).with_name("store_children.py"))
        command = [sys.executable, "-P", program, role, str(folder), *arguments, "--hold", hold]
        command += ["--announce"] * announce + ["--plant"] * plant
        self.role = role
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        RUNNING.append(self.process)

    def line(self) -> list[str]:
        """Return its next report, or [] if it ended."""
        assert self.process.stdout
        report = self.process.stdout.readline()
        return json.loads(report) if report.endswith(b"\n") else []

    def wait_for(self, *words: str) -> list[str]:
        """Return its next report that begins with these words. Raises RuntimeError if it ended."""
        while report := self.line():
            if report[: len(words)] == list(words):
                return report
        raise RuntimeError(f"{self.role} ended by itself")

    def go_on(self) -> None:
        """Let it go on from where it waits."""
        assert self.process.stdin
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def kill(self, tally: Tally, where: str) -> None:
        """Kill it, and record what it reported before."""
        alive = self.process.poll() is None
        self.process.kill()
        while report := self.line():
            take_in(report, tally)
        self.end()
        if not alive:
            tally.faults.append(f"{self.role} ended by itself")
        tally.kills[where] += 1

    def end(self) -> None:
        """Wait for its end."""
        self.process.wait(60)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()


def take_in(report: list[str], tally: Tally) -> None:
    """Record an acknowledged artifact, or a half one that a reader saw."""
    if report[0] == "ack":
        tally.acknowledged[report[1]] = report[2], report[3]
    elif report[0] == "half":
        tally.faults.append(f"a reader saw a half artifact: {report[1]}")


async def verify(folder: Path, expected: dict[str, tuple[str, str]], tally: Tally) -> None:
    """Check that all expected and listed artifacts are whole, and that gc leaves no orphan.

    A kill is no fault for doctor, and a new catalogue has what the lost one had.
    """
    for finding in await check_store(StoreLimits(folder)):
        if finding.level != "note":
            tally.faults.append(f"doctor: {finding.what}")
    store = await open_store(StoreLimits(folder, run="kept"))
    for ref, (raw, text) in expected.items():
        try:
            facts = await store.get(ref)
            sound = (
                facts.sha256 == raw
                and not await is_half(store, facts)
                and Path(facts.path or "").name == text
            )
            async with store.open_raw(ref) as path:
                sound = sound and hashlib.sha256(path.read_bytes()).hexdigest() == raw
        except FetchstashError as error:
            tally.faults.append(f"lost: {ref}: {error}")
            continue
        if not sound:
            tally.faults.append(f"lost: {ref}: it is not what was put")
    for run in ("kept", "churned"):
        other = await open_store(StoreLimits(folder, run=run))
        for facts in (await other.list(limit=100_000)).facts:
            if await is_half(other, facts):
                tally.faults.append(f"half: {facts.artifact_ref}")
        await other.gc()
        strays = [
            removed.artifact_ref
            for removed in await other.gc(dry_run=True)
            if removed.reason == "orphan"
        ]
        tally.faults.extend(f"orphan: {stray}" for stray in strays)
        await other.aclose()
    await store.aclose()
    again = await open_store(
        StoreLimits(folder, run="kept")
    )  # nobody else has it open now: the spool is swept
    tally.faults.extend(f"left in the spool: {path.name}" for path in again.spool.iterdir())
    await again.aclose()
    before = await refs_of(folder)
    await repair_store(StoreLimits(folder))  # writes what a kill, or a full disk, left unwritten
    for name in ("catalog.db", "catalog.db-wal", "catalog.db-shm"):
        (folder / name).unlink(missing_ok=True)
    await repair_store(StoreLimits(folder))
    after = await refs_of(folder)
    tally.faults.extend(f"not restored: {ref}" for ref in before - after)
    tally.faults.extend(f"revived: {ref}" for ref in after - before)


async def refs_of(folder: Path) -> set[str]:
    """Return the artifacts of all runs."""
    store = await open_store(StoreLimits(folder, run=ALL_RUNS))
    refs = {facts.artifact_ref for facts in (await store.list(limit=100_000)).facts}
    await store.aclose()
    return refs


def random_round(folder: Path, chance: random.Random, tally: Tally) -> None:
    """Kill two writers, a churner and a reader at any moment."""
    roles = ("writer", "writer", "churner", "reader")
    children = [Child(folder, role, str(chance.randrange(2**32))) for role in roles]
    for child in children:
        take_in(child.wait_for(), tally)
    chance.shuffle(children)
    for child in children:
        time.sleep(chance.uniform(0, 0.1))  # the moment of the kill is what is drawn here
        child.kill(tally, "random")


def barrier_round(folder: Path, chance: random.Random, tally: Tally, role: str, step: str) -> None:
    """Kill one process at a step, while others go on around it."""
    bystander = Child(folder, "writer", str(chance.randrange(2**32)))
    take_in(bystander.wait_for("ack"), tally)
    held = Child(folder, role, str(chance.randrange(2**32)), hold=f"{step}:{chance.randint(1, 5)}")
    while (report := held.line()) and report[0] != "held":
        take_in(report, tally)
    held.kill(tally, f"{role} at {step}")
    for _ in range(2):
        take_in(bystander.wait_for("ack"), tally)  # the lock died with its holder
    bystander.kill(tally, "bystander")


def clock_round(folder: Path, chance: random.Random, tally: Tally) -> None:
    """Let a process whose clock is 30 days ahead put and collect beside others."""
    roles = ("writer", "churner", "early")
    children = [Child(folder, role, str(chance.randrange(2**32))) for role in roles]
    for _ in range(2):
        for child in children:
            take_in(child.wait_for(), tally)
    for child in children:
        child.kill(tally, "clock ahead")


def full_round(folder: Path, chance: random.Random, tally: Tally) -> None:
    """Write until the disk is full, and kill the writers there."""
    roles = ("patient_writer", "patient_writer")
    children = [Child(folder, role, str(chance.randrange(2**32))) for role in roles]
    for child in children:
        while (report := child.line()) and report[0] != "refused":
            take_in(report, tally)
    time.sleep(chance.uniform(0, 0.1))  # the moment of the kill is what is drawn here
    for child in children:
        child.kill(tally, "full disk")


def moved_round(folder: Path, chance: random.Random, tally: Tally) -> None:
    """Move the folder away again and again while writers go on, and look into all folders."""
    before = set(tally.acknowledged)
    roles = ("patient_writer", "patient_writer")
    children = [Child(folder, role, str(chance.randrange(2**32))) for role in roles]
    folders = [folder]
    for number in range(4):
        for child in children:
            take_in(child.wait_for("ack"), tally)
        while not folder.exists():  # that may have been an acknowledgement from before the move
            take_in(children[0].wait_for("ack"), tally)
        time.sleep(chance.uniform(0, 0.05))  # the moment of the move is what is drawn here
        folders.append(folder.with_name(f"moved-{number}"))
        folder.rename(folders[-1])
    for child in children:
        take_in(child.wait_for("ack"), tally)
        child.kill(tally, "folder moved")
    fresh = {ref: hashes for ref, hashes in tally.acknowledged.items() if ref not in before}
    for place in folders:
        held = anyio.run(held_by, place, list(fresh))
        anyio.run(verify, place, {ref: fresh.pop(ref) for ref in held}, tally)
    tally.faults.extend(f"lost: {ref}: it is in no folder" for ref in fresh)


async def held_by(folder: Path, refs: list[str]) -> list[str]:
    """Return which of the artifacts a folder has."""
    store = await open_store(StoreLimits(folder, run="kept"))
    held: list[str] = []
    for ref in refs:
        with suppress(UnknownRef):
            held.append((await store.get(ref)).artifact_ref)
    await store.aclose()
    return held


def directed_commit(folder: Path, tally: Tally) -> None:
    """Kill a put inside its commit, after the log and before the log's index, and collect then.

    The moment cannot be held open from outside. It is made up: the shared index of the log
    (catalog.db-shm) is put back to what it was before the commit. The next to open the store alone
    reads the log anew and finds the commit.
    """
    collector = Child(folder, "collector")
    collector.wait_for("ready")
    put = Child(folder, "putter", "another raw", "another text", announce=True)
    put.wait_for("reached", "folders_synced")
    index = folder / "catalog.db-shm"
    before = index.read_bytes()
    put.go_on()
    put.wait_for("reached", "committed")
    put.kill(tally, "putter in its commit")
    with index.open("r+b") as file:
        file.write(before)
    collector.go_on()
    collector.wait_for("done")
    collector.kill(tally, "collector")


def directed_unlink(folder: Path, tally: Tally, *, plant: bool) -> None:
    """Hold a delete between its commit and its unlink while another puts the same bytes."""
    first = Child(folder, "putter", "the raw", "the text")
    ref = first.wait_for("ack")[1]
    first.end()
    deleter = Child(folder, "deleter", ref, announce=True, plant=plant)
    if plant:
        deleter.wait_for("reached", "committed")
        deleter.go_on()
        deleter.wait_for("reached", "unlocked")
    else:
        deleter.wait_for("reached", "committed")
    second = Child(folder, "putter", "the raw", "the text", announce=True)
    second.wait_for("reached", "measured")
    if plant:  # the lock is free: the put goes through between
        second.wait_for("reached", "folders_synced")
        second.go_on()
        second.wait_for("reached", "committed")
        second.go_on()
        take_in(second.wait_for("ack"), tally)
    deleter.go_on()
    deleter.wait_for("done")
    if not plant:  # the put had to wait
        second.wait_for("reached", "folders_synced")
        second.go_on()
        second.wait_for("reached", "committed")
        second.go_on()
        take_in(second.wait_for("ack"), tally)
    for child in (deleter, second):
        child.end()


def on_a_full_disk(kills: int, seed: int, tally: Tally) -> None:
    """Play the rounds of the full disk on a tmpfs of 24 MiB, in a mount namespace of their own."""
    if os.name != "posix" or os.geteuid() != 0 or not shutil.which("unshare"):
        print("SKIPPED: the full disk takes root and unshare")
        return
    with tempfile.TemporaryDirectory() as folder:
        mount = 'mount -t tmpfs -o size=24m tmpfs "$1" && shift && exec "$@"'
        command = [sys.executable, "-P", __file__, "--kills", str(kills), "--seed", str(seed)]
        shell = ["unshare", "-m", "sh", "-c", mount, "sh", folder]
        done = subprocess.run([*shell, *command, "--disk", folder], check=False)
    if done.returncode:
        tally.faults.append("full disk: see above")


def end_all() -> None:
    """Kill the processes of a round."""
    for process in RUNNING:
        process.kill()
        process.wait(60)
    RUNNING.clear()


@contextmanager
def checked(tally: Tally, disk: str | None = None) -> Generator[Path]:
    """Lend a folder, and verify what became of it."""
    with tempfile.TemporaryDirectory(dir=disk) as folder:
        before = set(tally.acknowledged)
        try:
            yield Path(folder) / "store"
        finally:
            end_all()
        fresh = {ref: hashes for ref, hashes in tally.acknowledged.items() if ref not in before}
        anyio.run(verify, Path(folder) / "store", fresh, tally)


def rounds(kills: int, chance: random.Random, tally: Tally, *, plant: bool) -> None:
    """Play rounds until so many processes are killed."""
    with checked(tally) as folder:
        directed_unlink(folder, tally, plant=plant)
        directed_commit(folder, tally)
    barriers = [("writer", step) for step in PUT_STEPS]
    barriers += [("churner", step) for step in (*GC_STEPS, *PUT_STEPS)]
    while tally.kills.total() < kills and not plant:
        with checked(tally) as folder:
            random_round(folder, chance, tally)
            random_round(folder, chance, tally)
            barrier_round(folder, chance, tally, *barriers[0])
            barrier_round(folder, chance, tally, *barriers[1])
            clock_round(folder, chance, tally)
        with tempfile.TemporaryDirectory() as parent:
            try:
                moved_round(Path(parent) / "store", chance, tally)
            finally:
                end_all()
        barriers = barriers[2:] + barriers[:2]


def main() -> int:
    """Play all of it; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("--disk", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    tally = Tally()
    began = time.monotonic()
    if args.disk:
        chance = dice(args.seed)
        while tally.kills.total() < args.kills:
            with checked(tally, args.disk) as folder:
                full_round(folder, chance, tally)
    else:
        rounds(args.kills, dice(args.seed), tally, plant=args.plant)
        if not args.plant:
            on_a_full_disk(max(args.kills // 50, 4), args.seed, tally)
    print(
        f"{tally.kills.total()} kills in {time.monotonic() - began:.0f} s, "
        f"{len(tally.acknowledged)} artifacts acknowledged"
    )
    for where, count in sorted(tally.kills.items()):
        print(f"  {count:5} {where}")
    for fault in tally.faults:
        print(f"FAULT {fault}")
    print(f"{len(tally.faults)} faults")
    return bool(tally.faults)


if __name__ == "__main__":
    sys.exit(main())

"""Kill -9 what writes, reads and cleans a store, and see that nothing acknowledged is lost.

    python scripts/torture.d/store.py [--kills 1000] [--seed 1] [--plant]

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
import secrets
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
from typing import Any

import anyio

from fetchstash.errors import ExpiredRef, FetchstashError, StoreError, UnknownRef
from fetchstash.ranges import Ranges
from fetchstash.store import ArtifactStore, Facts, StoreLimits, _rows as rows, _steps, open_store
from fetchstash.store._catalog import transaction
from fetchstash.store._folder import StoreFolder

PUT_STEPS = ("measured", "locked", "renamed", "folders_synced", "committed", "put_done")
GC_STEPS = ("locked", "committed", "unlinked", "gc_done")


def dice(seed: int) -> random.Random:
    """Return chance that can be repeated."""
    return random.Random(seed)  # noqa: S311 - it guards nothing


# The children report on stdout, one JSON value a line.


def say(*words: str) -> None:
    """Report to the parent."""
    print(json.dumps(words), flush=True)


def hold_at(last: str, time_of_it: int) -> None:
    """Stop for good when the step ``last`` is reached for the ``time_of_it``-th time."""
    seen: Counter[str] = Counter()

    def reached(step: str) -> None:
        seen[step] += 1
        if step == last and seen[step] == time_of_it:
            say("held", step)
            time.sleep(3600)

    _steps.reached = reached


def announce_steps() -> None:
    """Report each step, and at some of them wait for a line on stdin."""

    def reached(step: str) -> None:
        say("reached", step)
        if step in ("folders_synced", "committed", "unlocked"):
            sys.stdin.readline()

    _steps.reached = reached


def plant_a_bug() -> None:
    """Let delete unlink after the lock is gone: a put of the same bytes may have come between."""

    def delete(self: StoreFolder, ref: str) -> None:
        with self._catalog.locked() as db, transaction(db):  # pyright: ignore[reportPrivateUsage]
            found = rows.find(db, ref, "kept")
            unshared = rows.forget(db, found.ref, expired=False)
        _steps.reached("unlocked")
        for kind, sha256 in unshared:
            self._blobs.remove(kind, sha256)  # pyright: ignore[reportPrivateUsage]

    StoreFolder.delete = delete  # type: ignore[method-assign]


async def put(store: ArtifactStore, raw: bytes, text: bytes) -> Facts:
    """Put bytes by way of the spool."""
    name = secrets.token_hex(8)
    raw_path, text_path = store.spool / f"{name}.raw", store.spool / f"{name}.text"
    raw_path.write_bytes(raw)
    text_path.write_bytes(text)
    return await store.put(raw_path, text_path, Facts(), Ranges())


def content(chance: random.Random) -> tuple[bytes, bytes]:
    """Return one of a few documents, so that artifacts share files; half of the texts are new."""
    number = chance.randrange(6)
    text = b"document %d\n" % number * chance.choice([1, 100, 20_000])
    return b"raw %d " % number * 10_000, text if chance.random() < 0.5 else text + chance.randbytes(
        8
    ).hex().encode()


async def writer(folder: Path, seed: int) -> None:
    """Put artifacts, and report each."""
    store = await open_store(StoreLimits(folder, run="kept"))
    chance = dice(seed)
    while True:
        raw, text = content(chance)
        facts = await put(store, raw, text)
        say(
            "ack",
            facts.artifact_ref,
            hashlib.sha256(raw).hexdigest(),
            hashlib.sha256(text).hexdigest(),
        )


async def patient_writer(folder: Path, seed: int) -> None:
    """Put artifacts, and go on when the folder was moved or the disk is full."""
    store = await open_store(StoreLimits(folder, run="kept"))
    chance = dice(seed)
    while True:
        raw, text = content(chance)
        try:
            facts = await put(store, raw, text)
        except (StoreError, FileNotFoundError) as error:  # the latter: the spool went meanwhile
            say("refused", str(error))
        except OSError as error:  # the spool, which a fetch fills, met the full disk
            say("refused", str(error))
            for path in store.spool.iterdir():
                path.unlink(missing_ok=True)
        else:
            hashes = (hashlib.sha256(data).hexdigest() for data in (raw, text))
            say("ack", facts.artifact_ref, *hashes)


async def early(folder: Path, seed: int) -> None:
    """Put, delete and collect with a clock that is 30 days ahead."""
    right_time = time.time
    time.time = lambda: right_time() + 30 * 86400
    await churner(folder, seed)


async def churner(folder: Path, seed: int) -> None:
    """Put, delete and collect, so that files come and go."""
    store = await open_store(StoreLimits(folder, run="churned"))
    chance = dice(seed)
    while True:
        for _ in range(3):
            await put(store, *content(chance))
        for facts in (await store.list(offset=4)).facts:
            with suppress(UnknownRef):
                await store.delete(facts.artifact_ref)
        await store.gc()
        say("churned")


async def reader(folder: Path, seed: int) -> None:
    """Read whatever is there."""
    store = await open_store(StoreLimits(folder, run="churned"))
    kept = await open_store(StoreLimits(folder, run="kept"))
    chance = dice(seed)
    while True:
        for opened in (store, kept):
            for facts in (await opened.list(limit=5, offset=chance.randrange(3))).facts:
                if await is_half(opened, facts):
                    say("half", facts.artifact_ref)
        say("read")


async def is_half(store: ArtifactStore, facts: Facts) -> bool:
    """Return whether an artifact is there and not whole."""
    try:
        opened = await store.open_text(facts.artifact_ref)
        text = await opened.read_chars(0, opened.chars)
        await opened.aclose()
    except (UnknownRef, ExpiredRef):
        return False
    except StoreError:
        return True
    return hashlib.sha256(text.encode()).hexdigest() != Path(facts.path or "").name


async def deleter(folder: Path, ref: str) -> None:
    """Delete one artifact."""
    store = await open_store(StoreLimits(folder, run="kept"))
    await store.delete(ref)
    say("done")


async def collector(folder: Path) -> None:
    """Collect after a line on stdin, and stay."""
    store = await open_store(StoreLimits(folder, run="kept"))
    await store.list()
    say("ready")
    sys.stdin.readline()
    await store.gc()
    say("done")
    await anyio.sleep_forever()


async def putter(folder: Path, raw: str, text: str) -> None:
    """Put one artifact."""
    store = await open_store(StoreLimits(folder, run="kept"))
    facts = await put(store, raw.encode(), text.encode())
    say(
        "ack",
        facts.artifact_ref,
        hashlib.sha256(raw.encode()).hexdigest(),
        hashlib.sha256(text.encode()).hexdigest(),
    )


CHILDREN: dict[str, Any] = {
    "writer": writer,
    "patient_writer": patient_writer,
    "early": early,
    "churner": churner,
    "reader": reader,
    "deleter": deleter,
    "collector": collector,
    "putter": putter,
}


# The parent.


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
        command = [sys.executable, "-P", __file__, "--folder", str(folder), "--hold", hold]
        command += ["--announce"] * announce + ["--plant"] * plant + ["--role", role, *arguments]
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
    """Check that all expected and listed artifacts are whole, and that gc leaves no orphan."""
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
        print("SKIPPED full disk: it takes root and unshare")
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
    """Play a child's part, or all of it; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", action="store_true")
    for hidden in ("--folder", "--hold", "--role", "--disk"):
        parser.add_argument(hidden, default="", help=argparse.SUPPRESS)
    parser.add_argument("--announce", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role:
        if args.hold:
            last, number = args.hold.split(":")
            hold_at(last, int(number))
        if args.announce:
            announce_steps()
        if args.plant:
            plant_a_bug()
        arguments = [int(text) if text.isdigit() else text for text in args.arguments]
        anyio.run(CHILDREN[args.role], Path(args.folder), *arguments)
        return 0

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

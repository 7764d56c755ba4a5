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

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio

# Tests run it with the wheel alone: the checkout comes last, so that the wheel's fetchstash counts.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from fetchstash.errors import FetchstashError, UnknownRef
from fetchstash.store import ALL_RUNS, StoreLimits, check_store, open_store
from scripts.drive.programs import options
from scripts.torture.kept import Child, Ledger, dice, read_back, show, sums
from scripts.torture.store_roles import is_half, play_role

PUT_STEPS = ("measured", "locked", "renamed", "folders_synced", "committed", "put_done")
GC_STEPS = ("locked", "committed", "unlinked", "gc_done")


RUNNING: list[Child] = []
"""The processes of the current round: none may outlive its folder."""


def start(
    folder: Path, ledger: Ledger, role: str, *arguments: str, hold: str = "", more: str = ""
) -> Child:
    """Start a process that plays a role. ``hold``: STEP:N, where it stops for good."""
    words = [__file__, "--role", role, "--folder", str(folder), "--hold", hold, *more.split()]
    words += ["--given", *arguments] if arguments else []
    RUNNING.append(Child(ledger, role, *words))
    return RUNNING[-1]


def start_all(folder: Path, chance: random.Random, ledger: Ledger, *roles: str) -> list[Child]:
    """Start processes that go on until they are killed."""
    return [start(folder, ledger, role, str(chance.randrange(2**32))) for role in roles]


async def verify(folder: Path, expected: Iterable[tuple[str, ...]], ledger: Ledger) -> None:
    """Check that all expected and listed artifacts are whole, and that gc leaves no orphan.

    A kill is no fault for doctor, and a new catalogue has what the lost one had.
    """
    faults = ledger.faults
    for finding in await check_store(StoreLimits(folder)):
        if finding.level != "note":
            faults.append(f"doctor: {finding.what}")
    store = await open_store(StoreLimits(folder, run="kept"))
    for key in expected:
        [ref] = key
        try:
            facts = await store.get(ref)
            sound = sums(*await read_back(store, ref)) == ledger.kept[key]
            sound = sound and (facts.sha256, Path(facts.path or "").name) == ledger.kept[key]
        except FetchstashError as error:
            faults.append(f"lost: {ref}: {error}")
            continue
        if not sound:
            faults.append(f"lost: {ref}: it is not what was put")
    for run in ("kept", "churned"):
        other = await open_store(StoreLimits(folder, run=run))
        for facts in (await other.list(limit=100_000)).facts:
            if await is_half(other, facts):
                faults.append(f"half: {facts.artifact_ref}")
        await other.gc()
        left = await other.gc(dry_run=True)
        faults.extend(f"orphan: {one.artifact_ref}" for one in left if one.reason == "orphan")
        await other.aclose()
    await store.aclose()
    # Nobody else has it open now: the spool is swept.
    again = await open_store(StoreLimits(folder, run="kept"))
    faults.extend(f"left in the spool: {path.name}" for path in again.spool.iterdir())
    await again.aclose()
    before = await refs_of(folder)
    # Writes what a kill, or a full disk, left unwritten.
    await check_store(StoreLimits(folder), repair=True)
    for name in ("catalog.db", "catalog.db-wal", "catalog.db-shm"):
        (folder / name).unlink(missing_ok=True)
    await check_store(StoreLimits(folder), repair=True)
    after = await refs_of(folder)
    faults.extend(f"not restored: {ref}" for ref in before - after)
    faults.extend(f"revived: {ref}" for ref in after - before)


async def refs_of(folder: Path) -> set[str]:
    """Return the artifacts of all runs."""
    store = await open_store(StoreLimits(folder, run=ALL_RUNS))
    refs = {facts.artifact_ref for facts in (await store.list(limit=100_000)).facts}
    await store.aclose()
    return refs


def random_round(folder: Path, chance: random.Random, ledger: Ledger) -> None:
    """Kill two writers, a churner and a reader at any moment."""
    children = start_all(folder, chance, ledger, "writer", "writer", "churner", "reader")
    for child in children:
        child.wait_for()
    chance.shuffle(children)
    for child in children:
        time.sleep(chance.uniform(0, 0.1))  # the moment of the kill is what is drawn here
        child.kill("random")


def barrier_round(
    folder: Path, chance: random.Random, ledger: Ledger, role: str, step: str
) -> None:
    """Kill one process at a step, while others go on around it."""
    [bystander] = start_all(folder, chance, ledger, "writer")
    bystander.wait_for("kept")
    hold = f"{step}:{chance.randint(1, 5)}"
    held = start(folder, ledger, role, str(chance.randrange(2**32)), hold=hold)
    held.wait_for("held")
    held.kill(f"{role} at {step}")
    for _ in range(2):
        bystander.wait_for("kept")  # the lock died with its holder
    bystander.kill("bystander")


def clock_round(folder: Path, chance: random.Random, ledger: Ledger) -> None:
    """Let a process whose clock is 30 days ahead put and collect beside others."""
    children = start_all(folder, chance, ledger, "writer", "churner", "early")
    for _ in range(2):
        for child in children:
            child.wait_for()
    for child in children:
        child.kill("clock ahead")


def full_round(folder: Path, chance: random.Random, ledger: Ledger) -> None:
    """Write until the disk is full, and kill the writers there."""
    children = start_all(folder, chance, ledger, "patient_writer", "patient_writer")
    for child in children:
        child.wait_for("refused")
    time.sleep(chance.uniform(0, 0.1))  # the moment of the kill is what is drawn here
    for child in children:
        child.kill("full disk")


def moved_round(folder: Path, chance: random.Random, ledger: Ledger) -> None:
    """Move the folder away again and again while writers go on, and look into all folders."""
    before = set(ledger.kept)
    children = start_all(folder, chance, ledger, "patient_writer", "patient_writer")
    folders = [folder]
    for number in range(4):
        for child in children:
            child.wait_for("kept")
        while not folder.exists():  # that may have been an acknowledgement from before the move
            children[0].wait_for("kept")
        time.sleep(chance.uniform(0, 0.05))  # the moment of the move is what is drawn here
        folders.append(folder.with_name(f"moved-{number}"))
        folder.rename(folders[-1])
    for child in children:
        child.wait_for("kept")
        child.kill("folder moved")
    fresh = set(ledger.kept) - before
    for place in folders:
        held = anyio.run(held_by, place, fresh)
        anyio.run(verify, place, held, ledger)
        fresh -= held
    ledger.faults.extend(f"lost: {ref}: it is in no folder" for (ref,) in fresh)


async def held_by(folder: Path, keys: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Return which of the artifacts a folder has."""
    store = await open_store(StoreLimits(folder, run="kept"))
    held: set[tuple[str, ...]] = set()
    for key in keys:
        with suppress(UnknownRef):
            held.add(((await store.get(key[0])).artifact_ref,))
    await store.aclose()
    return held


def directed_commit(folder: Path, ledger: Ledger) -> None:
    """Kill a put inside its commit, after the log and before the log's index, and collect then.

    The moment cannot be held open from outside. It is made up: the shared index of the log
    (catalog.db-shm) is put back to what it was before the commit. The next to open the store alone
    reads the log anew and finds the commit.
    """
    collector = start(folder, ledger, "collector")
    collector.wait_for("ready")
    put = start(folder, ledger, "putter", "another raw", "another text", more="--announce")
    put.wait_for("reached", "folders_synced")
    index = folder / "catalog.db-shm"
    before = index.read_bytes()
    put.go_on()
    put.wait_for("reached", "committed")
    put.kill("putter in its commit")
    with index.open("r+b") as file:
        file.write(before)
    collector.go_on()
    collector.wait_for("done")
    collector.kill("collector")


def directed_unlink(folder: Path, ledger: Ledger, *, plant: bool) -> None:
    """Hold a delete between its commit and its unlink while another puts the same bytes."""
    first = start(folder, ledger, "putter", "the raw", "the text")
    ref = first.wait_for("kept")[1]
    first.end()
    deleter = start(folder, ledger, "deleter", ref, more="--announce" + " --plant" * plant)
    deleter.wait_for("reached", "committed")
    if plant:
        deleter.go_on()
        deleter.wait_for("reached", "unlocked")
    second = start(folder, ledger, "putter", "the raw", "the text", more="--announce")
    second.wait_for("reached", "measured")

    def put_between() -> None:
        for step in ("folders_synced", "committed"):
            second.wait_for("reached", step)
            second.go_on()
        second.wait_for("kept")

    def delete_on() -> None:
        deleter.go_on()
        deleter.wait_for("done")

    # With the bug the lock is free, and the put goes through between; else it has to wait.
    for go_on in (put_between, delete_on) if plant else (delete_on, put_between):
        go_on()
    for child in (deleter, second):
        child.end()


def on_a_full_disk(kills: int, seed: int, ledger: Ledger) -> None:
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
        ledger.faults.append("full disk: see above")


def end_all() -> None:
    """Kill the processes of a round."""
    for child in RUNNING:
        child.process.kill()
        child.end()
    RUNNING.clear()


@contextmanager
def checked(ledger: Ledger, disk: str | None = None) -> Generator[Path]:
    """Lend a folder, and verify what became of it."""
    with tempfile.TemporaryDirectory(dir=disk) as folder:
        before = set(ledger.kept)
        try:
            yield Path(folder) / "store"
        finally:
            end_all()
        fresh = ledger.kept.keys() - before - ledger.deleted
        anyio.run(verify, Path(folder) / "store", fresh, ledger)


def rounds(kills: int, chance: random.Random, ledger: Ledger, *, plant: bool) -> None:
    """Play rounds until so many processes are killed."""
    with checked(ledger) as folder:
        directed_unlink(folder, ledger, plant=plant)
        directed_commit(folder, ledger)
    barriers = [("writer", step) for step in PUT_STEPS]
    barriers += [("churner", step) for step in (*GC_STEPS, *PUT_STEPS)]
    while ledger.kills.total() < kills and not plant:
        with checked(ledger) as folder:
            random_round(folder, chance, ledger)
            random_round(folder, chance, ledger)
            barrier_round(folder, chance, ledger, *barriers[0])
            barrier_round(folder, chance, ledger, *barriers[1])
            clock_round(folder, chance, ledger)
        with tempfile.TemporaryDirectory() as parent:
            try:
                moved_round(Path(parent) / "store", chance, ledger)
            finally:
                end_all()
        barriers = barriers[2:] + barriers[:2]


def main() -> int:
    """Play all of it; return the exit code."""
    args = options(
        __doc__,
        kills=1000,
        seed=1,
        plant=False,
        disk="",
        role="",
        folder=Path(),
        given=list[str](),
        hold="",
        announce=False,
    )
    if args.role:
        play_role(args)
    ledger = Ledger()
    began = time.monotonic()
    if args.disk:
        chance = dice(args.seed)
        while ledger.kills.total() < args.kills:
            with checked(ledger, args.disk) as folder:
                full_round(folder, chance, ledger)
    else:
        rounds(args.kills, dice(args.seed), ledger, plant=args.plant)
        if not args.plant:
            on_a_full_disk(max(args.kills // 50, 4), args.seed, ledger)
    print(
        f"{ledger.kills.total()} kills in {time.monotonic() - began:.0f} s, "
        f"{len(ledger.kept)} artifacts acknowledged"
    )
    for where, count in sorted(ledger.kills.items()):
        print(f"  {count:5} {where}")
    return show(ledger.faults)


if __name__ == "__main__":
    sys.exit(main())

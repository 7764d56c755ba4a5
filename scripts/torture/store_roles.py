"""The parts that the processes play which torture/store.py kills. Each reports as kept.py says."""

import hashlib
import random
import sys
import time
from argparse import Namespace
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

from fetchstash.errors import ExpiredRef, StoreError, UnknownRef
from fetchstash.store import (
    ArtifactStore,
    Facts,
    StoreLimits,
    View,
    _disk,
    _rows as rows,
    open_store,
)
from fetchstash.store._catalog import transaction
from fetchstash.store._folder import LocalStore
from fetchstash.store._threads import in_thread
from scripts.torture.kept import dice, put, read_text, say, sums


def hold_at(last: str, time_of_it: int) -> None:
    """Stop for good when the step ``last`` is reached for the ``time_of_it``-th time."""
    seen: Counter[str] = Counter()

    def reached(step: str) -> None:
        seen[step] += 1
        if step == last and seen[step] == time_of_it:
            say("held", step)
            time.sleep(3600)

    _disk.reached = reached


def announce_steps() -> None:
    """Report each step, and at some of them wait for a line on stdin."""

    def reached(step: str) -> None:
        say("reached", step)
        if step in ("folders_synced", "committed", "unlocked"):
            sys.stdin.readline()

    _disk.reached = reached


def plant_a_bug() -> None:
    """Let delete unlink after the lock is gone: a put of the same bytes may have come between."""

    @in_thread
    def delete(self: LocalStore, ref: str) -> None:
        with self._catalog.locked() as db, transaction(db):  # pyright: ignore[reportPrivateUsage]
            found = rows.find(db, ref, View.of("kept"))
            unshared = rows.forget(db, found.ref, expired=False)
        _disk.reached("unlocked")
        for kind, sha256 in unshared:
            self._blobs.remove(kind, sha256)  # pyright: ignore[reportPrivateUsage]

    LocalStore.delete = delete  # type: ignore[method-assign, assignment]


def content(chance: random.Random) -> tuple[bytes, bytes]:
    """Return one of a few documents, so that artifacts share files; half of the texts are new."""
    number = chance.randrange(6)
    text = b"document %d\n" % number * chance.choice([1, 100, 20_000])
    new = chance.randbytes(8).hex().encode() if chance.random() < 0.5 else b""
    return b"raw %d " % number * 10_000, text + new


async def writer(folder: Path, seed: int) -> None:
    """Put artifacts, and report each."""
    store = await open_store(StoreLimits(folder, run="kept"))
    chance = dice(seed)
    while True:
        raw, text = content(chance)
        say("kept", (await put(store, raw, text)).artifact_ref, *sums(raw, text))


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
            say("kept", facts.artifact_ref, *sums(raw, text))


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
        text = await read_text(store, facts.artifact_ref)
    except (UnknownRef, ExpiredRef):
        return False
    except StoreError:
        return True
    return hashlib.sha256(text).hexdigest() != Path(facts.path or "").name


async def deleter(folder: Path, ref: str) -> None:
    """Delete one artifact."""
    store = await open_store(StoreLimits(folder, run="kept"))
    say("deleting", ref)
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
    both = raw.encode(), text.encode()
    say("kept", (await put(store, *both)).artifact_ref, *sums(*both))


def play_role(args: Namespace) -> None:
    """Play one part, and stop for good at the step STEP:N of ``--hold``."""
    if args.hold:
        last, number = args.hold.split(":")
        hold_at(last, int(number))
    if args.announce:
        announce_steps()
    if args.plant:
        plant_a_bug()
    given = [int(text) if text.isdigit() else text for text in args.given]
    anyio.run(CHILDREN[args.role], args.folder, *given)
    sys.exit()


ROLES = (writer, patient_writer, early, churner, reader, deleter, collector, putter)
CHILDREN: dict[str, Any] = {role.__name__: role for role in ROLES}

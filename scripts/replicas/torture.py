"""Kill replicas and PostgreSQL under a team's store, freeze its bucket, and look what is left.

    python -P scripts/replicas/torture.py [--kills 500] [--seed 1] [--plant BUG]
        [--url URL --endpoint URL --pid PID]

Replicas put and delete the artifacts of two persons of each of two tenants, and report what was
acknowledged, and what of another they could see. Beside that each takes clean-up turns as a service
does, all the time, and every deletion and put under way seems an hour old to them. Each is killed
by SIGKILL after a moment and started again; the database is killed, too, and at other times frozen,
as is the bucket whose process --pid names. At the end every artifact that was acknowledged and not
deleted must be there whole, everything that is listed too, no tenant or person may have one of
another, and after one more turn no bytes may be left that no artifact names. --plant lets the
replicas have a bug, which must be found.
"""

import os
import random
import secrets
import signal
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio

from fetchstash.config import Settings, load
from fetchstash.errors import FetchstashError
from fetchstash.service import Upkeep
from fetchstash.store import (
    ALL_RUNS,
    ArtifactStore,
    Objects,
    StoreLimits,
    View,
    _team,
    open_existing,
    open_objects,
    open_store,
    person_run,
    store_of_tenant,
)
from fetchstash.store._catalog_store import CatalogStore
from fetchstash.store._postgres import Database
from scripts.drive.programs import options
from scripts.torture.kept import FAULTS_FOUND, Child, Ledger, dice, put, read_back, say, show, sums
from tests.store.postgres import Server, server

TURN_SECONDS = 3_600
MAX_FROZEN_SECONDS = 16
"""More than a request to the bucket may take: some are given up, and take effect after all."""
OWNERS = tuple((tenant, person) for tenant in ("acme", "globex") for person in ("ada", "bob"))
REPLICAS = 4
ROUND_KILLS = 25
"""After two fifths of so many kills the database is killed, after three it is frozen, after four
the bucket is."""
BUGS: dict[str, Callable[[], None]] = {}


def bug(work: Callable[[], None]) -> Callable[[], None]:
    """Name a bug after the function that plants it."""
    BUGS[work.__name__.replace("_", "-")] = work
    return work


@bug
def row_before_bytes() -> None:
    """Acknowledge an artifact though its bytes are not written."""
    claim = _team.TeamStore._claim  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    _team.TeamStore._claim = lambda self, blobs: claim(self, blobs)[1:]  # type: ignore[method-assign] # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


@bug
def all_runs() -> None:
    """Show a person what the others of the tenant keep."""
    seen_from = CatalogStore.seen_from
    CatalogStore.seen_from = lambda self, view: seen_from(self, View(view.puts, ALL_RUNS))  # type: ignore[method-assign]


def content(tenant: str, person: str, chance: random.Random) -> tuple[bytes, bytes]:
    """Return one of a few documents, so that artifacts share bytes, of persons of a tenant, too.

    One of five is everybody's.
    """
    number = chance.randrange(5)
    whose = f"{tenant} {person}" if number else f"{tenant} all"
    return f"{whose} raw {number} ".encode() * 900, f"{whose} text {number}\n".encode() * 300


def store_of(whole: ArtifactStore, person: str) -> ArtifactStore:
    """Return the store as a person sees it."""
    run = person_run(person)
    return whole.seen_from(View(run, run, run))


async def replica(limits: StoreLimits, seed: int) -> None:
    """Put and delete until killed, and report each step before and after."""
    chance = dice(seed)
    stores: dict[str, ArtifactStore] = {}
    own: dict[tuple[str, str], list[str]] = {owner: [] for owner in OWNERS}
    while True:
        tenant, person = owner = chance.choice(OWNERS)
        other = chance.choice(
            [ref for known in OWNERS if known != owner for ref in own[known]] or [""]
        )
        with suppress(FetchstashError):  # the database or the bucket is away
            if tenant not in stores:
                stores[tenant] = await open_store(store_of_tenant(limits, tenant))
            store = store_of(stores[tenant], person)
            if own[owner] and chance.random() < 0.4:
                ref = own[owner].pop(chance.randrange(len(own[owner])))
                say("deleting", *owner, ref)
                await store.delete(ref)
                await store.gc()
            elif other and chance.random() < 0.3:
                if other in {facts.artifact_ref for facts in (await store.list()).facts}:
                    say("seen", *owner, other)
                await store.get(other)
                say("seen", *owner, other)
            else:
                raw, text = content(tenant, person, chance)
                ref = (await put(store, raw, text)).artifact_ref
                own[owner].append(ref)
                say("kept", *owner, ref, *sums(raw, text))


async def clean(settings: Settings) -> None:
    """Take clean-up turns until killed, each as if an hour had passed."""
    objects: Objects | None = None
    while objects is None:
        with suppress(FetchstashError):  # the database is away
            objects = await open_objects(settings.store)
    upkeep = Upkeep(settings, objects)
    while True:
        with suppress(FetchstashError):  # the database or the bucket is away
            for tenant in {tenant for tenant, _ in OWNERS}:
                await objects.counts.note("clean-up", tenant, ago=TURN_SECONDS + 1)
                await anyio.to_thread.run_sync(let_an_hour_pass, settings.store.catalog, tenant)
            await upkeep.look()
        await anyio.sleep(0.05)


def let_an_hour_pass(catalog: str, tenant: str) -> None:
    """Let what was deleted, and every put that is under way, be an hour old."""
    database = Database(catalog, tenant)
    try:
        with database.connection() as db:
            db.execute("UPDATE unnamed SET since = since - ?", (TURN_SECONDS + 1,))
    finally:
        database.close()


async def verify(limits: StoreLimits, ledger: Ledger) -> None:
    """Note what is lost, half there or another's, and bytes that nothing names."""
    faults = ledger.faults
    for tenant in {tenant for tenant, _ in OWNERS}:
        let_an_hour_pass(limits.catalog, tenant)
        async with open_existing(store_of_tenant(limits, tenant)) as cleaned:
            await cleaned.clean_up()
            # A write to a frozen bucket that was given up may still have taken effect.
            if not limits.endpoint and (left := await cleaned.remove_orphans(0, dry_run=True)):
                faults.append(f"{len(left)} files of {tenant} are left")
    for tenant, person in OWNERS:
        whole = await open_store(store_of_tenant(limits, tenant))
        store = store_of(whole, person)
        listed = {facts.artifact_ref for facts in (await store.list(limit=10**6)).facts}
        own = {ref for *owner, ref in ledger.kept if owner == [tenant, person]}
        gone = {ref for *owner, ref in ledger.deleted if owner == [tenant, person]}
        faults += [f"{ref} of {tenant} is lost" for ref in own - gone - listed]
        others = {ref for *owner, ref in ledger.kept if owner != [tenant, person]}
        faults += [f"{ref} is listed for {person} of {tenant}" for ref in others & listed]
        for ref in listed:
            try:
                raw, text = await read_back(store, ref)
            except FetchstashError as error:
                faults.append(f"{ref} of {tenant} is not whole: {error.what}")
                continue
            whose = f"{tenant} {person} ".encode(), f"{tenant} all ".encode()
            if not (text.startswith(whose) and raw.startswith(whose)):
                faults.append(f"{ref} of {person} of {tenant} has the bytes of another")
            if ledger.kept.get((tenant, person, ref), found := sums(raw, text)) != found:
                faults.append(f"{ref} of {tenant} is wrong")
        await whole.aclose()


def play(args: Namespace, database: Server, folder: Path) -> Ledger:
    """Kill until enough were killed; return what came of it."""
    chance, ledger = dice(args.seed), Ledger()
    catalog = database.new_database()
    place = f"{args.url}/{secrets.token_hex(6)}" if args.url else f"file:{folder}/bytes"
    words = [__file__, "--replica", "--catalog", catalog, "--url", place]
    words += ["--endpoint", args.endpoint, "--plant", args.plant]

    def start(number: int) -> Child:
        own = ["--folder", str(folder / f"machine-{number}"), "--seed", str(chance.random())]
        return Child(ledger, f"replica {number}", *words, *own)

    running = [start(number) for number in range(REPLICAS)]
    round_kills, frozen = min(args.kills, ROUND_KILLS), 0
    fifths = {round_kills * fifth // 5: fifth for fifth in (2, 3, 4)}
    for kill in range(args.kills):
        number = chance.randrange(REPLICAS)
        running[number].wait_for()
        time.sleep(chance.uniform(0, 0.3))
        running[number].kill("random")
        fifth = fifths.get(kill % round_kills)
        if fifth == 2:
            database.stop()
            time.sleep(chance.uniform(0, 1))
            database.start()
        if fifth == 3:
            frozen += 1
            database.freeze()
            time.sleep(chance.uniform(1, 8))
            database.thaw()
        if fifth == 4 and args.pid:
            os.kill(args.pid, signal.SIGSTOP)
            time.sleep(chance.uniform(1, MAX_FROZEN_SECONDS))
            os.kill(args.pid, signal.SIGCONT)
        running[number] = start(number)
    for child in running:
        child.kill("at the end")
    limits = StoreLimits(
        folder / "judge", place, catalog=catalog, endpoint=args.endpoint, run="default"
    )
    anyio.run(verify, limits, ledger)
    print(f"{args.kills} kills, {frozen} freezes of the database, ", end="")
    print(f"{len(ledger.kept):,} artifacts acknowledged, {len(ledger.deleted):,} deleted")
    return ledger


def main() -> int:
    """Play it, or be one of its replicas."""
    args = options(
        __doc__,
        kills=500,
        seed=1.0,
        plant="",
        url="",
        endpoint="",
        catalog="",
        pid=0,
        folder=Path(),
        replica=False,
    )
    if args.replica:
        if args.plant:
            BUGS[args.plant]()
        place = {"url": args.url, "catalog": args.catalog, "endpoint": args.endpoint}
        own = {**place, **({"folder": str(args.folder)} if args.endpoint else {})}
        settings = load({f"store.{name}": value for name, value in own.items()})
        limits = StoreLimits(
            args.folder, args.url, catalog=args.catalog, endpoint=args.endpoint, run="default"
        )

        async def end_with_parent() -> None:
            await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
            os._exit(1)

        async def play_replica() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(end_with_parent)
                tasks.start_soon(clean, settings)
                tasks.start_soon(replica, limits, int(args.seed * 1e9))

        anyio.run(play_replica)
    with tempfile.TemporaryDirectory() as folder:
        ledger = play(args, server(), Path(folder).resolve())
    return FAULTS_FOUND if show(ledger.faults) else 0


if __name__ == "__main__":
    sys.exit(main())

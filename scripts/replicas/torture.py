"""Kill replicas and PostgreSQL under a team's store, freeze its bucket, and look what is left.

    python -P scripts/replicas/torture.py [--kills 500] [--seed 1] [--url URL --endpoint URL]
        [--plant BUG]

Replicas put and delete the artifacts of two persons of each of two tenants, and report what was
acknowledged, and what of another they could see. Each is killed by SIGKILL after a moment and
started again; the database is killed, too, and at other times frozen, and with --url the bucket is
frozen by a proxy before it. At the end every artifact that was acknowledged and not deleted must be
there whole, everything that is listed too, and no tenant or person may have one of another. --plant
lets the replicas have a bug, which must be found.
"""

import argparse
import hashlib
import json
import random
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Lock, Thread

import anyio

from fetchstash.errors import FetchstashError
from fetchstash.store import (
    ALL_RUNS,
    ArtifactStore,
    Facts,
    StoreLimits,
    View,
    _team,
    open_store,
    person_run,
    store_of_tenant,
)
from fetchstash.store._catalog_store import CatalogStore
from fetchstash.text.ranges import Ranges
from scripts.replicas.faults import Faults, fault_proxy
from tests.store.postgres import Server, server

FAULTS_FOUND = 3
OWNERS = tuple((tenant, person) for tenant in ("acme", "globex") for person in ("ada", "bob"))
REPLICAS = 4
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


async def put(store: ArtifactStore, raw: bytes, text: bytes) -> Facts:
    """Put bytes by way of the spool."""
    paths = [store.spool / secrets.token_hex(8) for _ in range(2)]
    for path, data in zip(paths, (raw, text), strict=True):
        path.write_bytes(data)
    return await store.put(paths[0], paths[1], Facts(), Ranges())


async def replica(limits: StoreLimits, seed: int) -> None:
    """Put and delete until killed, and report each step before and after."""
    chance = random.Random(seed)  # noqa: S311 - it guards nothing
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
                print(json.dumps(["deleting", *owner, ref]), flush=True)
                await store.delete(ref)
                await store.gc()
            elif other and chance.random() < 0.3:
                listed = {facts.artifact_ref for facts in (await store.list()).facts}
                if other in listed:
                    print(json.dumps(["seen", *owner, other]), flush=True)
                await store.get(other)
                print(json.dumps(["seen", *owner, other]), flush=True)
            else:
                raw, text = content(tenant, person, chance)
                ref = (await put(store, raw, text)).artifact_ref
                own[owner].append(ref)
                digests = [hashlib.sha256(data).hexdigest() for data in (raw, text)]
                print(json.dumps(["kept", *owner, ref, *digests]), flush=True)


class Ledger:
    """What was acknowledged, and what is deleted or about to be."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str, str], list[str]] = {}
        self.deleted: set[tuple[str, str, str]] = set()
        self.seen: set[tuple[str, str, str]] = set()
        self.heard: set[int] = set()
        self._lock = Lock()

    def read(self, process: "subprocess.Popen[str]") -> None:
        """Note what a replica reports, to its end."""
        assert process.stdout
        for line in process.stdout:
            self.heard.add(process.pid)
            with suppress(ValueError):  # cut by the kill
                what, tenant, person, ref, *digests = json.loads(line)
                with self._lock:
                    if what == "kept":
                        self.kept[tenant, person, ref] = digests
                    else:
                        (self.seen if what == "seen" else self.deleted).add((tenant, person, ref))


async def verify(limits: StoreLimits, ledger: Ledger) -> list[str]:
    """Return what is lost, half there or another's."""
    faults = [f"{ref} was seen by {' '.join(owner)}" for *owner, ref in ledger.seen]
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
                reader = await store.open_text(ref)
                text = (await reader.read_chars(0, reader.chars)).encode()
                await reader.aclose()
                async with store.open_raw(ref) as path:
                    raw = path.read_bytes()
            except FetchstashError as error:
                faults.append(f"{ref} of {tenant} is not whole: {error.what}")
                continue
            whose = f"{tenant} {person} ".encode(), f"{tenant} all ".encode()
            if not (text.startswith(whose) and raw.startswith(whose)):
                faults.append(f"{ref} of {person} of {tenant} has the bytes of another")
            digests = ledger.kept.get((tenant, person, ref))
            if digests and digests != [hashlib.sha256(data).hexdigest() for data in (raw, text)]:
                faults.append(f"{ref} of {tenant} is wrong")
        await whole.aclose()
    return faults


def play(args: argparse.Namespace, database: Server, folder: Path) -> list[str]:
    """Kill until enough were killed; return the faults."""
    chance, ledger = random.Random(args.seed), Ledger()  # noqa: S311 - as above
    catalog = database.new_database()
    words = [sys.executable, "-P", __file__, "--replica", "--catalog", catalog]
    place = f"{args.url}/{secrets.token_hex(6)}" if args.url else f"file:{folder}/bytes"
    running: list[subprocess.Popen[str]] = []
    readers: list[Thread] = []
    with ExitStack() as stack:
        proxy = stack.enter_context(fault_proxy(args.endpoint)) if args.url else None
        endpoint = proxy.before(args.endpoint) if proxy else ""
        words += ["--url", place, "--endpoint", endpoint, "--plant", args.plant]

        def start(number: int) -> "subprocess.Popen[str]":
            own = ["--folder", str(folder / f"machine-{number}"), "--seed", str(chance.random())]
            process = subprocess.Popen([*words, *own], stdout=subprocess.PIPE, text=True)
            readers.append(Thread(target=ledger.read, args=(process,)))
            readers[-1].start()
            return process

        running = [start(number) for number in range(REPLICAS)]
        for kill in range(args.kills):
            number = chance.randrange(REPLICAS)
            began = time.monotonic()
            while running[number].pid not in ledger.heard and time.monotonic() < began + 30:
                time.sleep(0.02)
            time.sleep(chance.uniform(0, 0.3))
            running[number].kill()
            running[number].wait()
            if kill % 25 == 10:
                database.stop()
                time.sleep(chance.uniform(0, 1))
                database.start()
            if kill % 50 == 35:
                database.freeze()
                time.sleep(chance.uniform(1, 8))
                database.thaw()
            if proxy and kill % 25 == 20:
                proxy.set(Faults(unheard=1))
                time.sleep(chance.uniform(1, 4))
                proxy.set(Faults())
            running[number] = start(number)
        for process in running:
            process.kill()
            process.wait()
        for reader in readers:
            reader.join()
        limits = StoreLimits(
            folder / "judge", place, catalog=catalog, endpoint=endpoint, run="default"
        )
        faults = anyio.run(verify, limits, ledger)
    kept, deleted = len(ledger.kept), len(ledger.deleted)
    frozen = len(range(35, args.kills, 50))
    print(f"{args.kills} kills, {frozen} freezes of the database, ", end="")
    print(f"{kept:,} artifacts acknowledged, {deleted:,} deleted")
    return faults


def main() -> int:
    """Play it, or be one of its replicas."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=float, default=1)
    parser.add_argument("--plant", default="", choices=["", *BUGS])
    for name in ("url", "endpoint", "catalog"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--replica", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.replica:
        if args.plant:
            BUGS[args.plant]()
        limits = StoreLimits(
            args.folder, args.url, catalog=args.catalog, endpoint=args.endpoint, run="default"
        )
        anyio.run(replica, limits, int(args.seed * 1e9))
    with tempfile.TemporaryDirectory() as folder:
        faults = play(args, server(), Path(folder).resolve())
    for fault in faults[:20]:
        print(f"FAULT {fault}")
    print(f"{len(faults)} faults")
    return FAULTS_FOUND if faults else 0


if __name__ == "__main__":
    sys.exit(main())

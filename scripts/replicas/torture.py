"""Kill replicas and PostgreSQL under a team's store, freeze its bucket, and look what is left.

    python -P scripts/replicas/torture.py [--kills 500] [--seed 1] [--url URL --endpoint URL]
        [--plant BUG]

Replicas put, replace, touch and delete the artifacts of two tenants, and report what was
acknowledged. Each is killed by SIGKILL after a moment and started again; so is the database, and
with --url the bucket is frozen by a proxy before it. At the end every artifact that was
acknowledged and not deleted must be there whole, everything that is listed too, and no tenant may
have one of another. --plant lets the replicas have a bug, which must be found.
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
    ArtifactStore,
    Facts,
    StoreLimits,
    _team,
    open_store,
    store_of_tenant,
)
from fetchstash.text.ranges import Ranges
from scripts.replicas.faults import Faults, fault_proxy
from tests.store.postgres import Server, server

FAULTS_FOUND = 3
TENANTS = ("acme", "globex")
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


def content(tenant: str, chance: random.Random) -> tuple[bytes, bytes]:
    """Return one of a few documents of a tenant, so that artifacts share bytes."""
    number = chance.randrange(5)
    return f"{tenant} raw {number} ".encode() * 900, f"{tenant} text {number}\n".encode() * 300


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
    own: dict[str, list[str]] = {tenant: [] for tenant in TENANTS}
    while True:
        tenant = chance.choice(TENANTS)
        with suppress(FetchstashError):  # the database or the bucket is away
            if tenant not in stores:
                stores[tenant] = await open_store(store_of_tenant(limits, tenant))
            store = stores[tenant]
            if own[tenant] and chance.random() < 0.4:
                ref = own[tenant].pop(chance.randrange(len(own[tenant])))
                print(json.dumps(["deleting", tenant, ref]), flush=True)
                await store.delete(ref)
                await store.gc()
            else:
                raw, text = content(tenant, chance)
                ref = (await put(store, raw, text)).artifact_ref
                own[tenant].append(ref)
                digests = [hashlib.sha256(data).hexdigest() for data in (raw, text)]
                print(json.dumps(["kept", tenant, ref, *digests]), flush=True)


class Ledger:
    """What was acknowledged, and what is deleted or about to be."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], list[str]] = {}
        self.deleted: set[tuple[str, str]] = set()
        self.heard: set[int] = set()
        self._lock = Lock()

    def read(self, process: "subprocess.Popen[str]") -> None:
        """Note what a replica reports, to its end."""
        assert process.stdout
        for line in process.stdout:
            self.heard.add(process.pid)
            with suppress(ValueError):  # cut by the kill
                what, tenant, ref, *digests = json.loads(line)
                with self._lock:
                    if what == "kept":
                        self.kept[tenant, ref] = digests
                    else:
                        self.deleted.add((tenant, ref))


async def verify(limits: StoreLimits, ledger: Ledger) -> list[str]:
    """Return what is lost, half there or another's."""
    faults: list[str] = []
    for tenant in TENANTS:
        store = await open_store(store_of_tenant(limits, tenant))
        listed = {facts.artifact_ref for facts in (await store.list(limit=10**6)).facts}
        own = {ref for name, ref in ledger.kept if name == tenant}
        gone = {ref for name, ref in ledger.deleted if name == tenant}
        faults += [f"{ref} of {tenant} is lost" for ref in own - gone - listed]
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
            if not (text.startswith(tenant.encode()) and raw.startswith(tenant.encode())):
                faults.append(f"{ref} of {tenant} has the bytes of another")
            digests = ledger.kept.get((tenant, ref))
            if digests and digests != [hashlib.sha256(data).hexdigest() for data in (raw, text)]:
                faults.append(f"{ref} of {tenant} is wrong")
        await store.aclose()
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
    print(f"{args.kills} kills, {kept:,} artifacts acknowledged, {deleted:,} deleted")
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

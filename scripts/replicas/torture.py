"""Put, read and delete through a faulty network while processes are killed; then look at all of it.

    python scripts/replicas/torture.py NAME URL ENDPOINT [--seconds 8] [--outage 8] [--plant BUG]

scripts/ci replicas runs it for each bucket that it starts. The keys of the bucket stand in the
environment; ENDPOINT is where it listens. Two writers put artifacts, some of the same bytes, and
report each that was acknowledged; one process puts, replaces, deletes and collects; one reads
whatever is there. Under each fault some are killed -9, the others go on. When the fault ends, those
that lived through it must work again. Then every acknowledged artifact must be there whole, and
nothing may be half there. --plant puts in a bug that must be found. Exit code: 0 if all is well.
"""

import argparse
import hashlib
import json
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from fetchstash.errors import Busy, ExpiredRef, FetchstashError, StoreError, UnknownRef
from fetchstash.store import ArtifactStore, Facts, StoreLimits, open_store
from fetchstash.text.ranges import Ranges
from scripts.replicas.faults import FaultProxy, Faults, fault_proxy
from scripts.replicas.planted import BUGS, plant

KEPT, CHURNED = "kept", "churned"
SHARED_SECONDS = 20
FAULTS_FOUND = 3
"""The exit code: an exception ends with 1."""

RECOVERY_SECONDS = 240
"""After a fault: within this time each process must work again, without a restart."""

OUTAGE_PAUSES = (2.0, 6.0)
"""Seconds between two kills in an outage."""

FAULTS: dict[str, Faults] = {
    "none": Faults(),
    "10 ms a request": Faults(latency=0.01),
    "100 ms a request": Faults(latency=0.1),
    "503 SlowDown for 40 %": Faults(throttled=0.4),
    "503 SlowDown for all": Faults(throttled=1),
    "3 % never answered": Faults(unheard=0.015, unanswered=0.015),
    "10 % cut in the answer": Faults(cut=0.1),
    "outage": Faults(outage=True),
}


def say(*words: str) -> None:
    """Report to the parent, one JSON value a line."""
    print(json.dumps(words), flush=True)


def sha256(data: bytes) -> str:
    """Return the hash of bytes in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def content(chance: random.Random) -> tuple[bytes, bytes]:
    """Return a document, of which all processes put the same few within some seconds.

    So artifacts share bytes that are old, new or just being written. Half of the texts are new.
    """
    number = chance.randrange(4) + 1_000_000 + 10 * int(time.time() // SHARED_SECONDS)
    text = b"document %d\n" % number * chance.choice([1, 100, 20_000])
    fresh = chance.randbytes(8).hex().encode() if chance.random() < 0.5 else b""
    return b"raw %d " % number * 10_000, text + fresh


async def put(store: ArtifactStore, raw: bytes, text: bytes) -> Facts:
    """Put bytes by way of the spool."""
    name = secrets.token_hex(8)
    raw_path, text_path = store.spool / f"{name}.raw", store.spool / f"{name}.text"
    raw_path.write_bytes(raw)
    text_path.write_bytes(text)
    facts = await store.put(raw_path, text_path, Facts(), Ranges())
    say("ack", facts.artifact_ref, sha256(raw), sha256(text))
    return facts


async def read(store: ArtifactStore, ref: str) -> tuple[str, str] | None:
    """Return the hashes of an artifact's raw bytes and text, None for one that is not there."""
    try:
        facts = await store.get(ref)
        async with store.open_raw(ref) as path:
            raw = sha256(path.read_bytes())
        if raw != facts.sha256:
            say("fault", f"{ref}: the raw bytes are not those of its record")
        opened = await store.open_text(ref)
        try:
            return raw, sha256((await opened.read_chars(0, opened.chars)).encode())
        finally:
            await opened.aclose()
    except (UnknownRef, ExpiredRef):
        return None


async def write(store: ArtifactStore, chance: random.Random) -> None:
    """Put one artifact, the same again until it is acknowledged, as whoever wants it does."""
    raw, text = content(chance)
    while True:
        start = time.monotonic()
        try:
            await put(store, raw, text)
        except StoreError as error:
            refused(error, start)
        else:
            return


def refused(error: FetchstashError, start: float) -> None:
    """Report an error that the torture expects, and after how many seconds it came."""
    say("refused", type(error).__name__, f"{time.monotonic() - start:.1f}", str(error))


async def churn(store: ArtifactStore, chance: random.Random) -> None:
    """Put, replace the text, delete and collect, so that blobs come and go."""
    refs = [(await put(store, *content(chance))).artifact_ref for _ in range(2)]
    known = await store.get(refs[0])
    text = content(chance)[1] + b"replaced"
    path = store.spool / secrets.token_hex(8)
    path.write_bytes(text)
    say("uncertain", refs[0], known.sha256 or "", sha256(text))
    await store.replace_text(refs[0], path, known, Ranges(), known=known)
    say("ack", refs[0], known.sha256 or "", sha256(text))
    for ref in refs[1:]:
        say("deleting", ref)
        await store.delete(ref)
        say("deleted", ref)
    if chance.random() < 0.2:
        await store.gc()


async def look(store: ArtifactStore, chance: random.Random) -> None:
    """Read some of what is there."""
    for facts in (await store.list(limit=4, offset=chance.randrange(3))).facts:
        await read(store, facts.artifact_ref)


Step = Callable[[ArtifactStore, random.Random], Awaitable[None]]
ROLES: dict[str, tuple[Step, str]] = {
    "writer": (write, KEPT),
    "churner": (churn, CHURNED),
    "reader": (look, KEPT),
    "witness": (look, CHURNED),
}


async def child(role: str, limits: StoreLimits, seed: int) -> None:
    """Play a role for good; go on after each error, and report it with the seconds it took."""
    chance = random.Random(seed)  # noqa: S311 - it guards nothing
    step, run = ROLES[role]
    store: ArtifactStore | None = None
    while True:
        start = time.monotonic()
        try:
            if store is None:
                store = await open_store(replace(limits, run=run))
                say("opened", role)
            await step(store, chance)
        except (StoreError, Busy) as error:
            refused(error, start)
            await anyio.sleep(0.2)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault to report
            say("fault", f"{role}: {type(error).__name__}: {error}")
            await anyio.sleep(0.2)
        else:
            say("worked", role)


@dataclass
class Tally:
    """What happened so far. ``expected`` has for each artifact the contents it may have."""

    expected: dict[str, set[tuple[str, str]]] = field(
        default_factory=dict[str, set[tuple[str, str]]]
    )
    deleted: set[str] = field(default_factory=set[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    slowest: float = 0
    faults: list[str] = field(default_factory=list[str])
    kills: int = 0

    def take(self, report: list[str]) -> None:
        """Record a report."""
        match report:
            case ["ack", ref, raw, text]:
                self.expected[ref] = {(raw, text)}
            case ["uncertain", ref, raw, text]:
                self.expected[ref].add((raw, text))
            case ["deleting", ref]:  # from here on it may be there or not, but never half
                self.expected.pop(ref, None)
            case ["deleted", ref]:
                self.deleted.add(ref)
            case ["refused", name, seconds, _]:
                self.refused[name] += 1
                self.slowest = max(self.slowest, float(seconds))
            case ["fault", text]:
                self.faults.append(text)
            case _:
                pass


class Child:
    """A process of ours, and a thread that takes its reports."""

    def __init__(self, role: str, tally: Tally, arguments: Sequence[str]) -> None:
        command = [sys.executable, "-P", __file__, "--role", role, *arguments]
        self.role = role
        self.works = 0
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self._tally = tally
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            if line.endswith(b"\n"):
                report = json.loads(line)
                self._tally.take(report)
                self.works += report[0] == "worked"

    def kill(self) -> None:
        """Kill it, and take what it reported before."""
        if self.process.poll() is not None:
            self._tally.faults.append(f"{self.role} ended by itself")
        self.process.kill()
        self.process.wait()
        self._thread.join()
        self._tally.kills += 1


@dataclass
class Party:
    """Everybody who uses the bucket."""

    tally: Tally
    arguments: Sequence[str]
    chance: random.Random
    children: list[Child] = field(default_factory=list[Child])

    def start(self, role: str) -> None:
        """Let one more process play a role."""
        seed = str(self.chance.randrange(2**32))
        arguments = [*self.arguments, "--seed", seed]
        self.children.append(Child(role, self.tally, arguments))

    def kill_some(self, seconds: float, pauses: tuple[float, float]) -> None:
        """Kill one after the other, at moments that are drawn, and start another in its place."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self.chance.uniform(*pauses))
            victim = self.chance.choice(self.children)
            victim.kill()
            self.children.remove(victim)
            self.start(victim.role)

    def recover(self, fault: str) -> None:
        """Wait until each process works again. Whoever does not is a fault."""
        before = [(child, child.works) for child in self.children]
        end = time.monotonic() + RECOVERY_SECONDS
        while stuck := [child for child, works in before if child.works == works]:
            ended = any(child.process.poll() is not None for child in stuck)
            if ended or time.monotonic() > end:
                self.tally.faults.extend(f"after {fault!r}: {c.role} hangs" for c in stuck)
                break
            time.sleep(0.1)


def play(
    party: Party, proxy: FaultProxy, names: Sequence[str], seconds: float, outage: float
) -> Iterator[str]:
    """Go through the faults; yield a line about each."""
    for name in names:
        faults = FAULTS[name]
        start, acknowledged = time.monotonic(), len(party.tally.expected)
        kills, refused = party.tally.kills, party.tally.refused.total()
        proxy.set(faults)
        if faults.outage:  # long enough that a put fails, and its process lives to try again
            party.kill_some(outage, OUTAGE_PAUSES)
        else:
            party.kill_some(seconds, (0.2, seconds / 3))
        proxy.set(Faults())
        ended = time.monotonic()
        party.recover(name)
        yield (
            f"  {name:24}{len(party.tally.expected) - acknowledged:6} acknowledged,"
            f"{party.tally.kills - kills:4} killed,"
            f"{party.tally.refused.total() - refused:5} refused, "
            f"{ended - start:4.0f} s, well again after {time.monotonic() - ended:.1f} s"
        )


async def verify(limits: StoreLimits, tally: Tally) -> int:
    """Check that all acknowledged and all listed artifacts are whole; return how many are there."""
    listed: set[str] = set()
    for run in (KEPT, CHURNED):
        store = await open_store(replace(limits, run=run))
        offset = 0
        while facts := (await store.list(limit=500, offset=offset)).facts:
            offset += len(facts)
            listed.update(fact.artifact_ref for fact in facts)
        for ref in sorted(listed | tally.expected.keys()):
            try:
                hashes = await read(store, ref)
            except FetchstashError as error:
                tally.faults.append(f"half: {ref}: {error}")
                continue
            wanted = tally.expected.get(ref)
            if hashes is None and wanted is not None:
                tally.faults.append(f"lost: {ref}")
            elif hashes is not None and wanted is not None and hashes not in wanted:
                tally.faults.append(f"wrong bytes: {ref}")
            elif hashes is not None and ref in tally.deleted:
                tally.faults.append(f"there again after its deletion: {ref}")
        await store.aclose()
    unlisted = tally.expected.keys() - listed
    tally.faults.extend(f"acknowledged and in no list: {ref}" for ref in unlisted)
    return len(listed)


def main() -> int:
    """Play a child's part, or all of it; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("url", nargs="?", default="")
    parser.add_argument("endpoint", nargs="?", default="")
    parser.add_argument("--seconds", type=float, default=8, help="of each fault")
    parser.add_argument("--outage", type=float, default=8, help="seconds of it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="this alone")
    parser.add_argument("--plant", choices=sorted(BUGS), default="")
    parser.add_argument("--role", default="", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, default=Path(), help=argparse.SUPPRESS)
    args = parser.parse_args()
    url = f"{args.url}/torture-{secrets.token_hex(4)}"
    if args.role:
        if args.plant:
            plant(args.plant)
        limits = StoreLimits(args.folder, url=args.url, endpoint=args.endpoint)
        anyio.run(child, args.role, limits, args.seed)
        return 0
    tally = Tally()
    chance = random.Random(args.seed)  # noqa: S311 - it guards nothing
    start = time.monotonic()
    print(f"torture of {args.name}{f' with {args.plant!r}' if args.plant else ''}", flush=True)
    with tempfile.TemporaryDirectory() as temporary, fault_proxy(args.endpoint) as proxy:
        arguments = [url, proxy.before(args.endpoint), "--folder", str(Path(temporary, "local"))]
        arguments += ["--plant", args.plant] if args.plant else []
        party = Party(tally, ["of", *arguments], chance)
        for role in ("writer", "writer", "churner", "reader", "witness"):
            party.start(role)
        try:
            for line in play(party, proxy, args.fault or list(FAULTS), args.seconds, args.outage):
                print(line, flush=True)
        finally:
            for member in party.children:
                member.kill()
        limits = StoreLimits(Path(temporary, "other"), url=url, endpoint=args.endpoint)
        there = anyio.run(verify, limits, tally)
    refusals = ", ".join(f"{count} {name}" for name, count in tally.refused.items()) or "none"
    print(
        f"{len(tally.expected)} acknowledged, {there} there, {tally.kills} killed, refused: "
        f"{refusals} (the slowest after {tally.slowest:.0f} s), {time.monotonic() - start:.0f} s"
    )
    for fault in tally.faults[: 3 if args.plant else 20]:
        print(f"FAULT {fault}")
    print(f"{len(tally.faults)} faults")
    return FAULTS_FOUND if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())

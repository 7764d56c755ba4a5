"""Indexes of a bucket: by record, and by URL.

Two replicas may make a key at the same moment, and there is no compare-and-swap to stop them. So
every key counts: an artifact is put under the smallest key and looked up under all. A process that
does not know of a smaller key yet finds less, for KNOWN_SECONDS at most: it fetches a document once
more than it must, and nothing is lost.

A list of the bucket says which records there are and which were written since; those alone are
read. A replica that starts reads all of them once.
"""

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from threading import Lock

from fetchstash.errors import StoreError
from fetchstash.store._bucket import RECORDS, URLS, Bucket
from fetchstash.store._bucket_record import KEYS, PINNED, Record, StoredBlob, filled_in, ref_of_key
from fetchstash.store._contract import Facts
from fetchstash.store._limits import ALL_RUNS, Total
from fetchstash.store._search import RunTexts

KNOWN_SECONDS = 60
_LATEST = 10**16
"""Microseconds since 1970 of the year 2286. What is left until then puts the newest key first."""


class UrlEntries:
    """The entries under ``urls``."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._keys: list[bytes] = []
        self._known_until = 0.0

    def add(self, url: str, run: str, ref: str, created_at: float) -> str:
        """Write that a URL was put as an artifact of a run, and return the key of the entry."""
        left = _LATEST - int(created_at * 1e6)
        key = f"{self._folders(url)[0]}/{left:016}-{_run_hash(run)}-{ref}"
        self._bucket.write(key, b"")
        return key

    def refs(self, url: str, run: str) -> Iterator[str]:
        """Go through a run's artifacts of a URL, newest first. Some may be gone."""
        keys = [item.key for folder in self._folders(url) for item in self._bucket.list(folder)]
        for name in sorted(key.rpartition("/")[2] for key in keys):
            _, run_hash, ref = name.split("-", 2)
            if run == ALL_RUNS or run_hash == _run_hash(run):
                yield ref

    def _folders(self, url: str) -> list[str]:
        data = url.encode("utf-8", "surrogatepass")
        hashes = [hmac.new(key, data, hashlib.sha256).hexdigest() for key in self._all_keys()]
        return [f"{URLS}/{digest}" for digest in hashes]

    def _all_keys(self) -> list[bytes]:
        """Return the keys, the smallest first; the first one is made."""
        if time.monotonic() >= self._known_until:
            keys = self._listed()
            if not keys:
                self._bucket.write(f"{KEYS}/{secrets.token_hex(16)}", secrets.token_bytes(32))
                keys = self._listed()
            self._keys, self._known_until = keys, time.monotonic() + KNOWN_SECONDS
        return self._keys

    def _listed(self) -> list[bytes]:
        keys = [self._bucket.read(item.key) for item in self._bucket.list(KEYS)]
        return [key for key in keys if key]


def _run_hash(run: str) -> str:
    return hashlib.sha256(run.encode("utf-8", "surrogatepass")).hexdigest()[:12]


RECENT_SECONDS = 1.0
_MOST_RECENT = 256


@dataclass(frozen=True, slots=True)
class Entry:
    """An artifact in the index: its facts as JSON, its text without the stride index."""

    ref: str
    run: str
    created_at: float
    expires_at: float
    pinned: bool
    size: int
    text: StoredBlob | None
    document: bytes

    @classmethod
    def of(cls, record: Record) -> "Entry":
        """Return the entry of a record."""
        return cls(
            ref=record.ref,
            run=record.run,
            created_at=record.created_at,
            expires_at=record.expires_at,
            pinned=record.pinned,
            size=record.size,
            text=replace(record.text, index=None) if record.text else None,
            document=json.dumps(record.document.to_json(), ensure_ascii=False).encode(),
        )

    def is_live(self, now: float) -> bool:
        """Return whether it is kept at ``now``."""
        return self.pinned or self.expires_at > now

    def facts(self) -> Facts:
        """Return the facts."""
        document = Facts.from_json(json.loads(self.document))
        return filled_in(document, self.ref, self.created_at, self.expires_at, self.pinned)


class RecordIndex:
    """The entries of all runs. ``used`` orders them by their last use in this process."""

    def __init__(self, bucket: Bucket, executor: Executor) -> None:
        self._bucket = bucket
        self._executor = executor
        self._entries: dict[str, Entry] = {}
        self._tags: dict[str, str] = {}
        self._used: dict[str, int] = {}
        self._uses = 0
        self._artifacts = self._bytes = 0
        self._refreshing = Lock()
        self._changing = Lock()
        self._began = -1.0
        self._changed_here: set[str] = set()

    @property
    def age(self) -> float:
        """Seconds since the last list of the bucket began."""
        return time.monotonic() - self._began if self._began >= 0 else float("inf")

    def refresh(self, *, most: int | None = None) -> None:
        """Return when the index holds what the bucket held at the call, or later.

        With ``most`` no more records are read: the rest waits for another call.
        """
        called = time.monotonic()
        with self._refreshing:
            if self._began >= called:  # somebody else's list began since, and is done
                return
            began = time.monotonic()
            with self._changing:
                self._changed_here.clear()
            tags = {
                ref: (item.key, item.tag)
                for folder in (PINNED, RECORDS)  # a pinned artifact may be under both
                for item in self._bucket.list(folder)
                if (ref := ref_of_key(item.key))
            }
            unknown = {ref: at for ref, at in tags.items() if self._tags.get(ref) != "|".join(at)}
            wanted = list(islice(unknown, most))
            read = self._executor.map(self._entry, wanted, [unknown[ref][0] for ref in wanted])
            fresh = {entry.ref: entry for entry in read if entry}
            with self._changing:
                for ref in [ref for ref in self._entries if ref not in tags]:
                    if ref not in self._changed_here:
                        self._remove(ref)
                for ref, entry in fresh.items():
                    if ref not in self._changed_here:
                        self._set(ref, entry)
                        self._tags[ref] = "|".join(tags[ref])
            if most is None or len(unknown) <= most:
                self._began = began

    def add(self, record: Record) -> None:
        """Take in a record that this process wrote."""
        with self._changing:
            self._changed_here.add(record.ref)
            self._set(record.ref, Entry.of(record))
            self._tags.pop(record.ref, None)
        self.use(record.ref)

    def remove(self, ref: str) -> None:
        """Forget a record that this process deleted."""
        with self._changing:
            self._changed_here.add(ref)
            self._remove(ref)

    def use(self, ref: str) -> None:
        """Make an artifact the one that was used last in this process."""
        if ref in self._entries:
            self._uses += 1
            self._used[ref] = self._uses

    def live(self, run: str) -> list[Entry]:
        """Return the artifacts of a run that are kept now, newest first."""
        now = time.time()
        with self._changing:
            entries = list(self._entries.values())
        kept = [e for e in entries if run in (e.run, ALL_RUNS) and e.is_live(now)]
        return sorted(kept, key=lambda entry: (-entry.created_at, entry.ref))

    def texts(self, run: str) -> tuple[RunTexts, list[Entry]]:
        """Return the texts of a run, and of each the newest artifact that has it."""
        newest: dict[str, Entry] = {}
        size = 0
        for entry in self.live(run):
            if entry.text and entry.text.sha256 not in newest:
                newest[entry.text.sha256] = entry
                size += entry.text.size
        refs = {sha256: entry.ref for sha256, entry in newest.items()}
        return RunTexts(refs=refs, bytes=size), list(newest.values())

    def unpinned(self) -> Iterator[Entry]:
        """Go through the artifacts of all runs that may be evicted, least recently used first."""
        entries = [entry for entry in self.live(ALL_RUNS) if not entry.pinned]
        yield from sorted(entries, key=lambda e: (self._used.get(e.ref, 0), e.expires_at))

    def total(self) -> Total:
        """Return how much is known of, pinned artifacts left out."""
        return Total(self._artifacts, self._bytes)

    def _set(self, ref: str, entry: Entry | None) -> None:
        earlier = self._entries.pop(ref, None)
        for change, changed in ((-1, earlier), (1, entry)):
            if changed and not changed.pinned:
                self._artifacts += change
                self._bytes += change * changed.size
        if entry:
            self._entries[ref] = entry

    def _remove(self, ref: str) -> None:
        self._set(ref, None)
        self._tags.pop(ref, None)
        self._used.pop(ref, None)

    def _entry(self, ref: str, key: str) -> Entry | None:
        """Read one record; None for one that is gone meanwhile or damaged: doctor says so."""
        packed = self._bucket.read(key)
        with suppress(StoreError):
            return Entry.of(Record.unpack(packed, ref)) if packed else None
        return None


class RecentRecords:
    """Records that were just looked up, each for one more use: a slice looks at facts, then text.

    So it takes one request, and its text is that of its facts.
    """

    def __init__(self) -> None:
        self._records: dict[str, tuple[float, Record]] = {}
        self._lock = Lock()

    def keep(self, record: Record) -> None:
        """Keep a record for RECENT_SECONDS."""
        with self._lock:
            self._records[record.ref] = (time.monotonic(), record)
            if len(self._records) > _MOST_RECENT:
                del self._records[next(iter(self._records))]

    def take(self, ref: str) -> Record | None:
        """Return a record that was kept a moment ago, and forget it."""
        with self._lock:
            since, record = self._records.pop(ref, (0.0, None))
        return record if time.monotonic() - since < RECENT_SECONDS else None

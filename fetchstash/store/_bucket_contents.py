"""The artifacts of a bucket, which any number of replicas may share. All of it blocks.

put   The bytes are written under this week and confirmed, and so is the entry of the URL. Then the
      record is written, whole, and only then is the put acknowledged.
read  One request has the record, and one a part of the text, if this machine has no copy.
touch The bytes are copied to this week, then the record is written anew: to the lifecycle rules all
      of it is then as young as a new artifact.
gone  A record past its date is taken for missing, whether or not the rules have removed it. Only
      records are ever deleted here, and bytes never: somebody may just have put them again.

No write asks for the state that it replaces. Where two replicas change one record at the same
moment, the later change stays; an artifact that was pinned stays pinned, and one that was deleted
stays deleted: whoever deletes says so first, and whoever changes looks for that last.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Self

from fetchstash.errors import Call, StoreError, TooLarge, UnknownRef
from fetchstash.store._bucket import CALLS_AT_ONCE, Bucket, open_bucket
from fetchstash.store._bucket_blobs import BucketBlobs
from fetchstash.store._bucket_cache import BlobCache
from fetchstash.store._bucket_health import check_bucket, repair_bucket
from fetchstash.store._bucket_index import RecentRecords, RecordIndex, UrlEntries
from fetchstash.store._bucket_record import (
    PINNED,
    Record,
    UnreadableRecord,
    deleted_key,
    pinned_record_key,
    record_key,
    week_of,
)
from fetchstash.store._contract import (
    REF_PREFIX,
    Facts,
    Finding,
    Listing,
    Removed,
    Run,
    SearchResult,
    is_ref,
    keep_store_facts,
    refuse_changed,
    restamp,
    stamp,
)
from fetchstash.store._disk import larger_than_the_store, no_text, not_stored
from fetchstash.store._limits import (
    ALL_RUNS,
    Candidate,
    StoreLimits,
    Total,
    own_run,
    plan,
    run_of_put,
)
from fetchstash.store._place import EVICTIONS_PER_PUT
from fetchstash.store._protocol import Text, ThreadedStore, in_thread
from fetchstash.store._rank import rank_texts
from fetchstash.store._search import SearchIndex, search_run
from fetchstash.store._text import StoredText
from fetchstash.store._threads import Threads, Turn
from fetchstash.text import clip
from fetchstash.text.hygiene import clean_line
from fetchstash.text.ranges import Ranges

REQUESTS_AT_ONCE = 16
"""Requests that one call may have under way, such as those for the records of a list."""

KNOWN_SECONDS = 60
"""So old may be what a put knows of other replicas' artifacts when it holds the limits."""

READ_BY_A_PUT = 256
"""Records that a put reads for that. A list or gc reads all."""

MOST_OF_A_URL = 16
"""Artifacts of one URL that are looked at: where all of these are gone, it is fetched again."""

_LOCKS = 64
_DAY = 86_400


class BucketStore(ThreadedStore):
    """An ArtifactStore in a bucket. Making one blocks."""

    def __init__(self, bucket: Bucket, limits: StoreLimits, threads: Threads) -> None:
        super().__init__(threads)
        self._bucket = bucket
        self._limits = limits
        self._run = own_run(limits)
        self._is_left = False
        self._executor = ThreadPoolExecutor(REQUESTS_AT_ONCE)
        self._cache = BlobCache(limits.folder, limits.cache_bytes)
        self._blobs = BucketBlobs(bucket, self._cache, self._executor)
        self._records = RecordIndex(bucket, self._executor)
        self._recent = RecentRecords()
        self._urls = UrlEntries(bucket)
        self._index = SearchIndex(limits.folder)
        self._changing = [Lock() for _ in range(_LOCKS)]
        self._last_time = 0.0

    @classmethod
    async def open(
        cls, limits: StoreLimits, bucket: Bucket | None = None, turn: Turn = nullcontext
    ) -> Self:
        """Open the store in the bucket that ``limits.url`` names. Raises StoreError.

        The cache and the spool are in a folder below ``limits.folder``, one for each URL.
        """
        threads = Threads(CALLS_AT_ONCE, turn)
        name = hashlib.sha256(f"{limits.endpoint} {limits.url}".encode()).hexdigest()[:16]
        limits = replace(limits, folder=limits.folder / "buckets" / name)
        return await threads.run(lambda: cls(bucket or open_bucket(limits), limits, threads))

    @property
    def spool(self) -> Path:
        """A private folder for files on their way in."""
        self._check_usable()
        return self._cache.spool

    def _follow(self) -> None:
        """Do nothing: a bucket cannot be moved, and the cache makes its folders itself."""

    @in_thread
    def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        """Keep both files. They are gone from the spool afterwards."""
        files = self._cache.named(raw, text)
        try:
            measured = self._cache.measure(files)
            size = sum(blob.size for blob in measured)
            if size > self._limits.max_total_bytes:
                raise TooLarge(*larger_than_the_store(size))
            now, days, first = self._time_of_put(), self._limits.max_age_days, measured[0]
            index = measured[1].index if text else None
            facts = stamp(facts, first.sha256, first.size, index, now=now, max_age_days=days)
            assert facts.expires_at is not None
            run = run_of_put(self._run)
            uploads = self._blobs.start_uploads(files, measured, week_of(now))
            try:
                entry = self._urls.add(url, run, facts.artifact_ref, now) if url else ""
            finally:
                wait(uploads)
            blobs = [upload.result() for upload in uploads]
            record = Record(
                ref=facts.artifact_ref,
                run=run,
                raw=blobs[0],
                text=blobs[1] if text else None,
                created_at=now,
                expires_at=facts.expires_at.timestamp(),
                pinned=False,
                url_entry=entry,
                document=facts,
                ranges=ranges,
            )
            self._bucket.write(record_key(record.ref), record.pack())
            # The artifact is safe: a failure of what follows is no failure of the put.
            with suppress(OSError, StoreError):
                self._records.add(record)
                for path, blob in zip(files.values(), measured, strict=True):
                    self._cache.keep(path, blob)
                self._retain()
        finally:
            self._cache.discard(*files.values())
        return record.facts()

    def _get(self, ref_or_url: str) -> Facts:
        record = self._find(ref_or_url, used=True)
        self._recent.keep(record)
        return record.facts()

    @in_thread
    def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        """Return a page of the run's artifacts, newest first."""
        self._records.refresh()
        entries = self._records.live(self._run)
        page = entries[offset : offset + limit]
        return Listing(tuple(entry.facts() for entry in page), len(entries))

    @in_thread
    def runs(self) -> tuple[Run, ...]:
        """Return the runs that have artifacts, that of the newest artifact first."""
        self._records.refresh()
        counts: dict[str, int] = {}
        newest: dict[str, float] = {}
        for entry in self._records.live(ALL_RUNS):
            counts[entry.run] = counts.get(entry.run, 0) + 1
            newest.setdefault(entry.run, entry.created_at)
        return tuple(
            Run(name, count, datetime.fromtimestamp(newest[name], UTC))
            for name, count in counts.items()
        )

    def _open_artifact(self, ref_or_url: str) -> tuple[Facts, Text | None]:
        record = self._find_again(ref_or_url)
        return record.facts(), self._text(record)

    def _text(self, record: Record) -> Text | None:
        if record.text is None or record.text.index is None:
            return None
        source = self._blobs.open("text", record.text, record.ref, pinned=record.pinned)
        return source, record.text.index, record.ranges

    def _lend_raw(self, ref_or_url: str) -> Path:
        record = self._find_again(ref_or_url)
        return self._blobs.file("raw", record.raw, record.ref, pinned=record.pinned)

    def _take_back(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def _search(
        self, query: str, refs: Sequence[str], max_results: int, cancelled: Callable[[], bool]
    ) -> SearchResult:
        """Rank passages over these artifacts, or over the run, newest first."""
        if refs:
            return rank_texts(query, refs, self._stored_text, max_results, cancelled)
        self._records.refresh()
        texts, entries = self._records.texts(self._run)
        # An index reads what it lacks by itself; else all of them are read, many at a time.
        reading = {} if texts.are_many else self._blobs.start_reading(entries)

        def opened(ref: str) -> StoredText:
            return reading[ref].result() if ref in reading else self._stored_text(ref)

        return search_run(self._index, query, texts, opened, max_results, cancelled)

    def _stored_text(self, ref: str) -> StoredText:
        """Open a text for a search, which is no use of its artifact."""
        text = self._text(self._find(ref))
        if text is None:
            raise no_text(ref)
        source, index, _ = text
        return StoredText(source, index)

    @in_thread
    def replace_text(
        self, ref: str, text: Path, facts: Facts, ranges: Ranges, *, known: Facts
    ) -> Facts:
        """Give an artifact a new text. The bytes of the earlier one go by the lifecycle rule."""
        files = self._cache.named(None, text)
        try:
            measured = self._cache.measure(files)
            with self._lock_of(ref):
                record = self._find(ref)
                refuse_changed(record.facts(), known)
                assert measured[0].index is not None  # a text has one
                week = week_of(time.time())
                (upload,) = self._blobs.start_uploads(files, measured, week)
                changed = replace(
                    record,
                    text=upload.result(),
                    document=restamp(facts, record.document, measured[0].index),
                    ranges=ranges,
                )
                changed = self._write(changed)
                with suppress(OSError):
                    self._cache.keep(text, measured[0])
        finally:
            self._cache.discard(text)
        return changed.facts()

    @in_thread
    def touch(self, ref: str, facts: Facts | None = None) -> Facts:
        """Keep an artifact for a whole term from now; ``facts`` replaces the caller's own."""
        with self._lock_of(ref):
            record = self._find(ref, used=True)
            now = time.time()
            record = self._renewed(record, now)
            document = keep_store_facts(facts or record.document, record.document)
            expires = now + self._limits.max_age_days * _DAY
            record = replace(record, document=document, expires_at=expires)
            if record.url_entry:
                self._bucket.write(record.url_entry, b"")
            return self._write(record).facts()

    @in_thread
    def pin(self, ref: str, *, pinned: bool = True) -> Facts:
        """Keep a copy of an artifact that no lifecycle rule removes, or give it up."""
        with self._lock_of(ref):
            record = self._find(ref)
            if not pinned:
                record = self._renewed(record, time.time())
            record = self._write(replace(record, pinned=pinned), unpin=not pinned)
            if not pinned:
                self._remove_pinned(ref)
        return record.facts()

    @in_thread
    def delete(self, ref: str) -> None:
        """Forget an artifact. Its bytes go by the lifecycle rule: others may share them."""
        with self._lock_of(ref):
            record = self._find(ref)
            self._bucket.write(deleted_key(ref), b"")
            self._forget(self._read(ref) or record)  # who changed it before did not see that

    @in_thread
    def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:
        """Hold the limits of count and bytes. Age is the lifecycle rules' to hold."""
        self._records.refresh()
        removed = self._evicted(None, dry_run=dry_run)
        if not dry_run:
            self._cache.sweep((self._limits.max_age_days + 14) * _DAY)
            live = self._records.live(ALL_RUNS)
            self._index.forget([entry.text.sha256 for entry in live if entry.text])
        return removed

    @in_thread
    def check(self) -> tuple[Finding, ...]:
        """Examine the bucket and change nothing."""
        return check_bucket(self._bucket, self._limits)

    @in_thread
    def repair(self) -> tuple[Finding, ...]:
        """Examine the bucket and mend what can be mended."""
        return repair_bucket(self._bucket, self._limits)

    def _close(self) -> None:
        if self._is_left:
            return
        self._is_left = True
        try:
            if self._limits.ephemeral:
                self._records.refresh()
                for entry in self._records.live(self._run):
                    self._bucket.delete(pinned_record_key(entry.ref))
                    self._bucket.delete(record_key(entry.ref))
        finally:
            self._index.close()
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _find(self, ref_or_url: str, *, used: bool = False) -> Record:
        """Return the record of a reference, or of the run's newest artifact under a URL.

        Raises UnknownRef, for one that is past its date too.
        """
        by_ref = ref_or_url.startswith(REF_PREFIX)
        record = self._read(ref_or_url) if by_ref else self._newest(ref_or_url)
        if record is None:
            raise _unknown(ref_or_url)
        if used:
            self._records.use(record.ref)
        return record

    def _find_again(self, ref_or_url: str) -> Record:
        """Return the record that ``get`` returned a moment ago, or find it."""
        return self._recent.take(ref_or_url) or self._find(ref_or_url, used=True)

    def _newest(self, url: str) -> Record:
        for ref in islice(self._urls.refs(url, self._run), MOST_OF_A_URL):
            try:
                record = self._read(ref)
            except UnreadableRecord:  # fetching the URL again helps, so this must not prevent it
                continue
            if record and self._run in (record.run, ALL_RUNS) and self._blobs.are_there(record):
                return record
        raise not_stored(url)

    def _read(self, ref: str) -> Record | None:
        """Return the record of an artifact that is kept now."""
        for key in (record_key(ref), pinned_record_key(ref)) if is_ref(ref) else ():
            packed = self._bucket.read(key)
            record = Record.unpack(packed, ref) if packed else None
            if record and record.is_live(time.time()):
                return record
        return None

    def _write(self, record: Record, *, unpin: bool = False) -> Record:
        """Write a record anew and return it, pinned if somebody pinned it since it was read here.

        The copy of a pinned artifact is whole before that says so.
        """
        ref = record.ref
        if record.pinned:
            for blob in record.blobs:
                self._blobs.copy_to_pinned(blob, ref)
            self._bucket.write(pinned_record_key(ref), record.pack())
        self._bucket.write(record_key(ref), record.pack())
        if self._bucket.look_up(deleted_key(ref)):  # since it was read here
            self._forget(record)
            raise _unknown(ref)
        if not (record.pinned or unpin) and self._bucket.look_up(pinned_record_key(ref)):
            return self._write(replace(record, pinned=True))
        self._records.add(record)
        self._recent.take(ref)
        return record

    def _forget(self, record: Record) -> None:
        """Delete the records of an artifact, and the bytes that are its own."""
        self._remove_pinned(record.ref)
        self._bucket.delete(record_key(record.ref))
        self._records.remove(record.ref)
        self._recent.take(record.ref)
        self._cache.remove("raw", record.raw.sha256)
        if record.text:
            self._cache.remove("text", record.text.sha256)

    def _renewed(self, record: Record, now: float) -> Record:
        """Return the record of an artifact with its bytes copied to this week."""
        week, ref, pinned = week_of(now), record.ref, record.pinned
        raw = self._blobs.renew(record.raw, week, ref, pinned=pinned)
        text = record.text and self._blobs.renew(record.text, week, ref, pinned=pinned)
        return replace(record, raw=raw, text=text)

    def _remove_pinned(self, ref: str) -> None:
        """Remove the copy that a pinned artifact has, the record first, and its earlier texts."""
        self._bucket.delete(pinned_record_key(ref))
        for item in self._bucket.list(f"{PINNED}/{ref}"):
            self._bucket.delete(item.key)

    def _retain(self) -> None:
        """Hold the limits after a put, by what is known of other replicas."""
        if self._records.age > KNOWN_SECONDS:
            self._records.refresh(most=READ_BY_A_PUT)
        if not self._records.total().is_within(self._limits):
            self._evicted(EVICTIONS_PER_PUT, dry_run=False)

    def _evicted(self, most: int | None, *, dry_run: bool) -> tuple[Removed, ...]:
        """Remove the records of the least recently used artifacts until the limits hold."""
        entries = enumerate(self._records.unpinned())
        candidates = [Candidate(n, e.ref, e.size, e.expires_at) for n, e in entries]
        total = Total(len(candidates), sum(candidate.bytes for candidate in candidates))
        planned = islice(plan((), candidates, total, self._limits), most)
        removed = tuple(Removed(c.ref, c.bytes, reason) for c, reason in planned)
        for item in removed if not dry_run else ():
            self._bucket.delete(record_key(item.artifact_ref))
            self._records.remove(item.artifact_ref)
        return removed

    def _lock_of(self, ref: str) -> Lock:
        """Return the lock under which this process changes an artifact."""
        return self._changing[hash(ref) % _LOCKS]

    def _time_of_put(self) -> float:
        """Return the time, later than that of the last put, so that lists are in order."""
        now = time.time()
        if self._last_time - 1 < now <= self._last_time:
            now = self._last_time + 1e-6
        self._last_time = now
        return now


def _unknown(ref_or_url: str) -> UnknownRef:
    shown = clip(clean_line(ref_or_url), 40)
    what = f"There is no artifact {shown}, or it is no longer kept."
    step = "Fetch its document again, or list what there is with {}."
    return UnknownRef(what, step, Call("list"))

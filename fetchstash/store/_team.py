"""The store of a team: rows in PostgreSQL, bytes in a bucket or in a folder that all see.

put      The names of the bytes are claimed, with the time. Then the bytes are written. Then one
         transaction counts, limits and inserts the artifact, and takes the claim back.
delete   One transaction deletes the row and claims the names of what no other artifact shares.
sweep    Bytes go when their claim is older than GRACE_SECONDS and no artifact names them. The row
         of the claim is locked meanwhile: a put of the same bytes waits, and writes them anew.

So a process that is killed leaves a claim, never an artifact without bytes, and bytes without an
artifact for GRACE_SECONDS. A put that takes longer than that begins once more.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from fetchstash.errors import Busy, FetchstashError, StoreError
from fetchstash.store import _disk as disk, _rows as rows
from fetchstash.store._blobs import Blob, Kind
from fetchstash.store._bucket import open_bucket
from fetchstash.store._bytes import BucketBytes, Bytes, BytesSearch, open_bytes
from fetchstash.store._catalog_reads import Search
from fetchstash.store._catalog_store import NO_FILES, CatalogStore, Change
from fetchstash.store._clock import read_now
from fetchstash.store._contract import Finding, Removed
from fetchstash.store._limits import StoreLimits, bucket_url
from fetchstash.store._postgres import Database
from fetchstash.store._rank import Query, words
from fetchstash.store._schema import BLOCK_ARTIFACTS, POSTGRES_NOW as _NOW, WHERE_TERMS, Db
from fetchstash.store._threads import CALLS_AT_ONCE, Threads, Turns, in_thread
from fetchstash.text import counted

T = TypeVar("T")

GRACE_SECONDS = 3600
"""Bytes that no artifact names stay so long, as a put of the same may be under way."""

CANDIDATES, PARTIAL = 180, 20
"""Texts that a search over the run ranks: the newest with all words of the query, then with any,
and of those whose words are not all indexed. Each may cost a request to the bucket: 200 in all."""

_INDEXED_BYTES = 4 * 2**20
_MOST_TERMS, _LONGEST_TERM = 20_000, 100
"""So much of a text is indexed: a tsvector takes a megabyte. A longer text is always ranked."""

_SWEPT_AT_ONCE = 8
_TRIES = 2


class TeamStore(CatalogStore):
    """An ArtifactStore that any number of replicas share. Making one blocks."""

    def __init__(
        self, limits: StoreLimits, database: Database, data: Bytes, threads: Threads
    ) -> None:
        super().__init__(limits, database, data, threads)
        self._database = database

    @classmethod
    async def open(
        cls, limits: StoreLimits, turns: Turns | None = None, *, make: bool = True
    ) -> Self:
        """Open the store that ``limits.catalog`` and ``limits.url`` name.

        Raises StoreError, also where there is none and none is to be made.
        """
        threads = Threads(CALLS_AT_ONCE, turns)
        database, data = await threads.run(lambda: open_team(limits, make=make))
        return cls(limits, database, data, threads)

    def _change(
        self,
        work: Callable[[Change], T],
        files: Mapping[Path, Blob] = NO_FILES,
        *,
        frees: bool = False,
    ) -> T:
        """Write the bytes, then make the change that names them."""
        del frees
        blobs = list(files.values())
        texts = [(blob.sha256, _terms_of(path)) for path, blob in files.items() if blob.index]
        for _ in range(_TRIES):
            if files:
                missing = self._claim(blobs)
                disk.reached("claimed")
                self._bytes.write({path: blob for path, blob in files.items() if blob in missing})
                disk.reached("written")
            with self._database.changing() as db:
                if not all(_take_claim(db, blob) for blob in blobs):
                    continue
                change = Change(db, blobs)
                made = work(change)
                for sha256, terms in texts:
                    self._index(db, change.written[-1], sha256, terms)
                for kind, sha256 in change.unnamed:
                    _claim(db, kind, sha256)
            if files:
                with suppress(FetchstashError):  # the artifact is safe
                    self._sweep_once()
            return made
        raise Busy("Writing the bytes took too long.", "Try again.")

    def _claim(self, blobs: Sequence[Blob]) -> list[Blob]:
        """Claim the names of blobs, and return those that are to be written."""
        missing: list[Blob] = []
        with self._database.connection() as db:
            for blob in sorted(blobs, key=lambda blob: blob.kind):  # two puts in the same order
                _claim(db, blob.kind, blob.sha256)
                if not _has_row(db, blob):
                    missing.append(blob)
        return [b for b in blobs if b in missing or not self._bytes.are_there([b])]

    def _index(self, db: Db, ref: str, sha256: str, terms: tuple[list[str], bool]) -> None:
        """Add the words of an artifact's new text to those of its run."""
        db.execute(
            "INSERT INTO words (id, run, sha256, is_whole, terms)"  # noqa: S608 - ours
            f" SELECT id, run, ?, ?, array_to_tsvector(? || {WHERE_TERMS}) FROM artifact"
            " WHERE ref = ? ON CONFLICT DO NOTHING",
            (sha256, terms[1], terms[0], ref),
        )

    def _search_job(self, query: str, refs: Sequence[str], max_results: int) -> Search:
        texts, asked = {ref: self._text_blob(ref) for ref in refs}, Query(query)
        if not refs and asked.words:
            with self._database.reading() as db:
                texts = _candidates(db, self._view.lists, asked)
        job = BytesSearch(self._limits, texts, query, max_results, bool(refs))
        missing = set(self._bytes.index.missing({blob.sha256: "" for blob in texts.values()}))
        size = sum(blob.size for blob in texts.values() if blob.sha256 in missing)
        return job, size, self._bytes

    @in_thread
    def _sweep(self, *, dry_run: bool) -> tuple[int, Sequence[Removed]]:
        return 0 if dry_run else self._sweep_once(), ()

    def _sweep_once(self) -> int:
        """Remove bytes that no artifact names; return how many claims ended."""
        ended = 0
        due = f"SELECT kind, sha256 FROM unnamed WHERE since < {_NOW} - ?"  # noqa: S608 - ours
        with self._database.connection() as db:
            claims = db.execute(f"{due} LIMIT {_SWEPT_AT_ONCE}", (GRACE_SECONDS,)).fetchall()
        for kind, sha256 in claims:
            with self._database.connection() as db:
                one = f"{due} AND kind = ? AND sha256 = ? FOR UPDATE SKIP LOCKED"
                # Claimed anew or taken back since? A statement of its own sees who names it now.
                if not db.execute(one, (GRACE_SECONDS, kind, sha256)).fetchone():
                    continue
                if not rows.naming(db, kind, sha256):
                    disk.reached("sweeping")
                    self._bytes.remove(kind, sha256)
                    db.execute("DELETE FROM blob WHERE kind = ? AND sha256 = ?", (kind, sha256))
                db.execute("DELETE FROM unnamed WHERE kind = ? AND sha256 = ?", (kind, sha256))
                ended += 1
        return ended

    @in_thread
    def check(self) -> tuple[Finding, ...]:
        """Look whether all bytes are there, by their sizes; write and remove a few."""
        return tuple(finding for finding, _ in self._examined())

    @in_thread
    def repair(self) -> tuple[Finding, ...]:
        """Look whether all bytes are there, and remove the artifacts whose bytes are lost."""
        findings: list[Finding] = []
        for finding, refs in self._examined():
            self._change(partial(Change.forget, refs=refs, expired=True))
            findings.append(replace(finding, mended=finding.mendable))
        return tuple(findings)

    def _examined(self) -> Iterator[tuple[Finding, list[str]]]:
        """Return findings, each with the artifacts that are lost."""
        try:
            self._bytes.probe()
            stored = self._bytes.stored()
        except StoreError as error:
            yield Finding("fault", error.what, error.next_step, calls=error.calls), []
            return
        sizes = {key: size for key, (size, _) in stored.items()}
        with self._database.reading() as db:
            blobs = db.execute("SELECT kind, sha256, size FROM blob").fetchall()
            lost = [(k, sha256) for k, sha256, size in blobs if sizes.get((k, sha256)) != size]
            named = {(kind, sha256): rows.naming(db, kind, sha256) for kind, sha256 in lost}
            orphans = _orphans(db, stored)
            waiting, overdue = db.execute(
                "SELECT count(*), count(*) FILTER (WHERE since < ? - ?) FROM unnamed",
                (time.time(), 2 * GRACE_SECONDS),
            ).fetchone()
        for (kind, sha256), refs in named.items():
            for ref in refs[:1]:
                what = f"The bytes {kind}/{sha256} of the artifact {ref} are lost."
                step = "Fetch its document again; repair removes the artifact."
                yield Finding("fault", what, step, ref, mendable=True), refs
        if orphans:
            size = sum(sizes[key] for key in orphans)
            what = f"{counted(len(orphans), 'object')} ({counted(size, 'byte')}) have no row: newer"
            what += " than the backup that was restored, or written after their put was given up."
            step = "`fetchstash gc --orphans` removes those that are a day old."
            yield Finding("warning", what, step), []
        if waiting:
            what = f"{counted(waiting, 'object')} of what was deleted or is being put wait."
            step = "The first clean-up after their hour removes them."
            if overdue:
                what = f"{counted(overdue, 'object')} of what was deleted should be gone by now."
                step = "A service removes them every hour, `fetchstash gc` now."
            yield Finding("warning" if overdue else "note", what, step), []

    @in_thread
    def remove_orphans(self, older_than: float, *, dry_run: bool = False) -> Sequence[Removed]:
        """Remove objects without a row that were written ``older_than`` seconds ago.

        They are claimed as if their hour had passed, and swept: a put of the same bytes waits.
        """
        stored, before = self._bytes.stored(), time.time() - older_than
        with self._database.reading() as db:
            orphans = [key for key in _orphans(db, stored) if stored[key][1] <= before]
        for kind, sha256 in () if dry_run else orphans:
            with self._database.changing() as db:
                # A put since then has a row, or a claim that is newer.
                db.execute(
                    f"INSERT INTO unnamed SELECT ?, ?, {_NOW} - ?"  # noqa: S608 - ours
                    " WHERE NOT EXISTS (SELECT 1 FROM blob WHERE kind = ? AND sha256 = ?)"
                    " ON CONFLICT DO NOTHING",
                    (kind, sha256, GRACE_SECONDS + 1, kind, sha256),
                )
        while not dry_run and self._sweep_once():
            pass
        return [Removed(f"{k}/{sha256}", stored[k, sha256][0], "orphan") for k, sha256 in orphans]

    @in_thread
    def prune_cache(self) -> int:
        """Remove from the cache of this machine what no row names; return how many files."""
        if not isinstance(self._bytes, BucketBytes):
            return 0
        with self._database.reading() as db:
            named = {(kind, sha256) for kind, sha256 in db.execute("SELECT kind, sha256 FROM blob")}
        return self._bytes.cache.keep_only(named)

    @in_thread
    def remove(self) -> None:
        """Remove the tables, so that nothing can be found, then the bytes and what is cached."""
        self._database.drop()
        for kind, sha256 in self._bytes.stored():
            self._bytes.remove(kind, sha256)
        shutil.rmtree(self._limits.folder, ignore_errors=True)
        self._read.clear()

    def _close(self) -> None:
        try:
            self._end_run()
        finally:
            self._bytes.close()
            self._database.close()


def remove_bytes(limits: StoreLimits, older_than: float) -> int:
    """Remove bytes that are so many seconds old, of a store without a catalogue."""
    data = open_bytes(limits, open_bucket(limits) if bucket_url(limits.url) else None)
    before = time.time() - older_than
    old = [key for key, (_, written) in data.stored().items() if written <= before]
    for kind, sha256 in old:
        data.remove(kind, sha256)
    data.close()
    return len(old)


def open_team(limits: StoreLimits, *, make: bool = True) -> tuple[Database, Bytes]:
    """Make or migrate the catalogue of a team's store, and open the bytes beside it.

    Raises StoreError, also where there is no catalogue and none is to be made.
    """
    database = Database(limits.catalog, limits.tenant)
    try:
        bucket = open_bucket(limits) if bucket_url(limits.url) else None
        if bucket and database.is_new() and any(map(bucket.has, ("records", "keys"))):
            what = f"{limits.url} holds a store of an earlier version, which had no database."
            step = "Set store.url to an empty prefix: its documents are fetched anew."
            raise StoreError(what, step)  # noqa: TRY301 - as any other failure
        database.prepare(make=make)
        return database, open_bytes(limits, bucket)
    except BaseException:
        database.close()
        raise


def _claim(db: Db, kind: Kind, sha256: str) -> None:
    """Keep bytes that no artifact may name for GRACE_SECONDS from now."""
    db.execute(
        f"INSERT INTO unnamed VALUES (?, ?, {_NOW})"  # noqa: S608 - ours
        " ON CONFLICT (kind, sha256) DO UPDATE SET since = excluded.since",
        (kind, sha256),
    )


def _take_claim(db: Db, blob: Blob) -> bool:
    """Take a claim back and record the blob; return False if the bytes may be gone by now."""
    key = (blob.kind, blob.sha256)
    fresh = f"DELETE FROM unnamed WHERE kind = ? AND sha256 = ? AND since > {_NOW} - ?"  # noqa: S608 - ours
    is_fresh = db.execute(fresh, (*key, GRACE_SECONDS)).rowcount > 0
    if _has_row(db, blob):
        return True
    if is_fresh:
        rows.insert_blob(db, blob)
    return is_fresh


def _orphans(db: Db, stored: Iterable[tuple[Kind, str]]) -> list[tuple[Kind, str]]:
    """Return stored objects that have no row and wait for no sweep."""
    known = db.execute("SELECT kind, sha256 FROM blob UNION SELECT kind, sha256 FROM unnamed")
    return sorted(set(stored).difference((kind, sha256) for kind, sha256 in known))


def _has_row(db: Db, blob: Blob) -> bool:
    known = "SELECT 1 FROM blob WHERE kind = ? AND sha256 = ?"
    return db.execute(known, (blob.kind, blob.sha256)).fetchone() is not None


def _terms_of(text: Path) -> tuple[list[str], bool]:
    """Return the search terms of a text, and whether they are complete."""
    with text.open("rb") as file:
        data = file.read(_INDEXED_BYTES)
        is_whole = not file.read(1)
    terms = dict.fromkeys(word[:_LONGEST_TERM] for word in words(data.decode("utf-8", "ignore")))
    is_whole = is_whole and len(terms) <= _MOST_TERMS
    return [term.replace("\0", "") for term in terms if term.strip("\0")][:_MOST_TERMS], is_whole


def _candidates(db: Db, run: str, query: Query) -> dict[str, Blob]:
    """Return the texts of a run that a search ranks: artifact and blob, the newest first.

    They are looked for among the newest artifacts, whatever their run, and then among all: every
    match is fetched to find the newest, and a word may stand in all texts.
    """
    texts: dict[str, tuple[str, Blob]] = {}
    condition, values = rows.in_run(run)
    # The words of a text are kept as they are: a stem is what many forms of a word begin with.
    asked = [_alternatives(word[:_LONGEST_TERM], stem) for word, stem in query.prefixes()]
    now = read_now(db)
    # The planner takes a walk through all words for cheap: it does not count what unpacking costs.
    db.execute("SET LOCAL enable_seqscan = off")

    (newest,) = db.execute("SELECT coalesce(max(id), 0) FROM artifact").fetchone()
    block = newest // BLOCK_ARTIFACTS
    among = [f"('block/{block}' | 'block/{block - 1}')"] if block > 1 else []
    of_run = [_quoted(f"run/{name[:_LONGEST_TERM]}") for name in values]

    def add(which: str, most: int, in_all: int, *more: str) -> int:
        found = db.execute(
            "SELECT ref, blob.sha256, size, modified_ns FROM ("  # noqa: S608 - ours
            f" SELECT id, sha256 FROM words WHERE {condition} AND {which}"
            f" ORDER BY id DESC LIMIT {most}) AS best CROSS JOIN LATERAL"
            f" (SELECT ref FROM artifact WHERE text = best.sha256 AND {condition}"
            f" AND {rows.CURRENT}"
            " ORDER BY artifact.id DESC LIMIT 1) AS newest"
            " JOIN blob ON kind = 'text' AND blob.sha256 = best.sha256 ORDER BY best.id DESC",
            (*values, *more, *values, now),
        ).fetchall()
        for ref, sha256, size, modified_ns in found:
            if len(texts) < in_all:
                texts.setdefault(sha256, (ref, Blob("text", sha256, size, modified_ns)))
        return len(found)

    def add_matches(wanted: str) -> None:
        for where in (*among, ""):
            parts = (f"({wanted})", *of_run, where)
            asked_for = " & ".join(filter(None, parts))
            if add("terms @@ ?::tsquery", CANDIDATES, CANDIDATES, asked_for) >= CANDIDATES:
                return

    add_matches(" & ".join(asked))
    if len(texts) < CANDIDATES and len(asked) > 1:
        add_matches(" | ".join(asked))
    add("NOT is_whole", PARTIAL, CANDIDATES + PARTIAL)
    return dict(texts.values())


def _alternatives(word: str, stem: str) -> str:
    """Return the tsquery part for a word and all words that begin with its stem."""
    begins = f"{_quoted(stem[:_LONGEST_TERM])}:*"
    return begins if word.startswith(stem) else f"({_quoted(word)} | {begins})"


def _quoted(term: str) -> str:
    """Return a term for a tsquery."""
    return "'" + term.replace("\0", "").replace("\\", "\\\\").replace("'", "''") + "'"

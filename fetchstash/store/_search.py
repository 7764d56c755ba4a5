"""Ranked search over many texts: the index, disposable, in search.db.

It is disposable. It is built in short steps, each under the index's lock: by searches, which answer
within a bounded time from what is indexed, and by a thread that goes on until everything is. It
holds no text (a contentless FTS5 table, https://sqlite.org/fts5.html), and gc drops it when it is
about texts that are gone. Passages and words are those of `_rank`; FTS5's own BM25 has the same
constants.
"""

import contextlib
import math
import secrets
import sqlite3
import time
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Event, Lock, Thread

from fetchstash.errors import ExpiredRef, FetchstashError, StoreError, UnknownRef
from fetchstash.store._contract import Passage, SearchResult
from fetchstash.store._disk import locked, locked_now, private_file
from fetchstash.store._rank import MAX_TERMS, Deadline, hit_offset, passages, rank_texts, words
from fetchstash.store._text import StoredText

BUILD_SECONDS = 1.0
"""CPU time that a search spends on indexing at most; see Deadline."""

STEP_SECONDS = 0.05
"""So long the index is locked at a time, and so long the thread rests between two steps."""

STEP_PASSAGES = 100
"""A step indexes so many, or a text to its end, whatever the clock says: each call makes one at
least, so that an index is complete after as many calls as its passages make hundreds and texts."""

WAIT_SECONDS = 5
"""So long a search waits at most for others of this process that build the index."""

OPEN_SECONDS = 5
"""So long a text stays open between steps: opening one in a bucket takes longer than a step."""

MAX_RANKED = 200_000
"""Passages that one search ranks; an index of 100 MB has about half as many."""

_SCHEMA = """
    CREATE TABLE text (
        id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, size INTEGER NOT NULL,
        indexed INTEGER NOT NULL, next_line INTEGER NOT NULL);
    CREATE TABLE passage (
        id INTEGER PRIMARY KEY, text INTEGER NOT NULL, first_line INTEGER, last_line INTEGER,
        start INTEGER, size INTEGER);
    CREATE VIRTUAL TABLE words_of USING fts5 (words, content = '', tokenize = 'ascii');
"""
"""``indexed`` bytes of a text are done. The tokenizer splits at the spaces between our words."""

Texts = Mapping[str, str]
"""SHA-256 of a text to the reference of an artifact that has it, the most wanted first."""

OpenText = Callable[[str], StoredText]


class SearchIndex:
    """The file search.db of a store."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "search.db"
        self._lock = folder / "search-lock"
        self._stopped = Event()
        self._builder: Thread | None = None
        self._turn = Lock()
        # The number of an index, and texts that are all in it: no need to look again.
        self._complete: tuple[int, Texts] | None = None
        # The text that the last step did not end, and when it was opened. It is the lock's.
        self._begun: tuple[str, StoredText, float] | None = None

    def search(
        self,
        query: str,
        texts: Texts,
        open_text: OpenText,
        limit: int,
        cancelled: Callable[[], bool],
    ) -> SearchResult:
        """Rank the indexed passages of ``texts``. Raises sqlite3.Error for a damaged index.

        The result says how many texts are not. They are indexed after the search, by a thread.
        """
        terms = list(dict.fromkeys(words(query)))[:MAX_TERMS]
        if not terms:
            return SearchResult(())
        work = _Work(self._missing(texts), texts, open_text)
        self._build(work, Deadline(cancelled, BUILD_SECONDS))
        pending = len(work.missing)
        hits = self._best(terms, texts, limit, cancelled)
        if pending and not (self._builder and self._builder.is_alive()):
            self._builder = Thread(target=self._build_all, args=(work,), daemon=True)
            self._builder.start()
        ranked: list[Passage] = []
        for sha256, first_line, last_line, start, size, score in hits:
            with contextlib.closing(open_text(texts[sha256])) as text:
                shown = text.span(start, start + size).rstrip("\n")
            hit = hit_offset(query, shown)
            ranked.append(Passage(texts[sha256], first_line, last_line, shown, score, hit))
        return SearchResult(tuple(ranked), pending)

    def forget(self, live: Collection[str]) -> None:
        """Drop the index if it is about a text that is not ``live``: it knows its words."""
        if not self._path.exists():
            return
        with locked(self._lock):
            self._end_begun()
            try:
                with contextlib.closing(self._open()) as db:
                    known = {sha256 for (sha256,) in db.execute("SELECT sha256 FROM text")}
                    stale = not known.issubset(live)
            except sqlite3.Error:
                stale = True
            if stale:
                self._unlink()

    def drop(self) -> None:
        """Remove the index. The next search begins a new one."""
        with locked(self._lock):
            self._unlink()

    def _unlink(self) -> None:
        """Remove the index, after its journal, which another index must not get."""
        self._path.with_name("search.db-journal").unlink(missing_ok=True)
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Stop building."""
        self._stopped.set()
        if self._builder:
            self._builder.join()
        self._end_begun()

    def _missing(self, texts: Texts) -> list[str]:
        """Return the texts that are not indexed to their end, the most wanted last."""
        missing = list(reversed(list(texts)))
        if not self._path.exists():
            return missing
        with contextlib.closing(self._open()) as db:
            (number,) = db.execute("PRAGMA user_version").fetchone()
            if self._complete == (number, texts):
                return []
            done = db.execute("SELECT sha256 FROM text WHERE indexed = size")
            whole = {sha256 for (sha256,) in done}
        missing = [sha256 for sha256 in missing if sha256 not in whole]
        self._complete = None if missing else (number, texts)
        return missing

    def _build(self, work: "_Work", expired: Callable[[], bool]) -> None:
        """Index texts in one step at least, unless another process is doing it."""
        if not self._turn.acquire(timeout=WAIT_SECONDS):
            return  # many searches of this process are doing it
        try:
            while work.missing:
                with locked_now(self._lock) as is_ours:
                    if not is_ours:
                        return
                    self._step(work, Deadline(expired, STEP_SECONDS))
                if expired():
                    return
        finally:
            self._turn.release()

    def _build_all(self, work: "_Work") -> None:
        """Index all texts, with rests, until ``close``."""
        with contextlib.suppress(sqlite3.Error, OSError, FetchstashError):
            while work.missing and not self._stopped.wait(STEP_SECONDS):
                self._build(work, Deadline(self._stopped.is_set, STEP_SECONDS))

    def _step(self, work: "_Work", expired: Callable[[], bool]) -> None:
        with contextlib.closing(self._open()) as db, _commit(db):
            while work.missing:
                sha256 = work.missing.pop()
                try:
                    text, opened = self._text(work, sha256)
                except FetchstashError:  # gc took it meanwhile, or it was altered
                    continue
                self._begun = sha256, text, opened
                if _add(db, sha256, text, expired):
                    self._end_begun()
                else:
                    work.missing.append(sha256)
                if expired():
                    return

    def _text(self, work: "_Work", sha256: str) -> tuple[StoredText, float]:
        """Return a text, and when it was opened: in the last step, if that is not long ago."""
        now = time.monotonic()
        if self._begun:
            begun, text, opened = self._begun
            if begun == sha256 and now - opened < OPEN_SECONDS:
                return text, opened
            self._end_begun()
        return work.open_text(work.texts[sha256]), now

    def _end_begun(self) -> None:
        if self._begun:
            self._begun[1].close()
            self._begun = None

    def _best(
        self, terms: list[str], texts: Texts, limit: int, cancelled: Callable[[], bool]
    ) -> list[tuple[str, int, int, int, int, float]]:
        """Return the best passages: SHA-256, first and last line, first byte, size and score."""
        if not self._path.exists():
            return []
        with contextlib.closing(self._open()) as db:
            db.set_progress_handler(cancelled, 10_000)
            asked = _rarest(db, terms)
            ranked = db.execute(
                "SELECT text.sha256, first_line, last_line, start, passage.size,"
                " -bm25(words_of) AS score FROM words_of"
                " JOIN passage ON passage.id = words_of.rowid"
                " JOIN text ON text.id = passage.text"
                " WHERE words_of MATCH ? ORDER BY score DESC, passage.id",
                (" OR ".join(f'"{term}"' for term in asked),),
            )
            # Texts of other runs are left out here: a table of this run's would take longer.
            return list(islice((hit for hit in ranked if hit[0] in texts), limit))

    def _open(self) -> sqlite3.Connection:
        private_file(self._path)
        db = sqlite3.connect(self._path, isolation_level=None, timeout=1)
        try:
            # A process that is killed leaves its journal, which the next one rolls back. After a
            # crash of the machine the index may be damaged, and is built again.
            db.execute("PRAGMA journal_mode = TRUNCATE").fetchone()
            db.execute("PRAGMA synchronous = OFF")
            if not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                number = f"PRAGMA user_version = {secrets.randbits(31)};"
                db.executescript(f"BEGIN; {_SCHEMA} {number} COMMIT;")
        except BaseException:
            db.close()
            raise
        return db


@dataclass(frozen=True, slots=True)
class _Work:
    """Texts to index, the most wanted last."""

    missing: list[str]
    texts: Texts
    open_text: OpenText


def _rarest(db: sqlite3.Connection, terms: list[str]) -> list[str]:
    """Return the terms that MAX_RANKED passages hold together, the rarest, and one at least.

    Ranking takes time for each of these passages. Common words hardly change the order.
    """
    db.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words_of, row)")
    count = "SELECT doc FROM temp.vocabulary WHERE term = ?"
    counts = {term: (db.execute(count, (term,)).fetchone() or (0,))[0] for term in terms}
    rarest, total = list[str](), 0
    for term in sorted(terms, key=lambda term: counts[term]):
        total += counts[term]
        if total > MAX_RANKED and any(counts[chosen] for chosen in rarest):
            break
        rarest.append(term)
    return rarest


@contextlib.contextmanager
def _commit(db: sqlite3.Connection) -> Generator[None]:
    db.execute("BEGIN IMMEDIATE")
    yield
    db.execute("COMMIT")


def _add(
    db: sqlite3.Connection, sha256: str, text: StoredText, expired: Callable[[], bool]
) -> bool:
    """Index a text from where it was left, and return whether it is indexed to its end."""
    db.execute("INSERT OR IGNORE INTO text VALUES (NULL, ?, ?, 0, 1)", (sha256, text.index.size))
    number, indexed, line = db.execute(
        "SELECT id, indexed, next_line FROM text WHERE sha256 = ?", (sha256,)
    ).fetchone()
    for count, piece in enumerate(passages(text, indexed, line), start=1):
        place = (number, piece.first_line, piece.last_line, piece.start, len(piece.data))
        row = db.execute(
            "INSERT INTO passage (text, first_line, last_line, start, size) VALUES (?, ?, ?, ?, ?)",
            place,
        ).lastrowid
        terms = " ".join(words(piece.data.decode("utf-8", "replace")))
        db.execute("INSERT INTO words_of (rowid, words) VALUES (?, ?)", (row, terms))
        if count >= STEP_PASSAGES and expired():
            indexed = piece.start + len(piece.data)
            line = piece.last_line + piece.data.endswith(b"\n")
            break
    else:
        indexed = text.index.size
    db.execute("UPDATE text SET indexed = ?, next_line = ? WHERE id = ?", (indexed, line, number))
    return indexed == text.index.size


INDEX_BYTES, INDEX_TEXTS = 8 * 2**20, 1_000
"""A run with more text, or more texts, is searched by an index, any other by reading all of it."""

_TOO_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_INTERRUPT")
_LOST = (ExpiredRef, UnknownRef, StoreError)


@dataclass(frozen=True, slots=True)
class RunTexts:
    """The texts of a run in one state: the newest artifact of each by SHA-256, newest first."""

    state: tuple[int, str] = (0, "")
    refs: Mapping[str, str] = field(default_factory=dict[str, str])
    bytes: int = 0

    @property
    def are_many(self) -> bool:
        """Return whether an index is worth its while."""
        return self.bytes > INDEX_BYTES or len(self.refs) > INDEX_TEXTS


def search_run(
    index: SearchIndex,
    query: str,
    texts: RunTexts,
    open_text: OpenText,
    max_results: int,
    cancelled: Callable[[], bool],
) -> SearchResult:
    """Rank passages over the texts of a run.

    Few texts are read to their end, whatever the clock says: INDEX_BYTES bound the work.
    """
    if texts.are_many:
        try:
            return index.search(query, texts.refs, open_text, max_results, cancelled)
        except sqlite3.Error as error:  # no FTS5 here, or a damaged index
            if error.sqlite_errorname in _TOO_BUSY:
                return SearchResult((), len(texts.refs))
            index.drop()
        except _LOST:
            pass
    expired = Deadline(cancelled, None if texts.are_many else math.inf)
    return rank_texts(query, list(texts.refs.values()), _if_kept(open_text), max_results, expired)


def _if_kept(open_text: OpenText) -> Callable[[str], StoredText | None]:
    """Return what opens a text, or returns None for one that is gone by now or altered."""

    def opened(ref: str) -> StoredText | None:
        try:
            return open_text(ref)
        except _LOST:
            return None

    return opened

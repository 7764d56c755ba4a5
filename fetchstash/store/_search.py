"""Ranked search over texts: an index of their passages, which may be lost at any time.

A folder has it in search.db: built by searches, which answer within a bounded time from what is
indexed, and by a thread that goes on until everything is; both in short steps under the index's
lock. It holds no text (a contentless FTS5 table, https://sqlite.org/fts5.html), and gc drops it
when it is about texts that are gone. Elsewhere an index is in memory. It finds the passages that
may be the best, and `_rank` says which are.
"""

import contextlib
import math
import sqlite3
import time
import weakref
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, RLock, Thread

from fetchstash.errors import ExpiredRef, FetchstashError, StoreError, UnknownRef
from fetchstash.store._contract import Passage, SearchResult
from fetchstash.store._disk import locked, locked_now, private_file
from fetchstash.store._passages import Hit, Section, add, find, prepare
from fetchstash.store._rank import Candidate, Deadline, Query, best_of
from fetchstash.store._text import StoredText, text_in_memory

BUILD_SECONDS = 1.0
"""CPU time that a search over much text spends on indexing at most; see Deadline."""

LITTLE_BYTES, LITTLE_TEXTS = 8 * 2**20, 1_000
"""So little text is indexed to its end, whatever the clock says."""

STEP_SECONDS = 0.05
"""So long the index is locked at a time."""

REST_SECONDS = 0.01
"""So long the thread rests between two steps."""

MEMORY_BYTES = 64 * 2**20
"""An index in memory begins anew when it has that much text."""

INDEXING = "fetchstash-index"
"""The name of the thread that indexes."""

Texts = Mapping[str, str]
"""SHA-256 of a text to the reference of an artifact that has it, the most wanted first."""

OpenText = Callable[[str], StoredText]

_TOO_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_INTERRUPT")
_LOST = (ExpiredRef, UnknownRef, StoreError)


@dataclass(frozen=True, slots=True)
class RunTexts:
    """Texts in one state: the newest artifact of each by SHA-256, newest first."""

    refs: Texts = field(default_factory=dict[str, str])
    bytes: int = 0
    state: tuple[int, str] = (0, "")

    @property
    def are_few(self) -> bool:
        """Return whether the search that needs them indexes them completely."""
        return self.bytes <= LITTLE_BYTES and len(self.refs) <= LITTLE_TEXTS


@dataclass(frozen=True, slots=True)
class _Work:
    """A search: its query, and the texts to index for it, those needed first at the end."""

    asked: Query
    texts: RunTexts
    open_text: OpenText
    named: bool
    missing: list[str] = field(default_factory=list[str])


class SearchIndex:
    """The file search.db of a store's folder; without a folder an index in memory."""

    def __init__(self, folder: Path | None = None) -> None:
        self._path = folder / "search.db" if folder else None
        self._lock = folder / "search-lock" if folder else None
        self._turn = RLock()  # of the threads of this process
        self._stopped = Event()
        self._builder: Thread | None = None
        # The number of an index, and texts that are all in it: no need to look again.
        self._complete: tuple[int, Texts] | None = None
        self._memory: sqlite3.Connection | None = None
        self._kept: dict[str, bytes] = {}  # the texts of an index in memory

    def search(
        self,
        query: str,
        texts: RunTexts,
        open_text: OpenText,
        limit: int,
        cancelled: Callable[[], bool],
        *,
        named: bool = False,
    ) -> SearchResult:
        """Return the best passages of ``texts``; the result says how many are not indexed.

        A thread goes on with these. Raises what ``open_text`` does for a text that is ``named``;
        any other that is lost is left out.
        """
        work = _Work(Query(query), texts, open_text, named)
        for _ in range(2):
            try:
                return self._search(work, limit, cancelled)
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorname", "") in _TOO_BUSY:
                    return SearchResult((), len(texts.refs))
                self.drop()  # damaged, or of another version
        if named or texts.are_few:  # the disk is full
            return SearchIndex()._search(work, limit, cancelled)  # noqa: SLF001 - one of us
        return SearchResult((), len(texts.refs))

    def missing(self, texts: Texts) -> list[str]:
        """Return the texts that are not indexed to their end, the most wanted last."""
        wanted = list(reversed(list(texts)))
        if self._path and not self._path.exists():
            return wanted
        named = "AND sha256 = ?" if len(wanted) == 1 else ""
        done = f"SELECT sha256 FROM text WHERE indexed = size {named}"  # noqa: S608 - ours
        try:
            with self._connection() as db:
                (number,) = db.execute("PRAGMA user_version").fetchone()
                if self._complete == (number, texts):
                    return []
                whole = {sha256 for (sha256,) in db.execute(done, wanted if named else ())}
        except sqlite3.Error:  # the next step drops it
            return wanted
        wanted = [sha256 for sha256 in wanted if sha256 not in whole]
        if not wanted:
            self._complete = number, texts
        return wanted

    def forget(self, live: Collection[str]) -> None:
        """Drop the index if it knows the words of a text that is not ``live``."""
        if not (self._path and self._lock and self._path.exists()):
            return
        with locked(self._lock):
            try:
                with self._connection() as db:
                    known = {sha256 for (sha256,) in db.execute("SELECT sha256 FROM text")}
                    stale = not known.issubset(live)
            except sqlite3.Error:
                stale = True
            if stale:
                self._unlink()

    def drop(self) -> None:
        """Remove the index. The next search begins a new one."""
        with self._turn, locked(self._lock) if self._lock else contextlib.nullcontext():
            self._unlink()

    def _unlink(self) -> None:
        if self._path:
            # First its journal, which another index must not get.
            self._path.with_name("search.db-journal").unlink(missing_ok=True)
            self._path.unlink(missing_ok=True)
        if self._memory:
            self._memory.close()
        self._memory = None
        self._kept.clear()

    def close(self) -> None:
        """Stop building."""
        self._stopped.set()
        if self._builder:
            self._builder.join()

    def _search(self, work: _Work, limit: int, cancelled: Callable[[], bool]) -> SearchResult:
        asked, texts = work.asked, work.texts
        if not asked.words:
            return SearchResult(())
        work.missing[:] = self.missing(texts.refs)
        if work.missing and not self._path and sum(map(len, self._kept.values())) > MEMORY_BYTES:
            self.drop()
            work.missing[:] = self.missing(texts.refs)
        if work.missing:
            seconds = math.inf if texts.are_few else None if work.named else BUILD_SECONDS
            self._build(work, Deadline(cancelled, seconds), wait=work.named or texts.are_few)
        pending = len(work.missing)
        with self._connection() as db:
            db.set_progress_handler(cancelled, 10_000)
            try:
                hits, statistics = find(db, asked, texts.refs)
            finally:  # the connection of an index in memory stays for the next search
                db.set_progress_handler(None, 0)
        candidates = list(self._read(work, hits))
        best = best_of(candidates, asked, statistics, limit)
        if pending and self._path and not (self._builder and self._builder.is_alive()):
            # A search that waits would be asked again.
            self._builder = Thread(target=self._build_all, args=(work,), daemon=True, name=INDEXING)
            self._builder.start()
        shown = (
            Passage(c.ref, c.first_line, c.last_line, c.text, score, asked.hit_offset(c), c.heading)
            for score, c in best
        )
        return SearchResult(tuple(shown), pending)

    def _build(self, work: _Work, expired: Callable[[], bool], *, wait: bool) -> None:
        """Index texts in at least one step; if another call does, ``wait`` for it or return."""
        while work.missing:
            with self._held() as is_ours:
                if is_ours:
                    self._step(work, Deadline(expired, STEP_SECONDS))
            if expired() or not (is_ours or wait):
                return
            if not is_ours:
                time.sleep(STEP_SECONDS)
                work.missing[:] = self.missing(work.texts.refs)

    @contextlib.contextmanager
    def _held(self) -> Generator[bool]:
        """Hold the index's lock unless others hold it for a step's time; yield whether we do."""
        if not self._turn.acquire(timeout=STEP_SECONDS):
            yield False
            return
        try:
            with locked_now(self._lock) if self._lock else contextlib.nullcontext(True) as is_ours:
                yield is_ours
        finally:
            self._turn.release()

    def _build_all(self, work: _Work) -> None:
        """Index all texts, pausing between steps, until ``close``."""
        with contextlib.suppress(sqlite3.Error, OSError, FetchstashError):
            while work.missing and not self._stopped.wait(REST_SECONDS):
                self._build(work, Deadline(self._stopped.is_set, STEP_SECONDS), wait=False)

    def _step(self, work: _Work, expired: Callable[[], bool]) -> None:
        with self._connection() as db, _commit(db):
            while work.missing:
                sha256 = work.missing.pop()
                try:
                    text = self._text(work, sha256)
                except FetchstashError:  # gc took it meanwhile, or it was altered
                    if work.named:
                        raise
                    continue
                with contextlib.closing(text):
                    if not add(db, sha256, text, expired):
                        work.missing.append(sha256)
                if expired():
                    return

    def _text(self, work: _Work, sha256: str) -> StoredText:
        """Open a text. An index in memory keeps a copy of each."""
        kept = self._kept.get(sha256)
        if kept is None:
            text = work.open_text(work.texts.refs[sha256])
            if self._path:
                return text
            with contextlib.closing(text):
                kept = self._kept[sha256] = text.read(0, text.index.size)
        return text_in_memory(kept)

    def _read(self, work: _Work, hits: Iterable[Hit]) -> Generator[Candidate]:
        """Read passages, with the headings above them, text by text."""
        by_text: dict[str, list[Hit]] = {}
        for hit in hits:
            by_text.setdefault(hit.sha256, []).append(hit)
        for sha256, here in by_text.items():
            ref = work.texts.refs[sha256]
            try:
                text = self._text(work, sha256)
            except _LOST:
                if work.named:
                    raise
                continue
            with contextlib.closing(text):
                for hit in here:
                    shown = text.span(hit.start, hit.start + hit.size).rstrip("\n")
                    above = "".join(
                        text.span(heading.start, heading.start + heading.size)
                        for heading in Section.load(hit.section).headings
                    )
                    lines = hit.first_line, hit.last_line
                    yield Candidate(ref, *lines, shown, above, hit.language, hit.id)

    @contextlib.contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        """Lend a connection to the index, which is made if there is none."""
        if self._path:
            private_file(self._path)
            with contextlib.closing(
                sqlite3.connect(self._path, isolation_level=None, timeout=1)
            ) as db:
                prepare(db)
                yield db
            return
        with self._turn:
            if not self._memory:
                self._memory = sqlite3.connect(
                    ":memory:", isolation_level=None, check_same_thread=False
                )
                weakref.finalize(self, self._memory.close)  # its owner may have no end to close it
                prepare(self._memory)
            yield self._memory


@contextlib.contextmanager
def _commit(db: sqlite3.Connection) -> Generator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")

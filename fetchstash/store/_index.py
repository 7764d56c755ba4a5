"""The search index: words of passages in search.db, for runs whose texts are too many to be read for each question.

It is disposable. It is built when it is first needed, holds no text (a contentless FTS5 table,
https://sqlite.org/fts5.html), and gc drops it when it is about texts that are gone. One lock is
held for every use of it, so that no other process has it open meanwhile. Passages and words are
those of `_rank`; FTS5's own BM25 has the same constants.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from fetchstash.store._contract import Passage
from fetchstash.store._disk import locked, private_file
from fetchstash.store._rank import MAX_TERMS, passages, words
from fetchstash.store._text import StoredText

_SCHEMA = """
    CREATE TABLE text (id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE);
    CREATE TABLE passage (
        id INTEGER PRIMARY KEY, text INTEGER NOT NULL, first_line INTEGER, last_line INTEGER, start INTEGER, size INTEGER);
    CREATE VIRTUAL TABLE said USING fts5 (words, content = '', tokenize = 'ascii');
"""
"""The tokenizer parts words at ASCII characters that are no letter or digit: at the spaces between the words that it is given."""


class SearchIndex:
    """The file search.db of a store."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "search.db"
        self._lock = folder / "search-lock"

    def search(
        self,
        query: str,
        texts: Mapping[str, str],
        open_text: Callable[[str], StoredText],
        limit: int,
    ) -> list[Passage]:
        """Return the best passages of ``texts`` (SHA-256 to reference), best first. Raises sqlite3.Error if it is no good."""
        terms = list(dict.fromkeys(words(query)))[:MAX_TERMS]
        if not terms:
            return []
        with locked(self._lock), contextlib.closing(self._open()) as db:
            known = self._known(db)
            for sha256, ref in texts.items():
                if sha256 not in known:
                    with contextlib.closing(open_text(ref)) as text:
                        _add(db, sha256, text)
            found = _best(db, terms, texts, limit)
        result: list[Passage] = []
        for sha256, first_line, last_line, start, size, score in found:
            with contextlib.closing(open_text(texts[sha256])) as text:
                said = text.span(start, start + size).rstrip("\n")
            result.append(Passage(texts[sha256], first_line, last_line, said, score))
        return result

    def forget(self, live: Collection[str]) -> None:
        """Drop the index if it is about any text that is not among those that are ``live``: it knows their words."""
        if not self._path.exists():
            return
        with locked(self._lock):
            try:
                with contextlib.closing(self._open()) as db:
                    stale = not self._known(db).issubset(live)
            except sqlite3.Error:
                stale = True
            if stale:
                self._path.unlink(missing_ok=True)

    def drop(self) -> None:
        """Remove the index; the next search builds it again."""
        with locked(self._lock):
            self._path.unlink(missing_ok=True)

    def _open(self) -> sqlite3.Connection:
        private_file(self._path)
        db = sqlite3.connect(self._path, isolation_level=None)
        try:
            # Nothing in it must survive a crash: a journal in memory and no fsync. What is damaged
            # is built again.
            db.execute("PRAGMA journal_mode = MEMORY").fetchone()
            db.execute("PRAGMA synchronous = OFF")
            if not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                db.executescript(_SCHEMA)
        except BaseException:
            db.close()
            raise
        return db

    def _known(self, db: sqlite3.Connection) -> set[str]:
        return {sha256 for (sha256,) in db.execute("SELECT sha256 FROM text")}


def _add(db: sqlite3.Connection, sha256: str, text: StoredText) -> None:
    db.execute("BEGIN")
    number = db.execute("INSERT INTO text (sha256) VALUES (?)", (sha256,)).lastrowid
    for piece in passages(text):
        place = (number, piece.first_line, piece.last_line, piece.start, len(piece.data))
        row = db.execute(
            "INSERT INTO passage (text, first_line, last_line, start, size) VALUES (?, ?, ?, ?, ?)",
            place,
        ).lastrowid
        said = " ".join(words(piece.data.decode("utf-8", "replace")))
        db.execute("INSERT INTO said (rowid, words) VALUES (?, ?)", (row, said))
    db.execute("COMMIT")


def _best(
    db: sqlite3.Connection, terms: list[str], texts: Mapping[str, str], limit: int
) -> list[tuple[str, int, int, int, int, float]]:
    db.execute("CREATE TEMP TABLE asked (sha256 TEXT PRIMARY KEY)")
    db.executemany("INSERT INTO asked VALUES (?)", ((sha256,) for sha256 in texts))
    return db.execute(
        "SELECT text.sha256, first_line, last_line, start, size, -bm25(said) AS score FROM said"
        " JOIN passage ON passage.id = said.rowid JOIN text ON text.id = passage.text JOIN asked USING (sha256)"
        " WHERE said MATCH ? ORDER BY score DESC, passage.id LIMIT ?",
        (" OR ".join(f'"{term}"' for term in terms), limit),
    ).fetchall()

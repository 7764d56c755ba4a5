"""Passages of texts, and the tables of an index of them: adding a text, and finding passages."""

import json
import re
import secrets
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Self

from fetchstash.store._rank import (
    HEADING_WEIGHT,
    SAMPLE_BYTES,
    Query,
    Statistics,
    language_of,
    stems,
    words,
)
from fetchstash.store._text import CONTINUATION_BYTES, StoredText

READ = 2**20
PASSAGE_BYTES, PARAGRAPH_BYTES = 700, 300
"""The most of a passage, and the least that ends at a blank line: four fit into a preview."""


class Heading(NamedTuple):
    """A heading of a text: its level, its first byte, and its size in bytes."""

    level: int
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Section:
    """The section of a passage: the headings above it, and whether it is code.

    The comments of code are no headings.
    """

    headings: tuple[Heading, ...] = ()
    fenced: bool = False

    def after(self, line: bytes, start: int) -> "Section":
        """Return the section after a line that begins with a ``#`` or a fence."""
        if line.startswith((b"```", b"~~~")):
            return Section(self.headings, not self.fenced)
        if self.fenced or not (heading := _HEADING.match(line)):
            return self
        level = len(heading[1])
        above = tuple(h for h in self.headings if h.level < level)
        return Section((*above, Heading(level, start, len(line))))

    def dump(self) -> str:
        """Return it as a string."""
        return json.dumps([self.fenced, *self.headings])

    @classmethod
    def load(cls, dumped: str) -> Self:
        """Parse the output of ``dump``."""
        fenced, *headings = json.loads(dumped)
        return cls(tuple(Heading(*heading) for heading in headings), fenced)


_HEADING = re.compile(rb"(#{1,6})[ \t]")
_MARKS = b"#`~"
_BLANK = re.compile(rb"\s+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage of a text: its lines (both included), its first byte, its bytes and sections.

    ``section`` is that of its first line, if this is no heading, and ``left`` that after its last.
    """

    first_line: int
    last_line: int
    start: int
    data: bytes
    section: Section
    left: Section


def passages(
    text: StoredText, start: int = 0, line: int = 1, section: Section | None = None
) -> Iterator[Piece]:
    """Cut a text into passages: at headings and paragraphs, inside a line only if it is long.

    ``start`` is the byte at which a passage begins, ``line`` its line, in ``section``.
    """
    gathered: list[bytes] = []
    size, first_line, last_line = 0, line, line
    section = left = section or Section()
    for number, fragment in _fragments(text, start, line):
        blank = fragment.isspace()
        after = left.after(fragment, start) if fragment[0] in _MARKS else left
        full = size + len(fragment) > PASSAGE_BYTES
        if gathered and (
            full or after.headings != left.headings or (blank and size >= PARAGRAPH_BYTES)
        ):
            data = b"".join(gathered)
            yield Piece(first_line, last_line, start - size, data, section, left)
            gathered, size = [], 0
        if gathered or not blank:
            if not gathered:
                first_line, section = number, after
            gathered.append(fragment)
            size += len(fragment)
            last_line = number
        left = after
        start += len(fragment)
    if gathered:
        yield Piece(first_line, last_line, start - size, b"".join(gathered), section, left)


def _fragments(text: StoredText, start: int, line: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a text with their numbers; lines longer than a passage are cut.

    Blank lines that are more than a passage holds come at once, with the number of the last.
    """
    data, base = b"", start
    while (read := base + len(data)) < text.index.size:
        data += text.read(read, read + READ)
        ended = base + len(data) >= text.index.size
        position = 0
        while position < len(data):
            feed = data.find(b"\n", position, position + PASSAGE_BYTES)
            if feed <= position + 1 and (lines := _blank_lines(data, position)):
                line += lines.count(b"\n")
                yield line - 1, lines
                position += len(lines)
                continue
            if feed >= 0:
                end = feed + 1
            elif len(data) - position > PASSAGE_BYTES:
                end = position + PASSAGE_BYTES
                # A byte 10xxxxxx goes on with a character (RFC 3629, section 3).
                while data[end] in CONTINUATION_BYTES:
                    end -= 1
            elif ended:
                end = len(data)
            else:
                break
            yield line, data[position:end]
            line += feed >= 0
            position = end
        data, base = data[position:], base + position


def _blank_lines(data: bytes, position: int) -> bytes:
    """Return the blank lines at a position if they exceed a passage, else b"".

    One by one they would take seconds in which nobody looks at the time: they make no passage.
    """
    if not data[position : position + PASSAGE_BYTES + 1].isspace():
        return b""
    blank = _BLANK.match(data, position)
    lines = blank[0][: blank[0].rfind(b"\n") + 1] if blank else b""
    return lines if len(lines) > PASSAGE_BYTES else b""


STEP_PASSAGES = 100
"""A step indexes so many, or a text to its end, whatever the clock says: each call makes one at
least, so that an index is complete after as many calls as its passages make hundreds and texts."""

MAX_RANKED = 100_000
"""Passages that one search goes through; an index of 100 MB has about twice as many."""

CANDIDATES = 60
"""Passages that are read, to find the best of them."""

FEW_TEXTS = 20
"""So many texts are searched one by one: an index may have a thousand times as many."""

_VERSION = 3
"""An index of another version is dropped."""

_SCHEMA = """
    CREATE TABLE text (
        id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, size INTEGER NOT NULL,
        language TEXT NOT NULL, indexed INTEGER NOT NULL, next_line INTEGER NOT NULL,
        section TEXT NOT NULL, first INTEGER, last INTEGER);
    CREATE TABLE language (name TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE passage (
        id INTEGER PRIMARY KEY, text INTEGER NOT NULL, first_line INTEGER, last_line INTEGER,
        start INTEGER, size INTEGER, section TEXT NOT NULL);
    CREATE VIRTUAL TABLE words_of USING fts5 (
        words, headings, content = '', tokenize = 'ascii');
"""
"""``indexed`` bytes of a text are done, its passages are from ``first`` to ``last``. The tokenizer
splits at the spaces between our words."""


class Hit(NamedTuple):
    """A passage that has words of the query."""

    id: int
    sha256: str
    language: str
    first_line: int
    last_line: int
    start: int
    size: int
    section: str


def prepare(db: sqlite3.Connection) -> None:
    """Make the tables of a new index. Raises sqlite3.Error for one of another version."""
    # A process that is killed leaves its journal, which the next one rolls back. After a crash of
    # the machine the index may be damaged, and is built again.
    db.execute("PRAGMA journal_mode = TRUNCATE").fetchone()
    db.execute("PRAGMA synchronous = OFF")
    made = "SELECT 1 FROM sqlite_master LIMIT 1"
    if not db.execute(made).fetchone():
        db.execute("BEGIN IMMEDIATE")
        if not db.execute(made).fetchone():  # nobody else did meanwhile
            for statement in (*_SCHEMA.split(";")[:-1], f"PRAGMA application_id = {_VERSION}"):
                db.execute(statement)
            # Another number for each index: who remembers that one is complete (`missing`) sees
            # that it was dropped.
            db.execute(f"PRAGMA user_version = {secrets.randbits(31)}")
        db.execute("COMMIT")
    if db.execute("PRAGMA application_id").fetchone() != (_VERSION,):
        raise sqlite3.DatabaseError("an index of another version")
    db.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab (main, words_of, row)"
    )


def add(db: sqlite3.Connection, sha256: str, text: StoredText, expired: Callable[[], bool]) -> bool:
    """Index a text from where it was left, and return whether it is indexed to its end."""
    known = "SELECT id, language, indexed, next_line, section FROM text WHERE sha256 = ?"
    if not (row := db.execute(known, (sha256,)).fetchone()):
        language = language_of(text.span(0, SAMPLE_BYTES))
        db.execute("INSERT OR IGNORE INTO language VALUES (?)", (language,))
        db.execute(
            "INSERT INTO text (sha256, size, language, indexed, next_line, section)"
            " VALUES (?, ?, ?, 0, 1, ?)",
            (sha256, text.index.size, language, Section().dump()),
        )
        row = db.execute(known, (sha256,)).fetchone()
    number, language, indexed, line, dumped = row
    # Ids go up one by one, so that a text is a range of them: FTS5 looks up ranges of rowids, and
    # has no other column to choose by here.
    (next_id,) = db.execute("SELECT coalesce(max(id), 0) + 1 FROM passage").fetchone()
    stem, section, above, first = stems(language).__getitem__, None, "", next_id
    for count, piece in enumerate(passages(text, indexed, line, Section.load(dumped)), start=1):
        if piece.section is not section:
            section, dumped = piece.section, piece.section.dump()
            titles = (text.span(h.start, h.start + h.size) for h in section.headings)
            above = " ".join(map(stem, words("".join(titles))))
        here = " ".join(map(stem, words(piece.data.decode("utf-8", "replace"))))
        db.execute(
            "INSERT INTO passage VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                next_id,
                number,
                piece.first_line,
                piece.last_line,
                piece.start,
                len(piece.data),
                dumped,
            ),
        )
        db.execute(
            "INSERT INTO words_of (rowid, words, headings) VALUES (?, ?, ?)", (next_id, here, above)
        )
        next_id += 1
        indexed, line = piece.start + len(piece.data), piece.last_line + piece.data.endswith(b"\n")
        left = piece.left
        if count >= STEP_PASSAGES and expired():
            dumped = left.dump()
            break
    else:
        indexed = text.index.size
    db.execute(
        "UPDATE text SET indexed = ?, next_line = ?, section = ?,"
        " first = coalesce(first, ?), last = ? WHERE id = ?",
        (indexed, line, dumped, first, next_id - 1, number),
    )
    return bool(indexed == text.index.size)


_HITS = """
    SELECT passage.id, text.sha256, text.language, first_line, last_line, start, passage.size,
        passage.section
    FROM words_of JOIN passage ON passage.id = words_of.rowid JOIN text ON text.id = passage.text
    WHERE words_of MATCH ? {} ORDER BY bm25(words_of, 1.0, ?), passage.id"""


def find(
    db: sqlite3.Connection, query: Query, texts: Collection[str]
) -> tuple[list[Hit], Statistics]:
    """Return the best candidate passages of these texts, with the frequencies of their words."""
    languages = [name for (name,) in db.execute("SELECT name FROM language")]
    if not languages:
        return [], Statistics(0, [0] * len(query.words))
    forms = [sorted(set(terms)) for terms in zip(*map(query.terms, languages), strict=True)]
    if len(texts) > FEW_TEXTS:
        (total,) = db.execute("SELECT coalesce(max(id), 0) FROM passage").fetchone()
        count = "SELECT coalesce(max(doc), 0) FROM temp.vocabulary WHERE term IN ({})"
        holding = [
            db.execute(count.format(", ".join("?" * len(terms))), terms).fetchone()[0]
            for terms in forms
        ]
        ranked = db.execute(_HITS.format(""), (_match(_rarest(forms, holding)), HEADING_WEIGHT))
        # Texts of other runs are left out here: a table of this run's would take longer.
        hits = list(
            islice((hit for hit in map(Hit._make, ranked) if hit.sha256 in texts), CANDIDATES)
        )
        return hits, Statistics(total, holding)
    total, holding, spans = 0, [0] * len(forms), list[tuple[int, int, int]]()
    for sha256 in texts:
        known = "SELECT first, last, id FROM text WHERE sha256 = ? AND first <= last"
        for first, last, number in db.execute(known, (sha256,)):
            count = "SELECT count(*) FROM words_of WHERE words_of MATCH ? AND rowid BETWEEN ? AND ?"
            for place, terms in enumerate(forms):
                matched = (_match([terms]), first, last)
                holding[place] += db.execute(count, matched).fetchone()[0]
            total += last - first + 1
            spans.append((first, last, number))
    asked, hits = _match(_rarest(forms, holding)), list[Hit]()
    # Between the first and the last passage of a text that was indexed in steps there may be those
    # of others.
    of_text = _HITS.format("AND words_of.rowid BETWEEN ? AND ? AND passage.text = ?")
    for span in spans:
        ranked = db.execute(f"{of_text} LIMIT {CANDIDATES}", (asked, *span, HEADING_WEIGHT))
        hits += map(Hit._make, ranked)
    return hits, Statistics(total, holding)


def _match(forms: Iterable[Iterable[str]]) -> str:
    """Return the index query for passages with any form of any of these words."""
    return " OR ".join(f'"{term}"' for terms in forms for term in terms)


def _rarest(forms: list[list[str]], holding: list[int]) -> list[list[str]]:
    """Return the rarest words that MAX_RANKED passages hold together, at least one.

    Ranking takes time for each of these passages. Common words hardly change the order.
    """
    rarest, total = list[list[str]](), 0
    for number in sorted(range(len(forms)), key=holding.__getitem__):
        total += holding[number]
        if total > MAX_RANKED and total > holding[number]:
            break
        rarest.append(forms[number])
    return rarest

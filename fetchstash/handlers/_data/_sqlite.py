"""SQLite databases: each table with its definition, its number of rows and the first of them.

The file is untrusted (https://sqlite.org/security.html): it is opened read-only and without its
journal; views, triggers and virtual tables are never run; each statement has a limit of steps.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from fetchstash.handlers._contract import Extracted, Hints, Part
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._data._aggregate import answer
from fetchstash.handlers._data._rows import Table, table_named
from fetchstash.handlers._parts import Streamed, TextParts
from fetchstash.handlers._previews import one_line
from fetchstash.handlers._reasons import Reason
from fetchstash.text import counted
from fetchstash.text.facts import is_query
from fetchstash.text.ranges import Heading

_MAX_ROWS = 1_000
_MAX_TABLES = 1_000
_MAX_CELL = 1_000
_MAX_DEFINITION = 4_000
# The handler is called after each so many steps of the virtual machine, and ends a statement after
# so many calls: about a second.
_STEPS, _CALLS = 100_000, 300
_MAX_VALUE_BYTES = 64 * 2**20
_VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\s+TABLE", re.IGNORECASE)
_BROKEN = (sqlite3.Error, ValueError)  # ValueError: a message that is no UTF-8


class SqliteHandler(Streamed, TextParts):
    """Reads databases of SQLite 3."""

    name = "sqlite"

    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
        """Yield the parts of ``source``. Raises NoText if it cannot be read."""
        counts: list[str] = []
        with DataReason.DATABASE_DAMAGED.instead_of(*_BROKEN), closing(_open(source)) as database:
            items = _items(database)
            extracted.learn(sheets=sum(not item.unread_reason for item in items))
            if not items:
                raise DataReason.DATABASE_EMPTY.error()
            for item in items:
                yield from _read_item(database, item, counts, extracted)
        extracted.learn(structure_info="; ".join(counts))

    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the answer to a query over the rows of a table.

        Raises OutOfRange, BadArgument, TooLarge or NoText.
        """
        del hints
        if not is_query(path):
            raise Reason.NOTHING_THERE.error(name=path)
        with DataReason.DATABASE_DAMAGED.instead_of(*_BROKEN), closing(_open(source)) as database:
            return answer(path, partial(_table, database))


def _table(database: sqlite3.Connection, name: str) -> Table:
    """Return the rows of a table for a query, of the only one if no name is given."""
    tables = [item.name for item in _items(database) if not item.unread_reason]
    if not name and not tables:
        raise DataReason.DATABASE_EMPTY.error()
    table = table_named(name, tables, tables)
    chosen = ", ".join(map(_quoted, _columns(database, table)[0]))
    rows = database.execute(f"SELECT {chosen} FROM {_quoted(table)}")  # noqa: S608 - quoted names
    return Table((list(map(_whole, row)) for row in rows), [c[0] for c in rows.description])


def _whole(value: str | float | bytes | None) -> str:
    """Return a value for a query; of bytes their number."""
    if isinstance(value, bytes):
        return f"({counted(len(value), 'byte')})"
    return "" if value is None else str(value)


class _Item(NamedTuple):
    """A table or a view of the schema."""

    kind: str
    name: str
    definition: str

    @property
    def unread_reason(self) -> str:
        """Why its rows are not read: they would run code of the file or of an extension."""
        is_virtual = self.kind == "table" and _VIRTUAL.match(self.definition)
        return "virtual table" if is_virtual else "view" if self.kind == "view" else ""


def _open(source: Path) -> sqlite3.Connection:
    """Return a connection to a database.

    A generated column may call a function that SQLite does not call harmless, such as json_extract
    in some versions; then no statement works, whatever its table. We define no functions, and
    SQLite keeps its own that act outside (load_extension) from any schema.
    """
    database = _connection(source, trusted=False)
    try:
        database.execute("SELECT 1 FROM sqlite_master").close()
    except sqlite3.DatabaseError as error:
        if "unsafe use of" not in str(error):
            database.close()
            raise
        database.close()
        return _connection(source, trusted=True)
    return database


def _connection(source: Path, *, trusted: bool) -> sqlite3.Connection:
    database = sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    database.text_factory = partial(str, encoding="utf-8", errors="replace")
    schema = f"trusted_schema={'ON' if trusted else 'OFF'}"
    for pragma in (schema, "cell_size_check=ON", "mmap_size=0", "query_only=ON"):
        database.execute(f"PRAGMA {pragma}")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    return database


def _items(database: sqlite3.Connection) -> list[_Item]:
    """Return tables and views in order of creation, without internal and shadow tables."""
    rows = database.execute(
        "SELECT type, name, substr(sql, 1, ?) FROM sqlite_master"
        " WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' LIMIT ?",
        (_MAX_DEFINITION, _MAX_TABLES),
    )
    items = [_Item(str(kind), str(name), str(definition or "")) for kind, name, definition in rows]
    virtual = tuple(f"{item.name}_" for item in items if item.unread_reason == "virtual table")
    return [item for item in items if not item.name.startswith(virtual)] if virtual else items


def _read_item(
    database: sqlite3.Connection, item: _Item, counts: list[str], extracted: Extracted
) -> Iterator[Part]:
    """Yield a table: title, definition, columns and first rows."""
    title = " ".join(item.name.split())
    heading = Heading(title, 1, "lines", 1)
    reason = item.unread_reason
    columns, rows, count = list[str](), list[str](), ""
    if not reason:
        try:
            columns, rows, count = _rows(database, item.name)
        except _BROKEN:  # damaged, too slow, or computed by an unknown function
            reason = "its rows cannot be read"
    named = f": {', '.join(columns)}" if columns else ""
    counts.append(f"{title} ({reason or count}){named}")
    more = ""
    if len(rows) == _MAX_ROWS and count != counted(_MAX_ROWS, "row"):
        more = f", the first {_MAX_ROWS:,} of them here"
        extracted.learn(extraction_truncated=True)
    yield Part(
        f"## {title} ({reason or count}{more})\n{item.definition.strip()}\n\n", headings=(heading,)
    )
    if columns:
        yield Part("\t".join(columns) + "\n", table=title, columns=len(columns))
        yield Part("".join(f"{row}\n" for row in rows), rows=len(rows))
        yield Part("\n")


def _rows(database: sqlite3.Connection, name: str) -> tuple[list[str], list[str], str]:
    """Return the columns of a table, its first rows, and the number of rows in words."""
    table = _quoted(name)
    _bound(database)
    columns, left_out = _columns(database, name)
    cells = ", ".join(map(_cell, columns))
    query = f"SELECT {cells} FROM {table} LIMIT {_MAX_ROWS}"  # noqa: S608 - names are quoted
    rows = ["\t".join(map(_text, row)) for row in database.execute(query)]
    count = counted(len(rows), "row")
    if len(rows) == _MAX_ROWS:
        _bound(database)
        try:
            count = counted(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0], "row")  # noqa: S608
        except _BROKEN:
            count = f"more than {_MAX_ROWS:,} rows"
    if left_out:
        count += f", without what an unknown function computes: {', '.join(map(_text, left_out))}"
    return [_text(column) for column in columns], rows, count


def _columns(database: sqlite3.Connection, name: str) -> tuple[list[str], list[str]]:
    """Return a table's columns, and those left out: computed by a function of its program."""
    try:
        no_rows = database.execute(f"SELECT * FROM {_quoted(name)} LIMIT 0")  # noqa: S608 - quoted
    except sqlite3.OperationalError:
        known = database.execute(f"PRAGMA table_xinfo({_quoted(name)})").fetchall()
        plain = [str(row[1]) for row in known if row[6] == 0]
        if not plain or len(plain) == len(known):
            raise
        return plain, [str(row[1]) for row in known if row[6]]
    return [column[0] for column in no_rows.description], []


def _bound(database: sqlite3.Connection) -> None:
    """Reset the limit of steps for the next statement."""
    left = iter(range(_CALLS))
    database.set_progress_handler(lambda: next(left, None) is None, _STEPS)


def _cell(column: str) -> str:
    """Return the SQL expression of a cell: the beginning of a long text, the size of bytes."""
    name = _quoted(column)
    return (
        f"CASE typeof({name}) WHEN 'blob' THEN '(' || length({name}) || ' bytes)'"
        f" WHEN 'text' THEN substr({name}, 1, {_MAX_CELL + 1}) ELSE {name} END"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str | float | None) -> str:
    """Return a value on one line; NULL is empty."""
    if value is None:
        return ""
    text = one_line(str(value))
    return f"{text[:_MAX_CELL]}…" if len(text) > _MAX_CELL else text

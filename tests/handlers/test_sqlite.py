"""SQLite databases: definitions, counts and first rows; no code of the file is run."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers import ExtractLimits, Hints, handler_named
from tests.handlers.conftest import Read


def database(folder: Path, *statements: str) -> bytes:
    path = folder / "made.sqlite"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path.read_bytes()


def test_each_table_comes_with_its_definition_its_count_and_its_rows(
    read: Read, tmp_path: Path
) -> None:
    extracted, text = read("sqlite",
        database(
            tmp_path,
            "CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT, flag BLOB)",
            "INSERT INTO towns VALUES (1, 'Łódź', x'0102'), (2, 'two' || char(9, 10) || 'lines', NULL)",
            'CREATE TABLE "odd "" name" ("a b" REAL)', "CREATE VIEW big AS SELECT * FROM towns",
            "CREATE INDEX i ON towns (name)",
        ),
    )  # fmt: skip
    assert text == (
        "## towns (2 rows)\nCREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT, flag BLOB)\n\n"
        "id\tname\tflag\n1\tŁódź\t(2 bytes)\n2\ttwo ⏎lines\t\n\n"
        '## odd " name (0 rows)\nCREATE TABLE "odd "" name" ("a b" REAL)\n\na b\n\n'
        "## big (view)\nCREATE VIEW big AS SELECT * FROM towns\n\n"
    )
    assert extracted.facts.sheets == 2
    assert extracted.facts.structure_info == (
        'towns (2 rows): id, name, flag; odd " name (0 rows): a b; big (view)'
    )


def test_each_table_and_its_rows_are_parts(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(database(tmp_path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (1), (2)"))
    parts = list(handler_named("sqlite").extract(source, Hints(), ExtractLimits()).parts or ())
    assert [(part.table, part.columns, part.rows, part.headings[:1] != ()) for part in parts] == [
        (None, 0, 0, True), ("t", 1, 0, False), (None, 0, 2, False), (None, 0, 0, False),
    ]  # fmt: skip


def test_the_first_thousand_of_many_rows_are_read(read: Read, tmp_path: Path) -> None:
    _, text = read(
        "sqlite",
        database(
            tmp_path,
            "CREATE TABLE t (a)",
            "INSERT INTO t WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n WHERE a < 2345) SELECT a FROM n",
        ),
    )
    assert text.startswith("## t (2,345 rows, the first 1,000 of them here)\n")
    assert text.endswith("\n999\n1000\n\n")


def test_long_text_is_cut(read: Read, tmp_path: Path) -> None:
    _, text = read(
        "sqlite",
        database(tmp_path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (printf('%.5000c', 'x'))"),
    )
    assert text.splitlines()[-2] == "x" * 1_000 + "…"


ENDLESS = "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a FROM n) SELECT a FROM n"
BLOWN_UP = "replace(" * 20 + "'aaaaaaaaaa'" + ", 'a', 'aaaaaaaaaa')" * 20


def computed(expression: str) -> tuple[str, ...]:
    """Return statements for a table with a generated column that SQLite would refuse."""
    return (
        "CREATE TABLE t (a, b AS (a))",
        "INSERT INTO t VALUES (1)",
        "PRAGMA writable_schema = ON",
        f"""UPDATE sqlite_master SET sql = "CREATE TABLE t (a, b AS ({expression}))" """,
    )


@pytest.mark.parametrize(
    ("statements", "line"),
    [
        ((f"CREATE VIEW v AS {ENDLESS}",), "## v (view)"),
        (computed(BLOWN_UP), "## t (its rows cannot be read)"),
        (
            ("CREATE VIRTUAL TABLE f USING fts5(a)", "INSERT INTO f VALUES ('words')"),
            "## f (virtual table)",
        ),
    ],
    ids=["an endless view", "a column of 10^20 characters", "a virtual table and what it keeps"],
)
def test_a_definition_in_a_schema_is_never_run(
    read: Read, tmp_path: Path, statements: tuple[str, ...], line: str
) -> None:
    data = database(tmp_path, *statements)
    before = time.process_time()
    extracted, text = read("sqlite", data)
    assert text.startswith(line)
    assert extracted.facts.structure_info.count("(") == 1
    assert time.process_time() - before < 5


def test_a_schema_that_would_load_code_is_refused(read: Read, tmp_path: Path) -> None:
    with pytest.raises(NoText, match="damaged"):
        read("sqlite", database(tmp_path, *computed("load_extension('/tmp/evil')")))


def test_a_database_with_a_journal_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "wal.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a)")
        connection.commit()
    source = tmp_path / "alone" / "name #% .sqlite"
    source.parent.mkdir()
    source.write_bytes(path.read_bytes())
    parts = handler_named("sqlite").extract(source, Hints(), ExtractLimits()).parts or ()
    assert "".join(part.text for part in parts).startswith("## t (0")
    assert [entry.name for entry in source.parent.iterdir()] == [source.name]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"SQLite format 3\0" + b"\xff" * 200, "damaged"),
        (b"SQLite format 3\0", "no tables|damaged"),
        (b"", "no tables"),
    ],
    ids=["garbage", "header alone", "empty"],
)
def test_a_file_that_is_no_database_is_reported(read: Read, data: bytes, reason: str) -> None:
    with pytest.raises(NoText, match=reason):
        read("sqlite", data)


def test_damage_does_no_harm(read: Read, tmp_path: Path) -> None:
    rows = ", ".join(f"({n}, 'name {n}')" for n in range(500))
    whole = database(tmp_path, "CREATE TABLE t (a, b)", f"INSERT INTO t VALUES {rows}")
    for seed in range(200):
        broken = bytearray(whole)
        for step in range(4):
            at = (seed * 7_919 + step * 104_729) % (len(broken) - 100) + 100
            broken[at] = (seed * 31 + step) % 256
        with suppress(NoText):
            read("sqlite", bytes(broken))

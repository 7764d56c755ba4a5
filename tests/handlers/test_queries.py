"""Queries over rows: of CSV, JSON, JSON Lines, YAML, workbooks and databases."""

import csv
import io
import json
import sqlite3
from collections import defaultdict
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fetchstash.errors import BadArgument, FetchstashError, OutOfRange, TooLarge
from fetchstash.handlers import Decision, ExtractLimits, Hints, PartRequest, PartText, WorkerPool
from fetchstash.handlers._data._aggregate import answer
from fetchstash.handlers._data._rows import Records, Table, number
from tests.handlers.conftest import Save
from tests.handlers.parts import text_part

pytestmark = pytest.mark.whole

SALES = """id,region,price,"Unit price",day,paid
1,EU,10.10,"1,5",2024-01-02,5
2,US,20.20,"2,25",2024-02-01,30
3,EU,n/a,,2023-05-05,1
4,,5,"3,0",2024-03-03,5
"""
NOT_A_NUMBER = "# left out, no numbers: 1 of 4 cells of price\n"


def ask(source: Path, handler: str, path: str) -> str:
    return text_part(handler, source, path, unit="chars").text


def test_a_sum_keeps_all_digits_of_prices(save: Save) -> None:
    source = save(b"price\n12345678901.25\n0.5\n")
    assert ask(source, "csv", "sum(price)") == "sum(price)\n12345678901.75\n"


def test_a_group_whose_sum_is_zero_stands_between_gains_and_losses(save: Save) -> None:
    source = save(b"team,goals\na,-2\nb,1\nb,-1\nc,3\n")
    assert ask(source, "csv", "sum(goals) by team") == "team,sum(goals)\nc,3\nb,0\na,-2\n"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("count", "count\n4\n"),
        ("COUNT(*)", "count\n4\n"),
        ("sum(price) by region", f"{NOT_A_NUMBER}region,sum(price)\nUS,20.20\nEU,10.10\n,5\n"),
        ("sum(price) top 1 by region", f"{NOT_A_NUMBER}region,sum(price)\nUS,20.20\n"),
        ("count by region bottom 1 by sum(id)", "region,count\nUS,1\n"),
        ("count by region top 2 by region", "region,count\nUS,1\nEU,2\n"),
        ("Min(day), avg(id), average(id)", "min(day),mean(id),mean(id)\n2023-05-05,2.5,2.5\n"),
        ("min(price), max(price)", f"{NOT_A_NUMBER}min(price),max(price)\n5,20.20\n"),
        ("mean(price)", f"{NOT_A_NUMBER}mean(price)\n11.7666666666667\n"),
        ('sum("unit price")', "sum(Unit price)\n6.75\n"),
        ("sum(3) by 2 top 1", "# left out, no numbers: 1 of 4 cells of 3\n2,sum(3)\nUS,20.20\n"),
        ("count(region), distinct(region)", "count(region),distinct(region)\n3,2\n"),
        ("distinct region", 'region\nEU\nUS\n""\n'),
        ("id where region = 'EU'", "id\n1\n3\n"),
        ("id where region = US", "# US is no column here, and read as a text\nid\n2\n"),
        ("id where not (price > 6 or region is empty)", "id\n3\n"),
        ("id where region not in ('EU', 'US')", "id\n4\n"),
        ("id where paid >= price", "id\n2\n4\n"),
        ("id where region < day", "id\n"),
        ("id where price != 5 and day >= 2024-01-15", "id\n2\n"),
        ("id where Region contains 'e'", "id\n1\n3\n"),
        ("id, day top 2 by price", "id,day\n2,2024-02-01\n1,2024-01-02\n"),
        ("id bottom 2 by price", "id\n4\n1\n"),
        ("id bottom 9 by region", "id\n1\n3\n2\n"),
        ("id top 9 by region", "id\n2\n1\n3\n"),
        (
            "where id = 4",
            f'{SALES.splitlines()[0].replace(chr(34), "")}\n4,,5,"3,0",2024-03-03,5\n',
        ),
        ("id top 1", "id\n1\n"),
        ("region, price", "region,price\nEU,10.10\nUS,20.20\nEU,n/a\n,5\n"),
    ],
)
def test_a_query_is_answered(save: Save, query: str, expected: str) -> None:
    assert ask(save(SALES.encode()), "csv", query) == expected


@pytest.mark.parametrize(
    ("query", "cls", "reason"),
    [
        ("sum(prize) by region", OutOfRange, "no column 'prize'"),
        ("sum(price by region", BadArgument, "'by region' is not understood"),
        ("sum(price) by", BadArgument, "breaks off"),
        ("median(price)", BadArgument, r"'\(price\)' is not understood"),
        ("count where city = New York", BadArgument, "'York' is not understood"),
        ("price, sum(price)", BadArgument, "single columns beside sums"),
        ("count where a = 1 where b = 2", BadArgument, "not understood"),
        ("count from other", OutOfRange, "no rows at 'other'"),
        ("count where " + "x" * 1_000, BadArgument, "not understood"),
        ("count where 'x' = \"", BadArgument, "not understood"),
    ],
)
def test_what_is_not_understood_is_named_with_the_columns_and_an_example_that_works(
    save: Save, query: str, cls: type[FetchstashError], reason: str
) -> None:
    source = save(SALES.encode())
    with pytest.raises(cls, match=reason) as caught:
        ask(source, "csv", query)
    columns, example = caught.value.excerpt.split("\nFor example: ")
    assert columns == 'Columns: id, region, price, "Unit price", day, paid'
    assert ask(source, "csv", example)


RECORDS: list[Any] = [
    {"state": "open", "n": 1, "at": {"city": "Ulm"}},
    {"state": "closed", "n": 2.50, "ok": True},
    {"state": "open", "late": 5},
]


@pytest.mark.parametrize(
    ("document", "query", "expected"),
    [
        (RECORDS, "sum(n) by state", "state,sum(n)\nclosed,2.5\nopen,1\n"),
        ({"total": 3, "items": RECORDS}, "count where state = 'open'", "count\n2\n"),
        (
            {"total": 3, "items": RECORDS, "rest": list[Any](([],))},
            "sum(late) from /items",
            "sum(late)\n5\n",
        ),
        ({"data": {"items": RECORDS}}, "count where ok = true", "count\n1\n"),
        (RECORDS, "at.city where at.city is not null", "at.city\nUlm\n"),
        (RECORDS, "where n > 2", '{"state": "closed", "n": 2.5, "ok": true}\n'),
        ({"a": RECORDS}, "count from $.a[?@.state=='open']", "count\n2\n"),
        ([[1, "a"], [2, "b"]], "2 where 1 > 1", "2\nb\n"),
        (
            [1, 2.5, "x"],
            "max(value)",
            "# left out, no numbers: 1 of 3 cells of value\nmax(value)\n2.5\n",
        ),
        ({"a": 1}, "count", "count\n1\n"),
    ],
)
def test_records_of_json_are_rows(save: Save, document: object, query: str, expected: str) -> None:
    text = json.dumps(document)
    source = save(text.encode())
    assert ask(source, "json", query) == ask(source, "yaml", query) == expected
    if text.startswith("["):
        lines = save("\n".join(json.dumps(record) for record in json.loads(text)).encode())
        assert ask(lines, "jsonl", query) == expected


def test_a_key_that_no_record_of_the_first_thousand_has_is_still_a_column(save: Save) -> None:
    records = [{"a": n} for n in range(2_000)] + [{"b": 7}]
    source = save("\n".join(map(json.dumps, records)).encode())
    assert ask(source, "jsonl", "sum(b)") == "sum(b)\n7\n"
    with pytest.raises(OutOfRange, match="no column 'c'"):
        ask(source, "jsonl", "sum(c)")


@pytest.mark.parametrize("text", ['[{"a":1},', '[{"a":1} {"a":2}]', '{"a":[1,],"b":2}', '{"a" 1}'])
def test_of_json_that_breaks_off_no_part_is_an_answer(save: Save, text: str) -> None:
    with pytest.raises(FetchstashError, match="not valid JSON"):
        ask(save(text.encode()), "json", "count")


def test_a_regex_of_a_jsonpath_takes_linear_time(save: Save) -> None:
    source = save(json.dumps([{"s": "a" * 50_000 + "!"}, {"s": "ab"}]).encode())
    path = "$[?match(@.s, '(a|a)*(a+)+b')].s"
    assert ask(source, "json", path) == '["ab"]\n'
    with pytest.raises(OutOfRange):
        ask(source, "json", "$[?search(@.s, 'b(')]")


def test_the_tables_of_a_database_are_named_behind_from(tmp_path: Path) -> None:
    database = tmp_path / "my.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute('CREATE TABLE one ("na ""me" TEXT, x REAL, raw BLOB)')
        connection.execute("CREATE TABLE two (a)")
        connection.executemany("INSERT INTO one VALUES (?, ?, x'00')", [("é", 0.1), ("é", 0.2)])
        connection.execute("CREATE VIEW three AS SELECT * FROM one")
        connection.commit()
    expected = '"na ""me",sum(x)\né,0.3\n'
    assert ask(database, "sqlite", 'sum(x) by "na ""me" from one') == expected
    assert ask(database, "sqlite", "raw where x > 0 top 1 from ONE") == "raw\n(1 byte)\n"
    with pytest.raises(BadArgument, match="2 tables") as several:
        ask(database, "sqlite", "count")
    for name in ("three", '"t; DROP TABLE one"', '"t"" UNION SELECT 1"'):
        with pytest.raises(OutOfRange, match="no rows") as caught:
            ask(database, "sqlite", f"count from {name}")
        assert caught.value.excerpt == several.value.excerpt
    listed, example = several.value.excerpt.split("\nFor example: ")
    assert listed == "Tables: one, two"
    assert ask(database, "sqlite", example) == "count\n2\n"


@pytest.mark.parametrize(
    ("cell", "plain", "by_comma"),
    [
        ("12", "12", "12"),
        ("-1.50", "-1.50", "-1.50"),
        ("1e3", "1E+3", "1E+3"),
        ("1,234", "1234", "1.234"),
        ("1,234,567.8", "1234567.8", "1234567.8"),
        ("12,5", "12.5", "12.5"),
        ("1.234", "1.234", "1234"),
        ("1.234.567", "1234567", "1234567"),
        ("1.234,5", "1234.5", "1234.5"),
        ("$ 1,200.50", "1200.50", "1200.50"),
        ("12 %", "12", "12"),
        ("1\u00a0234,5", "1234.5", "1234.5"),
        ("NaN", None, None),
        ("Infinity", None, None),
        ("1_000", None, None),
        ("٣", None, None),
        ("1e99999", None, None),
        ("", None, None),
        ("1,2,3", None, None),
        ("0x10", None, None),
    ],
)
def test_the_number_in_a_cell(cell: str, plain: str | None, by_comma: str | None) -> None:
    for comma, expected in ((False, plain), (True, by_comma)):
        value = number(cell, comma=comma)
        assert (None if value is None else str(value)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b\nx;1,234\ny;2,5\n", "sum(b)\n3.734\n"),
        ("a,b\nx,1.234\ny,2.5\n", "sum(b)\n3.734\n"),
        ('a,b\nx,"1,234"\ny,"2,500"\n', "sum(b)\n3734\n"),
        ('a,b\nx,"1,234"\ny,"2,5"\n', "sum(b)\n3.734\n"),
    ],
)
def test_the_decimal_mark_is_that_of_the_column(save: Save, text: str, expected: str) -> None:
    assert ask(save(text.encode()), "csv", "sum(b)") == expected


def test_dates_with_points_are_compared_by_year() -> None:
    days = [["1.12.2023"], ["02.01.2024"], ["31.12.2022"]]
    assert answer("min(d), max(d)", lambda _: Table(days, ["d"])) == (
        "min(d),max(d)\n31.12.2022,02.01.2024\n"
    )


cells = st.one_of(
    st.integers(-999, 999).map(str), st.sampled_from(["", "a", 'é,"x', "1.25", "-0.5"])
)


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(st.tuples(cells, cells, cells), max_size=30), cells)
def test_the_answers_are_those_of_a_plain_program(
    rows: list[tuple[str, str, str]], wanted: str
) -> None:
    """Groups, sums, ends and filters, against a few lines of Python over the same cells."""

    def value(cell: str) -> Decimal | None:
        return Decimal(cell) if cell.lstrip("-")[:1].isdigit() else None

    groups: dict[str, list[Decimal]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for key, amount, flag in rows:
        if flag != wanted:
            continue
        counts[key] += 1
        number_ = value(amount)
        if number_ is not None:
            groups[key].append(number_)
    quoted = wanted.replace("'", "''")
    query = f"count, sum(b), min(b), max(b) by a where c = '{quoted}'"
    text = answer(query, lambda _: Table(map(list, rows), ["a", "b", "c"]))
    shown = [row for row in csv.reader(io.StringIO(text)) if row and not row[0].startswith("# ")]
    assert shown.pop(0) == ["a", "count", "sum(b)", "min(b)", "max(b)"]
    assert {row[0]: int(row[1]) for row in shown} == counts
    assert [int(row[1]) for row in shown] == sorted(counts.values(), reverse=True)
    for key, _, total, low, high in shown:
        assert Decimal(total) == sum(groups[key], Decimal(0))
        if groups[key]:
            assert (Decimal(low), Decimal(high)) == (min(groups[key]), max(groups[key]))
    assert len(json.loads(json.dumps(text))) == len(text)


@settings(deadline=None, max_examples=300)
@given(st.text(st.sampled_from("count by where(a,\"'`)=<>1. top$/from sum!\n\u00e9"), max_size=60))
def test_no_expression_breaks_the_reader(text: str) -> None:
    with suppress(FetchstashError):
        answer(text, lambda _: Table([["1", "2"]], ["a", "é"]))


@pytest.mark.long
def test_groups_distinct_values_and_tops_are_bounded() -> None:
    def many(_: str) -> Table:
        return Table(([str(n)] for n in range(1_000_000)), ["n"])

    for query in ("count by n", "distinct(n)", "distinct n", "top 1000000 by n"):
        with pytest.raises(TooLarge, match="more than 100,000"):
            answer(query, many)
    assert 1_000_000 < len(answer("n", many)) < 1_000_100


def test_a_condition_of_any_depth_is_read() -> None:
    deep = "count where " + "(" * 450 + "a=1" + ")" * 450
    negated = "count where " + "not " * 230 + "a=1"
    for query in (deep, negated):
        assert answer(query, lambda _: Table([["1"]], ["a"])) == "count\n1\n"


def test_numbers_of_any_size_add_up() -> None:
    rows = [["9" * 5_000], ["1e9999"], ["1e-9999"], ["-1e9999"]]
    text = answer("sum(n), max(n)", lambda _: Table(rows, ["n"]))
    assert len(text) < 6_000
    deep = [{"a": int("9" * 4_000)}, {"a": float("inf")}, {"a": float("nan")}]
    assert "numbers: 2 of 3 cells" in answer("sum(a)", lambda _: Records(deep))


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_worker_sends_the_columns_beside_its_error(save: Save) -> None:
    pool = WorkerPool()
    decision = Decision("csv", "text/csv", "", "mime", (), mismatch=False)
    source = save(SALES.encode())
    request = PartRequest(source=source, path="sum(prize)", hints=Hints(), limits=ExtractLimits())
    with pytest.raises(OutOfRange) as caught:
        await pool.part(decision, request)
    assert caught.value.excerpt.startswith("Columns: id, region")
    answered = await pool.part(decision, PartRequest(source=source, path="count"))
    assert isinstance(answered, PartText)
    assert answered.text == "count\n4\n"
    await pool.aclose()

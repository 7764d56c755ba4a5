"""Tables of text: one row a line, whatever stands in the cells."""

from pathlib import Path

import pytest

from fetchstash.errors import BadArgument, OutOfRange
from fetchstash.handlers import Decision, Hints, PartRequest, PartText, WorkerPool
from fetchstash.text import tokens
from fetchstash.text.ranges import Preview
from tests.handlers.conftest import Read, Save
from tests.handlers.parts import handler_named, text_part

UNCLOSED = 'a,b\n1,"open\n' + "3,4\n" * 2_000
PEOPLE = "name,age,town\nann,3,ulm\nbob,4,bonn\ncy,5,kiel\n"


@pytest.mark.parametrize(
    ("lines", "facts"),
    [
        pytest.param(["a,b", "1,2"], "(comma): a integer, b integer", id="commas"),
        pytest.param(
            ["a;b", "1,5;2,5"], "(semicolon): a number, b number", id="semicolons, decimal commas"
        ),
        pytest.param(["a\tb", "1\t2"], "(tab): a integer, b integer", id="tabs"),
        pytest.param(["a|b|c", "1|2|3"], "(pipe): a integer, b integer, c integer", id="pipes"),
        pytest.param(["1,2", "3,4"], "(comma): 1 integer, 2 integer", id="no header: numbers"),
        pytest.param(
            ["2024-01-01,x", "2024-01-02,y"], "(comma): 1 date, 2 text", id="no header: a date"
        ),
        pytest.param(
            ["a\tb\tc", "1\t1\t1", "2.5\tx\t"], "(tab): a number, b text, c integer", id="types"
        ),
        pytest.param(["a,b", "1,2", "3"], "a integer, b integer", id="a row without its last cell"),
        pytest.param(
            ['"a,b",c', '"1,2",3'], "(comma): a,b number, c integer", id="commas inside of quotes"
        ),
        pytest.param(["only", "one"], "1 column (comma): only text", id="one column"),
        pytest.param(
            ["12:30,a", "12:31,b", "12:32,c"], "2 columns (comma): ", id="times are no columns"
        ),
        pytest.param(
            ["x,x,x", "x,x,x"], "2 rows × 3 columns (comma): 1 ", id="no header: it repeats itself"
        ),
    ],
)
def test_the_delimiter_and_the_header_are_found(read: Read, lines: list[str], facts: str) -> None:
    extracted, _ = read("csv", "\n".join(lines).encode())
    assert facts in extracted.facts.structure_info


def test_quotes_do_not_slow_the_dialect_down(read: Read) -> None:
    extracted, _ = read("csv", b"\n".join([b'"' * 65_536] * 3))
    assert "(comma)" in extracted.facts.structure_info


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("3", "integer"),
        ("-1,234,567", "integer"),
        ("3.5", "number"),
        ("1e-9", "number"),
        ("12 %", "text"),
        ("12%", "number"),
        ("2024-01-02", "date"),
        ("2024-01-02T03:04:05Z", "date"),
        ("1.2.2024", "date"),
        ("yes", "boolean"),
        ("", "empty"),
        ("x", "text"),
    ],
)
def test_a_cell_has_a_type(read: Read, cell: str, kind: str) -> None:
    extracted, _ = read("csv", f"key\tvalue\nk\t{cell}\n".encode())
    assert extracted.facts.structure_info.endswith(f"(tab): key text, value {kind}")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param(PEOPLE, PEOPLE, id="as it is"),
        pytest.param(PEOPLE.replace("\n", "\r\n"), PEOPLE, id="line ends of Windows"),
        pytest.param("a,b\n1,2\n\n\n3,4", "a,b\n1,2\n3,4\n", id="empty lines and no last line end"),
        pytest.param(
            'a,b\n1,"two\nlines"\n3,4\n', 'a,b\n1,"two⏎lines"\n3,4\n', id="a line feed in a cell"
        ),
        pytest.param(
            'a,b\n1,"x""\ny"""\n3,4\n', 'a,b\n1,"x""⏎y"""\n3,4\n', id="beside escaped quotes"
        ),
        pytest.param('a,b\n1,5" disk\n3,4\n', 'a,b\n1,5" disk\n3,4\n', id="a mark of inches"),
        pytest.param(UNCLOSED, UNCLOSED, id="a quote that nothing closes"),
        pytest.param("sep=;\na;b\n1;2\n", "sep=;\na;b\n1;2\n", id="Excel's separator line"),
        pytest.param("", "", id="empty"),
    ],
)
def test_a_row_is_a_line(read: Read, source: str, text: str) -> None:
    assert read("csv", source.encode())[1] == text


@pytest.mark.parametrize(
    ("source", "text", "third"),
    [
        pytest.param(
            'name\tkind\n"Salt" mill\tb\n"open\tc\n5"\td\n', None, '"open', id="a quote that opens"
        ),
        pytest.param('name\tkind\n"a\tb\nc"\td\n', None, 'c"', id="each line has all cells"),
        pytest.param(
            'name\tkind\nx\tsee:"a\ny\tsee:"b\n', None, "y", id="behind what parts no cells"
        ),
        pytest.param('"x\ty\n1\t2\n3\t4"\n', None, "3", id="in the header"),
        pytest.param(
            'name\tkind\nx\t"two\nlines"\ny\t"a\tb"\n',
            'name\tkind\nx\t"two⏎lines"\ny\t"a\tb"\n',
            "y",
            id="as Excel quotes",
        ),
        pytest.param(
            'name\tkind\nx\tsee:"a\ny\t"two\nlines"\nz\tsee:"b\n',
            'name\tkind\nx\tsee:"a\ny\t"two⏎lines"\nz\tsee:"b\n',
            "y",
            id="beside signs",
        ),
    ],
)
def test_a_quote_in_a_table_of_tabs_is_a_sign_unless_all_rows_are_well_formed_with_it(
    read: Read, save: Save, source: str, text: str | None, third: str
) -> None:
    tabs = "text/tab-separated-values"
    assert read("csv", source.encode(), media_type=tabs)[1] == (text or source)
    rows = {"unit": "rows", "start": 2, "end": 2, "hints": Hints(media_type=tabs)}
    part = text_part("csv", save(source.encode()), "1", **rows)
    assert part.text.splitlines()[-1] == third


def test_the_facts_say_rows_columns_and_types(read: Read) -> None:
    found, _ = read("csv", PEOPLE.encode())
    assert (found.facts.rows, found.facts.columns) == (3, 3)
    assert (
        found.facts.structure_info
        == "3 rows × 3 columns (comma): name text, age integer, town text"
    )
    assert found.preview == Preview(
        PEOPLE.rstrip(), rows_shown=3, total_rows=3, columns_shown=3, total_columns=3
    )


def test_a_preview_shows_both_ends_within_its_tokens(read: Read) -> None:
    source = "id,name\n" + "".join(f"{i},name {i}\n" for i in range(1, 5_001))
    found, _ = read("csv", source.encode())
    lines = found.preview.text.split("\n")
    assert lines[:2] == ["id,name", "1,name 1"]
    assert any(line.startswith("… 49") and line.endswith("more rows …") for line in lines)
    assert lines[-1] == "5000,name 5000"
    assert tokens.count(found.preview.text).tokens <= 300


def test_a_preview_of_a_wide_table_shows_its_first_columns(read: Read) -> None:
    wide = ",".join(f"column{i}" for i in range(400))
    found, _ = read("csv", f"{wide}\n{wide}\n{','.join(['1'] * 400)}\n".encode())
    assert 5 < (found.preview.columns_shown or 0) < 100
    assert found.preview.total_columns == 400
    assert tokens.count(found.preview.text).tokens <= 300


def test_columns_are_chosen_by_name_or_number(save: Save) -> None:
    source = save(PEOPLE.encode())
    found = handler_named("csv").part(
        PartRequest(source=source, path="town,1", unit="rows", start=2, end=3)
    )
    assert found == PartText("town,name\nbonn,bob\nkiel,cy\n", 3)
    with pytest.raises(OutOfRange, match="There is no column 'country'") as raised:
        handler_named("csv").part(PartRequest(source=source, path="country", unit="rows"))
    assert raised.value.excerpt.startswith("Columns: name, ")
    with pytest.raises(BadArgument, match="not rendered as an image"):
        handler_named("csv").part(PartRequest(source=source, path="", render="image"))


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_row_is_found_by_its_line(tmp_path: Path) -> None:
    source = tmp_path / "big.csv"
    source.write_text(
        "sep=,\nid,name\n"
        + "".join(f'{i},"name\n{i}"\n' if i % 10 == 0 else f"{i},x\n" for i in range(1, 100_001))
    )
    pool = WorkerPool()
    found = await pool.extract(
        source, Decision("csv", "text/csv", "", "mime", (), mismatch=False), Hints(), tmp_path
    )
    await pool.aclose()
    assert found.text is not None
    (table,) = found.ranges.tables
    assert (table.first_line, table.rows, table.columns, found.lines) == (3, 100_000, 2, 100_002)
    lines = found.text.read_text(encoding="utf-8").split("\n")
    assert lines[table.first_line + 77_777 - 2] == "77777,x"
    assert lines[table.first_line + 77_780 - 2] == '77780,"name⏎77780"'


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ('1,"x' + '"",""' * 100_000, 2),
        ('1,"' + '""' * 300_000, 2),
        ('1,"x"' + ',"x"' * 100_000 + ' and 5"', 4),
        ('1,5" pipe', 4),
    ],
    ids=["open", "open, of quotes", "closed", "a mark of inches"],
)
def test_a_cell_that_a_line_leaves_open_goes_on_in_the_next(
    read: Read, line: str, lines: int
) -> None:
    text = read("csv", f'a,b\n{line}\n2,"y"\n3,4"\n'.encode())[1]
    assert text.count("\n") == lines

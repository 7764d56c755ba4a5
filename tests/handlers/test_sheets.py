"""Spreadsheets, XLS and XLSB too: a table for each sheet, one row a line."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import io
import struct
import zipfile
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from fetchstash.errors import FetchstashError, NoText, OutOfRange
from fetchstash.handlers import ExtractLimits, Hints, Part, PartText, format_of, route_file
from fetchstash.text import PreviewLimits, tokens
from tests.handlers.compounds import compound
from tests.handlers.conftest import Pack, Read, Save
from tests.handlers.parts import handler_named, text_part

Workbook = Callable[..., bytes]

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
OPENING = f"<worksheet {MAIN} xmlns:r='{RELATIONS}'><sheetData>"
PACKAGE = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'


def text(place: str, value: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


def number(place: str, value: float, style: int = 0) -> str:
    return f'<c r="{place}" s="{style}"><v>{value}</v></c>'


def rows_of(*rows: str) -> str:
    return "".join(f"<row>{row}</row>" for row in rows)


@pytest.fixture
def xlsx(pack: Pack) -> Workbook:
    def make(sheets: Mapping[str, str], hidden: str = "", links: str = "") -> bytes:
        """Return a workbook of sheets by name; style 1 is a date and a time (number format 22).

        ``links`` stand in all sheets; the relationship "web" of the first is an address.
        """
        states = [' state="hidden"' if name == hidden else "" for name in sheets]
        numbers = range(1, len(sheets) + 1)
        named = zip(sheets, numbers, states, strict=True)
        listed = "".join(
            f'<sheet name="{name}" sheetId="{n}" r:id="rId{n}"{state}/>' for name, n, state in named
        )
        relations = "".join(
            f'<Relationship Id="rId{n}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in numbers
        )
        styles = f'<Relationship Id="styles" Type="{RELATIONS}/styles" Target="styles.xml"/>'
        root = f'<Relationship Id="a" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/>'
        return pack(
            {
                "[Content_Types].xml": "<Types/>",
                "_rels/.rels": f"<Relationships {PACKAGE}>{root}</Relationships>",
                "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{RELATIONS}"><sheets>{listed}</sheets></workbook>',
                "xl/_rels/workbook.xml.rels": f"<Relationships {PACKAGE}>{relations}{styles}</Relationships>",
                "xl/worksheets/_rels/sheet1.xml.rels": f'<Relationships {PACKAGE}><Relationship Id="web" Type="{RELATIONS}/hyperlink" Target="https://example.org/" TargetMode="External"/></Relationships>',
                "xl/styles.xml": f'<styleSheet {MAIN}><cellXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs></styleSheet>',
                **{
                    f"xl/worksheets/sheet{n}.xml": f"{OPENING}{content}</sheetData>{links}</worksheet>"
                    for n, content in enumerate(sheets.values(), start=1)
                },
            }
        )

    return make


def test_each_sheet_is_a_table_of_one_row_a_line(save: Save, xlsx: Workbook) -> None:
    people = rows_of(
        text("A1", "Name") + text("B1", "Age"),
        text("A2", "Ada") + number("B2", 36),
        text("A3", "Bob") + number("B3", 41.5),
    )
    data = xlsx(
        {"People": people, "Secret": rows_of(text("A1", "x")), "Empty": ""}, hidden="Secret"
    )
    extracted = handler_named("sheets").extract(save(data), Hints(), ExtractLimits())
    assert extracted.parts is not None
    parts = list(extracted.parts)
    assert "".join(part.text for part in parts) == (
        "## People (A1:B3)\nName\tAge\nAda\t36\nBob\t41.5\n\n## Secret (A1:A1, hidden)\nx\n\n## Empty (empty)\n\n"
    )
    tables = [(part.table, part.columns) for part in parts if part.table]
    assert tables == [("People", 2), ("Secret", 1)]
    assert sum(part.rows for part in parts) == 2
    headings = [heading.title for part in parts for heading in part.headings]
    assert headings == ["People", "Secret", "Empty"]
    assert extracted.facts.sheets == 3
    assert extracted.facts.structure_info == "People (A1:B3): Name, Age; Secret (A1:A1, hidden): x"


def test_merged_cells_keep_their_place_and_count_once(save: Save, xlsx: Workbook) -> None:
    rows = rows_of(
        text("A1", "Town") + text("B1", "Year") + text("C1", "Budget"),
        text("A2", "Rome") + number("B2", 2024) + number("C2", 7),
        number("B3", 2025),
        text("A4", "Both years") + number("C4", 5),
    )
    merges = "".join(f'<mergeCell ref="{ref}"/>' for ref in ("A2:A3", "C2:C3", "A4:B4"))
    source = save(xlsx({"Towns": rows}, links=f"<mergeCells>{merges}</mergeCells>"))
    extracted = handler_named("sheets").extract(source, Hints(), ExtractLimits())
    assert "".join(part.text for part in extracted.parts or ()) == (
        "## Towns (A1:C4)\nTown\tYear\tBudget\nRome\t2024\t7\n\t2025\t\nBoth years\t\t5\n\n"
    )
    total = text_part("sheets", source, "sum(Budget)").text
    assert total.splitlines()[-1] == "12"


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (number("A2", 5.0), "5"),
        (number("A2", 0.1), "0.1"),
        (number("A2", 1e20), "1e+20"),
        (number("A2", 46143, 1), "2026-05-01"),
        (number("A2", 46143.5, 1), "2026-05-01T12:00:00"),
        ('<c r="A2" t="b"><v>1</v></c>', "TRUE"),
        ('<c r="A2"><f>1+1</f><v>2</v></c>', "2"),
        (text("A2", "two\nlines\tand a tab"), "two⏎lines and a tab"),
    ],
    ids=["whole", "fraction", "huge", "day", "time", "truth", "formula", "line end"],
)
def test_a_value_is_written_as_its_type_asks(
    read: Read, xlsx: Workbook, cell: str, shown: str
) -> None:
    _, got = read("sheets", xlsx({"S": rows_of(text("A1", "Head"), cell)}))
    assert got.split("\n")[2] == shown


def test_rows_without_a_value_are_left_out_and_columns_stay_in_line(
    read: Read, xlsx: Workbook
) -> None:
    sheet = f'<row r="3">{text("B3", "x")}{text("D3", "y")}</row><row r="9">{text("D9", "z")}</row>'
    assert read("sheets", xlsx({"S": sheet}))[1] == "## S (B3:D9)\nx\t\ty\n\t\tz\n\n"


def test_many_rows_come_in_batches_and_the_preview_shows_both_ends(
    save: Save, xlsx: Workbook
) -> None:
    rows = [text("A1", "Row"), *(number(f"A{n}", n) for n in range(2, 2_502))]
    limits = ExtractLimits(preview=PreviewLimits(rows_head=2, rows_tail=1))
    extracted = handler_named("sheets").extract(save(xlsx({"S": rows_of(*rows)})), Hints(), limits)
    parts: list[Part] = list(extracted.parts or ())
    assert [part.rows for part in parts] == [0, 1_000, 1_000, 500, 0]
    assert (extracted.facts.rows, extracted.facts.columns) == (2_500, 1)
    assert extracted.preview.text == "## S (A1:A2501)\nRow\n2\n3\n… 2497 more rows …\n2501"
    assert (extracted.preview.rows_shown, extracted.preview.total_rows) == (3, 2_500)


@pytest.mark.parametrize("width", [10, 4_000])
def test_a_preview_has_300_tokens_at_the_most(read: Read, xlsx: Workbook, width: int) -> None:
    rows = [text(f"A{n}", "x" * width) for n in range(1, 100)]
    extracted, _ = read("sheets", xlsx({"S": rows_of(*rows), "T": rows_of(*rows)}))
    assert tokens.count(extracted.preview.text).tokens <= 300


@pytest.mark.parametrize(
    "row",
    [
        '<row r="4294967295"><c><v>1</v></c></row>',
        "<row r='4294967295'><c><v>1</v></c></row>",
        f"<row>{number('A4294967295', 1)}</row>",
        f"<row>{number('a01048577', 1)}</row>",
        f"<row>{number('ZZZZ1', 1)}</row>",
        " " * 5_000_000 + f"<row>{number('A4294967295', 1)}</row>",
        f"<row>{' ' * (65_521 - len(OPENING))}{number('A1048577', 1)}</row>",
    ],
    ids=["row", "single quotes", "cell", "one too many", "column", "far behind", "cut in two"],
)
def test_a_cell_that_no_sheet_can_have_is_refused(read: Read, xlsx: Workbook, row: str) -> None:
    with pytest.raises(NoText, match="behind the last of a sheet, XFD1048576"):
        read("sheets", xlsx({"S": row}))


@pytest.mark.slow
def test_the_last_cell_of_a_sheet_is_read(read: Read, xlsx: Workbook) -> None:
    text = read("sheets", xlsx({"S": f"<row>{number('XFD1048576', 1)}</row>"}))[1]
    assert text == "## S (XFD1048576:XFD1048576)\n1\n\n"


def test_an_opendocument_spreadsheet_is_read(read: Read, pack: Pack) -> None:
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    cells = (
        '<table:table-cell office:value-type="string"><text:p>Name</text:p></table:table-cell>'
        '<table:table-cell office:value-type="float" office:value="7"><text:p>7</text:p></table:table-cell>'
    )
    table = (
        f'<table:table table:name="Data"><table:table-row>{cells}</table:table-row></table:table>'
    )
    body = f"<office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>"
    data = pack(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "content.xml": f"<office:document-content {spaces}>{body}</office:document-content>",
            "META-INF/manifest.xml": '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
        }
    )
    assert read("sheets", data)[1] == "## Data (A1:B1)\nName\t7\n\n"


def test_an_opendocument_spreadsheet_with_white_space_between_cells_is_read_as_markdown(
    read: Read,
) -> None:
    cells = "".join(
        f"<table:table-cell>\n  <text:p>{text}</text:p>\n</table:table-cell>\n"
        for text in ("Name", "Age")
    )
    content = (
        f"<o>\n<table:table>\n<table:table-row>\n{cells}</table:table-row>\n</table:table>\n</o>"
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as container:
        container.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        container.writestr("content.xml", content)
    assert read("sheets", out.getvalue())[1] == "| Name | Age |\n| --- | --- |\n\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"no spreadsheet", "damaged, cut short or encrypted"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "damaged, cut short or encrypted"),
        (b"PK\x03\x04", "cut short"),
    ],
    ids=["empty", "text", "OLE", "zip"],
)
def test_an_invalid_spreadsheet_gives_one_clear_line(read: Read, data: bytes, reason: str) -> None:
    with pytest.raises(NoText, match=reason):
        read("sheets", data)


def test_a_spreadsheet_without_values_is_reported(read: Read, xlsx: Workbook) -> None:
    with pytest.raises(NoText, match="holds no value"):
        read("sheets", xlsx({"S": ""}))


def test_a_preview_of_many_sheets_shows_the_first_and_names_the_others(
    read: Read, xlsx: Workbook
) -> None:
    rows = [
        text(f"{column}{n}", f"{column} of row {n}") for n in range(1, 50) for column in "ABCDEF"
    ]
    extracted, _ = read("sheets", xlsx({f"Sheet {n}": rows_of(*rows) for n in range(9)}))
    shown = extracted.preview.text.split("\n")
    assert shown[0] == "## Sheet 0 (A1:F49)"
    assert shown[1].startswith("A of row 1\tB of row 1\t")
    assert shown[-8:] == [f"## Sheet {n} (A1:F49)" for n in range(1, 9)]
    assert extracted.preview.total_rows == 9 * 48
    assert tokens.count(extracted.preview.text).tokens <= 200


def formula(place: str, words: str, value: str = "", **attributes: str) -> str:
    told = "".join(f' {name}="{text}"' for name, text in attributes.items())
    return f'<c r="{place}"><f{told}>{words}</f>{f"<v>{value}</v>" if value else ""}</c>'


SUMS = rows_of(
    text("A1", "Name") + text("B1", "Sum"),
    text("A2", "Ada") + formula("B2", "A9*2", "4", t="shared", si="0", ref="B2:B3"),
    text("A3", "Bob") + formula("B3", "", "6", t="shared", si="0"),
    text("A4", "All") + formula("B4", "SUM(B2:B3)"),
    '<c r="A5" t="e"><v>#REF!</v></c><c r="B5" t="e"><f>1/0</f><v>#DIV/0!</v></c>',
    '<c r="A6" t="str"><f>T(A9)</f><v></v></c>' + number("B6", 1),
    formula("D9", "Other!A1"),
)


def test_what_a_cell_has_instead_of_a_value_is_shown(read: Read, xlsx: Workbook) -> None:
    extracted, sheets = read("sheets", xlsx({"S": SUMS}))
    headings = [heading for part in extracted.parts or () for heading in part.headings]
    assert [(heading.title, heading.level) for heading in headings] == [
        ("S", 1),
        ("Other cells", 1),
    ]
    assert sheets == (
        "## S (A1:B6)\nName\tSum\nAda\t4\nBob\t6\nAll\t=SUM(B2:B3) (no value kept)\n#REF!\t#DIV/0!\n\t1\n\n"
        "## Other cells\n\n- S!D9: =Other!A1 (no value kept)\n\n"
    )


def test_a_workbook_of_formulas_whose_values_were_not_kept_is_no_empty_one(
    read: Read, xlsx: Workbook
) -> None:
    text = read("sheets", xlsx({"S": rows_of("<c><f>1+1</f></c>")}))[1]
    assert "=1+1 (no value kept)" in text


def test_formulas_are_read_by_path_with_their_values(save: Save, xlsx: Workbook) -> None:
    source = save(xlsx({"S": SUMS, "Other": rows_of(formula("A1", "S!B2", "4"))}))
    other = "Other!A1: =S!B2 → 4\n"
    part = text_part("sheets", source, "formulas")
    assert part.text == (
        "S!B2: =A9*2 → 4\nS!B3: as B2, moved → 6\nS!B4: =SUM(B2:B3) (no value kept)\n"
        f"S!B5: =1/0 → #DIV/0!\nS!A6: =T(A9) → \nS!D9: =Other!A1 (no value kept)\n{other}"
    )
    part = text_part("sheets", source, "formulas/Other")
    assert part == PartText(other, 1)
    with pytest.raises(OutOfRange, match="no formulas at 'formulas/None'"):
        text_part("sheets", source, "formulas/None")


@pytest.mark.parametrize("path", ["formulas", "formulas/S"])
def test_a_workbook_declares_that_paths_reach_its_formulas(
    save: Save, xlsx: Workbook, path: str
) -> None:
    decision = route_file(save(xlsx({"S": SUMS})), {}, "book.xlsx")
    assert any(fnmatchcase(path, pattern) for pattern in format_of(decision).paths)


def test_links_of_cells_are_shown_with_their_texts(read: Read, xlsx: Workbook) -> None:
    rows = rows_of(text("A1", "Site") + text("B1", "https://example.org/"), text("A2", "sheet"))
    links = (
        '<hyperlinks><hyperlink ref="A1" r:id="web" location="top"/><hyperlink ref="B1" r:id="web"/>'
        '<hyperlink ref="A2:A3" location="T!A1"/><hyperlink ref="C9" r:id="web"/></hyperlinks>'
    )
    assert read("sheets", xlsx({"S": rows}, links=links))[1] == (
        "## S (A1:B2)\n[Site](https://example.org/#top)\thttps://example.org/\n[sheet](#T!A1)\t\n\n"
        "## Other cells\n\n- S!C9: https://example.org/\n\n"
    )


def test_very_many_formulas_are_shown_up_to_a_limit_that_is_named(
    read: Read, xlsx: Workbook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fetchstash.handlers._data._sheet_cells._MAX_CELLS", 1_000)
    row = f"<row>{'<c><f>A1</f><v>1</v></c>' * 100}</row>"
    text = read("sheets", xlsx({"S": row * 11}))[1]
    assert "- S: not all of its formulas, errors and links were looked at\n" in text


def test_a_query_reads_the_sheet_that_it_names_below_its_title(save: Save, xlsx: Workbook) -> None:
    title, header = text("A1", "Sales of 2024"), text("A2", "town") + text("B2", "sum")
    rows = [text(f"A{n}", f"t{n % 2}") + number(f"B{n}", n / 10) for n in (3, 4, 5)]
    first = rows_of(title, header, *rows)
    source = save(xlsx({"One": first, "Empty": ""}))
    assert text_part("sheets", source, "sum(sum) by town").text == "town,sum(sum)\nt1,0.8\nt0,0.4\n"
    source = save(xlsx({"One": first, "Two b": first}))
    assert text_part("sheets", source, 'count from "two B"').text == "count\n3\n"
    for query in ("count", "count from three"):
        with pytest.raises(FetchstashError) as caught:
            text_part("sheets", source, query)
        assert caught.value.excerpt == 'Tables: One, "Two b"\nFor example: count from One'


# Converted by LibreOffice 7.4 from an XLSX by openpyxl.
XLS = (Path(__file__).parent / "data" / "sales.xls").read_bytes()
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def record(kind: int, content: bytes = b"") -> bytes:
    """Return a record: number and length, in groups of seven bits ([MS-XLSB], section 2.1.4)."""
    number = bytes([kind]) if kind < 128 else bytes([kind & 0x7F | 0x80, kind >> 7])
    return number + bytes([len(content)]) + content


def wide(text: str) -> bytes:
    return struct.pack("<L", len(text)) + text.encode("utf-16-le")


def cell(kind: int, column: int, value: bytes) -> bytes:
    return record(kind, struct.pack("<LL", column, 0) + value)


@pytest.fixture
def xlsb(pack: Pack) -> bytes:
    """Return a workbook of one sheet with text, numbers and truths."""
    return packed_xlsb(pack)


def packed_xlsb(pack: Pack, *, damage: bytes = b"") -> bytes:
    text, real, truth, row, bundle = 6, 5, 4, 0, 156
    sheet = b"".join(
        (
            record(129),
            record(148, struct.pack("<4L", 0, 1, 0, 2)),
            record(145),
            damage,
            record(row, struct.pack("<L13x", 0)),
            *(
                cell(text, column, wide(name))
                for column, name in enumerate(("Town", "Sold", "Open"))
            ),
            record(row, struct.pack("<L13x", 1)),
            cell(text, 0, wide("Łódź")),
            cell(real, 1, struct.pack("<d", 12)),
            cell(truth, 2, b"\1"),
            record(row, struct.pack("<L13x", 2)),
            cell(text, 0, wide("Zürich")),
            cell(real, 1, struct.pack("<d", 1.25)),
            cell(truth, 2, b"\0"),
            record(146),
            record(130),
        )
    )
    workbook = (
        record(131)
        + record(143)
        + record(bundle, struct.pack("<2L", 0, 1) + wide("rId1") + wide("Sales"))
        + record(144)
    )
    related = (
        f'<Relationship Id="rId1" Type="{RELATION}/worksheet" Target="worksheets/sheet1.bin"/>'
    )
    return pack(
        {
            "[Content_Types].xml": "<Types/>",
            "xl/workbook.bin": workbook + record(132),
            "xl/_rels/workbook.bin.rels": f"<Relationships {PACKAGE}>{related}</Relationships>",
            "xl/worksheets/sheet1.bin": sheet,
        }
    )


def test_a_workbook_of_excel_97_is_read(save: Save, read: Read) -> None:
    assert route_file(save(XLS), {}, "").media_type == "application/vnd.ms-excel"
    extracted, text = read("sheets", XLS)
    assert text == (
        "## Sales (A1:E4)\nTown\tSold\tRate\tDay\tOpen\nŁódź\t12\t0.5\t2026-11-21\tTRUE\n"
        "Zürich\t7\t1.25\t2026-11-21 7:30:00\tFALSE\nSum\t19\t\t\t\n\n"
        "## Notes (B2:B2)\nfar away\n\n"
    )
    assert extracted.facts.sheets == 2


def test_a_binary_workbook_is_read(save: Save, read: Read, xlsb: bytes) -> None:
    assert (
        route_file(save(xlsb), {}, "").media_type
        == "application/vnd.ms-excel.sheet.binary.macroenabled.12"
    )
    _, text = read("sheets", xlsb)
    assert text == "## Sales (A1:C3)\nTown\tSold\tOpen\nŁódź\t12\tTRUE\nZürich\t1.25\tFALSE\n\n"


@pytest.mark.parametrize(
    "data",
    [XLS[:2_000], compound({"Workbook": b"x" * 5_000}), compound({"Workbook": b""})],
    ids=["cut", "garbage", "empty"],
)
def test_a_damaged_workbook_gives_one_clear_line(read: Read, data: bytes) -> None:
    with pytest.raises(NoText, match=r"damaged, cut short or encrypted|holds no value"):
        read("sheets", data)


def test_a_text_that_is_in_no_table_is_one_clear_line(read: Read, pack: Pack) -> None:
    shared_string = record(7, bytes(12))  # the library's Rust panics at it
    with pytest.raises(NoText, match="damaged"):
        read("sheets", packed_xlsb(pack, damage=shared_string))

"""Numbers of spreadsheets are read as a person sees them, and asked for as they are kept."""

# ruff: noqa: E501 - a row of a sheet on one line reads better than in pieces

import datetime as dt
from collections.abc import Mapping
from html import escape
from pathlib import Path

import pytest

from fetchstash.errors import FetchstashError
from fetchstash.handlers import ExtractLimits, Hints
from fetchstash.handlers._data._number_formats import Cell, formatter
from tests.handlers.conftest import Pack, Read, Save
from tests.handlers.parts import data_file, handler_named, text_part
from tests.handlers.test_sheets import MAIN, PACKAGE, RELATIONS, number, rows_of, text

ACCOUNTING = '_-* #,##0.00_-;-* #,##0.00_-;_-* "-"??_-;_-@_-'
DAY = dt.datetime(2026, 1, 31, 7, 5, 9)  # noqa: DTZ001 - cells know no zone
SHOWN: Mapping[str, tuple[Cell, str | None]] = {
    "0%": (0.256, "26%"),
    "0.0%": (0.2564, "25.6%"),
    "0.00%;[Red]-0.00%": (-0.1234, "-12.34%"),
    "#,##0": (1234567, "1,234,567"),
    "#,##0.00": (-0.5, "-0.50"),
    "0.00": (2.675, "2.68"),  # is stored as a little less
    "0": (2.5, "3"),
    "00000": (42, "00042"),
    "0.##": (5, "5."),
    "#.##": (0.5, ".5"),
    "#,##0.0##": (1234.5, "1,234.5"),
    '"$"#,##0.00_);("$"#,##0.00)': (-5, "($5.00)"),
    "$#,##0.00": (-5, "-$5.00"),
    "#,##0.00 [$€-407]": (1234.5, "1,234.50 €"),
    "[$¥-411]#,##0": (1200, "¥1,200"),
    ACCOUNTING: (0, "-"),
    '0.0,,"M"': (12345678, "12.3M"),
    "0.0,": (1500, "1.5"),
    "# ?/?": (1.5, "1 1/2"),
    "# ??/??": (0.3333, "1/3"),
    "?/8": (0.25, "2/8"),
    "0.00E+00": (123456, "1.23E+05"),
    "##0.0E+0": (0.00012, "120.0E-6"),
    "000-00-0000": (123456789, "123-45-6789"),
    '[<0]"low";[>=100]0;0.0': (150, "150"),
    '"Yes";"Yes";"No"': (0, "No"),
    'General" kg"': (5.5, "5.5 kg"),
    '0.0" °C"': (21, "21.0 °C"),
    "[h]:mm:ss": (dt.timedelta(hours=26, minutes=3), "26:03:00"),
    "[mm]:ss": (dt.timedelta(minutes=90, seconds=5), "90:05"),
    "mm:ss.0": (dt.time(0, 1, 2, 500_000), "01:02.5"),
    "h:mm AM/PM": (dt.time(15, 5), "3:05 PM"),
    "dd.mm.yyyy": (DAY, "31.01.2026"),
    "mmm yyyy": (DAY, "Jan 2026"),
    "dddd, mmmm d, yyyy": (DAY, "Saturday, January 31, 2026"),
    "yyyy-mm-dd hh:mm": (DAY, "2026-01-31 07:05"),
    'hh"h"mm': (DAY, "07h05"),
    "m/d/yyyy": (DAY, None),  # 3/4/2026 is another day elsewhere
    "dd-mm-yy": (DAY, None),
    "General": (0.1, None),
    "@": (7, None),
    ";;;": (7, None),
    "0.0": ("text", None),
    '"': (7, None),
    "[": (7, "["),
    "yyyy": (1e300, None),
}


@pytest.mark.parametrize(
    ("code", "value", "shown"), [(c, *v) for c, v in SHOWN.items()], ids=list(SHOWN)
)
def test_a_number_is_written_by_its_format(code: str, value: Cell, shown: str | None) -> None:
    look = formatter(code)
    assert (look(value) if look else None) == shown


CODES = ("General", "0.0%", '"$"#,##0.00', "[h]:mm:ss", "# ?/?", "0.00E+00", "mmm yyyy", "@")
PERCENT, DOLLARS, HOURS, PART, POWER, MONTH, SIGNS = range(1, 8)
STYLES = (
    "<numFmts>"
    + "".join(
        f'<numFmt numFmtId="{164 + n}" formatCode="{escape(c)}"/>' for n, c in enumerate(CODES)
    )
    + '</numFmts><fonts><font><name val="Arial"/></font><font><name val="Wingdings"/></font></fonts><cellXfs>'
    + "".join(f'<xf numFmtId="{164 + n}" fontId="{int(n == SIGNS)}"/>' for n in range(len(CODES)))
    + "</cellXfs>"
)
HEAD = text("A1", "Kind") + text("B1", "Value")
SIGN = '<c r="B8" t="inlineStr" s="7"><is><t>ü</t></is></c>'
NUMBERS = rows_of(
    HEAD,
    text("A2", "share") + number("B2", 0.256, PERCENT),
    text("A3", "price") + number("B3", 1234.5, DOLLARS),
    text("A4", "time") + number("B4", 1.125, HOURS),
    text("A5", "part") + number("B5", 0.75, PART),
    text("A6", "power") + number("B6", 123456, POWER),
    text("A7", "month") + number("B7", 46053, MONTH),
    text("A8", "done") + SIGN,
    text("A9", "plain") + number("B9", 0.30000000000000004),
)
LINES = (
    "Kind\tValue\nshare\t25.6%\nprice\t$1,234.50\ntime\t27:00:00\npart\t3/4\npower\t1.23E+05\nmonth\tJan 2026\n"
    "done\t✓\nplain\t0.3\n"
)


SHEETS = "application/vnd.openxmlformats-officedocument.spreadsheetml."
CONTENT_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{SHEETS}sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{SHEETS}worksheet+xml"/>'
    f'<Override PartName="/xl/styles.xml" ContentType="{SHEETS}styles+xml"/></Types>'
)


def workbook(pack: Pack, rows: str, before: str = "") -> bytes:
    """Return a workbook of one sheet; ``before`` stands before its rows."""
    root = f'<Relationship Id="a" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/>'
    sheet = f'<Relationship Id="s" Type="{RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/>'
    styles = f'<Relationship Id="t" Type="{RELATIONS}/styles" Target="styles.xml"/>'
    return pack(
        {
            "[Content_Types].xml": CONTENT_TYPES,
            "_rels/.rels": f"<Relationships {PACKAGE}>{root}</Relationships>",
            "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{RELATIONS}"><sheets><sheet name="S" sheetId="1" r:id="s"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f"<Relationships {PACKAGE}>{sheet}{styles}</Relationships>",
            "xl/styles.xml": f"<styleSheet {MAIN}>{STYLES}</styleSheet>",
            "xl/worksheets/sheet1.xml": f"<worksheet {MAIN}>{before}<sheetData>{rows}</sheetData></worksheet>",
        }
    )


def test_cells_of_an_xlsx_are_shown_by_their_formats_and_asked_for_as_they_are_kept(
    read: Read, save: Save, pack: Pack
) -> None:
    data = workbook(pack, NUMBERS)
    assert read("sheets", data)[1] == f"## S (A1:B9)\n{LINES}\n"
    answer = text_part("sheets", save(data), 'sum(Value) where Kind = "share"').text
    assert answer.splitlines()[-1] == "0.256"


@pytest.mark.parametrize("name", ["formats.ods", "formats.xls"])
def test_cells_of_other_workbooks_are_shown_as_libreoffice_shows_them(
    read: Read, save: Save, name: str
) -> None:
    data = data_file(name)
    title, _, *lines = read("sheets", data)[1].splitlines()
    assert title == "## S (A1:C11, hidden row 10, hidden column C)"
    assert [line.rstrip("\t") for line in lines[:8]] == LINES.splitlines()[1:]
    assert "secret\t7\t\t(hidden row)" in lines
    answer = text_part("sheets", save(data), 'sum(Value) where Kind = "share"').text
    assert answer.splitlines()[-1] == "0.256"


def test_attributes_of_a_cell_come_in_any_order(read: Read, pack: Pack) -> None:
    cell = "<c s='1' t=\"n\" r='A2'><v>0.5</v></c>"
    assert (
        read("sheets", workbook(pack, rows_of(text("A1", "x"), cell)))[1].split("\n")[2] == "50.0%"
    )


def test_hidden_rows_and_columns_are_told(read: Read, pack: Pack) -> None:
    columns = '<cols><col min="2" max="2" width="9" hidden="1"/><col min="4" max="16384" width="0"/></cols>'
    rows = "".join(
        f'<row r="{n}" {"hidden" if n in {2, 3} else "x"}="1">{text(f"A{n}", f"a{n}")}{number(f"C{n}", n)}</row>'
        for n in range(1, 5)
    )
    assert read("sheets", workbook(pack, rows, columns))[1] == (
        "## S (A1:C4, hidden rows 2-3, hidden column B)\na1\t\t1\na2\t\t2\t(hidden row)\na3\t\t3\t(hidden row)\na4\t\t4\n\n"
    )


def row(at: int, *values: str | int) -> str:
    """Return a row; "" is no cell."""
    cells = [
        text(f"{'ABC'[n]}{at}", v) if isinstance(v, str) else number(f"{'ABC'[n]}{at}", v)
        for n, v in enumerate(values)
        if v != ""
    ]
    return f'<row r="{at}">{"".join(cells)}</row>'


TWO = (
    row(1, "Sales of 2026")
    + row(2, "town", "sold")
    + row(3, "Rome", 1)
    + row(4, "Oslo", 2)
    + row(7, "Costs of 2026")
    + row(9, "what", "euros", "paid")
    + row(10, "rent", 500, "yes")
    + row(12, "pay", 700, "no")  # a blank row that parts nothing
)


def test_blank_rows_part_two_tables_and_a_title_is_no_header(
    read: Read, save: Save, pack: Pack
) -> None:
    data = workbook(pack, TWO)
    extracted, whole = read("sheets", data)
    assert whole == (
        "## S (A1:C12)\nSales of 2026\ntown\tsold\t\nRome\t1\t\nOslo\t2\t\n\n"
        "### S, table 2\nCosts of 2026\nwhat\teuros\tpaid\nrent\t500\tyes\npay\t700\tno\n\n"
    )
    parts = [(part.table, part.rows) for part in extracted.parts or () if part.table or part.rows]
    assert parts == [("S", 0), (None, 2), ("S, table 2", 0), (None, 2)]
    source = save(data)
    assert text_part("sheets", source, 'sum(euros) from "S, table 2"').text == "sum(euros)\n1200\n"
    assert text_part("sheets", source, "sum(sold) from S").text == "sum(sold)\n3\n"
    with pytest.raises(FetchstashError) as caught:
        text_part("sheets", source, "count")
    assert 'Tables: S, "S, table 2"' in caught.value.excerpt


@pytest.mark.parametrize("part", ["styles", "sheet"])
def test_damage_costs_the_looks_alone(save: Save, pack: Pack, part: str) -> None:
    data = workbook(pack, NUMBERS)
    broken = STYLES.replace("<cellXfs>", "<cellXfs><") if part == "styles" else STYLES
    source = save(data.replace(STYLES.encode(), broken.encode()))
    found = handler_named("sheets").extract(source, Hints(), ExtractLimits())
    assert "share" in "".join(piece.text for piece in found.parts or ())


def make_formats(pack: Pack, folder: Path) -> Path:
    """Write the workbook that LibreOffice made ``formats.ods`` and ``formats.xls`` of."""
    before = '<cols><col min="3" max="3" width="9" hidden="1"/></cols>'
    rows = NUMBERS + f'<row r="10" hidden="1">{text("A10", "secret")}{number("B10", 7)}</row>'
    path = folder / "formats.xlsx"
    path.write_bytes(workbook(pack, rows + row(11, "last", 1, "c"), before))
    return path

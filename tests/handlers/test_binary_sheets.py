"""XLS and XLSB: workbooks of Excel in its two binary formats."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import struct
from pathlib import Path

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers import route_file
from tests.handlers.compounds import compound
from tests.handlers.conftest import Pack, Read, Save

# Converted by LibreOffice 7.4 from an XLSX by openpyxl.
XLS = (Path(__file__).parent / "data" / "sales.xls").read_bytes()

PACKAGE = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
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
            *(cell(text, column, wide(name)) for column, name in enumerate(("Town", "Sold", "Open"))),
            record(row, struct.pack("<L13x", 1)),
            cell(text, 0, wide("Łódź")), cell(real, 1, struct.pack("<d", 12)), cell(truth, 2, b"\1"),
            record(row, struct.pack("<L13x", 2)),
            cell(text, 0, wide("Zürich")), cell(real, 1, struct.pack("<d", 1.25)), cell(truth, 2, b"\0"),
            record(146),
            record(130),
        )
    )  # fmt: skip
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
        "Zürich\t7\t1.25\t2026-11-21T07:30:00\tFALSE\nSum\t19\t\t\t\n\n"
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

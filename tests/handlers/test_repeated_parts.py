"""Small files that name one part, or try one thing, thousands of times: it is read once."""

# ruff: noqa: E501 - a hostile file on one line reads better than in pieces

import struct
import sys
import threading
from collections.abc import Callable
from types import FrameType

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers import ExtractLimits, Hints, handler_named
from tests.handlers.compounds import compound, wide
from tests.handlers.conftest import Read, Save
from tests.handlers.hostile.documents import epub, odf, packed, wasteful, workbook

TYPES = {"[Content_Types].xml": "<Types/>"}
TIMES = 300


def related(kind: str) -> str:
    rows = (f'<Relationship Id="r{n}" Type="x/{kind}" Target="again.xml"/>' for n in range(TIMES))
    return f"<R>{''.join(rows)}</R>"


def docx(kind: str, body: str, part: str) -> bytes:
    return packed(TYPES | {
        "word/document.xml": f'<w:d xmlns:w="w" xmlns:c="c" xmlns:r="r">{body}</w:d>',
        "word/_rels/document.xml.rels": related(kind),
        "word/again.xml": part,
    })  # fmt: skip


def odt() -> bytes:
    frames = '<draw:frame><draw:object xlink:href="./O"/></draw:frame>' * TIMES
    chart = '<chart:chart chart:class="chart:bar"><chart:title><text:p>Once</text:p></chart:title></chart:chart>'
    return odf("text", f"<o><text:p>x{frames}</text:p></o>", {"O/content.xml": f"<o>{chart}</o>"})


def xlsx() -> bytes:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    sheets = "".join(f'<sheet name="s{n}" sheetId="{n + 1}" r:id="r0"/>' for n in range(TIMES))
    cell = '<row r="1"><c r="A1" t="str"><v>Once</v></c></row>'
    return packed(TYPES | workbook() | {
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>{sheets}</sheets></workbook>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{cell}</sheetData></worksheet>',
    })  # fmt: skip


def book() -> bytes:
    items = "".join(f'<item id="c{n}" href="./c.xhtml"/>' for n in range(TIMES))
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(TIMES))
    return epub("<p>Once</p>", package=f"<p>{items}{spine}</p>")


def record(kind: int, content: bytes, *, inside: bool = False, instance: int = 0) -> bytes:
    return struct.pack("<HHL", instance << 4 | (0xF if inside else 0), kind, len(content)) + content


def ppt() -> bytes:
    """Return slides that all have the same notes ([MS-PPT], sections 2.3.4, 2.4.14.3, 2.5.10)."""

    def texts(kind: int, text: bytes) -> bytes:
        content = record(0x0F9F, struct.pack("<L", kind)) + record(0x0FA8, text)
        return record(0xF00D, content, inside=True)

    def listed(instance: int, numbers: dict[int, int]) -> bytes:
        rows = (record(0x03F3, struct.pack("<L8xL4x", *pair)) for pair in numbers.items())
        return record(0x0FF0, b"".join(rows), inside=True, instance=instance)

    notes = record(0x03F0, texts(2, b"Once"), inside=True)
    slide = record(0x03EE, record(0x03EF, struct.pack("<16xL4x", 7)) + texts(0, b"x"), inside=True)
    numbers = range(2, TIMES + 2)
    document = record(
        0x03E8, listed(0, {n: 254 + n for n in numbers}) + listed(2, {9_999: 7}), inside=True
    )
    places = {9_999: 0, **{n: len(notes) + (n - 2) * len(slide) for n in numbers}}
    places[1] = len(notes) + TIMES * len(slide)
    directory = b"".join(struct.pack("<LL", n | 1 << 20, place) for n, place in places.items())
    stream = notes + slide * TIMES + document
    edit = len(stream) + 8 + len(directory)
    last = struct.pack("<7L", 0, 0, 0, len(stream), 1, 0, 0)
    return compound({
        "PowerPoint Document": stream + record(0x1772, directory) + record(0x0FF5, last),
        "Current User": struct.pack("<8xLLL", 20, 0, edit),
    })  # fmt: skip


TITLE = "<c:chart><c:title><a:t>Once</a:t></c:title></c:chart>"
CHART = '<w:p><w:r><c:chart r:id="r0"/></w:r></w:p>'
FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "DOCX: a chart": ("docx", lambda: docx("chart", CHART * TIMES, f"<c>{TITLE}</c>")),
    "DOCX: a header": ("docx", lambda: docx("header", "<w:p><w:r><w:t>x</w:t></w:r></w:p>", "<h><w:p><w:r><w:t>Once</w:t></w:r></w:p></h>")),
    "ODT: an object": ("odf", odt),
    "EPUB: a chapter": ("epub", book),
    "XLSX: a sheet": ("sheets", xlsx),
    "PPT: notes": ("old_office", ppt),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_part_that_is_named_hundreds_of_times_is_read_once(name: str, read: Read) -> None:
    handler, make = FILES[name]
    assert read(handler_named(handler), make())[1].count("Once") == 1


def test_a_sheet_on_the_part_of_another_says_whose_cells_it_has(read: Read) -> None:
    text = read("sheets", xlsx())[1]
    assert text.startswith("## s0 (A1:A1)\nOnce\n\n## s1 (as s0)\n\n## s2 (as s0)\n\n")


def test_streams_that_share_their_sectors_are_not_read_thousands_of_times(read: Read) -> None:
    name = wide("n" * 4_096)
    files = {f"__attach_version1.0_#{n:08X}/__substg1.0_3707001F": name for n in range(5)}
    message = compound({"__properties_version1.0": bytes(32), **files})
    assert "Attachments" in read("msg", message)[1]
    # Each entry now names the sectors of all names, and more than the file has.
    shared = message.replace(struct.pack("<Q", len(name)), struct.pack("<Q", 3 * len(message)))
    with pytest.raises(NoText, match="its streams share their sectors"):
        read("msg", shared)


def steps(make: Callable[[], object]) -> int:
    """Return how many functions of Python are called, whatever machine calls them."""
    count = 0

    def called(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    def run() -> None:
        sys.setprofile(called)
        make()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return count


def properties(times: int) -> bytes:
    """Return a Word document whose one page of properties is listed ``times`` times."""
    filed = 28
    page = bytearray(512)
    struct.pack_into(f"<{filed + 1}L", page, 0, *range(0x800, 0x800 + filed + 1))
    page[-1] = filed
    listed = struct.pack(f"<{2 * times + 1}L", *range(times + 1), *[8] * times)
    header = bytearray(0x800)
    pieces = b"\2" + struct.pack("<L2LHLH", 16, 0, 4, 0, 0x40000000 | 2 * len(header), 0)
    struct.pack_into("<HH6xH", header, 0, 0xA5EC, 0xC1, 0x200)
    struct.pack_into("<l", header, 0x4C, 4)
    struct.pack_into("<2L", header, 0x102, len(pieces), len(listed))
    struct.pack_into("<2L", header, 0x1A2, 0, len(pieces))
    text = b"Once".ljust(0x800, b"\0")
    return compound({"WordDocument": bytes(header) + text + page, "1Table": pieces + listed})


def test_a_page_of_properties_that_is_listed_thousands_of_times_is_read_once(read: Read) -> None:
    handler = handler_named("old_office")
    document = properties(5_000)
    assert read(handler, document)[1] == "Once\n\n"
    assert steps(lambda: read(handler, document)) < 20_000


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", wasteful())
def test_a_small_file_that_repeats_one_thing_is_read_in_few_steps(name: str, save: Save) -> None:
    source = save(wasteful()[name])
    handler = handler_named(name.partition(":")[0].lower().replace("xlsx", "sheets"))
    texts: list[str] = []

    def read() -> None:
        extracted = handler.extract(source, Hints(), ExtractLimits(max_chars=500_000))
        texts.extend(part.text for part in extracted.parts or ())

    assert steps(read) < 3_000_000
    assert "Shown" in "".join(texts)

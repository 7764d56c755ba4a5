"""Every setting of context.* and extract.* at its limit, and what else a document may cost."""

# ruff: noqa: E501 - a hostile file on one line reads better than in pieces

import gzip
import json
import random
import struct
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from PIL import Image

from fetchstash.config import KEYS, load
from fetchstash.errors import NoText
from fetchstash.files import shown_of
from fetchstash.handlers import Extraction, ExtractLimits, Hints, PartRequest, Picture
from fetchstash.handlers._html import _element
from fetchstash.handlers._html._element import HARMLESS_TAGS, MAX_ATTRIBUTES, MAX_DEPTH, check
from fetchstash.text import PreviewLimits, tokens
from fetchstash.text.ranges import Preview
from tests.handlers.compounds import compound, wide
from tests.handlers.conftest import Pack, Read, Save
from tests.handlers.hostile.documents import epub, odf, packed, wasteful, workbook
from tests.handlers.parts import handler_named
from tests.handlers.test_archive import part, tar_of
from tests.handlers.test_more_documents import rtf
from tests.handlers.test_sheets import Workbook, number, xlsx
from tests.scanned import png

pytestmark = pytest.mark.whole

LIMIT = 12
WIDE = PreviewLimits(structured_tokens=100_000)


def text_is_cut(text: str, limits: PreviewLimits) -> bool:
    """Return whether read_file shows less than all of a text."""
    counted = tokens.count(text).tokens
    content, info = shown_of(
        text, Extraction(Path(), "text", chars=len(text), tokens=counted), limits
    )
    assert (content == text) is (info is None)
    return info is not None


def preview(kind: str, data: str, limits: PreviewLimits) -> Preview:
    """Return the preview of a document."""
    with tempfile.NamedTemporaryFile() as source:
        path = Path(source.name)
        path.write_text(data)
        found = handler_named(kind).extract(path, Hints(), ExtractLimits(preview=limits))
        for _ in found.parts or ():
            pass
    return found.preview


def json_is_cut(value: Any, limits: PreviewLimits) -> bool:
    return "…" in preview("json", json.dumps(value), limits).sample


def table(limits: PreviewLimits, rows: int = 1, columns: int = 2, cell: int = 1) -> Preview:
    row = ",".join(["x" * cell] * columns)
    return preview("csv", f"{row}\n" * rows, limits)


def rows_are_cut(rows: int, limits: PreviewLimits) -> bool:
    found = table(limits, rows)
    assert ("more row" in found.text) is (found.rows_shown != rows)
    return found.rows_shown != rows


def columns_are_cut(columns: int, limits: PreviewLimits) -> bool:
    found = table(limits, columns=columns)
    assert found.text.count("x") == found.columns_shown
    return found.columns_shown != columns


def cells_are_cut(cell: int, limits: PreviewLimits) -> bool:
    found = table(limits, cell=cell)
    assert ("…" in found.text) is (found.cells_truncated > 0)
    return found.cells_truncated == 2


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


# Whether something of this size is cut under these limits of previews.
PREVIEWS: dict[str, Callable[[int, PreviewLimits], bool]] = {
    "max_tokens_per_file": lambda n, limits: text_is_cut(" a" * n, limits),
    "max_total_output": lambda n, limits: text_is_cut("x" * n, limits),
    "max_lines": lambda n, limits: text_is_cut("x\n" * n, limits),
    "max_line_length": lambda n, limits: text_is_cut(f"one\n{'x' * n}\n", limits),
    "max_nesting_depth": lambda n, limits: json_is_cut(nested(n), limits),
    "max_array_items": lambda n, limits: json_is_cut([1] * n, limits),
    "max_object_keys": lambda n, limits: json_is_cut({f"k{i}": 1 for i in range(n)}, limits),
    "max_columns": columns_are_cut,
    "rows_head": lambda n, limits: rows_are_cut(n, replace(limits, rows_tail=0)),
    "rows_tail": lambda n, limits: rows_are_cut(n, replace(limits, rows_head=0)),
    "max_cell_length": cells_are_cut,
}


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("setting", PREVIEWS)
def test_a_preview_is_cut_only_above_its_limit(setting: str, more: int) -> None:
    limits = replace(WIDE, **{setting: LIMIT})
    assert PREVIEWS[setting](LIMIT + more, limits) is (more > 0)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_picture_is_scaled_only_above_its_longest_edge(
    save: Callable[[bytes], Path], more: int
) -> None:
    edge = 64
    picture = shown(save, noise(edge + more, 9), PreviewLimits(max_image_edge_px=edge))
    assert picture.width == min(edge + more, edge)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_picture_is_scaled_only_above_its_bytes(save: Callable[[bytes], Path], more: int) -> None:
    image = noise(200, 200)
    whole = shown(save, image, PreviewLimits())
    picture = shown(save, image, PreviewLimits(max_image_size_bytes=len(whole.data) - more))
    assert (picture == whole) is (more <= 0)
    assert len(picture.data) <= len(whole.data) - more


def noise(width: int, height: int) -> Image.Image:
    return Image.frombytes("RGB", (width, height), random.Random(1).randbytes(3 * width * height))


def shown(save: Callable[[bytes], Path], image: Image.Image, limits: PreviewLimits) -> Picture:
    asked: dict[str, Any] = {"render": "image", "limits": ExtractLimits(preview=limits)}
    found = handler_named("image").part(PartRequest(source=save(png(image)), **asked))
    assert isinstance(found, Picture)
    return found


ELSEWHERE = {
    "context.max_image_edge_px": test_a_picture_is_scaled_only_above_its_longest_edge,
    "context.max_image_size_bytes": test_a_picture_is_scaled_only_above_its_bytes,
    "extract.max_chars": "test_worker_exchange: test_a_text_ends_at_max_chars",
    "extract.pdf_max_pages": "test_pdf: test_pages_beyond_the_limit_are_left_out_and_reported",
    "extract.memory_mb": "test_worker_exchange: test_a_worker_has_its_memory_to_the_page",
    "extract.cpu_seconds": "test_worker_exchange: test_a_worker_has_its_seconds_of_cpu",
    "extract.confine": "service/test_unconfined",
    "extract.ocr": "stash/test_scans",
    "extract.plugins": "test_plugins",
    "extract.wall_seconds": "test_worker: test_a_job_ends_at_its_wall_seconds",
}


def test_every_setting_of_a_document_has_its_test() -> None:
    settings = {path for path in KEYS if path.startswith(("context.", "extract."))}
    assert settings == {*ELSEWHERE, *(f"context.{name}" for name in PREVIEWS)}


@pytest.mark.parametrize(
    "path", [path for path in KEYS if path.startswith(("context.", "extract."))]
)
def test_a_setting_arrives_where_documents_are_read(path: str) -> None:
    value = KEYS[path].choices[-1] if KEYS[path].choices else "2000"
    limits = load(environment={KEYS[path].variable: value}).extract
    section, name = path.split(".")
    given = int(value) if KEYS[path].kind in (int, float) else value
    expected = (given,) if KEYS[path].kind is tuple else given
    assert getattr(limits.preview if section == "context" else limits, name) == expected


__all__ = ["xlsx"]  # a fixture of another module


def test_a_tar_bomb_stops_at_its_bound_and_keeps_what_was_listed(
    save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fetchstash.handlers._archive._members.MAX_UNPACKED", 5_000_000)
    source = save(gzip.compress(tar_of({"first": b"x", "bomb": bytes(20_000_000), "last": b"y"})))
    extracted = handler_named("archive").extract(source, Hints(), ExtractLimits())
    assert extracted.parts is not None
    texts: list[str] = []
    with pytest.raises(NoText, match="unpacks to more than 5,000,000 bytes"):
        texts.extend(piece.text for piece in extracted.parts)
    parts = iter(handler_named("archive").extract(source, Hints(), ExtractLimits()).parts or ())
    assert [next(parts).text, next(parts).text] == ["Size\tName\n", "1\tfirst\n20000000\tbomb\n"]


def test_a_header_of_a_tar_that_is_a_bomb_stops_at_the_bound_of_the_archive(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fetchstash.handlers._archive._members.MAX_UNPACKED", 5_000_000)
    header = tarfile.TarInfo("bomb")
    header.type, header.size = tarfile.XHDTYPE, 20_000_000
    with pytest.raises(NoText, match="unpacks to more than 5,000,000 bytes"):
        read("archive", gzip.compress(header.tobuf() + bytes(header.size)))


def test_a_member_that_is_a_bomb_stops_at_its_bound(
    save: Save, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fetchstash.handlers._archive._members.MAX_MEMBER", 1_000_000)
    with pytest.raises(NoText, match=r"(larger|more) than 1,000,000 bytes"):
        part(save(pack({"bomb.txt": bytes(5_000_000)})), "bomb.txt")
    with pytest.raises(NoText, match=r"(larger|more) than 1,000,000 bytes"):
        part(save(tar_of({"bomb.txt": bytes(5_000_000)})), "bomb.txt")


def test_a_document_of_too_many_tokens_is_cut_and_says_so(
    save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fetchstash.handlers._office._rtf._MAX_TOKENS", 1_000)
    parts = (
        handler_named("rtf").extract(save(rtf(rb"x\par " * 2_000)), Hints(), ExtractLimits()).parts
    )
    texts: list[str] = []
    with pytest.raises(NoText, match="only its first 1,000 control words"):
        texts.extend(part.text for part in parts or ())
    assert "".join(texts).startswith("x\n\nx\n\n")


@pytest.mark.parametrize(("cell", "refused"), [("T50", False), ("T51", True), ("XFD1048576", True)])
def test_cells_that_lie_too_far_apart_are_refused(
    read: Read, xlsx: Workbook, monkeypatch: pytest.MonkeyPatch, cell: str, refused: bool
) -> None:
    monkeypatch.setattr("fetchstash.handlers._data._sheet_cells._MAX_SPAN", 1_000)
    data = xlsx({"S": f"<row>{number('A1', 1)}</row><row>{number(cell, 2)}</row>"})
    if refused:
        with pytest.raises(NoText, match="its cells lie too far apart"):
            read("sheets", data)
    else:
        assert read("sheets", data)[1].count("\n") == 4


@pytest.mark.parametrize("sign", ["", ">"])  # the sign ends no tag inside of a value
@pytest.mark.parametrize("separator", [" ", "", "/", "\n"])
def test_attributes_beyond_the_limit_are_left_out(separator: str, sign: str) -> None:
    attributes = separator.join(f'a{n}="{n}{sign}"' for n in range(5_000))
    checked, _ = check(f"<p {attributes}>The gate is open.</p>")
    assert checked.count("=") == MAX_ATTRIBUTES
    assert checked.endswith(">The gate is open.</p>")


@pytest.mark.parametrize(
    "attribute", ['a="b c" ', "a='b'", "a=b/c/d ", "a = ", "a=b/c='d e'/", 'a="', "a "]
)
def test_a_tag_of_few_attributes_costs_no_combinations(attribute: str) -> None:
    source = f"<p {attribute * (MAX_ATTRIBUTES // 2 - 9)}<>gate</p>"
    assert check(source)[0] == source


def test_tags_that_stand_in_each_others_values_are_left_to_the_scan() -> None:
    """Each of them has one attribute, and its value is all that follows."""
    assert _element.is_harmless("<a/b=c>" * (HARMLESS_TAGS - 9))
    assert not _element.is_harmless("<a/b=" * (HARMLESS_TAGS - 9) + "x" * 100_000)


@pytest.mark.parametrize("equals", ["=", "='a'", '="'])
def test_a_tag_of_more_equals_signs_than_one_match_takes_is_one_tag(equals: str) -> None:
    source = "<div>" * 2 * HARMLESS_TAGS + f"<div {equals * 2_500}>gate"
    assert check(source)[0] == "<div>" * MAX_DEPTH + "gate"


# --- Small files that name one part, or try one thing, thousands of times: it is read once.

CONTENT_TYPES = {"[Content_Types].xml": "<Types/>"}
TIMES = 300


def related(kind: str) -> str:
    rows = (f'<Relationship Id="r{n}" Type="x/{kind}" Target="again.xml"/>' for n in range(TIMES))
    return f"<R>{''.join(rows)}</R>"


def docx(kind: str, body: str, part: str) -> bytes:
    return packed(
        CONTENT_TYPES
        | {
            "word/document.xml": f'<w:d xmlns:w="w" xmlns:c="c" xmlns:r="r">{body}</w:d>',
            "word/_rels/document.xml.rels": related(kind),
            "word/again.xml": part,
        }
    )


def odt() -> bytes:
    frames = '<draw:frame><draw:object xlink:href="./O"/></draw:frame>' * TIMES
    chart = '<chart:chart chart:class="chart:bar"><chart:title><text:p>Once</text:p></chart:title></chart:chart>'
    return odf("text", f"<o><text:p>x{frames}</text:p></o>", {"O/content.xml": f"<o>{chart}</o>"})


def shared_sheets() -> bytes:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    sheets = "".join(f'<sheet name="s{n}" sheetId="{n + 1}" r:id="r0"/>' for n in range(TIMES))
    cell = '<row r="1"><c r="A1" t="str"><v>Once</v></c></row>'
    return packed(
        CONTENT_TYPES
        | workbook()
        | {
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>{sheets}</sheets></workbook>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{cell}</sheetData></worksheet>',
        }
    )


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
    return compound(
        {
            "PowerPoint Document": stream + record(0x1772, directory) + record(0x0FF5, last),
            "Current User": struct.pack("<8xLLL", 20, 0, edit),
        }
    )


TITLE = "<c:chart><c:title><a:t>Once</a:t></c:title></c:chart>"
CHART = '<w:p><w:r><c:chart r:id="r0"/></w:r></w:p>'
FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "DOCX: a chart": ("docx", lambda: docx("chart", CHART * TIMES, f"<c>{TITLE}</c>")),
    "DOCX: a header": (
        "docx",
        lambda: docx(
            "header",
            "<w:p><w:r><w:t>x</w:t></w:r></w:p>",
            "<h><w:p><w:r><w:t>Once</w:t></w:r></w:p></h>",
        ),
    ),
    "ODT: an object": ("odf", odt),
    "EPUB: a chapter": ("epub", book),
    "XLSX: a sheet": ("sheets", shared_sheets),
    "PPT: notes": ("old_office", ppt),
}


@pytest.mark.parametrize("name", FILES)
def test_a_part_that_is_named_hundreds_of_times_is_read_once(name: str, read: Read) -> None:
    handler, make = FILES[name]
    assert read(handler_named(handler), make())[1].count("Once") == 1


def test_a_sheet_on_the_part_of_another_says_whose_cells_it_has(read: Read) -> None:
    text = read("sheets", shared_sheets())[1]
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

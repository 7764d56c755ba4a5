"""Every setting of context.* and extract.* at its limit, and what else a document may cost."""

import gzip
import io
import json
import random
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from fetchstash.config import KEYS, load
from fetchstash.errors import NoText
from fetchstash.files import shown_of
from fetchstash.handlers import (
    Extraction,
    ExtractLimits,
    Hints,
    PartRequest,
    Picture,
    handler_named,
)
from fetchstash.handlers._html import _element
from fetchstash.handlers._html._element import HARMLESS_TAGS, MAX_ATTRIBUTES, MAX_DEPTH, check
from fetchstash.text import PreviewLimits, tokens
from fetchstash.text.ranges import Preview
from tests.handlers.conftest import Pack, Read, Save
from tests.handlers.test_archive import part, tar_of
from tests.handlers.test_more_documents import rtf
from tests.handlers.test_sheets import Workbook, number, xlsx

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
    out = io.BytesIO()
    image.save(out, "PNG")
    found = handler_named("image").part(
        PartRequest(
            source=save(out.getvalue()), render="image", limits=ExtractLimits(preview=limits)
        )
    )
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

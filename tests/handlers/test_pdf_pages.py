"""How a page is judged: whether it has columns, and whether its text has a usable mapping."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

from pathlib import Path

import pytest

from fetchstash.demo.pdf import stream, write_objects
from fetchstash.handlers import ExtractLimits, Hints, handler_named
from fetchstash.handlers._pdf._columns import (
    Box,
    are_side_by_side,
    may_have_columns,
    reading_order,
    sampled,
)
from fetchstash.handlers._pdf._garbage import is_garbage
from tests.handlers.pdf_pages import SENTENCE, unmapped

LEFT, RIGHT, WIDTH = 60.0, 310.0, 230.0


def lines(left: float, width: float, count: int = 30, top: float = 700.0) -> list[Box]:
    return [(left, top - 14 * n, left + width, top - 14 * n + 10) for n in range(count)]


def across(*columns: list[Box]) -> list[Box]:
    """Return runs in the order of lines that are written across all columns."""
    return [run for row in zip(*columns, strict=True) for run in row]


PROSE = across(lines(LEFT, WIDTH), lines(RIGHT, WIDTH))
TITLE: Box = (60.0, 760.0, 540.0, 780.0)


@pytest.mark.parametrize(
    ("runs", "count", "seen"), [(60, 30, True), (51, 30, True), (50, 30, False), (20, 10, False)]
)
def test_only_pages_of_many_runs_are_examined(runs: int, count: int, seen: bool) -> None:
    assert may_have_columns(runs, count) is seen


@pytest.mark.parametrize(
    ("following", "seen"),
    [
        ((310.0, 700.0, 540.0, 710.0), True),
        ((310.0, 701.0, 540.0, 711.0), True),
        ((310.0, 686.0, 540.0, 696.0), False),
        ((293.0, 700.0, 540.0, 710.0), False),
        ((310.0, 700.0, 360.0, 710.0), False),
    ],
    ids=["beside", "nearly on the line", "below", "no gutter", "short"],
)
def test_lines_of_two_columns_are_side_by_side(following: Box, seen: bool) -> None:
    assert are_side_by_side((60.0, 700.0, 290.0, 710.0), following) is seen


@pytest.mark.parametrize(("runs", "count"), [(0, 0), (1, 0), (2, 1), (9, 8), (39, 8), (4_000, 9)])
def test_a_few_runs_of_many_are_sampled(runs: int, count: int) -> None:
    assert len(sampled(runs)) == count


@pytest.mark.parametrize("runs", [24, 40, 60, 100, 120, 160, 200])
@pytest.mark.parametrize("before", [0, 1])
def test_every_other_sample_of_alternating_runs_is_a_left_one(runs: int, before: int) -> None:
    left = sum((index + before) % 2 == 0 for index in sampled(runs))
    assert left >= len(sampled(runs)) // 2


def test_two_columns_of_prose_are_two_regions() -> None:
    left, right = reading_order(PROSE)
    assert left[2] == right[0] == 300.0
    assert left[1] < 700 - 14 * 29
    assert left[3] > 710


def test_runs_across_the_columns_cut_them_into_bands() -> None:
    regions = reading_order([TITLE, *PROSE])
    assert [(round(left), round(right)) for left, _, right, _ in regions] == [
        (59, 541),
        (59, 300),
        (300, 541),
    ]


@pytest.mark.parametrize(
    "runs",
    [
        [],
        lines(LEFT, 480),
        lines(LEFT, WIDTH) + lines(RIGHT, WIDTH),
        across(lines(LEFT, WIDTH, 8), lines(RIGHT, WIDTH, 8)),
        across(
            [(60.0, 700.0 - 14 * n, 90.0 + n % 5 * 40, 710.0 - 14 * n) for n in range(30)],
            lines(RIGHT, WIDTH),
        ),
        across(lines(60, 60), lines(180, 60), lines(310, 60), lines(430, 60)),
    ],
    ids=[
        "empty",
        "one column",
        "in order already",
        "few lines",
        "ragged cells",
        "table of four columns",
    ],
)
def test_other_pages_keep_their_order(runs: list[Box]) -> None:
    assert reading_order(runs) == []


def test_a_page_in_two_columns_is_read_down_the_left_one_first(tmp_path: Path) -> None:
    content = b"BT /F1 14 Tf 60 760 Td (A title that stands over both of the columns, all across the page) Tj ET\n"
    for number in range(30):
        for left, side in ((LEFT, "left"), (RIGHT, "right")):
            text = f"{side} line {number} goes on to fill the width of it".encode()
            content += b"BT /F1 10 Tf %d %d Td (%s) Tj ET\n" % (left, 700 - 14 * number, text)
    source = tmp_path / "columns.pdf"
    source.write_bytes(
        write_objects(
            [
                b"<< /Type /Catalog /Pages 2 0 R >>",
                b"<< /Type /Pages /Kids [4 0 R] /Count 1 /MediaBox [0 0 595 842] >>",
                b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
                b"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>",
                stream(content),
            ]
        )
    )
    parts = handler_named("pdf").extract(source, Hints(), ExtractLimits()).parts
    assert parts is not None
    [part] = parts
    read = part.text.split("\n")
    assert read[1].startswith("A title")
    assert [line.split(" goes")[0] for line in read[2:62]] == [
        f"{side} line {n}" for side in ("left", "right") for n in range(30)
    ]


def test_a_page_whose_font_has_no_mapping_is_reported_as_unreadable(tmp_path: Path) -> None:
    source = tmp_path / "document.pdf"
    source.write_bytes(unmapped(SENTENCE * 4))
    extracted = handler_named("pdf").extract(source, Hints(), ExtractLimits())
    parts = list(extracted.parts or ())
    assert parts[0].text == f"[Page 1]\n{SENTENCE.strip()}\n\n"
    assert parts[1].text.startswith("[Page 2]\n(what follows is no text: its font has no usable ")
    assert (extracted.facts.unreadable_pages, extracted.facts.unreadable_from) == (1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "Strażnicy otwierają dolną bramę przy znaku, a zbiornik powoli napełnia się wiosną. " * 5,
        "Az őrök a jelnél kinyitják az alsó kaput, és a víztározó tavasszal lassan megtelik. " * 5,
        "Стражи открывают нижние ворота у отметки, и водохранилище наполняется весной. " * 5,
        "守門人在標記處打開下閘門，水庫在春天慢慢注滿。" * 9,
        "ATG CGT TGC CGG TTT GGC CCT GGT CTG TGT TTG " * 9,
        "12,204 7.5 % 118,493 KM 0.23 TX-17 43,478 GB " * 9,
    ],
    ids=["Polish", "Hungarian", "Russian", "Chinese", "genes", "numbers"],
)
def test_text_of_any_language_and_numbers_are_no_garbage(text: str) -> None:
    assert not is_garbage(text)
    assert is_garbage("".join(chr(0xE000 + ord(char) % 4_096) for char in text))

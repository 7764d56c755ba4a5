"""Pages of two columns are read one column after the other, and no other page is touched."""

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

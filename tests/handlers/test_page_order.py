"""How the text of a page is judged and in which order it is read, by OCR and in PDF."""

# ruff: noqa: E501 - a text on one line reads better than in pieces

import math

import pytest

from fetchstash.handlers import ocr_text
from fetchstash.handlers._ocr import Line, as_text, is_legible, slope, upright
from fetchstash.handlers._pdf import is_garbage
from fetchstash.handlers._pdf._layout import column_regions, reading_order, widest_gap
from fetchstash.handlers._pdf._words import Box
from tests.handlers.conftest import Read, check_facts
from tests.handlers.pdf_pages import SENTENCE, pages, text as place, unmapped


def line(text: str, left: float, top: float, width: float, height: float = 20) -> Line:
    return Line(text, left, top, left + width, top + height)


def column(name: str, left: float, top: float, lines: int = 8, width: float = 400) -> list[Line]:
    return [line(f"{name}{n}", left, top + 28 * n, width) for n in range(1, lines + 1)]


def test_lines_come_from_top_to_bottom_and_pieces_from_left_to_right() -> None:
    lines = [line("c", 10, 60, 50), line("b", 300, 11, 50), line("a", 240, 10, 55)]
    assert as_text(lines) == "a b\n\nc"


def test_a_wide_gap_within_a_line_shows_as_two_spaces() -> None:
    assert as_text([line("Total", 10, 10, 50), line("7.85", 400, 12, 40)]) == "Total  7.85"


def test_two_columns_of_prose_are_read_one_after_the_other() -> None:
    lines = [*column("l", 10, 0), *column("r", 460, 3)]
    expected = [f"l{n}" for n in range(1, 9)] + [f"r{n}" for n in range(1, 9)]
    assert as_text(lines).split() == expected


def test_three_columns_are_read_in_order() -> None:
    lines = [*column("c", 910, 0), *column("a", 10, 2), *column("b", 460, 4)]
    assert [word[0] for word in as_text(lines).split()] == ["a"] * 8 + ["b"] * 8 + ["c"] * 8


def test_a_heading_across_the_columns_separates_what_is_above_and_below() -> None:
    lines = [
        *column("a", 10, 0),
        *column("b", 460, 0),
        line("heading", 10, 280, 850),
        *column("c", 10, 300),
        *column("d", 460, 300),
    ]
    words = as_text(lines).split()
    assert [word[0] for word in words] == [*"aaaaaaaabbbbbbbb", "h", *"ccccccccdddddddd"]


def test_the_cells_of_a_table_stay_in_their_rows() -> None:
    rows = [
        (line(f"n{n}", 10, 30 * n, 90 + 300 * (n % 3 == 0)), line(f"v{n}", 700, 30 * n, 60))
        for n in range(1, 12)
    ]
    text = as_text([cell for row in rows for cell in row])
    assert text.splitlines() == [f"n{n}  v{n}" for n in range(1, 12)]


@pytest.mark.parametrize("degrees", [-4, 0, 3])
def test_a_skewed_page_is_turned_upright(degrees: float) -> None:
    angle = math.radians(degrees)
    cos, sin = math.cos(angle), math.sin(angle)

    def corners(left: float, top: float, width: float) -> list[tuple[float, float]]:
        box = [(left, top), (left + width, top), (left + width, top + 20), (left, top + 20)]
        return [(x * cos - y * sin, x * sin + y * cos) for x, y in box]

    boxes = {"a": corners(0, 0, 300), "b": corners(800, 2, 300), "c": corners(0, 40, 1100)}
    found = slope(list(boxes.values()))
    assert found == pytest.approx(angle)
    lines = [upright(text, box, found) for text, box in reversed(boxes.items())]
    assert as_text(lines).split() == ["a", "b", "c"]


def test_no_lines_are_no_text() -> None:
    assert as_text([]) == ""
    assert slope([]) == 0


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("The committee met on 14 March 2023", 340, True),
        ("委员会于三月十四日审议了年度报告", 320, True),
        (",   ,  .", 340, False),
        ("., ,", 400, False),
        ("-", 15, True),
        ("7.85", 40, True),
    ],
)
def test_a_line_of_unknown_letters_is_noticed_by_what_its_box_has_room_for(
    text: str, width: float, expected: bool
) -> None:
    assert is_legible(line(text, 10, 10, width)) is expected


def test_a_page_that_was_hardly_read_says_so() -> None:
    assert ocr_text("words", 0.93) == "[read by OCR, confidence .93]\nwords\n"
    assert ocr_text("", 1.0) == "[read by OCR: no text]\n"
    unread = "[read by OCR, confidence .04: most of it is in letters that the models do not know."
    assert ocr_text("", 0.04) == f"{unread} Look at the picture]\n"
    assert ocr_text("a\nb", 0.04).startswith(unread)


LEFT, RIGHT, WIDTH = 60.0, 310.0, 230.0


def lines(left: float, width: float, count: int = 30, top: float = 700.0) -> list[Box]:
    return [(left, top - 14 * n, left + width, top - 14 * n + 10) for n in range(count)]


def across(*columns: list[Box]) -> list[Box]:
    """Return runs in the order of lines that are written across all columns."""
    return [run for row in zip(*columns, strict=True) for run in row]


PROSE = across(lines(LEFT, WIDTH), lines(RIGHT, WIDTH))
TITLE: Box = (60.0, 760.0, 540.0, 780.0)


def looked_at(runs: list[Box], count: int) -> set[int]:
    """Return which runs of a page with ``count`` lines are looked at, to see if it has columns."""
    seen: set[int] = set()

    def box_of(index: int) -> Box:
        seen.add(index)
        return runs[index]

    column_regions(box_of, len(runs), count)
    return seen


@pytest.mark.parametrize(("runs", "seen"), [(60, True), (51, True), (50, False)])
def test_only_pages_of_many_runs_are_examined(runs: int, seen: bool) -> None:
    assert bool(looked_at(PROSE[:runs], 30)) is seen
    assert not looked_at(PROSE[:20], 10)


BESIDE: dict[str, tuple[Box, bool]] = {
    "beside": ((310.0, 700.0, 540.0, 710.0), True),
    "nearly on the line": ((310.0, 701.0, 540.0, 711.0), True),
    "below": ((310.0, 686.0, 540.0, 696.0), False),
    "no gutter": ((293.0, 700.0, 540.0, 710.0), False),
    "short": ((310.0, 700.0, 360.0, 710.0), False),
}


@pytest.mark.parametrize(("following", "seen"), list(BESIDE.values()), ids=list(BESIDE))
def test_all_runs_are_looked_at_if_a_few_stand_side_by_side(following: Box, seen: bool) -> None:
    runs = [(60.0, 700.0, 290.0, 710.0), following] * 2_000
    asked = len(looked_at(runs, 1_000))
    assert asked == 4_000 if seen else asked <= 2 * 9


@pytest.mark.parametrize("count", [12, 20, 30, 50, 60, 80, 100])
@pytest.mark.parametrize("before", [0, 1])
def test_columns_are_seen_wherever_the_sample_begins(count: int, before: int) -> None:
    runs = [TITLE] * before + across(lines(LEFT, WIDTH, count), lines(RIGHT, WIDTH, count))
    assert len(looked_at(runs, count)) == len(runs)


def test_the_widest_gap_that_is_free_and_wide_enough_is_taken() -> None:
    places = [0.0, 10.0, 14.0, 20.0, 28.0, 40.0]
    assert widest_gap(places, 4, lambda x: x != 34) == 5
    assert widest_gap(places, 11, lambda x: x != 34) is None


def test_two_columns_of_prose_are_two_regions() -> None:
    left, right = reading_order(PROSE)
    assert left[2] == right[0] == 300.0
    assert left[1] < 700 - 14 * 29
    assert left[3] > 710


def test_runs_across_the_columns_cut_them_into_bands() -> None:
    regions = reading_order([TITLE, *PROSE])
    sides = [(round(left), round(right)) for left, _, right, _ in regions]
    assert sides == [(59, 541), (59, 300), (300, 541)]


RAGGED = [(60.0, 700.0 - 14 * n, 90.0 + n % 5 * 40, 710.0 - 14 * n) for n in range(30)]
IN_ORDER: dict[str, list[Box]] = {
    "empty": [],
    "one column": lines(LEFT, 480),
    "in order already": lines(LEFT, WIDTH) + lines(RIGHT, WIDTH),
    "few lines": across(lines(LEFT, WIDTH, 8), lines(RIGHT, WIDTH, 8)),
    "ragged cells": across(RAGGED, lines(RIGHT, WIDTH)),
    "table of four columns": across(lines(60, 60), lines(180, 60), lines(310, 60), lines(430, 60)),
}


@pytest.mark.parametrize("runs", list(IN_ORDER.values()), ids=list(IN_ORDER))
def test_other_pages_keep_their_order(runs: list[Box]) -> None:
    assert reading_order(runs) == []


def test_a_page_in_two_columns_is_read_down_the_left_one_first(read: Read) -> None:
    content = place(60, 760, "A title that stands over both of the columns, all across the page")
    for number in range(30):
        for at, side in ((LEFT, "left"), (RIGHT, "right")):
            words = f"{side} line {number} goes on to fill the width of it"
            content += place(at, 700 - 14 * number, words)
    title, prose, _ = read("pdf", pages(content))[1].split("\n\n")
    assert title.startswith("[Page 1]\nA title")
    *read_lines, _ = (words.strip() for words in prose.split("goes on to fill the width of it"))
    wanted = [f"{side} line {number}" for side in ("left", "right") for number in range(30)]
    assert read_lines == wanted


def test_a_page_whose_font_has_no_mapping_is_reported_as_unreadable(read: Read) -> None:
    extracted, text = read("pdf", unmapped(SENTENCE * 4))
    assert text.startswith(
        f"[Page 1]\n{SENTENCE.strip()}\n\n"
        "[Page 2]\n(what follows is no text: its font has no usable "
    )
    check_facts(extracted, unreadable_pages=1, unreadable_from=2)


LANGUAGES = {
    "Polish": "Strażnicy otwierają dolną bramę przy znaku, a zbiornik powoli napełnia się wiosną. ",
    "Hungarian": "Az őrök a jelnél kinyitják az alsó kaput, és a víztározó tavasszal lassan megtelik. ",
    "Russian": "Стражи открывают нижние ворота у отметки, и водохранилище наполняется весной. ",
    "Chinese": "守門人在標記處打開下閘門，水庫在春天慢慢注滿。",
    "genes": "ATG CGT TGC CGG TTT GGC CCT GGT CTG TGT TTG ",
    "numbers": "12,204 7.5 % 118,493 KM 0.23 TX-17 43,478 GB ",
}


@pytest.mark.parametrize("text", list(LANGUAGES.values()), ids=list(LANGUAGES))
def test_text_of_any_language_and_numbers_are_no_garbage(text: str) -> None:
    assert not is_garbage(text * 9)
    assert is_garbage("".join(chr(0xE000 + ord(char) % 4_096) for char in text * 9))

"""The reading order of recognised lines."""

import math

import pytest

from fetchstash.handlers import ocr_text
from fetchstash.handlers._ocr._order import Line, as_text, is_legible, slope, upright


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
        *column("a", 10, 0), *column("b", 460, 0), line("heading", 10, 280, 850),
        *column("c", 10, 300), *column("d", 460, 300),
    ]  # fmt: skip
    words = as_text(lines).split()
    assert [word[0] for word in words] == [*"aaaaaaaabbbbbbbb", "h", *"ccccccccdddddddd"]


def test_the_cells_of_a_table_stay_in_their_rows() -> None:
    rows = [(line(f"n{n}", 10, 30 * n, 90 + 300 * (n % 3 == 0)), line(f"v{n}", 700, 30 * n, 60))
            for n in range(1, 12)]  # fmt: skip
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

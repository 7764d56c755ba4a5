"""What a terminal may be sent, and how wide it is."""

import pytest

from fetchstash.cli._table import Cell, Column, table
from fetchstash.cli._terminal import (
    Screen,
    cells,
    clip_cells,
    safe,
    safe_line,
    window_cells,
    wrapped,
)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("plain", 5),
        ("日本語", 6),
        ("ﾊﾝｶｸ", 4),
        ("cafe\u0301", 4),
        ("한국어", 6),
        ("\u1112\u1161\u11ab", 2),
        ("🙂", 2),
        ("❤\ufe0f", 2),
        ("❤", 1),
        ("שלום", 4),
        ("", 0),
    ],
)
def test_a_line_is_as_wide_as_a_terminal_draws_it(text: str, width: int) -> None:
    assert cells(text) == width


@pytest.mark.parametrize(
    "text", ["plain text", "日本語の長い題名", "ab日本語", "❤\ufe0f❤\ufe0f❤\ufe0f", "e\u0301" * 9]
)
@pytest.mark.parametrize("width", range(8))
def test_a_clipped_line_never_exceeds_its_cells(text: str, width: int) -> None:
    clipped = clip_cells(text, width)
    assert cells(clipped) <= width
    assert clipped == text or clipped.endswith("…") or not width


def test_a_window_of_wide_characters_fits_and_holds_the_match() -> None:
    line = "長" * 100 + "match" + "長" * 100
    shown = window_cells(line, 100, 105, 30)
    assert cells(shown) <= 30
    assert "match" in shown


@pytest.mark.parametrize(
    "control",
    [
        "\x1b[31m",
        "\x1b]8;;http://a\x07",
        "\x07",
        "\r",
        "\x9b",
        "\x7f",
        "\u202e",
        "\u2066",
        "\u2028",
    ],
)
def test_what_steers_a_terminal_is_spelled_out(control: str) -> None:
    shown = safe(f"a{control}b")
    assert control[0] not in shown
    assert shown.startswith("a\\")
    assert shown.endswith("b")


def test_lines_and_tabs_of_a_text_stay_and_a_line_has_none() -> None:
    assert safe("a\tb\nc") == "a\tb\nc"
    assert safe_line("a\tb\nc\x1b[2J") == "a b c\\x1b[2J"
    assert safe("\u05d0\u200f!") == "\u05d0!"


def test_colour_and_links_are_for_a_styled_screen_alone() -> None:
    styled, bare = Screen(is_terminal=True, styled=True), Screen(is_terminal=True)
    assert styled.style("x", "dim") == "\x1b[2mx\x1b[0m"
    assert bare.style("x", "dim") == "x"
    link = styled.link("x", "https://example.org/\x1b\\\u202e?q=a b")
    assert link == ("\x1b]8;;https://example.org/%1B\\%E2%80%AE?q=a%20b\x1b\\x\x1b]8;;\x1b\\")
    assert bare.link("x", "https://example.org/") == "x"
    assert styled.link("x", "javascript:alert(1)") == "x"


@pytest.mark.parametrize("width", [20, 60, 80])
def test_long_lines_are_wrapped_between_words_and_nothing_is_lost(width: int) -> None:
    text = "    some words " * 20 + "\n\nshort\n" + "日本語 の文 " * 20 + "\n"
    lines = wrapped(text, width).split("\n")
    assert max(map(cells, lines)) <= width
    assert "".join(wrapped(text, width).split()) == "".join(text.split())
    assert "short" in lines
    assert wrapped("x" * 200, width) == "x" * 200
    assert wrapped("    code", width) == "    code"


COLUMNS = (
    Column("n", right=True),
    Column("ref", from_width=70),
    Column("title", least=6),
    Column("from", least=6),
    Column("end", right=True),
)
ROWS = [
    [
        Cell("@1"),
        Cell("abcdefg"),
        Cell("題名" * 30, "https://a.test/"),
        Cell("example.org"),
        Cell("7 d"),
    ],
    [Cell("@10"), Cell("hijklmn"), Cell("short"), Cell("a-very-long-host.example.org"), Cell("")],
]


@pytest.mark.parametrize("width", [40, 60, 80, 160])
@pytest.mark.parametrize("styled", [True, False])
def test_no_row_of_a_table_is_wider_than_the_screen(width: int, styled: bool) -> None:
    from tests.cli.terminal import plain

    lines = [plain(line) for line in table(Screen(True, width, styled), COLUMNS, ROWS)]
    assert max(map(cells, lines)) <= width
    assert ("abcdefg" in lines[1]) == (width >= 70)
    assert all(line.endswith("7 d") for line in lines[1:2])


def test_columns_stand_under_their_headings_whatever_the_script() -> None:
    rows = [[Cell("日本", ""), Cell("x")], [Cell("abcd"), Cell("y")]]
    lines = table(Screen(True, 80), (Column("name"), Column("k")), rows)
    assert lines == ["name  k", "日本  x", "abcd  y"]

"""What a terminal may be sent, how wide it is, and the line that says how far long work is."""

import pytest

from fetchstash.cli._meter import Meter
from fetchstash.cli._terminal import (
    Column,
    Link,
    Screen,
    cells,
    clip_cells,
    safe,
    safe_line,
    table,
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
ROWS: list[list[str | Link]] = [
    [
        "@1",
        "abcdefg",
        Link("題名" * 30, "https://a.test/"),
        "example.org",
        "7 d",
    ],
    ["@10", "hijklmn", "short", "a-very-long-host.example.org", ""],
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
    rows = [["日本", "x"], ["abcd", "y"]]
    lines = table(Screen(True, 80), (Column("name"), Column("k")), rows)
    assert lines == ["name  k", "日本  x", "abcd  y"]


MB = 2**20


def meter(width: int = 80) -> Meter:
    return Meter("Fetching", screen=Screen(is_terminal=False, width=width), give_up=45)


@pytest.mark.parametrize("width", [30, 60, 80, 160])
def test_a_download_has_a_bar_a_rate_and_the_time_left(width: int) -> None:
    it = meter(width)
    download = it.download("https://example.org/a/very/long/way/to/the/report.pdf")
    start = download.started
    for second in range(1, 6):
        download.report(second * MB, 16 * MB, start + second)
    line = it.line(start + 5)
    assert cells(line) < width
    if width >= 60:
        assert line.endswith("5.0 MB of 16 MB  1.0 MB/s  0:11 left")
        assert "━" in line
        assert "─" in line
        assert "report.pdf"[-4:] in line


def test_the_rate_is_that_of_the_last_seconds() -> None:
    it = meter()
    download = it.download("a.test/x")
    start = download.started
    for second in range(1, 11):
        download.report(second * 10 * MB, 1_000 * MB, start + second)
    for second in range(11, 31):
        download.report((100 + second - 10) * MB, 1_000 * MB, start + second)
    assert "1.0 MB/s" in it.line(start + 30)


def test_a_download_that_stops_shows_a_falling_rate_and_then_that_it_stalls() -> None:
    it = meter()
    download = it.download("a.test/x")
    download.report(2 * MB, 4 * MB, download.started + 1)
    assert "2.0 MB/s" in it.line(download.started + 1)
    assert "200 KB/s" in it.line(download.started + 10.24)
    assert "stalled" in it.line(download.started + 10**8)


def test_a_size_that_is_not_known_leaves_out_the_bar() -> None:
    it = meter()
    download = it.download("a.test/x")
    download.report(2 * MB, None, download.started + 2)
    assert it.line(download.started + 2) == "a.test/x  2.0 MB  1.0 MB/s  0:02"


def test_waiting_and_reading_are_said_with_their_time() -> None:
    it = meter()
    download = it.download("http://a.test/x")
    start = download.started
    assert it.line(start + 7.5) == "a.test/x: no answer yet, 0:07 of at most 0:45"
    download.report(MB, MB, start + 8)
    assert it.line(start + 71.5) == "a.test/x: 1.0 MB received, reading, 1:03"
    other = meter()
    file = other.download("a.pdf", local=True)
    assert other.line(file.started + 3_661.5) == "a.pdf: reading, 1:01:01"


def test_pages_are_counted_while_they_are_read() -> None:
    it = meter()
    download = it.download("http://a.test/report.pdf")
    download.report(MB, MB, download.started + 1)
    download.read(120, 900)
    assert it.line(download.started + 9) == "a.test/report.pdf: reading page 120 of 900, 0:09"


def test_several_downloads_share_a_line() -> None:
    it = meter()
    downloads = [it.download(f"a.test/{n}") for n in range(3)]
    for download in downloads:
        download.report(MB, 2 * MB, download.started + 1)
    with downloads[0]:
        pass
    assert it.line(downloads[0].started + 4).startswith("Fetching, 1 of 3, 3.0 MB, 0:0")


def test_a_name_cannot_steer_the_terminal() -> None:
    it = meter()
    download = it.download("a\x1b[2J\nb")
    assert "\x1b" not in it.line(download.started)

"""What a terminal may be sent, how wide it is, and the line that says how far long work is."""

import pytest

from fetchstash.cli._progress import Meter
from fetchstash.cli._terminal import (
    Column,
    Link,
    Screen,
    cells,
    clip_cells,
    safe,
    safe_line,
    table,
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


@pytest.mark.parametrize(
    "control",
    ["\x1b[31m", "\x1b]8;;a\x07", "\x07", "\r", "\x9b", "\x7f", "\u202e", "\u2066", "\u2028"],
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
    ["@1", "abcdefg", Link("題名" * 30, "https://a.test/"), "example.org", "7 d"],
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


SLOWER = [(n, min(n, 10) * 10 * MB + max(n - 10, 0) * MB) for n in range(1, 31)]


@pytest.mark.parametrize(
    ("size", "reports", "at", "shown"),
    [
        (None, [], 7.4, "a.test/x: no answer yet, 0:07 of at most 0:45"),
        (None, [(2, 2 * MB)], 2, "a.test/x  2.0 MB  1.0 MB/s  0:02"),
        (1_000 * MB, SLOWER, 30, "1.0 MB/s"),
        (4 * MB, [(1, 2 * MB)], 1, "2.0 MB/s"),
        (4 * MB, [(1, 2 * MB)], 10.24, "200 KB/s"),
        (4 * MB, [(1, 2 * MB)], 10**8, "stalled"),
        (MB, [(8, MB)], 71.4, "a.test/x: 1.0 MB received, reading, 1:03"),
    ],
    ids=[
        "waiting",
        "no size",
        "of the last seconds",
        "one report",
        "falling",
        "stalled",
        "reading",
    ],
)
def test_the_line_says_how_far_a_download_is(
    size: int | None, reports: list[tuple[int, int]], at: float, shown: str
) -> None:
    it = meter()
    download = it.download("http://a.test/x")
    for second, received in reports:
        download.report(received, size, download.started + second)
    assert shown in it.line(download.started + at)


def test_a_file_that_is_read_says_its_time_and_its_pages() -> None:
    it = meter()
    file = it.download("a.pdf", local=True)
    assert it.line(file.started + 3_661.4) == "a.pdf: reading, 1:01:01"
    file.read(120, 900)
    assert it.line(file.started + 9) == "a.pdf: reading page 120 of 900, 0:09"


def test_several_downloads_share_a_line_and_no_name_steers_the_terminal() -> None:
    it = meter()
    downloads = [it.download(f"a.test/{n}\x1b[2J\nb") for n in range(3)]
    for download in downloads:
        assert "\x1b" not in it.line(download.started)
        download.report(MB, 2 * MB, download.started + 1)
    with downloads[0]:
        pass
    assert it.line(downloads[0].started + 4).startswith("Fetching, 1 of 3, 3.0 MB, 0:0")

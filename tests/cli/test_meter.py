"""The line that says how far long work is."""

import pytest

from fetchstash.cli._meter import Meter
from fetchstash.cli._terminal import Screen, cells

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

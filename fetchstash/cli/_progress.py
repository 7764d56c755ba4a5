"""A progress line on the terminal: activity, sizes, rate, time left."""

import re
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Self

from fetchstash.cli._terminal import Screen, cells, clip_cells, safe_line, screen_of
from fetchstash.text import clip_middle
from fetchstash.text.facts import clock

_DELAY_SECONDS = 0.4
"""Shorter work shows nothing."""

_TICK_SECONDS = 0.1
_RATE_SECONDS = 5
"""The rate is that of the last few seconds."""

_NAME_CELLS = 28
_LEAST_BAR = 6
_BESIDE_A_NAME = 50
"""A bar with its amounts, rate and time, so that a terminal of 60 cells has room for them."""
_PLAIN_SCHEME = re.compile("https?://")
_START_OF_LINE = "\r\x1b[K"


@dataclass(slots=True)
class Download:
    """The progress of one download in bytes; ``total`` is None if the server does not state it.

    ``local``: it is no download, but a file that is read. ``pages`` are those that were read, and
    all of them.
    """

    name: str
    started: float
    local: bool = False
    done: int = 0
    total: int | None = None
    ended: bool = False
    pages: tuple[int, int | None] = (0, None)
    samples: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.ended = True

    def __call__(self, done: int, total: int | None) -> None:
        """Take a report of the fetcher."""
        self.report(done, total, time.monotonic())

    def read(self, done: int, total: int | None) -> None:
        """Receive the reader's progress, in pages."""
        self.pages = done, total

    def report(self, done: int, total: int | None, now: float) -> None:
        """Record progress at a time in seconds."""
        self.done, self.total = done, total
        self.samples.append((now, done))
        while now - self.samples[0][0] > _RATE_SECONDS:
            self.samples.popleft()

    def rate(self, now: float) -> float:
        """Return the recent rate in bytes a second, 0 while it is unknown."""
        if not self.samples:
            return 0.0
        then, done = self.samples[0]
        if len(self.samples) == 1:
            then, done = self.started, 0
        return (self.done - done) / (now - then) if now > then else 0.0


class Meter:
    """Shows the current activity and its duration; for downloads size, rate and time left.

    A thread draws it, so that it moves while a host does not answer and while a disk is slow.
    """

    def __init__(self, doing: str, *, screen: Screen | None = None, give_up: float = 0) -> None:
        self._screen = screen or screen_of("stderr")
        self._doing = doing
        self._give_up = give_up
        self._started = time.monotonic()
        self._downloads: list[Download] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._drawn = False

    def __enter__(self) -> Self:
        if self._screen.is_terminal:
            self._thread = threading.Thread(target=self._draw, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
        if self._drawn:
            _write(_START_OF_LINE)

    def download(self, name: str, *, local: bool = False) -> Download:
        """Return the progress of one more download, or of a file."""
        download = Download(_PLAIN_SCHEME.sub("", safe_line(name)), time.monotonic(), local)
        self._downloads.append(download)
        return download

    def _draw(self) -> None:
        self._stop.wait(_DELAY_SECONDS)
        while not self._stop.is_set():
            self._drawn = True
            _write(_START_OF_LINE + self.line(time.monotonic()))
            self._stop.wait(_TICK_SECONDS)

    def line(self, now: float) -> str:
        """Return the line for a time in seconds, a cell shorter than the screen."""
        width = self._screen.width - 1
        running = [download for download in self._downloads if not download.ended]
        if len(running) == 1:
            return clip_cells(self._line_of(running[0], now, width), width)
        count = len(self._downloads)
        so_far = f", {count - len(running)} of {count}" if count > 1 else ""
        received = sum(download.done for download in self._downloads)
        amount = f", {_size(received)}" if received else ""
        return clip_cells(f"{self._doing}{so_far}{amount}, {clock(now - self._started)}", width)

    def _line_of(self, download: Download, now: float, width: int) -> str:
        name = clip_middle(download.name, min(_NAME_CELLS, max(width - _BESIDE_A_NAME, 8)))
        waited = clock(now - download.started)
        if download.pages[0]:
            done, total = download.pages
            of = f" of {total:,}" if total else ""
            return f"{name}: reading page {done:,}{of}, {waited}"
        if download.local:
            return f"{name}: reading, {waited}"
        if not download.samples:
            most = f" of at most {clock(self._give_up)}" if self._give_up else ""
            return f"{name}: no answer yet, {waited}{most}"
        if download.done == download.total:
            since = clock(now - download.samples[-1][0])
            return f"{name}: {_size(download.done)} received, reading, {since}"
        return _transfer(name, download, now, width)


def _transfer(name: str, download: Download, now: float, width: int) -> str:
    rate = download.rate(now)
    speed = f"{_size(int(rate))}/s" if rate >= 1 else "stalled"
    if not download.total:
        return f"{name}  {_size(download.done)}  {speed}  {clock(now - download.started)}"
    left = f"{clock((download.total - download.done) / rate)} left" if rate >= 1 else ""
    amounts = f"{_size(download.done)} of {_size(download.total)}"
    text = "  ".join(filter(None, (amounts, speed, left)))
    room = width - cells(name) - cells(text) - 4
    if room < _LEAST_BAR:
        return f"{name}  {text}"
    full = min(room * download.done // download.total, room)
    line, rest = "━", "─"
    try:
        (line + rest).encode(sys.stderr.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        line, rest = "#", "."
    return f"{name}  {line * full}{rest * (room - full)}  {text}"


def _size(count: int) -> str:
    from fetchstash.render import size  # noqa: PLC0415 - heavy

    return size(count)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()

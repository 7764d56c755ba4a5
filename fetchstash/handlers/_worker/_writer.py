"""Write a text in the worker: clean each part, cut it, write it to the spool file, report it.

Each report goes out after its bytes were written, so that what was reported is in the file whatever
happens next.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from fetchstash.handlers._contract import Part
from fetchstash.handlers._worker._frames import MAX_HEADINGS, MAX_TITLE
from fetchstash.text import clip
from fetchstash.text.hygiene import clean, clean_line
from fetchstash.text.ranges import Heading
from fetchstash.text.tokens import Counter

Send = Callable[[dict[str, Any]], None]


@dataclass(slots=True)
class TextWriter:
    """Writes one text to the file descriptor ``fd``. ``max_chars`` None keeps it whole."""

    fd: int
    send: Send
    max_chars: int | None
    chars: int = 0
    newlines: int = 0
    bytes: int = 0
    removed: int = 0
    full: bool = False
    blank_pages: int = 0
    outline_room: int = MAX_HEADINGS
    counter: Counter = field(default_factory=Counter)

    def write_all(self, parts: Iterable[Part]) -> None:
        """Write parts until they end or ``full`` is set. Raises what reading them raises."""
        for part in parts:
            self.write(part)
            if self.full:
                return

    def write(self, part: Part) -> None:
        """Write one part; if it does not fit, its beginning, and set ``full``."""
        cleaned = clean(part.text)
        text, rows = cleaned.text, part.rows
        self.removed += cleaned.removed
        if self.max_chars is not None and self.chars + len(text) > self.max_chars:
            self.full = True
            cut = text[: self.max_chars - self.chars]
            rows = max(0, rows - (_lines(text) - _lines(cut)))
            text = cut
            if not text:
                return
        newlines = text.count("\n")
        standing = [h for h in part.headings if h.unit != "lines" or h.start <= newlines + 1]
        headings = [_shifted(h, self.newlines) for h in standing[: self.outline_room]]
        self.outline_room -= len(headings)
        data = text.encode("utf-8")
        _write_all(self.fd, data)
        frame = {
            "bytes": self.bytes + len(data),
            "chars": self.chars + len(text),
            "starts_page": part.starts_page,
            "headings": headings_json(headings),
            "table": None if part.table is None else clip(clean_line(part.table), MAX_TITLE),
            "columns": part.columns,
            # Rows end the part, one a line: this is the first one's line in the whole text.
            "first_row_line": self.newlines + _lines(text) - rows + 1,
            "rows": rows,
        }
        self.blank_pages += part.blank
        self.bytes += len(data)
        self.chars += len(text)
        self.newlines += newlines
        self.counter.add(text)
        self.send({"piece": frame})


def headings_json(headings: Iterable[Heading]) -> list[list[Any]]:
    """Return headings as JSON, each title clean and on one line."""
    return [[clip(clean_line(h.title), MAX_TITLE), h.level, h.unit, h.start] for h in headings]


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _shifted(heading: Heading, lines_before: int) -> Heading:
    if heading.unit != "lines":
        return heading
    return Heading(heading.title, heading.level, heading.unit, heading.start + lines_before)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]

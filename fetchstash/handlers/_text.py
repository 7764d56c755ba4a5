"""Plain text and logs."""

import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from fetchstash.handlers._charset import read_text
from fetchstash.handlers._contract import ContentKind, Extracted, ExtractLimits, Hints, Part
from fetchstash.handlers._preview import head_and_tail, largest

# A line of a log begins with its time (ISO 8601, syslog, the Common Log Format) or carries a level.
_LOG_LINE = re.compile(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |\S+ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:"
    r"|.{0,40}\b(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
)
_LOG_HEAD, _LOG_TAIL = 20, 20
_LOG_WIDTH = 200
_LONG_LINE = 1_000


class TextHandler:
    """Text without a structure of its own. Of a log, the preview shows both ends: the news is in the last lines."""

    name = "text"

    def can_handle(self, kind: ContentKind, media_type: str) -> bool:  # noqa: ARG002 - any of them
        """Return whether this is plain text."""
        return kind == "text"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - text is kept whole
        """Return the text as it is, decoded."""
        extracted = Extracted(parts=None)
        extracted.parts = _parts(extracted, read_text(source, hints.charset))
        return extracted


def _parts(extracted: Extracted, chunks: Iterator[str]) -> Iterator[Part]:
    head: list[str] = []
    tail: deque[str] = deque(maxlen=_LOG_TAIL)
    lines = longest = 0
    for chunk in chunks:
        yield Part(chunk)
        found = chunk.splitlines()
        head += found[: _LOG_HEAD - len(head)]
        tail.extend(found)
        lines += len(found)
        longest = max(longest, max(map(len, found), default=0))
    if longest > _LONG_LINE:
        extracted.structure_info = f"{lines:,} lines, the longest of {longest:,} characters"
    if lines > _LOG_HEAD + _LOG_TAIL and sum(map(bool, map(_LOG_LINE.match, head))) * 2 > len(head):
        extracted.structure_info = f"log of {lines:,} lines"
        extracted.preview = _log_preview(head, list(tail), lines)


def _log_preview(head: list[str], tail: list[str], lines: int) -> str:
    def build(n: int) -> str:
        return head_and_tail(head[: n // 2], tail[-((n + 1) // 2) :], lines, "lines", _LOG_WIDTH)

    return largest(build, _LOG_HEAD + _LOG_TAIL)

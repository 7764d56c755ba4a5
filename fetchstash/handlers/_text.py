"""Plain text and logs."""

import re
from collections.abc import Iterator
from pathlib import Path

from fetchstash.handlers._charset import read_text
from fetchstash.handlers._contract import ContentKind, Extracted, ExtractLimits, Hints, Part

# A line of a log begins with its time (ISO 8601, syslog, the Common Log Format) or carries a level.
_LOG_LINE = re.compile(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |\S+ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:"
    r"|.{0,40}\b(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
)
_LOG_SAMPLE = 20
_LONG_LINE = 1_000


class TextHandler:
    """Text without a structure of its own."""

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
    first: list[str] = []
    lines = longest = 0
    for chunk in chunks:
        yield Part(chunk)
        found = chunk.splitlines()
        first += found[: _LOG_SAMPLE - len(first)]
        lines += len(found)
        longest = max(longest, max(map(len, found), default=0))
    if longest > _LONG_LINE:
        extracted.learn(structure_info=f"{lines:,} lines, the longest of {longest:,} characters")
    if lines > _LOG_SAMPLE and sum(map(bool, map(_LOG_LINE.match, first))) * 2 > len(first):
        extracted.learn(structure_info=f"log of {lines:,} lines")

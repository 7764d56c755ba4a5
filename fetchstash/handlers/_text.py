"""Plain text and logs."""

import re
from collections.abc import Iterator
from pathlib import Path

from fetchstash.handlers._charset import long_lines, read_text
from fetchstash.handlers._contract import Format, Part, family
from fetchstash.handlers._parts import Reading, Streamed
from fetchstash.text import counted

# A line of a log begins with its time (ISO 8601, syslog, the Common Log Format) or carries a level.
_LOG_LINE = re.compile(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d "
    r"|\S+ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:"
    r"|.{0,40}\b(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
)
_LOG_SAMPLE = 20
_LONG_LINE = 1_000


class TextHandler(Streamed):
    """Reads plain text; a log is recognised by its lines."""

    name = "text"

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield the text as it is, decoded."""
        first: list[str] = []
        lines = longest = 0
        for chunk in read_text(source, extracted.hints.charset):
            yield Part(chunk)
            if len(first) < _LOG_SAMPLE:
                first += chunk.split("\n", _LOG_SAMPLE)[: _LOG_SAMPLE - len(first)]
            lines += chunk.count("\n") + (not chunk.endswith("\n"))
            longest = max([longest, *long_lines(chunk, _LONG_LINE)])
        if longest > _LONG_LINE:
            info = f"{counted(lines, 'line')}, the longest of {longest:,} characters"
            extracted.learn(structure_info=info)
        if lines > _LOG_SAMPLE and sum(map(bool, map(_LOG_LINE.match, first))) * 2 > len(first):
            extracted.learn(structure_info=f"log of {lines:,} lines")


_TEXT = Format(kind="text", word="text", handler=TextHandler, media_types=(), is_text=True)

FORMATS = tuple(
    family(
        _TEXT,
        ("text", "text/plain", "txt text log conf properties env"),
        ("text", "text/x-rst", "rst"),
        ("text", "text/asciidoc", "adoc"),
        ("text", "text/org", "org"),
        ("text", "text/x-bibtex", "bib"),
        ("text", "text/vtt", "vtt"),
        ("text", "application/x-tex", "tex"),
        ("text", "application/x-subrip", "srt"),
        ("text", "application/x-pem-file", "pem"),
        ("text", "application/vnd.apple.mpegurl", "m3u8"),
        ("text", "application/postscript", "ps eps"),
        ("text", "application/hjson application/n-quads application/n-triples", ""),
        ("text", "application/pgp-keys application/pgp-signature application/trig", ""),
        ("text", "text/*", ""),
    )
)

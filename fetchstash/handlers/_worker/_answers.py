"""Check what a worker answers: hostile bytes may have taken it over.

Any fault raises ProtocolError, and the worker is killed.
"""

import base64
import binascii
import codecs
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from fetchstash.errors import FetchstashError
from fetchstash.handlers._contract import (
    ContentKind,
    Decision,
    Extraction,
    Format,
    PagesRead,
    PageText,
    PartRequest,
    PartText,
    Picture,
)
from fetchstash.handlers._reasons import Cause
from fetchstash.handlers._registry import describe, format_of
from fetchstash.handlers._worker._protocol import (
    MAX_FRAME,
    MAX_HEADINGS,
    MAX_LINE,
    MAX_PART_TEXT,
    MAX_PREVIEW,
    MAX_TITLE,
    PluginReport,
    ProtocolError,
    count,
    flag,
    headings,
    items,
    line,
    lines,
    mapping,
    member,
    read_cause,
    read_facts,
    string,
    text,
)
from fetchstash.text.facts import FACTS
from fetchstash.text.hygiene import clean_line
from fetchstash.text.ranges import Heading, Preview, Ranges, Table, Unit

MAX_PAGES = 100_000
MAX_TABLES = 10_000
MAX_PICTURE_CHARS = 2**24
CHUNK_BYTES = 2**20

MAX_WORD, MAX_FORMATS = 40, 200
PICTURE_TYPES = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff"}
"""The media types of pictures for a model, and how their files begin."""


@dataclass(slots=True)
class Pieces:
    """The reports of a running job, added up: its handler, and its pages, tables and headings.

    ``plugin`` is the package that is loaded or that reads the document, ``declared`` its format,
    ``brought`` what the packages of the job bring. ``new_worker``: it is the worker's first job.
    ``most_bytes`` of text are taken, and ``on_page`` is called for each page.
    """

    brought: Mapping[str, tuple[Format, ...]] = field(default_factory=dict[str, tuple[Format, ...]])
    most_bytes: int = 0
    on_page: PagesRead | None = None
    handler: str = ""
    plugin: str = ""
    declared: Format | None = None
    loaded: bool = False
    new_worker: bool = False
    bytes: int = 0
    chars: int = 0
    pages: list[int] = field(default_factory=list[int])
    tables: list[Table] = field(default_factory=list[Table])
    outline: list[Heading] = field(default_factory=list[Heading])

    def add(self, frame: dict[str, Any]) -> None:
        """Add one report. Raises ProtocolError."""
        if "loaded" in frame:
            self.loaded, self.plugin = True, ""
        elif "plugin" in frame:
            self.plugin = line(frame, "plugin")
            if self.plugin and self.plugin not in self.brought:
                raise ProtocolError
            if self.plugin and "format" in frame:
                formats = self.brought[self.plugin]
                self.declared = formats[count(frame, "format", len(formats) - 1)]
        elif "handler" in frame:
            self.handler = line(frame, "handler", MAX_WORD)
        else:
            self._add_piece(member(frame, "piece"))

    def _add_piece(self, piece: dict[str, Any]) -> None:
        size, chars = count(piece, "bytes", self.most_bytes), count(piece, "chars")
        if size < self.bytes or chars < self.chars:
            raise ProtocolError
        starts_page = piece.get("starts_page") is True
        if starts_page:
            self.pages.append(self.chars)
        self.bytes, self.chars = size, chars
        self.outline += headings(piece, "headings", MAX_HEADINGS)
        self._add_rows(piece)
        if (
            len(self.pages) > MAX_PAGES
            or len(self.tables) > MAX_TABLES
            or len(self.outline) > MAX_HEADINGS
        ):
            raise ProtocolError
        if self.on_page and starts_page:
            total = None if piece.get("page_count") is None else count(piece, "page_count")
            self.on_page(len(self.pages), total)

    def _add_rows(self, piece: dict[str, Any]) -> None:
        rows, columns = count(piece, "rows"), count(piece, "columns")
        first = count(piece, "first_row_line")
        if piece.get("table") is not None:
            self.tables.append(Table(line(piece, "table"), first, rows, columns))
        elif rows and self.tables:
            last = self.tables[-1]
            columns = max(columns, last.columns)
            if last.rows == 0:
                self.tables[-1] = replace(last, first_line=first, rows=rows, columns=columns)
            elif first == last.first_line + last.rows:  # else they cannot be found by number
                self.tables[-1] = replace(last, rows=last.rows + rows, columns=columns)


def most_bytes(source: Path, max_chars: int) -> int:
    """Return how long a document's text may be: ``max_chars``, or what text is laid out to.

    A JSON array of single digits, ten levels deep, becomes eleven times as long (_json_layout).
    """
    return max(4 * max_chars, 32 * source.stat().st_size if source.exists() else 0)


def measure(path: Path, pieces: Pieces) -> int:
    """Cut the file to the reported size, check its text, and return its lines. Blocking.

    Raises ProtocolError if the text is not as reported.
    """
    size = pieces.bytes
    decoder = codecs.getincrementaldecoder("utf-8")()
    chars = newlines = seen = 0
    last = ""
    with path.open("r+b") as file:
        if os.fstat(file.fileno()).st_size < size:
            raise ProtocolError
        file.truncate(size)
        while data := file.read(CHUNK_BYTES):
            seen += len(data)
            try:
                text = decoder.decode(data, final=seen == size)
            except UnicodeDecodeError as error:
                raise ProtocolError from error
            chars += len(text)
            newlines += text.count("\n")
            last = text[-1:] or last
    if chars != pieces.chars:
        raise ProtocolError
    return newlines + (last not in ("", "\n"))


def extraction(
    text: Path, done: dict[str, Any], decision: Decision, pieces: Pieces, lines_of_text: int
) -> Extraction:
    """Return the extraction of a job that ended well. Raises ProtocolError."""
    facts = read_facts(done)
    media_type = facts["media_type"] = facts["media_type"] or decision.media_type
    if pieces.declared:
        facts |= pieces.declared.facts(media_type)
    else:
        facts |= describe(format_of(decision).kind, media_type)
    cause = done.get("cause")
    facts["extraction_error"] = "" if cause is None else _cause(cause, "").words()
    facts["outline"] = (*facts["outline"], *pieces.outline)[:MAX_HEADINGS]
    return Extraction(
        text=text if done.get("has_text") is True else None,
        handler=pieces.handler,
        chars=pieces.chars,
        lines=lines_of_text,
        tokens=count(done, "tokens") if "tokens" in done else pieces.chars // 4,
        tokens_exact=done.get("tokens_exact") is True,
        notes=(f"read by plugin {pieces.plugin}",) if pieces.plugin else (),
        ranges=Ranges(tuple(pieces.pages), tuple(pieces.tables), _preview(member(done, "preview"))),
        **facts,
    )


def remains(text: Path, pieces: Pieces, lines_of_text: int, error: str) -> Extraction:
    """Return the extraction of a job whose worker died: what it had written."""
    if not pieces.chars:
        return Extraction(None, pieces.handler, extraction_error=error)
    return Extraction(
        text=text,
        handler=pieces.handler,
        chars=pieces.chars,
        lines=lines_of_text,
        tokens=pieces.chars // 4,
        tokens_exact=False,
        ranges=Ranges(tuple(pieces.pages), tuple(pieces.tables)),
        outline=tuple(pieces.outline),
        extraction_truncated=True,
        extraction_error=error,
    )


def part(answer: dict[str, Any], max_bytes: int) -> PartText | Picture:
    """Return the answer to a request for a part: of a picture at most ``max_bytes``.

    Raises ProtocolError.
    """
    if "picture" not in answer:
        return PartText(
            text(answer, "text", MAX_PART_TEXT),
            count(answer, "total"),
            cut=answer.get("cut") is True,
        )
    try:
        data = base64.b64decode(string(answer.get("picture"), MAX_PICTURE_CHARS), validate=True)
    except binascii.Error as error:
        raise ProtocolError from error
    media_type = line(answer, "media_type")
    beginning = PICTURE_TYPES.get(media_type)
    if beginning is None or not data.startswith(beginning) or len(data) > max_bytes:
        raise ProtocolError
    return Picture(data, media_type, count(answer, "width"), count(answer, "height"))


def page(answer: dict[str, Any]) -> PageText:
    """Return the text that OCR read. Raises ProtocolError."""
    confidence = count(answer, "confidence", 1_000)
    return PageText(text(answer, "text", MAX_PART_TEXT), confidence / 1_000)


def plugins(answer: dict[str, Any]) -> list[PluginReport]:
    """Return the answer about plugins. Raises ProtocolError."""
    reports = map(mapping, items(answer, "plugins", MAX_FRAME))
    return [
        PluginReport(
            clean_line(string(report.get("package"), MAX_FRAME)[:MAX_LINE]),
            tuple(_format(declared) for declared in items(report, "formats", MAX_FORMATS)),
            clean_line(string(report.get("failure"), MAX_FRAME)[:MAX_LINE]),
        )
        for report in reports
    ]


def _format(declared: Any) -> Format:
    """Return what the server needs of a plugin's format; only the worker can read by it."""
    data = mapping(declared)
    kind: Any = data.get("kind")
    unit: Any = data.get("unit")
    if kind not in get_args(ContentKind) or unit not in get_args(Unit):
        raise ProtocolError
    paths = FACTS["paths"]
    return Format(
        kind=kind,
        word=line(data, "word", MAX_WORD),
        handler="",
        media_types=lines(data, "media_types", MAX_FORMATS, MAX_TITLE),
        is_text=flag(data, "is_text"),
        paths=lines(data, "paths", paths.max_items, paths.max_chars),
        unit=unit,
        page_word=line(data, "page_word", MAX_WORD),
        pictures=flag(data, "pictures"),
    )


def failure(frame: dict[str, Any], request: PartRequest | None = None) -> FetchstashError:
    """Return the error of a failed job. Raises ProtocolError.

    It may name what the request named, and nothing else that is not in the table of reasons.
    """
    return _cause(frame.get("failed"), request.path if request else "").error()


def _cause(data: Any, path: str) -> Cause:
    try:
        return read_cause(mapping(data), path)
    except ValueError as error:
        raise ProtocolError from error


def _preview(data: dict[str, Any]) -> Preview:
    names = ("lines_shown", "rows_shown", "total_rows", "columns_shown", "total_columns")
    counts = {name: count(data, name) for name in names if data.get(name) is not None}
    return Preview(
        text(data, "text", MAX_PREVIEW),
        text(data, "sample", MAX_PREVIEW),
        **counts,
        cells_truncated=count(data, "cells_truncated"),
    )

"""Check what a worker answers: hostile bytes may have taken it over.

Any fault raises ProtocolError, and the worker is killed.
"""

import base64
import binascii
import codecs
import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from fetchstash.errors import FetchstashError
from fetchstash.handlers._contract import (
    MAX_LEFT_OUT,
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
from fetchstash.handlers._worker import _protocol
from fetchstash.handlers._worker._protocol import ProtocolError, Values
from fetchstash.text.facts import FACTS
from fetchstash.text.hygiene import clean_line
from fetchstash.text.ranges import Heading, Preview, Ranges, Table, Unit

MAX_PAGES = 100_000
MAX_TABLES = 10_000
MAX_PICTURE_CHARS = 2**24
CHUNK_BYTES = 2**16  # larger ones take twice the time, for memory that is new each time

MAX_WORD, MAX_FORMATS = 40, 200
PICTURE_TYPES = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff"}
"""The media types of pictures for a model, and how their files begin."""


@dataclass(slots=True)
class Pieces:
    """The reports of a running job, added up: its handler, and its pages, tables and headings.

    ``plugin`` is the package that is loaded or that reads the document, ``declared`` its format,
    ``brought`` what the packages of the job bring. ``new_worker``: it is the worker's first job.
    ``most_bytes`` of text are taken, and ``on_page`` is called for each page. ``is_source``: the
    text is the beginning of the document, byte for byte, and was not written.
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
    is_source: bool = False
    pages: list[int] = field(default_factory=list[int])
    tables: list[Table] = field(default_factory=list[Table])
    outline: list[Heading] = field(default_factory=list[Heading])

    def add(self, report: dict[str, Any]) -> None:
        """Add one report. Raises ProtocolError."""
        frame = Values(report)
        if "loaded" in report:
            self.loaded, self.plugin = True, ""
        elif "plugin" in report:
            self.plugin = frame.line("plugin")
            if self.plugin and self.plugin not in self.brought:
                raise ProtocolError
            if self.plugin and "format" in report:
                formats = self.brought[self.plugin]
                self.declared = formats[frame.count("format", len(formats) - 1)]
        elif "handler" in report:
            self.handler = frame.line("handler", MAX_WORD)
        else:
            self._add_piece(frame.member("piece"))

    def _add_piece(self, piece: Values) -> None:
        size, chars = piece.count("bytes", self.most_bytes), piece.count("chars")
        if size < self.bytes or chars < self.chars:
            raise ProtocolError
        starts_page = piece.is_true("starts_page")
        if starts_page:
            self.pages.append(self.chars)
        self.bytes, self.chars = size, chars
        self.is_source = piece.is_true("is_source")
        self.outline += piece.headings("headings", _protocol.MAX_HEADINGS)
        self._add_rows(piece)
        if (
            len(self.pages) > MAX_PAGES
            or len(self.tables) > MAX_TABLES
            or len(self.outline) > _protocol.MAX_HEADINGS
        ):
            raise ProtocolError
        if self.on_page and starts_page:
            total = piece.count("page_count") if "page_count" in piece else None
            self.on_page(len(self.pages), total)

    def _add_rows(self, piece: Values) -> None:
        rows, columns = piece.count("rows"), piece.count("columns")
        first = piece.count("first_row_line")
        if "table" in piece:
            self.tables.append(Table(piece.line("table"), first, rows, columns))
        elif rows and self.tables:
            last = self.tables[-1]
            columns = max(columns, last.columns)
            if last.rows == 0:
                self.tables[-1] = replace(last, first_line=first, rows=rows, columns=columns)
            elif first == last.first_line + last.rows:  # else they cannot be found by number
                self.tables[-1] = replace(last, rows=last.rows + rows, columns=columns)


def most_bytes(source: Path, max_chars: int) -> int:
    """Return the largest text a document may have: ``max_chars``, or its size when laid out.

    A JSON array of single digits, ten levels deep, becomes eleven times as long (_json_layout).
    """
    return max(4 * max_chars, 32 * source.stat().st_size if source.exists() else 0)


def measure(path: Path, pieces: Pieces, source: Path) -> int:
    """Cut the file to the reported size, check its text, and return its lines. Blocking.

    Raises ProtocolError if the text is not as reported.
    """
    size = pieces.bytes
    if pieces.is_source:
        _take_source(path, source, size)
    decoder = codecs.getincrementaldecoder("utf-8")()
    chars = newlines = seen = 0
    last = ""
    with path.open("rb") as file:
        written = os.fstat(file.fileno()).st_size
        if written < size:
            raise ProtocolError
        if written > size:
            os.truncate(path, size)
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


def _take_source(text: Path, source: Path, size: int) -> None:
    """Let the text be the first ``size`` bytes of its document: the same file if that is all of it.

    A file of somebody else's folder is copied: what is done with a text must not change it.
    """
    if source.parent == text.parent and source.stat().st_size == size:
        linked = text.with_name(f"{text.name}.link")
        with contextlib.suppress(OSError):  # a file system without links
            os.link(source, linked)
            linked.replace(text)
            return
    with source.open("rb") as document, text.open("wb") as file:
        for start in range(0, size, CHUNK_BYTES):
            file.write(document.read(min(CHUNK_BYTES, size - start)))


def extraction(
    text: Path, done: Values, decision: Decision, pieces: Pieces, lines: int
) -> Extraction:
    """Return the extraction of a job that ended well. Raises ProtocolError."""
    facts = _protocol.read_facts(done)
    media_type = facts["media_type"] = facts["media_type"] or decision.media_type
    facts |= _format_facts(decision, media_type, pieces)
    facts["extraction_error"] = _cause(done.data["cause"], "").words() if "cause" in done else ""
    facts["outline"] = (*facts["outline"], *pieces.outline)[: _protocol.MAX_HEADINGS]
    return Extraction(
        text=text if done.is_true("has_text") else None,
        handler=pieces.handler,
        chars=pieces.chars,
        lines=lines,
        tokens=done.count("tokens") if "tokens" in done.data else pieces.chars // 4,
        tokens_exact=done.is_true("tokens_exact"),
        notes=(f"read by plugin {pieces.plugin}",) if pieces.plugin else (),
        ranges=Ranges(
            tuple(pieces.pages),
            tuple(pieces.tables),
            _preview(done.member("preview")),
            done.text("left_out_text", MAX_LEFT_OUT) if "left_out_text" in done else "",
        ),
        **facts,
    )


def _format_facts(decision: Decision, media_type: str, pieces: Pieces) -> dict[str, Any]:
    """Return the facts that the format alone decides: a plugin's, or a built-in one."""
    if pieces.declared:
        return pieces.declared.facts(media_type)
    return describe(format_of(decision).kind, media_type)


def remains(text: Path, decision: Decision, pieces: Pieces, lines: int, error: str) -> Extraction:
    """Return the extraction of a job whose worker died: what it had written.

    Its facts are those that the format alone decides; the handler's own died with the worker.
    """
    if not pieces.chars:
        return Extraction(None, pieces.handler, extraction_error=error)
    return Extraction(
        text=text,
        handler=pieces.handler,
        chars=pieces.chars,
        lines=lines,
        tokens=pieces.chars // 4,
        tokens_exact=False,
        ranges=Ranges(tuple(pieces.pages), tuple(pieces.tables)),
        outline=tuple(pieces.outline),
        extraction_truncated=True,
        extraction_error=error,
        media_type=decision.media_type,
        **_format_facts(decision, decision.media_type, pieces),
    )


def part(answer: Values, max_bytes: int) -> PartText | Picture:
    """Return the answer to a request for a part: of a picture at most ``max_bytes``.

    Raises ProtocolError.
    """
    if "picture" not in answer.data:
        text, total = answer.text("text", _protocol.MAX_PART_TEXT), answer.count("total")
        return PartText(text, total, cut=answer.is_true("cut"))
    try:
        data = base64.b64decode(answer.string("picture", MAX_PICTURE_CHARS), validate=True)
    except binascii.Error as error:
        raise ProtocolError from error
    media_type = answer.line("media_type")
    beginning = PICTURE_TYPES.get(media_type)
    if beginning is None or not data.startswith(beginning) or len(data) > max_bytes:
        raise ProtocolError
    return Picture(data, media_type, answer.count("width"), answer.count("height"))


def page(answer: Values) -> PageText:
    """Return the text that OCR read. Raises ProtocolError."""
    confidence = answer.count("confidence", 1_000)
    return PageText(answer.text("text", _protocol.MAX_PART_TEXT), confidence / 1_000)


def plugins(answer: Values) -> list[_protocol.PluginReport]:
    """Return the answer about plugins. Raises ProtocolError."""
    return [
        _protocol.PluginReport(
            clean_line(report.string("package", _protocol.MAX_FRAME)[: _protocol.MAX_LINE]),
            tuple(_format(Values(f)) for f in report.items("formats", MAX_FORMATS)),
            clean_line(report.string("failure", _protocol.MAX_FRAME)[: _protocol.MAX_LINE]),
        )
        for report in map(Values, answer.items("plugins", _protocol.MAX_FRAME))
    ]


def _format(declared: Values) -> Format:
    """Return what the server needs of a plugin's format; only the worker can read by it."""
    kind: Any = declared.data.get("kind")
    unit: Any = declared.data.get("unit")
    if kind not in get_args(ContentKind) or unit not in get_args(Unit):
        raise ProtocolError
    paths = FACTS["paths"]
    return Format(
        kind=kind,
        word=declared.line("word", MAX_WORD),
        handler="",
        media_types=declared.lines("media_types", MAX_FORMATS, _protocol.MAX_TITLE),
        is_text=declared.flag("is_text"),
        paths=declared.lines("paths", paths.max_items, paths.max_chars),
        unit=unit,
        page_word=declared.line("page_word", MAX_WORD),
        pictures=declared.flag("pictures"),
    )


def failure(frame: dict[str, Any], request: PartRequest | None = None) -> FetchstashError:
    """Return the error of a failed job. Raises ProtocolError.

    It may name what the request named, and nothing else that is not in the table of reasons. What
    the document says of itself is its excerpt, for a fence.
    """
    error = _cause(frame.get("failed"), request.path if request else "").error()
    if request and not error.what.endswith("."):  # a reason, which here is a sentence of its own
        error.what = f"{error.what[:1].upper()}{error.what[1:]}."
    if "excerpt" in frame:
        error.excerpt = Values(frame).text("excerpt", _protocol.MAX_LINE)
    return error


def _cause(data: Any, path: str) -> Cause:
    try:
        return _protocol.read_cause(Values(data).data, path)
    except ValueError as error:
        raise ProtocolError from error


def _preview(data: Values) -> Preview:
    names = ("lines_shown", "rows_shown", "total_rows", "columns_shown", "total_columns")
    return Preview(
        data.text("text", _protocol.MAX_PREVIEW),
        data.text("sample", _protocol.MAX_PREVIEW),
        **{name: data.count(name) for name in names if name in data},
        cells_truncated=data.count("cells_truncated"),
    )

"""read_file, for agents that have the file already: any document as text that fits a context, or as a picture.

The same routing, handlers and previews as of what is fetched; nothing is stored.
"""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from fetchstash import tokens
from fetchstash.errors import FetchstashError
from fetchstash.handlers import ContentKind, Decision, Extraction, ExtractLimits, Hints, Picture, WorkerPool, route_file
from fetchstash.views import PreviewLimits, clip

T = TypeVar("T")

HEAD_SHARE = 2 / 3
"""Of the lines that are shown of a long text, how many are its first; the rest are its last."""


class FileType(Enum):
    """What a file is, for ``store_result`` and in results: the kind of its content and the usual extension."""

    CODE = ("code", ".py")
    TEXT = ("text", ".txt")
    MARKDOWN = ("markdown", ".md")
    JSON = ("json", ".json")
    YAML = ("yaml", ".yaml")
    XML = ("xml", ".xml")
    CSV = ("csv", ".csv")
    XLSX = ("spreadsheet", ".xlsx")
    PDF = ("pdf", ".pdf")
    DOCX = ("office_doc", ".docx")
    PPTX = ("office_doc", ".pptx")
    IMAGE = ("image", ".png")
    AUDIO = ("audio", ".mp3")
    ARCHIVE = ("archive", ".zip")
    BINARY = ("unknown_binary", ".bin")

    @property
    def content_kind(self) -> str:
        """The kind of content, as artifacts have it."""
        return self.value[0]

    @property
    def extension(self) -> str:
        """The extension of a file of this type, with its dot."""
        return self.value[1]


_TYPE_OF_KIND: dict[ContentKind, FileType] = {
    "text": FileType.TEXT, "code": FileType.CODE, "markdown": FileType.MARKDOWN, "html": FileType.XML, "json": FileType.JSON,
    "jsonl": FileType.JSON, "yaml": FileType.YAML, "xml": FileType.XML, "csv": FileType.CSV, "spreadsheet": FileType.XLSX,
    "pdf": FileType.PDF, "office_doc": FileType.DOCX, "email": FileType.TEXT, "notebook": FileType.JSON, "image": FileType.IMAGE,
    "audio": FileType.AUDIO, "video": FileType.BINARY, "archive": FileType.ARCHIVE, "unknown_binary": FileType.BINARY,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BinaryContent:
    """Bytes that a model may be shown as they are: a picture, a sound."""

    data: bytes
    mime_type: str


@dataclass(frozen=True, slots=True)
class TruncationInfo:
    """What is shown of how much; None where it does not apply. ``tokens_shown`` and ``total_tokens`` are in o200k."""

    lines_shown: int | None = None
    columns_shown: int | None = None
    rows_shown: int | None = None
    cells_truncated: bool = False
    tokens_shown: int = 0
    total_tokens: int = 0
    total_output_limit_reached: bool = False


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """Facts of a file; ``modified_time`` is in UTC, ``encoding`` that of a text ("" if it is none)."""

    size_bytes: int
    modified_time: datetime
    mime_type: str
    encoding: str = ""


@dataclass(frozen=True, slots=True)
class FileExtractionResult:
    """What ``read_file`` found. ``content`` is None where there is nothing to show, and then ``error_message`` says why.

    ``truncation_info`` is None where the content is whole.
    """

    content: str | BinaryContent | None
    success: bool
    error_message: str = ""
    file_type: FileType = FileType.BINARY
    truncation_info: TruncationInfo | None = None
    metadata: FileMetadata | None = None


@dataclass(frozen=True, slots=True)
class Ends:
    """How many lines of a long text are shown of its beginning and its end."""

    head: int
    tail: int


def read_file(path: str | Path, max_tokens: int | None = None) -> FileExtractionResult:
    """Read a file as what it really is, within ``max_tokens`` (5,000 if None) and the limits of previews. Never raises.

    What fits comes whole. Of what does not, structured data come as their shape, tables as first and last rows, and other text as
    first and last lines.
    """
    return read_within(Path(path), replace(PreviewLimits(), **({} if max_tokens is None else {"max_tokens_per_file": max_tokens})))


def read_file_as_string(path: str | Path, max_tokens: int | None = None) -> str:
    """Return what ``read_file`` finds as text; on failure ``[Error reading PATH: MESSAGE]``."""
    result = read_file(path, max_tokens)
    if isinstance(result.content, BinaryContent):
        return f"[{path}: {result.content.mime_type}, {len(result.content.data)} bytes]"
    return f"[Error reading {path}: {result.error_message}]" if result.content is None else result.content


def read_within(path: Path, limits: PreviewLimits, ends: Ends | None = None) -> FileExtractionResult:
    """Do as ``read_file`` does, within other limits."""
    try:
        status = path.stat()
        decision = route_file(path, {}, path.name)
        modified = datetime.fromtimestamp(status.st_mtime, UTC)
        metadata = FileMetadata(status.st_size, modified, decision.media_type, decision.charset)
        file_type = _file_type(decision, path)
        if decision.kind in {"image", "audio", "video", "unknown_binary"}:
            return _binary(path, decision, file_type, metadata, limits)
        return _run(lambda: _text(path, decision, file_type, metadata, limits, ends))
    except FetchstashError as error:
        return FileExtractionResult(None, success=False, error_message=error.what)
    except OSError as error:
        return FileExtractionResult(None, success=False, error_message=error.strerror or "it cannot be read")


def _file_type(decision: Decision, path: Path) -> FileType:
    by_name = {kind.extension: kind for kind in (FileType.DOCX, FileType.PPTX)}
    return (
        by_name.get(path.suffix.lower(), _TYPE_OF_KIND[decision.kind])
        if decision.kind == "office_doc"
        else _TYPE_OF_KIND[decision.kind]
    )


def _binary(
    path: Path, decision: Decision, file_type: FileType, metadata: FileMetadata, limits: PreviewLimits
) -> FileExtractionResult:
    """Return a picture made small enough by the worker, a small sound as it is, and of anything else only what it is."""
    content: BinaryContent | None = None
    if decision.kind == "image":
        picture = _run(lambda: _picture(path, decision, limits))
        content = BinaryContent(picture.data, picture.media_type) if picture else None
    elif decision.kind == "audio" and metadata.size_bytes <= limits.max_image_size_bytes:
        content = BinaryContent(path.read_bytes(), decision.media_type)
    error = "" if content else f"it is {decision.media_type} of {metadata.size_bytes} bytes, which is no text"
    return FileExtractionResult(content, content is not None, error, file_type, None, metadata)


async def _picture(path: Path, decision: Decision, limits: PreviewLimits) -> Picture | None:
    pool = WorkerPool(ExtractLimits(preview=limits), workers=1)
    try:
        part = await pool.part(path, decision, render="image")
        return part if isinstance(part, Picture) else None
    finally:
        await pool.aclose()


async def _text(
    path: Path, decision: Decision, file_type: FileType, metadata: FileMetadata, limits: PreviewLimits, ends: Ends | None
) -> FileExtractionResult:
    pool = WorkerPool(ExtractLimits(preview=limits), workers=1)
    try:
        with tempfile.TemporaryDirectory(prefix="fetchstash-") as folder:
            extraction = await pool.extract(path, decision, Hints(name=path.name, charset=decision.charset), Path(folder))
            if extraction.text is None:
                message = extraction.error or "there is no text in it"
                return FileExtractionResult(None, success=False, error_message=message, file_type=file_type, metadata=metadata)
            text = extraction.text.read_text(encoding="utf-8")
    finally:
        await pool.aclose()
    content, truncation = shown_of(text, extraction, limits, ends)
    return FileExtractionResult(content, success=True, file_type=file_type, truncation_info=truncation, metadata=metadata)


def shown_of(
    text: str, extraction: Extraction, limits: PreviewLimits, ends: Ends | None = None
) -> tuple[str, TruncationInfo | None]:
    """Return ``text`` if it is within all limits, else what is shown of it and how much that is."""
    whole = extraction.tokens <= limits.max_tokens_per_file and len(text) <= limits.max_total_output and not extraction.truncated
    if whole and not (ends and text.count("\n") > ends.head + ends.tail):
        return text, None
    preview = extraction.ranges.preview
    if ends or not preview or tokens.count(preview).tokens > limits.max_tokens_per_file:
        preview = _head_and_tail(text.splitlines(), limits, ends)
    content = clip(preview, limits.max_total_output)
    shown = TruncationInfo(
        lines_shown=content.count("\n") + 1,
        columns_shown=None if extraction.columns is None else min(extraction.columns, limits.max_columns),
        rows_shown=None if extraction.rows is None else min(extraction.rows, limits.rows_head + limits.rows_tail),
        cells_truncated=extraction.rows is not None and "…" in content,
        tokens_shown=tokens.count(content).tokens,
        total_tokens=extraction.tokens,
        total_output_limit_reached=len(preview) > limits.max_total_output,
    )
    return content, shown


def _head_and_tail(lines: list[str], limits: PreviewLimits, ends: Ends | None) -> str:
    """Return as many first and last lines as fit the limits, with the count of those between."""
    head = ends.head if ends else round(limits.max_lines * HEAD_SHARE)
    tail = ends.tail if ends else limits.max_lines - head
    width = limits.max_line_length
    while True:
        first, last = lines[:head], lines[max(len(lines) - tail, head) :] if tail else []
        left_out = len(lines) - len(first) - len(last)
        between = [f"… {left_out:,} more lines …"] if left_out else []
        text = "\n".join(clip(line, width) for line in [*first, *between, *last])
        if tokens.count(text).tokens <= limits.max_tokens_per_file or (head <= 1 and not tail and width <= 1):
            return text
        if head + tail > 1:
            head, tail = max(head * 3 // 4, 1), tail * 3 // 4
        else:
            width = width * 3 // 4


def _run(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, in a thread of its own where this one has a running event loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(asyncio.run(make()))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]

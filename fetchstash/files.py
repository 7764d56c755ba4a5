"""read_file: any local document as text that fits a context, or as a picture.

The same routing, handlers and previews as of what is fetched; nothing is stored.
"""

import asyncio
import errno
import os
import stat
import tempfile
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from fetchstash.config import load
from fetchstash.errors import BadArgument, FetchstashError, type_checked
from fetchstash.handlers import (
    Decision,
    Extraction,
    ExtractLimits,
    Hints,
    PartRequest,
    Picture,
    WorkerPool,
    charset_of_file,
    format_of,
    kind_of_name,
    route_file,
)
from fetchstash.text import PreviewLimits, TruncationInfo, counted, head_and_tail, largest, tokens
from fetchstash.text.ranges import Preview

__all__ = [
    "BinaryContent",
    "FileExtractionResult",
    "FileMetadata",
    "FileType",
    "TruncationInfo",
    "read_file",
    "read_file_as_string",
]

T = TypeVar("T")

LINE_TOKENS, LINE_CHARS = 60, 160
"""What the line that says how much is shown may take."""


class FileType(Enum):
    """The kind of a file: the extension of such files, and those of what else it stands for."""

    CODE = (".py",)
    TEXT = (".txt", ".eml")
    MARKDOWN = (".md",)
    JSON = (".json", ".jsonl", ".ipynb")
    YAML = (".yaml",)
    XML = (".xml", ".html")
    CSV = (".csv",)
    XLSX = (".xlsx",)
    PDF = (".pdf",)
    DOCX = (".docx",)
    PPTX = (".pptx",)
    IMAGE = (".png",)
    AUDIO = (".mp3",)
    ARCHIVE = (".zip",)
    BINARY = (".bin", ".mp4")

    @property
    def content_kind(self) -> str:
        """The kind of content, as artifacts have it."""
        return kind_of_name(self.extension)

    @property
    def extension(self) -> str:
        """The extension of a file of this type, with its dot."""
        return str(self.value[0])


@dataclass(frozen=True, slots=True)
class BinaryContent:
    """Bytes that a model may be shown as they are: a picture, a sound."""

    data: bytes = field(repr=False)
    mime_type: str


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """Facts of a file. ``modified_time`` is in UTC; ``encoding`` is "" for what is no text."""

    size_bytes: int
    modified_time: datetime
    mime_type: str
    encoding: str = ""


@dataclass(frozen=True, slots=True)
class FileExtractionResult:
    """The result of ``read_file``. ``content`` is None where nothing can be shown: see the message.

    ``truncation_info`` is None where the content is whole. ``next_offset`` is the character to
    read on from, 0 where the content is no prefix of the text, None at its end.
    """

    content: str | BinaryContent | None = field(repr=False)
    success: bool
    error_message: str = ""
    file_type: FileType = FileType.BINARY
    truncation_info: TruncationInfo | None = None
    metadata: FileMetadata | None = None
    next_offset: int | None = None


def read_file(
    path: str | Path,
    max_tokens: int | None = None,
    *,
    offset: int | None = None,
    max_lines: int | None = None,
) -> FileExtractionResult:
    """Read a file as what it really is, within the limits of previews. Never raises.

    A text that fits comes whole. Of a longer one come its shape (structured data), first and last
    rows (tables) or first and last lines, under a line that says how much is shown. With
    ``offset`` it is read from that character on instead, as far as it fits, in whole lines; pass
    on ``next_offset`` to read it all. ``max_tokens`` and ``max_lines`` replace
    context.max_tokens_per_file and context.max_lines.
    """
    try:
        limits = _limits(path, max_tokens, offset, max_lines)
    except FetchstashError as error:
        return _failure(f"{error.what} {error.next_step}")
    return read_within(Path(path), limits, offset=offset)


@type_checked
def _limits(
    path: str | Path,  # noqa: ARG001 - checked alone, as the offset is
    max_tokens: int | None,
    offset: int | None,  # noqa: ARG001
    max_lines: int | None,
) -> ExtractLimits:
    asked = {"max_tokens_per_file": max_tokens, "max_lines": max_lines}
    changes = {name: value for name, value in asked.items() if value is not None}
    if min(changes.values(), default=1) < 1:
        raise BadArgument("max_tokens and max_lines must be at least 1.", "Give more.")
    limits = load(environment=os.environ).extract
    return replace(limits, preview=replace(limits.preview, **changes))


def read_file_as_string(
    path: str | Path,
    max_tokens: int | None = None,
    *,
    offset: int | None = None,
    max_lines: int | None = None,
) -> str:
    """Return what ``read_file`` reads as text; on failure ``[Error reading PATH: MESSAGE]``.

    Where there is more, the last line names the offset to read on from.
    """
    result = read_file(path, max_tokens, offset=offset, max_lines=max_lines)
    content = result.content
    if isinstance(content, BinaryContent):
        return f"[{path}: {content.mime_type}, {counted(len(content.data), 'byte')}]"
    if content is None:
        return f"[Error reading {path}: {result.error_message}]"
    if result.next_offset is None:
        return content
    line_end = "" if content.endswith("\n") else "\n"
    return f"{content}{line_end}[Read on with offset={result.next_offset}.]"


def read_within(
    path: Path,
    limits: ExtractLimits,
    ends: tuple[int, int] | None = None,
    *,
    offset: int | None = None,
) -> FileExtractionResult:
    """Read as ``read_file`` does, within other limits.

    ``ends``: how many first and last lines are shown of a longer text.
    """
    try:
        status = _status(path)
        decision = route_file(path, {}, path.name)
        modified = datetime.fromtimestamp(status.st_mtime, UTC)
        is_text = format_of(decision).bytes_are_text
        charset = charset_of_file(path, decision.charset) if is_text else ""
        metadata = FileMetadata(status.st_size, modified, decision.media_type, charset)
        result = _run(lambda: _text(path, decision, limits, ends, offset))
        return replace(result, file_type=_file_type(decision), metadata=metadata)
    except FetchstashError as error:
        return _failure(error.what)
    except OSError as error:
        return _failure(error.strerror or "it cannot be read")


def _failure(message: str) -> FileExtractionResult:
    return FileExtractionResult(None, success=False, error_message=message)


def _status(path: Path) -> os.stat_result:
    """Return the status of a file. Raises OSError for what is no regular file: a pipe blocks."""
    try:
        status = path.stat()
    except ValueError as error:  # a NUL, or half a character
        raise OSError(errno.EINVAL, "this is no name of a file") from error
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    return status


def _file_type(decision: Decision) -> FileType:
    if format_of(decision).page_word == "slides":
        return FileType.PPTX
    kinds = ((kind_of_name(end), file_type) for file_type in FileType for end in file_type.value)
    return next(file_type for kind, file_type in kinds if kind == decision.kind)


async def _without_text(
    path: Path, decision: Decision, limits: ExtractLimits, pool: WorkerPool
) -> FileExtractionResult:
    """Return a picture within its bounds or a small sound; of anything else only what it is."""
    size = (await asyncio.to_thread(path.stat)).st_size
    if format_of(decision).pictures:
        part = await pool.part(decision, PartRequest(source=path, render="image"))
        if isinstance(part, Picture):
            return FileExtractionResult(BinaryContent(part.data, part.media_type), success=True)
    if decision.media_type.startswith("audio/") and size <= limits.preview.max_image_size_bytes:
        sound = await asyncio.to_thread(path.read_bytes)
        return FileExtractionResult(BinaryContent(sound, decision.media_type), success=True)
    return _failure(f"it is {decision.media_type} of {counted(size, 'byte')}, which is no text")


async def _text(
    path: Path,
    decision: Decision,
    limits: ExtractLimits,
    ends: tuple[int, int] | None,
    offset: int | None,
) -> FileExtractionResult:
    preview = replace(limits.preview, structured_tokens=_Room(limits.preview).tokens)
    pool = WorkerPool(replace(limits, preview=preview), workers=1)
    hints = Hints(name=path.name, charset=decision.charset)
    try:
        with tempfile.TemporaryDirectory(prefix="fetchstash-") as folder:
            extraction = await pool.extract(path, decision, hints, Path(folder))
            if extraction.extraction_error and extraction.text is None:
                return _failure(extraction.extraction_error)
            if extraction.text is None:
                return await _without_text(path, decision, limits, pool)
            text = extraction.text.read_text(encoding="utf-8")
    finally:
        await pool.aclose()
    if offset is not None:
        return _from_offset(text, extraction, limits.preview, offset)
    content, info = shown_of(text, extraction, limits.preview, ends)
    rest = None if info is None else 0
    return FileExtractionResult(content, success=True, truncation_info=info, next_offset=rest)


def _from_offset(
    text: str, extraction: Extraction, limits: PreviewLimits, offset: int
) -> FileExtractionResult:
    """Return the text from ``offset`` on: whole lines, or a piece of the first if it is longer."""
    if offset < 0 or (offset >= len(text) and offset):
        return _failure(f"it has {counted(len(text), 'character')}, and the offset is {offset}")
    rest = text[offset : offset + limits.max_total_output]
    lines = rest.split("\n", limits.max_lines)
    room = rest.removesuffix(lines[-1]) if len(lines) > limits.max_lines else rest
    most = limits.max_tokens_per_file
    fits = largest(len(room), lambda length: tokens.count(room[:length]).tokens <= most)
    end = offset + fits
    if end < len(text):
        end = text.rfind("\n", offset, end) + 1 or end
    content = text[offset:end]
    info = TruncationInfo.of(
        Preview(lines_shown=content.removesuffix("\n").count("\n") + 1),
        text.removesuffix("\n").count("\n") + 1,
        tokens.count(content),
        tokens.TokenCount(extraction.tokens, extraction.tokens_exact),
        total_output_limit_reached=fits == limits.max_total_output,
    )
    after = end if end < len(text) else None
    return FileExtractionResult(content, success=True, truncation_info=info, next_offset=after)


class _Room:
    """The room for a text beside the line that says how much is shown, if limits leave any."""

    def __init__(self, limits: PreviewLimits) -> None:
        has_tokens = limits.max_tokens_per_file > 4 * LINE_TOKENS
        self.with_line = has_tokens and limits.max_total_output > 4 * LINE_CHARS
        self.tokens = limits.max_tokens_per_file - LINE_TOKENS * self.with_line
        self.chars = limits.max_total_output - LINE_CHARS * self.with_line
        self.chars_ended_it = False

    def fits(self, text: str) -> bool:
        """Return whether there is room for ``text``."""
        if tokens.count(text).tokens > self.tokens:
            return False
        self.chars_ended_it |= len(text) > self.chars
        return len(text) <= self.chars


def shown_of(
    text: str, extraction: Extraction, limits: PreviewLimits, ends: tuple[int, int] | None = None
) -> tuple[str, TruncationInfo | None]:
    """Return ``text`` if it is within all limits, else a preview under a line on its extent."""
    lines = text.removesuffix("\n").split("\n")
    most = ends or limits.lines
    if (
        not extraction.extraction_truncated
        and extraction.tokens <= limits.max_tokens_per_file
        and len(text) <= limits.max_total_output
        and len(lines) <= sum(most)
        and max(map(len, lines)) <= limits.max_line_length
    ):
        return text, None
    room = _Room(limits)
    preview = extraction.ranges.preview
    previews = () if ends else (preview, preview.without_sample())
    fitting = (preview for preview in previews if preview.text and room.fits(preview.whole))
    if shown_preview := next(fitting, None):
        body = shown_preview.whole
    else:
        width = limits.max_line_length
        body, shown = head_and_tail(lines, lines, len(lines), most, width, room.fits)
        shown_preview = Preview(lines_shown=shown)
    total = tokens.TokenCount(extraction.tokens, extraction.tokens_exact)
    info = TruncationInfo.of(
        shown_preview,
        len(lines),
        tokens.count(body),
        total,
        total_output_limit_reached=room.chars_ended_it,
    )
    return (f"{info.line()}\n{body}" if room.with_line else body), info


def _run(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, in a thread of its own if this one has a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(make())).result()

"""What the handlers room promises: bytes in a file become text and facts, whatever the bytes are."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from fetchstash.ranges import Heading, Preview, Ranges, Unit
from fetchstash.text import PreviewLimits

ContentKind = Literal[
    "text", "code", "markdown", "html", "json", "jsonl", "yaml", "xml", "csv", "spreadsheet", "pdf", "office_doc", "email",
    "notebook", "image", "audio", "video", "archive", "unknown_binary",
]  # fmt: skip
DecidedBy = Literal["mime", "magic", "structure", "extension", "fallback"]
Render = Literal["text", "image"]

TEXT_KINDS: frozenset[ContentKind] = frozenset(
    {"text", "code", "markdown", "json", "jsonl", "yaml", "xml", "csv"}
)
"""Kinds that are text already: their text is the document, and it is kept whole. Others stop at ``ExtractLimits.max_chars``."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the bytes are, and what said so.

    ``media_type`` is the one that was decided, ``declared_type`` the one that was claimed ("" if
    none), both bare, in lower case. ``evidence`` is a list of short strings. ``mismatch``: the
    bytes contradict the label. ``charset`` is the label's. ``shadow`` is what the router would have
    decided, where the declared type alone was to decide ("" else).
    """

    kind: ContentKind
    media_type: str
    declared_type: str
    decided_by: DecidedBy
    evidence: tuple[str, ...]
    mismatch: bool
    charset: str = ""
    shadow: str = ""


@dataclass(frozen=True, slots=True)
class Hints:
    """What is known of a document besides its bytes; all of it may be wrong. ``url`` is the masked final one.

    ``media_type`` is what the router decided; the worker fills it in, and ``charset`` too where
    only the decision has it.
    """

    url: str = ""
    declared_type: str = ""
    charset: str = ""
    name: str = ""
    media_type: str = ""


NO_HINTS = Hints()


@dataclass(frozen=True, slots=True)
class ExtractLimits:
    """What one document may become, and what a worker may use for it: the settings extract.*, and context.* for previews."""

    max_chars: int = 20_000_000
    pdf_max_pages: int = 5_000
    memory_mb: int = 1_024
    cpu_seconds: float = 30
    wall_seconds: float = 60
    preview: PreviewLimits = field(default_factory=PreviewLimits)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a document's text, in reading order: a page, a sheet, a batch of rows or lines.

    Pieces are written one after the other as they are: each carries its own line ends, and only a
    line feed ends a line. ``starts_page``: a new page begins here. ``headings`` count their lines
    from this part's first line, which is 1; ``rows`` are table rows that end this part, one a line;
    ``table`` opens a new table of that title and ``columns`` before them.
    """

    text: str
    starts_page: bool = False
    headings: tuple[Heading, ...] = ()
    table: str | None = None
    columns: int = 0
    rows: int = 0


@dataclass(slots=True)
class Extracted:
    """What a handler reads out of one document.

    ``parts`` is consumed once, in order, and whatever it learns on the way the handler writes into
    the other fields before the iteration ends. None: a document that has no text (an image, a
    binary); the facts are all there is. ``media_type`` is a better name than the router's, "" if
    there is none. ``outline`` is for what is known of the whole document (bookmarks); headings that
    stand in the text go with their part. ``error`` says why there is no or not all text, where that
    is no exception; it goes with ``truncated`` where a limit cut the text.
    """

    parts: Iterable[Part] | None
    media_type: str = ""
    title: str = ""
    language: str = ""
    author: str = ""
    published: str = ""
    pages: int | None = None
    sheets: int | None = None
    rows: int | None = None
    columns: int | None = None
    members: int | None = None
    width: int | None = None
    height: int | None = None
    outline: list[Heading] = field(default_factory=list[Heading])
    structure_info: str = ""
    preview: Preview = field(default_factory=Preview)
    truncated: bool = False
    error: str = ""
    hidden_removed: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """An image made for a model: within the bounds that PreviewLimits sets on pictures."""

    data: bytes
    media_type: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class PartText:
    """What ``part`` found: the text of it, and how many ``unit`` the part that was asked for has in all.

    ``cut`` is set behind the handler: the text was longer than what the worker hands on, and this
    is its beginning.
    """

    text: str
    total: int
    cut: bool = False


class Handler(Protocol):
    """A format, or a family of them: one module and one line in the registry.

    A handler runs in the worker process. It reads ``source`` and touches no network and no other
    file. Its module imports only the contract at import time, and libraries inside functions.
    Whatever it raises becomes ``extraction_error``; text that it yielded before is kept. The words
    of an error of fetchstash.errors are shown as they are (NoText, "it is encrypted with a
    password"); of any other exception only the class is named, because messages quote the document.
    It may also have

        part(source: Path, path: str, unit: Unit, start: int | None, end: int | None, render: Render, limits: ExtractLimits)
            -> PartText | Picture

    to answer for a part that is no recorded range of the text: a JSON value, an archive's member, a
    page as a picture. One that has a parameter ``hints`` besides gets what is known of the
    document. It raises OutOfRange or BadArgument of fetchstash.errors for a part that is not there.
    """

    name: str

    def can_handle(self, kind: ContentKind, media_type: str) -> bool:
        """Return whether this handler takes such a document. The first in the registry that does gets it."""
        ...

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Read ``source``."""
        ...


@dataclass(frozen=True, slots=True)
class Extraction:
    """What came back from the worker, in the server's process. ``text`` is a file of UTF-8 that now belongs to the caller.

    ``chars``, ``lines`` and ``tokens`` (o200k; ``tokens_exact``: counted, else estimated) are those
    of the text as it stands in the file, cleaned. ``media_type`` is a better name than the
    decision's ("" if there is none). ``hidden_removed`` counts hidden elements and characters that
    were taken out. ``error`` is why there is no or not all text ("" if none); ``truncated``: a
    limit or a crash cut it.
    """

    text: Path | None
    handler: str
    media_type: str = ""
    chars: int = 0
    lines: int = 0
    tokens: int = 0
    tokens_exact: bool = True
    ranges: Ranges = field(default_factory=Ranges)
    outline: tuple[Heading, ...] = ()
    title: str = ""
    language: str = ""
    author: str = ""
    published: str = ""
    pages: int | None = None
    sheets: int | None = None
    rows: int | None = None
    columns: int | None = None
    members: int | None = None
    width: int | None = None
    height: int | None = None
    structure_info: str = ""
    truncated: bool = False
    error: str = ""
    hidden_removed: int = 0


class Extractor(Protocol):
    """Runs handlers where they can do no harm: in worker processes with limits, so that the event loop stays free."""

    async def extract(
        self, source: Path, decision: Decision, hints: Hints, folder: Path
    ) -> Extraction:
        """Read ``source``; the text goes to a new 0600 file in ``folder``.

        A failed extraction is no exception: it is an Extraction with ``error``. Raises Busy or
        Internal where no worker can be had.
        """
        ...

    async def part(
        self,
        source: Path,
        decision: Decision,
        *,
        path: str = "",
        unit: Unit = "lines",
        start: int | None = None,
        end: int | None = None,
        render: Render = "text",
        hints: Hints = NO_HINTS,
    ) -> PartText | Picture:
        """Read one part of ``source`` that is no recorded range of its text.

        Raises OutOfRange, BadArgument, NoText, TooLarge, Busy or Internal.
        """
        ...

    async def aclose(self) -> None:
        """End all workers."""
        ...

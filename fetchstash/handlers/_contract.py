"""What the handlers room promises: bytes in a file become text and facts, whatever the bytes are."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Protocol

from fetchstash.facts import DocumentFacts
from fetchstash.ranges import Heading, Preview, Ranges, Unit
from fetchstash.text import PreviewLimits

ContentKind = Literal[
    "text", "code", "markdown", "html", "json", "jsonl", "yaml", "xml", "csv", "spreadsheet", "pdf", "office_doc", "email",
    "notebook", "image", "audio", "video", "archive", "unknown_binary",
]  # fmt: skip
DecidedBy = Literal["mime", "magic", "structure", "extension", "fallback"]
Render = Literal["text", "image"]


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
    """What one document may become, and what a worker may use for it.

    These are the settings extract.*, and context.* for previews. ``plugins`` are the packages whose
    formats are loaded.
    """

    max_chars: int = 20_000_000
    pdf_max_pages: int = 5_000
    memory_mb: int = 1_024
    cpu_seconds: float = 30
    wall_seconds: float = 60
    plugins: tuple[str, ...] = ()
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


P = ParamSpec("P")


def _takes_facts(
    facts: Callable[P, DocumentFacts],
) -> Callable[[Callable[..., None]], Callable[Concatenate["Extracted", P], None]]:
    """Give a method the keyword arguments of ``facts``, for type checkers."""
    del facts
    return lambda method: method


@dataclass(slots=True)
class Extracted:
    """What a handler reads out of one document.

    ``parts`` is consumed once, in order; None: the document has no text (an image, a binary).
    ``facts`` are read after the last part: whatever the handler learns on the way it adds with
    ``learn``. The outline in ``facts`` is for what is known of the whole document (bookmarks);
    headings that stand in the text go with their part.
    """

    parts: Iterable[Part] | None
    facts: DocumentFacts = field(default_factory=DocumentFacts)
    preview: Preview = field(default_factory=Preview)

    @_takes_facts(DocumentFacts)
    def learn(self, **facts: Any) -> None:
        """Set fields of ``facts``."""
        self.facts = replace(self.facts, **facts)


@dataclass(frozen=True, slots=True)
class Picture:
    """An image made for a model: within the bounds that PreviewLimits sets on pictures."""

    data: bytes
    media_type: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class PartText:
    """The text of a part, and how many ``unit`` the whole of what the path names has.

    ``cut``: the worker cut the text, because it was longer than one answer may be.
    """

    text: str
    total: int
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRequest:
    """A request for a part of the document ``source`` that is no recorded range of its text.

    ``path`` names a value, a member, a page's links ("" is the whole). ``start`` to ``end`` count
    ``unit`` inside it: lines, pages and rows from 1 with both ends included, characters and bytes
    from 0 with the end excluded. The worker fills in ``limits``.
    """

    source: Path
    path: str = ""
    unit: Unit = "lines"
    start: int | None = None
    end: int | None = None
    render: Render = "text"
    hints: Hints = NO_HINTS
    limits: ExtractLimits = field(default_factory=ExtractLimits)


class Handler(Protocol):
    """A format, or a family of them: one module and one line in the registry.

    A handler runs in the worker process. It reads ``source`` and touches no network and no other
    file. Its module imports only the contract at import time, and libraries inside functions.
    Whatever it raises becomes ``extraction_error``; text that it yielded before is kept. The words
    of an error of fetchstash.errors are shown as they are (NoText, "it is encrypted with a
    password"); of any other exception only the class is named, because messages quote the document.
    It may also have

        part(request: PartRequest) -> PartText | Picture

    to answer for a part that is no recorded range of the text: a JSON value, an archive's member, a
    page as a picture. It raises OutOfRange or BadArgument of fetchstash.errors for a part that is
    not there.
    """

    name: str

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Read ``source``."""
        ...


@dataclass(frozen=True, slots=True)
class Extraction(DocumentFacts):
    """What came back from the worker, in the server's process: the facts, and a file of text.

    ``text`` is a file of UTF-8 that now belongs to the caller. ``chars``, ``lines`` and ``tokens``
    (o200k; ``tokens_exact``: counted, else estimated) are those of the cleaned text in it.
    ``notes`` say which plugin read it, or why one did not.
    """

    text: Path | None
    handler: str
    chars: int = 0
    lines: int = 0
    tokens: int = 0
    tokens_exact: bool = True
    ranges: Ranges = field(default_factory=Ranges)
    notes: tuple[str, ...] = ()


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

    async def part(self, decision: Decision, request: PartRequest) -> PartText | Picture:
        """Read one part of ``request.source``.

        Raises OutOfRange, BadArgument, NoText, TooLarge, Busy or Internal.
        """
        ...

    async def aclose(self) -> None:
        """End all workers."""
        ...

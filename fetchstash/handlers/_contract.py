"""The contract of the handlers: a file of bytes becomes text and facts, or a reason.

`Format` is the one declaration of a format; router, registry and facts read it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Protocol

from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._reasons import Cause
from fetchstash.text.facts import DocumentFacts
from fetchstash.text.ranges import Heading, Preview, Ranges, Unit

ContentKind = Literal[
    "text",
    "code",
    "markdown",
    "html",
    "json",
    "jsonl",
    "yaml",
    "xml",
    "csv",
    "spreadsheet",
    "pdf",
    "office_doc",
    "email",
    "notebook",
    "image",
    "audio",
    "video",
    "archive",
    "unknown_binary",
]
DecidedBy = Literal["mime", "magic", "structure", "extension", "fallback"]
Render = Literal["text", "image"]
PagesRead = Callable[[int, int | None], None]
"""Told how many pages of a document are read, and of how many, if that is known."""

P = ParamSpec("P")

Row = tuple[str, str, str, *tuple[bytes, ...]]
"""Word, media types, extensions (each a list parted by spaces), and signatures at offset 0."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The router's decision: the format of the bytes, and why.

    ``media_type`` is the decided one, ``declared_type`` the label's ("" if none), both bare, in
    lower case. ``evidence`` is a list of short strings. ``mismatch``: the bytes contradict the
    label. ``charset`` is the label's. ``shadow`` is the router's own decision where the declared
    type alone decided, else "".
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
    """Hints about a document besides its bytes; each may be wrong.

    ``url`` is the final one, masked. The worker fills in ``media_type`` from the decision, and
    ``charset`` where only the decision has one.
    """

    url: str = ""
    declared_type: str = ""
    charset: str = ""
    name: str = ""
    media_type: str = ""


NO_HINTS = Hints()


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a document's text: a page, a sheet, a batch of rows or lines.

    Parts are written in order, as they are; each carries its own line feeds. ``starts_page``: a
    page begins here. ``headings`` count lines from this part's first, which is 1. The last ``rows``
    lines are table rows; ``table`` is the title of a table of ``columns`` that begins with them.
    ``blank``: a page without text, which OCR may read; its text is that of ``blank_page``.
    """

    text: str
    starts_page: bool = False
    headings: tuple[Heading, ...] = ()
    table: str | None = None
    columns: int = 0
    rows: int = 0
    blank: bool = False


def _takes_facts(
    facts: Callable[P, DocumentFacts],
) -> Callable[[Callable[..., None]], Callable[Concatenate["Extracted", P], None]]:
    """Give a method the keyword arguments of ``facts``, for type checkers."""
    del facts
    return lambda method: method


MAX_LEFT_OUT = 50_000
"""Characters of what a text leaves out that are kept beside it."""


@dataclass(slots=True)
class Extracted:
    """The text and the facts that a handler reads out of one document.

    ``parts`` is consumed once, in order; None: the document has no text (an image, a binary). Call
    ``learn`` at any time before the last part: ``facts`` are read after it. The outline in
    ``facts`` is the document's own (bookmarks); headings in the text go with their part.
    ``left_out`` is what the text leaves out, to be searched: the words and addresses that the path
    "left_out" shows, on as many lines. It is kept if it is short, so that searching it reads no
    document again.
    """

    parts: Iterable[Part] | None
    facts: DocumentFacts = field(default_factory=DocumentFacts)
    preview: Preview = field(default_factory=Preview)
    cause: Cause | None = None
    left_out: str = ""

    @_takes_facts(DocumentFacts)
    def learn(self, **facts: Any) -> None:
        """Set fields of ``facts``."""
        self.facts = replace(self.facts, **facts)

    def fail(self, cause: Cause) -> None:
        """Record why there is no text, or not all of it."""
        self.cause = cause
        self.learn(extraction_error=cause.words())


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture within the bounds that PreviewLimits sets for a model."""

    data: bytes
    media_type: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class PartText:
    """The text of a part; ``total`` counts the units of all that the path names.

    ``cut``: the worker cut the text, because it was longer than one answer may be.
    """

    text: str
    total: int
    cut: bool = False


@dataclass(frozen=True, slots=True)
class PageText:
    """The text that OCR read on a page, and how sure of it the models are, from 0 to 1."""

    text: str
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRequest:
    """A request for a part of ``source`` that is no range of its stored text.

    ``path`` names a value, a member, a page's links; "" is the whole document. ``start`` and
    ``end`` count ``unit`` inside it: lines, pages and rows from 1, end included; characters and
    bytes from 0, end excluded. The worker fills in ``limits``.
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
    """Reads documents of a format, or of a family of them, in the worker process.

    It reads ``source`` and no other file, and no network. Its module imports libraries inside
    functions. An error becomes ``extraction_error``; the text before it is kept. Errors
    of fetchstash.errors are shown as they are (NoText, "it is encrypted with a password"); of any
    other exception only the class is named, because messages quote the document. A handler may have

        part(request: PartRequest) -> PartText | Picture

    which answers for a part that is no range of the text: a JSON value, an archive's member, a page
    as a picture. It raises OutOfRange or BadArgument for a part that is not there. And

        raster(source: Path, page: int, edge: int) -> PIL.Image.Image

    which returns a page (from 1), or the image itself, for OCR, some ``edge`` pixels long.
    """

    name: str

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Read ``source``."""
        ...


@dataclass(frozen=True, slots=True)
class Extraction(DocumentFacts):
    """The worker's answer, checked: the facts, and a file of text.

    ``text`` is a file of UTF-8 that belongs to the caller. ``chars``, ``lines`` and ``tokens``
    (o200k; ``tokens_exact``: counted, else estimated) are those of its text. ``notes`` name the
    plugin that read the document, or that failed.
    """

    text: Path | None
    handler: str
    chars: int = 0
    lines: int = 0
    tokens: int = 0
    tokens_exact: bool = True
    ranges: Ranges = field(default_factory=Ranges)
    notes: tuple[str, ...] = ()


class PageReader(Protocol):
    """Reads the text of pages that are pictures."""

    async def read_page(self, decision: Decision, source: Path, page: int) -> PageText:
        """Return the text of page ``page`` (from 1) of ``source``, or of an image.

        Raises OutOfRange, NoText, TooLarge, Busy or Internal.
        """
        ...

    async def aclose(self) -> None:
        """End all workers."""
        ...


class Extractor(Protocol):
    """Runs handlers in worker processes, under limits, off the event loop."""

    def prepare(self) -> None:
        """Have a worker started while a document is on its way, where that gains time."""
        ...

    async def extract(
        self,
        source: Path,
        decision: Decision,
        hints: Hints,
        folder: Path,
        *,
        seconds: float | None = None,
        on_page: PagesRead | None = None,
    ) -> Extraction:
        """Read ``source``; the text goes to a new 0600 file in ``folder``.

        ``on_page`` is called with the number of pages that were read, and of all if it is known.

        ``seconds`` is the time that is left, if less than the limits allow. What was read by then
        is kept.
        A failed extraction is no exception but an Extraction with ``extraction_error``. Raises Busy
        or Internal where no worker can be had.
        """
        ...

    async def part(self, decision: Decision, request: PartRequest) -> PartText | Picture:
        """Return one part of ``request.source``.

        Raises OutOfRange, BadArgument, NoText, TooLarge, Busy or Internal.
        """
        ...

    async def aclose(self) -> None:
        """End all workers."""
        ...


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a document, for sniffers.

    ``data`` is its first 64 KiB. ``is_text``: they passed the text test. Sniffers of texts get the
    first 4,096 characters as ``text`` too; ``whole``: there are no more.
    """

    data: bytes
    is_text: bool = False
    text: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Sniffed:
    """The format that a sniffer recognised, and the evidence.

    ``full``: the structure is so plain that it outweighs a label of another family.
    """

    media_type: str
    evidence: str
    full: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """All that fetchstash knows of a format.

    ``word`` names it in the facts line ("PDF"); ``{}`` in it stands for the media subtype.
    ``media_types``: the first is that of its files; ``image/*`` and ``*+json`` are patterns.
    ``handler`` is a class or a function that returns a Handler, or ``module:name`` where importing
    that costs much: the server imports declarations alone, the worker imports handlers.

    A format is recognised by ``signatures`` (offset and bytes), by the members that a ZIP or OLE
    container must have (a ZIP's by how they begin), by ``sniff``, by its label, or by
    ``extensions`` and ``file_names``. ``signed``: there is no such file without its signature, so
    that a label alone proves nothing. If two formats fit, the one of higher ``priority``
    reads the document.

    ``is_text``: the text is the document itself, and is kept whole. ``is_markup``: the bytes are
    text, from which the handler reads another. ``paths`` are the paths that ``Handler.part``
    answers, with ``*`` for anything ("links", "/*"); a heading of that title goes first, but for
    ``*`` alone.
    ``unit`` suits reading it in parts, ``page_word`` names its pages. ``pictures``: the handler
    renders its pages, or all of it.
    """

    kind: ContentKind
    word: str
    handler: str | Callable[[], Handler]
    media_types: tuple[str, ...]
    extensions: tuple[str, ...] = ()
    file_names: tuple[str, ...] = ()
    signatures: tuple[tuple[int, bytes], ...] = ()
    zip_members: tuple[str, ...] = ()
    ole_members: tuple[str, ...] = ()
    sniff: Callable[[Head], Sniffed | None] | None = None
    signed: bool = False
    priority: int = 0
    is_text: bool = False
    is_markup: bool = False
    paths: tuple[str, ...] = ()
    unit: str = "lines"
    page_word: str = "pages"
    pictures: bool = False

    @property
    def bytes_are_text(self) -> bool:
        """Whether a file of this format passes the text test."""
        return self.is_text or self.is_markup

    def facts(self, media_type: str) -> dict[str, Any]:
        """Return the facts of a document that its format alone decides."""
        return {
            "content_kind": self.kind,
            "word": self.name(media_type),
            "is_text": self.is_text,
            "paths": self.paths,
            "unit": self.unit,
            "page_word": self.page_word,
            "pictures": self.pictures,
        }

    def name(self, media_type: str) -> str:
        """Return the word for a document of this media type: "PNG image".

        Of a media type that is not declared nothing is shown: a server may have written it.
        """
        subtype = media_type.partition("/")[2] if media_type in self.media_types else ""
        return self.word.replace("{}", subtype.upper() if subtype.isalnum() else "").strip()

    def declared_name(self, media_type: str) -> str:
        """Return ``media_type`` if it is declared, else the pattern that it matches."""
        return media_type if media_type in self.media_types else self.media_types[-1]


def variant(
    base: Format,
    word: str,
    media_types: str,
    extensions: str = "",
    *signatures: bytes,
    at: int = 0,
    **changes: Any,
) -> Format:
    """Return a format like ``base`` with these names (lists parted by spaces) and ``changes``.

    Its signatures stand at offset ``at``.
    """
    return replace(
        base,
        word=word,
        media_types=tuple(media_types.split()),
        extensions=tuple(extensions.split()),
        signatures=tuple((at, signature) for signature in signatures) or base.signatures,
        **changes,
    )


def family(base: Format, *rows: Row) -> Iterator[Format]:
    """Yield a variant of ``base`` for each row."""
    for row in rows:
        yield variant(base, *row)

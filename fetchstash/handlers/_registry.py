"""Which handler reads what: one line for each. Loaded in the worker process only.

A new format is one module and one line here. Handlers of others come by the entry-point group
``fetchstash.handlers``, whose entries name a class (or a function) that returns a handler when
called; they are asked after all of ours have declined, and one that fails is passed over.
"""

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import cast

from fetchstash.errors import NoText
from fetchstash.handlers._contract import (
    ContentKind,
    Decision,
    Handler,
    PartRequest,
    PartText,
    Picture,
)

ENTRY_POINTS = "fetchstash.handlers"

# The first that takes a document of this kind gets it.
HANDLERS: tuple[tuple[str, tuple[ContentKind, ...]], ...] = (
    ("fetchstash.handlers._data._yaml:YamlHandler", ("yaml", "text")),
    ("fetchstash.handlers._text:TextHandler", ("text",)),
    ("fetchstash.handlers._code:CodeHandler", ("code",)),
    ("fetchstash.handlers._markdown:MarkdownHandler", ("markdown",)),
    ("fetchstash.handlers._data._json:JsonHandler", ("json",)),
    ("fetchstash.handlers._data._json:JsonLinesHandler", ("jsonl",)),
    ("fetchstash.handlers._data._csv:CsvHandler", ("csv",)),
    ("fetchstash.handlers._html:HtmlHandler", ("html",)),
    ("fetchstash.handlers._pdf._handler:PdfHandler", ("pdf",)),
    ("fetchstash.handlers._image:ImageHandler", ("image",)),
    ("fetchstash.handlers._media._handler:MediaHandler", ("audio", "video")),
    ("fetchstash.handlers._office._docx:DocxHandler", ("office_doc",)),
    ("fetchstash.handlers._office._pptx:PptxHandler", ("office_doc",)),
    ("fetchstash.handlers._office._odf:OdfHandler", ("office_doc",)),
    ("fetchstash.handlers._office._epub:EpubHandler", ("office_doc",)),
    ("fetchstash.handlers._office._rtf:RtfHandler", ("office_doc",)),
    ("fetchstash.handlers._office._old_office:OldOfficeHandler", ("office_doc", "unknown_binary")),
    ("fetchstash.handlers._data._sqlite:SqliteHandler", ("spreadsheet",)),
    ("fetchstash.handlers._data._parquet:ParquetHandler", ("spreadsheet",)),
    ("fetchstash.handlers._data._sheets:SheetsHandler", ("spreadsheet",)),
    ("fetchstash.handlers._archive._handler:ArchiveHandler", ("archive",)),
    ("fetchstash.handlers._email:EmailHandler", ("email",)),
    ("fetchstash.handlers._msg:MsgHandler", ("email",)),
    ("fetchstash.handlers._notebook:NotebookHandler", ("notebook",)),
    ("fetchstash.handlers._data._feeds:FeedHandler", ("xml",)),
    ("fetchstash.handlers._data._xml:XmlHandler", ("xml", "image")),
)  # fmt: skip

FALLBACK = "fetchstash.handlers._binary:BinaryHandler"

# Libraries that come with an extra, by the name that is imported: what to install where one is
# missing.
EXTRAS = {"magic": "magic"}


@cache
def load(spec: str) -> Handler:
    """Return the handler of a ``module:Class`` line. Raises what importing it raises."""
    module, _, name = spec.partition(":")
    return cast("Handler", getattr(import_module(module), name)())


def find(decision: Decision) -> Handler:
    """Return the handler for a document: ours, else a third party's, else the fallback that knows only facts."""
    for spec, kinds in HANDLERS:
        if decision.kind in kinds:
            handler = load(spec)
            if handler.can_handle(decision.kind, decision.media_type):
                return handler
    for handler in third_party():
        if _takes(handler, decision):
            return handler
    return load(FALLBACK)


def read_part(handler: Handler, request: PartRequest) -> PartText | Picture:
    """Return the part that was asked for. Raises what the handler raises, NoText where it has no parts of its own."""
    part: Callable[[PartRequest], PartText | Picture] | None = getattr(handler, "part", None)
    if part is None:
        raise NoText(
            "This kind of document has no parts that are read by path or as pictures.",
            "Slice its text by lines or characters.",
        )
    return part(request)


def third_party() -> Iterator[Handler]:
    """Yield the handlers that other packages bring, by name of the entry point; what does not load is left out."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - heavy, and few documents come this far

    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda e: e.name):
        try:
            yield cast("Handler", entry.load()())
        except Exception:  # noqa: BLE001, S112 - somebody else's package must not break ours
            continue


def _takes(handler: Handler, decision: Decision) -> bool:
    try:
        return bool(handler.can_handle(decision.kind, decision.media_type))
    except Exception:  # noqa: BLE001 - as above
        return False

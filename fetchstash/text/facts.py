"""Facts of a document: one dataclass, from the handler to the store's manifest.

Frames of workers, the manifest and docs/facts.md are derived from it: a new fact is one field.
"""

import re
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from fetchstash.text import walls
from fetchstash.text.ranges import Heading

Shape = Literal["line", "lines", "count", "flag", "headings"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact: its sentence of documentation, and its shape in JSON.

    ``line``: text on one line, at most ``max_chars``, "" if unknown. ``lines``: a list of at most
    ``max_items`` of them. ``count``: a number from 0, None if unknown. ``flag``: true or false.
    ``headings``: an outline of at most ``max_items``.
    """

    doc: str
    shape: Shape
    max_chars: int = 200
    max_items: int = 2_000


def _line(doc: str, max_chars: int = 200) -> Any:
    return field(default="", metadata={"fact": Fact(doc, "line", max_chars)})


def _lines(doc: str) -> Any:
    return field(default=(), metadata={"fact": Fact(doc, "lines", max_items=20)})


def _count(doc: str, default: int | None = None) -> Any:
    return field(default=default, metadata={"fact": Fact(doc, "count")})


def _flag(doc: str) -> Any:
    return field(default=False, metadata={"fact": Fact(doc, "flag")})


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """Facts of one document, from its handler. An unknown fact is None or empty."""

    content_kind: str = _line("the kind of its format (docs/handlers.md lists them)")
    media_type: str = _line("what it is; a handler may know a better name than the router")
    word: str = _line("its name for people: PDF, HTML page, PNG image")
    is_text: bool = _flag("the text is the document itself, kept whole")
    paths: tuple[str, ...] = _lines("the paths that a part is read by, `*` standing for anything")
    filled_paths: tuple[str, ...] = _lines("of a web page, the paths that hold something")
    unit: str = _line("the unit that suits reading it in parts: lines or rows")
    page_word: str = _line("what its pages are called: pages or slides")
    pictures: bool = _flag("its pages, or all of it, can be rendered as a picture")
    title: str = _line("as the document says")
    language: str = _line("as the document says")
    author: str = _line("as the document says")
    published: str = _line("when, as the document or its address says: ISO 8601")
    modified: str = _line("when it was last changed, as the document says: ISO 8601")
    site: str = _line("the site or the organisation that publishes it, as the document says")
    pages: int | None = _count("of the document; of a presentation its slides")
    unreadable_pages: int = _count(
        "pages whose text cannot be read, because their fonts have no usable mapping to characters",
        0,
    )
    unreadable_from: int | None = _count("the first of them")
    pages_without_text: int | None = _count("pages without a text layer that OCR has not read")
    ocr_pages: int | None = _count("pages whose text was read by OCR")
    sheets: int | None = _count("of a workbook; of a database its tables")
    rows: int | None = _count("of the only table, without its header")
    columns: int | None = _count("of the only table")
    members: int | None = _count("of an archive; of a mail its attachments; of a site its pages")
    width: int | None = _count("of an image, in pixels, the right way up")
    height: int | None = _count("of an image, in pixels, the right way up")
    seconds: int | None = _count("of sound and film, how long they are")
    structure_info: str = _line("keys, columns or headings in one line", 1_000)
    page_verdict: str = _line(
        "what a web page is instead of content: `empty_shell` (scripts fill it), `paywall`, "
        "`human_check`, `login`, `consent_wall`, `blocked`, `soft_404` (not found, with status "
        "200), `leads_on` (to another address) or `no_text`"
    )
    leads_to: str = _line(
        "the address that a web page without text leads to: another page, its Markdown or its "
        "feed; of any page the address of its own Markdown",
        2_000,
    )
    next_url: str = _line(
        "the next page of a list, as the Link header, the page's head or a JSON body names it",
        2_000,
    )
    items: int | None = _count("items of the list in this document")
    items_total: int | None = _count(
        "items of the whole list, as a header field or a JSON body counts them"
    )
    last_page: int | None = _count(
        "the number of the last page of a list, as the Link header or a JSON body has it"
    )
    left_out_chars: int = _count(
        "characters of a page or document that are not in the text, such as navigation", 0
    )
    left_out: str = _line(
        "the regions they stand in, with the characters of each, and how many other stories", 300
    )
    hidden_removed: int = _count("hidden elements and invisible characters that were taken out", 0)
    extraction_truncated: bool = _flag("a limit or a crash cut the text")
    extraction_error: str = _line("why there is no text, or not all of it", 1_000)
    outline: tuple[Heading, ...] = field(
        default=(), metadata={"fact": Fact("headings with level, unit and start", "headings")}
    )

    def document_facts(self) -> dict[str, Any]:
        """Return the fields of this class by name, without those that a subclass adds."""
        return {name: getattr(self, name) for name in FACTS}


FACTS: dict[str, Fact] = {f.name: f.metadata["fact"] for f in fields(DocumentFacts)}
"""The fields of DocumentFacts, in order."""

STORIES = "other stories"
LEFT_OUT = frozenset(
    (
        "navigation",
        "contents",
        "footer",
        "footers",
        "comments",
        "related",
        "promotion",
        "sharing",
        "dialog",
        "form",
        "sidebar",
        "header",
        "other",
    )
)
"""The names of regions in the fact left_out, each with its characters; STORIES has their number."""

PAGE_VERDICTS = {
    "empty_shell": "The page is an empty shell that scripts fill in a browser. Look for the same "
    "content at another address, in a feed or in an API.",
    **walls.PAGES,
    "soft_404": "The page says that it was not found, though its status is not 404. Check the "
    "address.",
    "leads_on": "The page leads to another address. Fetch that.",
    "no_text": "The page has no text.",
}
"""What a web page may be instead of content, and what to do next, by the codes of page_verdict."""

LANDINGS = {
    "home": "The address led to a site's home page: what was asked for may be gone. Search for "
    "where it is now.",
    "login": "The address led to a page to sign in. What is behind it cannot be fetched: look for "
    "a public source.",
}
"""Where redirects may end instead of the page that was asked for, by the codes of landed."""

NO_BROWSER = "none"
"""The fact rendered of a page of scripts where no browser is there to render it."""

QUERY = "sum(*) by *"
"""Stands among the paths of documents whose rows a query can ask, in the words of an example."""

_QUERY = re.compile(
    r"\s*(?:(?:count|distinct|where|top|bottom)\b(?![/.\[])|(?:sum|m(?:in|ax|ean|edian)|av\w+)\s*(?:\(|\Z))"
    r"|[^/$].*(?:\s(?:where|top|bottom|by)\s|(?:count|sum|min|max|mean|avg|distinct)\s*\()",
    re.IGNORECASE | re.DOTALL,
)


def is_query(path: str) -> bool:
    """Return whether a path is a query over rows, such as ``count by region``."""
    return _QUERY.match(path) is not None


def clock(seconds: float) -> str:
    """Return a duration as people write it: 3:05, 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

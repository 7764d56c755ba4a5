"""The table of tools: names, descriptions and the schemas of their arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fetchstash.config import Settings
from fetchstash.text import MIN_MAX_CHARS

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool. ``one_of``: exactly one of these arguments is required.

    ``body``: its result carries stored or fetched text. Hosts that defer tools find them by the
    words of ``description`` and ``search_hint``, so both hold the words that people search with.
    """

    name: str
    title: str
    search_hint: str
    description: str
    properties: Mapping[str, Schema]
    required: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    open_world: bool = False
    body: bool = True
    defaults: Mapping[str, Any] = field(init=False, repr=False)
    """The value of each argument that is not given."""

    def __post_init__(self) -> None:
        defaults = {name: schema.get("default") for name, schema in self.properties.items()}
        object.__setattr__(self, "defaults", defaults)

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, as hosts and models see it.

        The bounds that no model comes near are checked, and left out: each conversation pays for
        every token.
        """
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: _short(schema) for name, schema in self.properties.items()},
            "additionalProperties": False,
        }
        if self.required:
            schema["required"] = list(self.required)
        return schema


def _short(schema: Schema) -> Schema:
    items: Schema | None = schema.get("items")
    kept = {name: value for name, value in schema.items() if name not in ("maxLength", "minItems")}
    return {**kept, "items": _short(items)} if items else kept


def _text(
    description: str = "",
    *,
    at_most: int = 2_000,
    default: str | None = None,
    enum: tuple[str, ...] = (),
) -> Schema:
    return _schema(
        "string", description, default, {"enum": list(enum)} if enum else {"maxLength": at_most}
    )


def _number(
    description: str = "", *, low: int = 0, high: int | None = None, default: int | None = None
) -> Schema:
    bounds = {"minimum": low} | ({"maximum": high} if high is not None else {})
    return _schema("integer", description, default, bounds)


def _flag(description: str = "") -> Schema:
    return _schema("boolean", description, False, {})


def _texts(description: str, *, item_chars: int) -> Schema:
    more = {"items": {"type": "string", "maxLength": item_chars}, "minItems": 1, "maxItems": 10}
    return _schema("array", description, None, more)


def _schema(kind: str, description: str, default: object, more: Mapping[str, Any]) -> Schema:
    schema: dict[str, Any] = {"type": kind, **more}
    if description:
        schema["description"] = description
    if default is not None:
        schema["default"] = default
    return schema


def tool_specs(settings: Settings) -> tuple[ToolSpec, ...]:
    """Return the tools with the defaults of the profile; stash_file only if folders may be read."""
    limits = settings.views
    ref = _text("Or a URL fetched before", at_most=settings.fetch.max_url_chars)
    url_chars = settings.fetch.max_url_chars
    refs = _texts("", item_chars=url_chars)
    days = f"{settings.store.max_age_days:g} days"

    def max_chars(default: int) -> Schema:
        return _number(low=MIN_MAX_CHARS, default=min(default, limits.max_chars_ceiling))

    focus = _text("What you look for, in words: a preview then shows the best passages", default="")
    fetch = ToolSpec(
        "fetch_content",
        "Fetch a URL",
        "open website, scrape page, download file, read pdf",
        "Fetch a URL (HTTP GET): open a website, browse the web, read or scrape a web page or "
        "link, download a file or document (HTML, PDF, DOCX, XLSX, JSON, CSV, images, …) as "
        f"Markdown or text. What it downloads is kept for {days}: download once, read often. "
        "A text longer than maxChars comes as a preview with an artifact_ref to grep, slice, "
        "search or read on.",
        {
            "url": _text(at_most=url_chars),
            "urls": _texts("Instead of url; they share maxChars", item_chars=url_chars),
            "focus": focus,
            "maxChars": max_chars(limits.inline_threshold),
            "refresh": _flag("Ask the server again"),
        },
        one_of=("url", "urls"),
        open_world=True,
    )
    read = ToolSpec(
        "get_search_content",
        "Read on",
        "read more, continue long page",
        "Read on in a fetched page or document: continue its full text from a character offset. "
        "The end of the result says how to read more.",
        {
            "artifact_ref": ref,
            "offset": _number(default=0),
            "maxChars": max_chars(limits.default_max_chars),
        },
        required=("artifact_ref",),
    )
    grep = ToolSpec(
        "artifact_grep",
        "Grep",
        "grep, regex search, find text",
        "Grep fetched pages and documents: search for a regex (RE2 pattern: no look-around, no "
        "back-references) or plain text. Gives the matching lines with numbers and the count of "
        "all matches.",
        {
            "pattern": _text(at_most=1_000),
            "artifact_ref": ref,
            "artifact_refs": refs,
            "literal": _flag("Plain text, no pattern"),
            "ignore_case": _flag(),
            "context": _number("Lines around a match", high=50, default=2),
            "max_matches": _number(low=1, high=1_000, default=30),
            "offset": _number("Matches to skip", default=0),
            "maxChars": max_chars(limits.short_max_chars),
        },
        required=("pattern",),
        one_of=("artifact_ref", "artifact_refs"),
    )
    part = ToolSpec(
        "artifact_slice",
        "Read a part",
        "pdf pages, spreadsheet rows, page as image",
        "Read exactly a part of a fetched document: lines, PDF pages, table or spreadsheet rows, a "
        "section, the links of a page, a JSON value; or a page as an image. Lines, pages and rows "
        "count from 1, end included; chars and bytes from 0, end excluded. start and end count "
        "inside path.",
        {
            "artifact_ref": ref,
            "path": _text(
                "Heading, sheet, archive member, JSON pointer /a/0 or JSONPath $.a[0]", default=""
            ),
            "unit": _text(enum=("lines", "chars", "bytes", "pages", "rows"), default="lines"),
            "start": _number(),
            "end": _number(),
            "render": _text(
                "image: a page or image as a picture", enum=("text", "image"), default="text"
            ),
            "maxChars": max_chars(limits.default_max_chars),
        },
        required=("artifact_ref",),
    )
    search = ToolSpec(
        "artifact_search",
        "Search",
        "full-text search",
        "Full-text search in everything that was fetched, or in some documents: find the passages "
        "that fit the words of a query best, each with its artifact_ref and lines.",
        {
            "query": _text(at_most=1_000),
            "artifact_refs": _texts("None: all of this run", item_chars=url_chars),
            "max_results": _number(low=1, high=50, default=8),
            "maxChars": max_chars(limits.short_max_chars),
        },
        required=("query",),
    )
    info = ToolSpec(
        "artifact_info",
        "Facts and list",
        "list fetched documents, history",
        "List fetched pages and documents (history), newest first; with artifact_ref the facts "
        "(metadata) and the outline (table of contents) of one, and how to read it.",
        {"artifact_ref": _text("", at_most=url_chars, default="")},
        body=False,
    )
    specs = (fetch, read, grep, part, search, info)
    if not settings.ingest.read_roots:
        return specs
    file = ToolSpec(
        "stash_file",
        "Read a file",
        "read a local file: pdf, docx, xlsx, csv, log",
        "Read a local file of this machine as fetch_content does a URL.",
        {
            "path": _text(at_most=4_096),
            "focus": focus,
            "maxChars": max_chars(limits.inline_threshold),
        },
        required=("path",),
    )
    return (*specs, file)

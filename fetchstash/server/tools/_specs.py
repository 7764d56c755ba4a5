"""The table of tools: name, description, schema of the arguments, and function of each.

A host lists them before it calls one, so that this imports none of the rooms.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fetchstash.config import Settings
from fetchstash.errors import COUNTS
from fetchstash.text import MIN_MAX_CHARS, counted

if TYPE_CHECKING:
    from fetchstash.fetch import Progress
    from fetchstash.render import Value
    from fetchstash.stash import Stash

Schema = Mapping[str, Any]
Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reports:
    """Receivers of a call's progress: bytes received, pages read, URLs done.

    ``page_kept``: the pages of a site that are there.
    """

    received: "Progress | None" = None
    read: "Progress | None" = None
    fetched: "Progress | None" = None
    page_kept: "Progress | None" = None


NO_REPORTS = Reports()
Run = Callable[["Stash", Arguments, Reports], Awaitable["Value"]]
"""What a tool does with its checked arguments."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool. ``one_of``: exactly one of these arguments is required.

    ``action`` is what a ``Call`` of it is named, ``icon`` strokes in a square of 16. ``body``: its
    result carries stored or fetched text; ``keeps``: it puts new artifacts into the store;
    ``deletes``: hosts are told that it destroys something; ``in_view``: the view opens its results;
    ``reports_with``: the arguments with which a call says how far it is, None where none does.
    ``is_long``: in a service its calls let those of other tools pass.
    Hosts that defer tools find them by the words of ``description`` and ``search_hint``, so both
    hold the words that people search with.
    """

    name: str
    action: str
    run: Run
    icon: str
    title: str
    search_hint: str
    description: str
    properties: Mapping[str, Schema]
    required: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    open_world: bool = False
    body: bool = True
    keeps: bool = False
    in_view: bool = False
    reports_with: Arguments | None = None
    deletes: bool = False
    is_long: bool = False
    defaults: Mapping[str, Any] = field(init=False, repr=False)
    """The value of each argument that is not given."""

    def __post_init__(self) -> None:
        defaults = {name: schema.get("default") for name, schema in self.properties.items()}
        object.__setattr__(self, "defaults", defaults)

    def reports(self, arguments: Arguments) -> bool:
        """Return whether a call with these arguments reports progress."""
        needed = self.reports_with
        return needed is not None and all(arguments.get(name) == needed[name] for name in needed)

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


def _count(name: str, description: str = "", *, default: int) -> Schema:
    low, high = COUNTS[name]
    return _number(description, low=low, high=high, default=default)


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


def _limit(stash: "Stash", arguments: Arguments) -> int:
    """Return how many characters a read needs at most."""
    views = stash.settings.views
    return views.max_chars(arguments["maxChars"], views.default_max_chars)


async def _fetch_content(stash: "Stash", arguments: Arguments, reports: Reports) -> "Value":
    focus, limit, refresh = (arguments[name] for name in ("focus", "maxChars", "refresh"))
    options: dict[str, Any] = {"focus": focus, "max_chars": limit, "refresh": refresh}
    urls = arguments["urls"] or [arguments["url"]]
    if len(urls) > 1:
        return await stash.fetch_many(urls, **options, progress=reports.fetched)
    return await stash.fetch(urls[0], **options, progress=reports.received, reading=reports.read)


async def _fetch_site(stash: "Stash", arguments: Arguments, reports: Reports) -> "Value":
    names = ("max_pages", "refresh")
    options = {name: arguments[name] for name in names}
    limit = stash.settings.views.max_chars(
        arguments["maxChars"], stash.settings.views.short_max_chars
    )
    return await stash.fetch_site(
        arguments["url"], **options, max_chars=limit, progress=reports.page_kept
    )


async def _get_search_content(stash: "Stash", arguments: Arguments, _: Reports) -> "Value":
    limit = _limit(stash, arguments)
    return await stash.read(arguments["artifact_ref"], arguments["offset"], max_chars=limit)


async def _artifact_grep(stash: "Stash", arguments: Arguments, _: Reports) -> "Value":
    refs = arguments["artifact_refs"] or [arguments["artifact_ref"]]
    names = ("literal", "ignore_case", "context", "max_matches", "offset")
    return await stash.grep(arguments["pattern"], refs, **{name: arguments[name] for name in names})


async def _artifact_slice(stash: "Stash", arguments: Arguments, reports: Reports) -> "Value":
    ref, path, start = arguments["artifact_ref"], arguments["path"], arguments["start"]
    if arguments["render"] == "image":
        shown = await stash.picture(ref, start, path=path)
        return replace(shown, asked_end=arguments["end"])
    part = {name: arguments[name] for name in ("path", "unit", "start", "end")}
    limit = _limit(stash, arguments)
    return await stash.slice(ref, **part, max_chars=limit, progress=reports.read)


_INDEX_SECONDS = 10
"""For a passage, while new texts are indexed: a model would ask again at once."""


async def _artifact_search(stash: "Stash", arguments: Arguments, _: Reports) -> "Value":
    import anyio  # noqa: PLC0415 - as the rooms

    refs, most = arguments["artifact_refs"] or (), arguments["max_results"]
    give_up = anyio.current_time() + _INDEX_SECONDS
    found = await stash.search(arguments["query"], refs, max_results=most)
    while found.pending and not (refs or found.best_first or anyio.current_time() > give_up):
        await anyio.sleep(0.1)  # a thread indexes meanwhile
        found = await stash.search(arguments["query"], refs, max_results=most)
    return found


async def _artifact_info(stash: "Stash", arguments: Arguments, _: Reports) -> "Value":
    ref = arguments["artifact_ref"]
    return await (stash.store.get(ref) if ref else stash.list())


async def _artifact_delete(stash: "Stash", arguments: Arguments, _: Reports) -> "Value":
    return await stash.delete(arguments["artifact_ref"])


async def _stash_file(stash: "Stash", arguments: Arguments, _: Reports) -> "Value":
    focus, limit = arguments["focus"], arguments["maxChars"]
    roots = stash.settings.ingest.read_roots
    return await stash.add_file(arguments["path"], within=roots, focus=focus, max_chars=limit)


def tool_specs(settings: Settings) -> tuple[ToolSpec, ...]:
    """Return the tools with the defaults of the profile, and those that the settings allow."""
    limits = settings.views
    ref = _text("Or a URL fetched before", at_most=settings.fetch.max_url_chars)
    url_chars = settings.fetch.max_url_chars
    refs = _texts("", item_chars=url_chars)
    days = counted(settings.store.max_age_days, "day", digits="g")

    def max_chars(default: int) -> Schema:
        return _number(low=MIN_MAX_CHARS, default=min(default, limits.max_chars_ceiling))

    focus = _text("What you look for, in words: a preview then shows the best passages", default="")
    fetch = ToolSpec(
        "fetch_content",
        "fetch",
        _fetch_content,
        "M8 1v8M5 6l3 3 3-3M2 14h12",
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
        keeps=True,
        in_view=True,
        reports_with={},
    )
    read = ToolSpec(
        "get_search_content",
        "read",
        _get_search_content,
        "M2 4h12M2 8h8M13 7l-3 5h6z",
        "Read on",
        "read more, continue long page",
        "Read on in a fetched page or document: continue its full text from a character offset. "
        "The end of the result says how to read more.",
        {
            "artifact_ref": ref,
            "offset": _count("offset", default=0),
            "maxChars": max_chars(limits.default_max_chars),
        },
        required=("artifact_ref",),
    )
    grep = ToolSpec(
        "artifact_grep",
        "grep",
        _artifact_grep,
        "M11 11l4 4M7 12a5 5 0 1 1 0-10 5 5 0 0 1 0 10z",
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
            "context": _count("context", "Lines around a match", default=2),
            "max_matches": _count("max_matches", default=30),
            "offset": _count("offset", "Matches to skip", default=0),
            "maxChars": max_chars(limits.short_max_chars),
        },
        required=("pattern",),
        one_of=("artifact_ref", "artifact_refs"),
    )
    part = ToolSpec(
        "artifact_slice",
        "slice",
        _artifact_slice,
        "M2 3h12M2 13h12M2 8h3M7 8h3M12 8h2",
        "Read a part",
        "pdf pages, spreadsheet rows, page as image",
        "Read exactly a part of a fetched document: lines, PDF pages, table or spreadsheet rows, a "
        "section, the links of a page, a JSON value; or a page as an image. Lines, pages and rows "
        "count from 1, end included; chars and bytes from 0, end excluded. start and end count "
        "inside path.",
        {
            "artifact_ref": ref,
            "path": _text(
                "Heading, sheet, archive member, JSON pointer /a/0 or JSONPath $.a[0]; of rows a "
                "query: sum(x) by y where z > 1 top 5",
                default="",
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
        reports_with={"unit": "pages"},
    )
    search = ToolSpec(
        "artifact_search",
        "search",
        _artifact_search,
        "M2 3h12M2 7h5M2 11h4M13 13l2 2M11 14a3 3 0 1 1 0-6 3 3 0 0 1 0 6z",
        "Search",
        "full-text search",
        "Full-text search in everything that was fetched, or in some documents: find the passages "
        "that fit the words of a query best, each with its artifact_ref and lines.",
        {
            "query": _text(at_most=1_000),
            "artifact_refs": _texts("None: all of this run", item_chars=url_chars),
            "max_results": _count("max_results", default=8),
            "maxChars": max_chars(limits.short_max_chars),
        },
        required=("query",),
        is_long=True,
    )
    info = ToolSpec(
        "artifact_info",
        "info",
        _artifact_info,
        "M8 7v6M8 3v1",
        "Facts and list",
        "list fetched documents, history",
        "List fetched pages and documents (history), newest first; with artifact_ref the facts "
        "(metadata) and the outline (table of contents) of one, and how to read it.",
        {"artifact_ref": _text("", at_most=url_chars, default="")},
        body=False,
        in_view=True,
    )
    specs = [fetch, read, grep, part, search, info]
    if settings.ingest.site:
        most = settings.ingest.site_pages
        site = ToolSpec(
            "fetch_site",
            "fetch_site",
            _fetch_site,
            "M8 1v4M3 11V8h10v3M8 5v3M1 11h4v4H1zM11 11h4v4h-4z",
            "Fetch a site",
            "crawl website, download all documentation pages, sitemap",
            "Fetch all pages below a URL (by sitemap, llms.txt or links). Gives an index; its "
            "artifact_ref lets artifact_grep and artifact_search look into every page. Call it "
            "again to go on.",
            {
                "url": _text(at_most=url_chars),
                "max_pages": _number(low=1, high=most, default=most),
                "refresh": _flag("Fetch all again"),
                "maxChars": max_chars(limits.short_max_chars),
            },
            required=("url",),
            open_world=True,
            keeps=True,
            in_view=True,
            reports_with={},
        )
        specs.append(site)
    if settings.tenant.delete:
        delete = ToolSpec(
            "artifact_delete",
            "delete",
            _artifact_delete,
            "M2 4h12M6 4V2h4v2M4 4l1 11h6l1-11",
            "Delete",
            "remove kept page, free quota",
            "Delete one fetched page or document for good. Only what this user fetched, and only "
            "when asked to or when the quota is full.",
            {"artifact_ref": ref},
            required=("artifact_ref",),
            body=False,
            deletes=True,
        )
        specs.append(delete)
    if not settings.ingest.read_roots:
        return tuple(specs)
    file = ToolSpec(
        "stash_file",
        "add_file",
        _stash_file,
        "M3 1h7l3 3v11H3z",
        "Read a file",
        "read a local file: pdf, docx, xlsx, csv, log",
        "Read a local file of this machine as fetch_content does a URL.",
        {
            "path": _text(at_most=4_096),
            "focus": focus,
            "maxChars": max_chars(limits.inline_threshold),
        },
        required=("path",),
        keeps=True,
    )
    return (*specs, file)

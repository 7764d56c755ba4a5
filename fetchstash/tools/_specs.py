"""The table of tools: names, descriptions and the schemas of their arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fetchstash.config import Settings
from fetchstash.text import MIN_MAX_CHARS

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool. ``one_of``: exactly one of these arguments is required.

    ``body``: its result carries stored or fetched text.
    """

    name: str
    description: str
    properties: Mapping[str, Schema]
    required: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    open_world: bool = False
    body: bool = True

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, as hosts and models see it."""
        schema: dict[str, Any] = {
            "type": "object",
            "properties": dict(self.properties),
            "additionalProperties": False,
        }
        if self.required:
            schema["required"] = list(self.required)
        return schema


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
        "Fetch web pages or documents (HTML, PDF, JSON, CSV, images, …) as text, and keep them as "
        f"artifacts for {days}. A text longer than maxChars comes as a preview with an "
        "artifact_ref to grep, slice, search or read on.",
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
        "Read an artifact's text from a character offset on. The end of the result says how to go "
        "on.",
        {
            "artifact_ref": ref,
            "offset": _number(default=0),
            "maxChars": max_chars(limits.default_max_chars),
        },
        required=("artifact_ref",),
    )
    grep = ToolSpec(
        "artifact_grep",
        "Find the lines that match an RE2 pattern (no look-around, no back-references) in one "
        "artifact or several, with line numbers and the count of all matches.",
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
        "Read exactly a part of an artifact. Lines, pages and rows count from 1, end included; "
        "chars and bytes from 0, end "
        "excluded. start and end count inside path.",
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
        "Rank the passages of artifacts by the words of a query; each comes with its artifact_ref "
        "and lines.",
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
        "Facts and outline of an artifact, and how to read it; without artifact_ref the list of "
        "all, newest first.",
        {"artifact_ref": _text("", at_most=url_chars, default="")},
        body=False,
    )
    specs = (fetch, read, grep, part, search, info)
    if not settings.ingest.read_roots:
        return specs
    file = ToolSpec(
        "stash_file",
        "Take in a file of this machine as fetch_content does a URL.",
        {
            "path": _text(at_most=4_096),
            "focus": focus,
            "maxChars": max_chars(limits.inline_threshold),
        },
        required=("path",),
    )
    return (*specs, file)

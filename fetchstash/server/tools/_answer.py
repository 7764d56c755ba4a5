"""Answer a call, log it, and offer the tools as Python functions.

It stands in the folder of the store as ``calls.jsonl``, 0600, and holds places and sizes, never
content; the view and stats read it. A line has ``time``, ``run``, ``project``, ``server`` (of a
gateway), ``tool``, ``asked`` (the arguments, clipped, without secrets), ``tokens`` (an estimate of
the whole result), ``ms`` (from the request to the result), ``error`` (of a call that failed: a code
of fetchstash or of JSON-RPC, "cancelled", or "tool" where the server's result says so) and
``shown``: for each artifact its ``ref``, ``how`` it was shown, and ``spans`` as [unit, first,
last].
"""

import inspect
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, Optional, cast

from fetchstash.config import Settings, is_secret_name
from fetchstash.errors import BadArgument, FetchstashError, did_you_mean, type_checked
from fetchstash.fetch import mask_url
from fetchstash.render import Host, Value, View, error_view, view_of
from fetchstash.server.tools._arguments import MOST_ARGUMENTS, checked, meant, plain
from fetchstash.server.tools._shapes import understood
from fetchstash.server.tools._specs import (
    NO_REPORTS,
    Arguments,
    Reports,
    Schema,
    ToolSpec,
    tool_specs,
)
from fetchstash.stash import (
    Matches,
    Passages,
    Picture,
    Slice,
    Stash,
    StoredDocument,
    log_of,
    whole_refs,
)
from fetchstash.store import Facts, project_of
from fetchstash.system import telemetry
from fetchstash.text import clip, largest, tokens

_MASKED_CHARS = 8_192
"""Of a longer argument no more is masked, and much less shown."""
_ARGUMENT_CHARS = 200
_SPANS = 50
_CHARS_PER_TOKEN = 4
MAX_REFS = 10
_PASSAGE = re.compile(r"^-- (?:(art_\w+), )?lines? (\d+)", re.MULTILINE)
_NUMBERED = re.compile(r"^(\d+):", re.MULTILINE)

Span = tuple[str, int, int]
"""Unit, first and last: chars from 0, end excluded; lines and pages from 1, end included."""


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A call of a tool, of ``server`` behind a gateway, that is logged when it has ended.

    ``passed_on``: the artifacts whose text the gateway put into the arguments.
    """

    settings: Settings
    tool: str
    arguments: Arguments
    server: str = ""
    started: float = field(default_factory=time.monotonic)
    passed_on: Sequence[str] = ()

    def showed(self, value: Value, view: View, *, failed: bool = False) -> None:
        """Record what a call showed."""
        shown = [
            {"ref": facts.artifact_ref, "how": how, "spans": spans[:_SPANS]}
            for facts, how, spans in _shown(value, view)
        ]
        self._record(_tokens(value, view.text), shown, "tool" if failed else "")

    def passed(self, chars: int, *, failed: bool = False) -> None:
        """Record how much the result of a call had that passed through a gateway."""
        self._record(chars // _CHARS_PER_TOKEN, [], "tool" if failed else "")

    def failed(self, error: BaseException) -> None:
        """Record the error that a call ended with."""
        code = getattr(error, "code", "internal" if isinstance(error, Exception) else "cancelled")
        self._record(len(str(error)) // _CHARS_PER_TOKEN, [], str(code))

    def _record(self, tokens_shown: int, shown: list[dict[str, Any]], error: str) -> None:
        """Append the call to the log. An ephemeral run leaves no trace."""
        settings, store = self.settings, self.settings.store
        log = log_of(settings) if settings.telemetry.call_log and not store.ephemeral else None
        if log is None:
            return
        asked = {
            name: "***" if is_secret_name(name) else _clipped(item)
            for name, item in islice(self.arguments.items(), MOST_ARGUMENTS)
            if item
        }
        passed_on: list[dict[str, Any]] = [
            {"ref": ref, "how": "passed on", "spans": []} for ref in self.passed_on
        ]
        record = {
            "time": telemetry.now(),
            "run": store.run,
            "project": project_of(store.run),
            **({"server": self.server} if self.server else {}),
            "tool": self.tool,
            "asked": asked,
            "tokens": tokens_shown,
            "ms": round((time.monotonic() - self.started) * 1_000, 1),
            **({"error": error} if error else {}),
            "shown": [*passed_on, *shown],
        }
        log.append(record)


def _tokens(value: Value, text: str) -> int:
    """Estimate the tokens of a result: of a slice by those of the whole text, which are known."""
    if isinstance(value, Slice) and value.facts.text_tokens and value.facts.extracted_chars:
        return round(len(text) * value.facts.text_tokens / value.facts.extracted_chars)
    return tokens.estimate(text)


def _clipped(value: object) -> object:
    if isinstance(value, str):
        value = value[:_MASKED_CHARS]
        return (mask_url(value) if "://" in value else value)[:_ARGUMENT_CHARS]
    if isinstance(value, list):
        return [_clipped(item) for item in cast("list[object]", value)[:MAX_REFS]]
    if isinstance(value, dict):  # of a server behind a gateway
        return json.dumps(value, ensure_ascii=False, default=str)[:_ARGUMENT_CHARS]
    return value


def _shown(value: Value, view: View) -> list[tuple[Facts, str, list[Span]]]:
    """Return each artifact of a result, how it was shown, and which parts of it."""
    bodies = [block.body for block in view.blocks if block.body is not None]
    match value:
        case StoredDocument():
            return [_document(value, view.body)]
        case tuple():
            documents = [item for item in value if isinstance(item, StoredDocument)]
            shares = {block.ref: block.body or "" for block in view.blocks if block.ref}
            return [_document(item, shares.get(item.ref, "")) for item in documents]
        case Slice(facts=facts):
            inside = value.char_path != "" or value.bytes_per_line > 0
            span = ("chars", value.char, value.char + len(view.body))
            return [(facts, "part", [] if inside else [span])]
        case Matches():
            listed = zip(value.artifacts, bodies, strict=False)
            return [(item.facts, "matches", _lines(body)) for item, body in listed if item.shown]
        case Passages():
            printed = set(_PASSAGE.findall(view.body))
            spans: dict[str, list[Span]] = {}
            for passage in value:
                named = {(ref, str(passage.first_line)) for ref in (passage.artifact_ref, "")}
                if named & printed:
                    span = ("lines", passage.first_line, passage.last_line)
                    spans.setdefault(passage.artifact_ref, []).append(span)
            return [(value.facts[ref], "passages", items) for ref, items in spans.items()]
        case Picture(facts=facts, page=page):
            return [(facts, "picture", [("pages", page, page)] if page else [])]
        case Facts():
            return [(value, "facts", [])]
        case _:
            return []


def _document(artifact: StoredDocument, body: str) -> tuple[Facts, str, list[Span]]:
    """Return which part of a document was shown: all of it, head and tail, or passages."""
    facts, excerpt = artifact.facts, artifact.excerpt
    chars = facts.extracted_chars
    if chars is None or not body:
        return facts, "facts", []
    if len(body) == chars:
        return facts, "whole", [("chars", 0, chars)]
    if excerpt.preview.text:  # of a handler, in words of its own; or passages with line numbers
        return facts, "preview", _lines(body) if excerpt.lines else []
    head = _common(body, excerpt.text)
    tail = _common(body[::-1], excerpt.ending[::-1])
    spans: list[Span] = [("chars", 0, head)] if head else []
    return facts, "preview", [*spans, ("chars", chars - tail, chars)] if tail else spans


def _common(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    most = min(len(one), len(other))
    return largest(most, lambda length: one[:length] == other[:length])


def _lines(body: str) -> list[Span]:
    """Return the lines that a body shows with their numbers, neighbours as one span."""
    spans: list[Span] = []
    for number in map(int, _NUMBERED.findall(body)):
        if spans and spans[-1][2] + 1 == number:
            spans[-1] = ("lines", spans[-1][1], number)
        else:
            spans.append(("lines", number, number))
    return spans


async def _with_whole_refs(stash: Stash, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the whole reference where one of the run's begins as is given."""
    names = ("artifact_ref", "artifact_refs")
    given = [ref for name in names for ref in _as_list(arguments.get(name))]
    whole = dict(zip(given, await whole_refs(stash, given), strict=True))
    return arguments | {
        name: whole[value] if isinstance(value, str) else [whole[ref] for ref in value]
        for name in names
        if (value := arguments.get(name))
    }


def _as_list(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


async def answer(
    stash: Stash, host: Host, tool: ToolSpec, arguments: Arguments, reports: Reports = NO_REPORTS
) -> View:
    """Check a tool's arguments, run it, and return the view. Raises FetchstashError."""
    call = LoggedCall(stash.settings, tool.name, arguments)
    try:
        checked_arguments = await _with_whole_refs(stash, checked(tool, arguments))
        value = await tool.run(stash, checked_arguments, reports)
        view = view_of(host, value, checked_arguments.get("maxChars"))
    except BaseException as error:
        call.failed(error)
        raise
    call.showed(value, view)
    return view


_OTHER_TOOLS = {
    "fetch": "fetchurl webfetch fetchpage fetchwebpage geturl readurl url open openurl browse "
    "browsepage visit navigate scrape download http httpget fetchcontent loadurl "
    "urlfetch curl wget",
    "read": "getcontent readcontent readmore continue get getartifact readartifact artifactread "
    "artifactget cat view",
    "grep": "find findtext regex regexsearch searchtext",
    "slice": "readpart readlines readpages part section",
    "search": "searchcontent searchartifacts fulltextsearch query",
    "info": "list ls listartifacts artifactlist history metadata describe",
    "fetch_site": "crawl crawlsite site sitemap spider",
    "add_file": "readfile openfile addfile file",
    "delete": "rm remove deleteartifact removeartifact forget",
}
"""What other servers call such tools, by the action of ours, in lower case without _ and -."""


def tool_named(
    name: str, tools: Mapping[str, ToolSpec], arguments: Arguments | None = None
) -> ToolSpec:
    """Return a tool by its name. Raises BadArgument for an unknown one, and names the nearest.

    The error of a name that other servers have carries the whole call, with these arguments.
    """
    if name in tools:
        return tools[name]
    what = f"There is no tool {clip(name, 60)!r}."
    for tool in tools.values():
        others = (plain(tool.action), *_OTHER_TOOLS.get(tool.action, "").split())
        # Hosts put the name of a server before a tool's: mcp__fetchstash__fetch_content.
        is_prefixed = re.search(rf"[^a-zA-Z]{tool.name}\Z", name) is not None
        if plain(name) in others or is_prefixed:
            call, _ = meant(tool, understood(tool, arguments or {}))
            raise BadArgument(what, "Try {}.", call)
    raise BadArgument(what, did_you_mean(name, tools) or f"There are {', '.join(tools)}.")


_TYPES: dict[str, Any] = {"string": str, "integer": int, "boolean": bool, "array": list[str]}

ToolFunction = Callable[..., Awaitable[str]]


@type_checked
def tool_functions(stash: Stash) -> list[ToolFunction]:
    """Return the tools of ``stash`` as async functions, as agent frameworks take them.

    Names, docstrings and signatures are those of the MCP server's tools. Each function returns the
    text that a model is shown; an error is its one line, so that the model can act on it.
    Pictures need the server.
    """
    host = Host(stash.settings.views, preview=stash.settings.context)
    return [_function(stash, host, tool) for tool in tool_specs(stash.settings)]


def _function(stash: Stash, host: Host, tool: ToolSpec) -> ToolFunction:
    async def function(**arguments: Any) -> str:
        try:
            return (await answer(stash, host, tool, arguments)).text
        except FetchstashError as error:
            return error_view(host, error).text

    parameters = [
        _parameter(name, schema, required=name in tool.required)
        for name, schema in tool.properties.items()
        if name != "render"
    ]
    parameters.sort(key=lambda parameter: parameter.default is not parameter.empty)
    function.__name__ = function.__qualname__ = tool.name
    function.__doc__ = _docstring(tool)
    function.__annotations__ = {item.name: item.annotation for item in parameters} | {"return": str}
    # Frameworks read it to make their own schema of the arguments.
    function.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return function


def _docstring(tool: ToolSpec) -> str:
    """Return the description of a tool and of its arguments, as frameworks parse docstrings."""
    arguments = [
        f"    {name}: {schema['description']}"
        for name, schema in tool.properties.items()
        if "description" in schema and name != "render"
    ]
    return "\n".join(
        [tool.description, "", "Args:", *arguments] if arguments else [tool.description]
    )


def _parameter(name: str, schema: Schema, *, required: bool) -> inspect.Parameter:
    kind: Any = Literal[tuple(schema["enum"])] if "enum" in schema else _TYPES[schema["type"]]
    default = inspect.Parameter.empty if required else schema.get("default")
    if default is None:
        kind = Optional[kind]  # noqa: UP045 - the type is computed
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)

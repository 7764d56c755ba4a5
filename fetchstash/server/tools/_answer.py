"""From a tool's arguments to what a model is shown."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fetchstash.errors import BadArgument, did_you_mean
from fetchstash.fetch import Progress
from fetchstash.render import Host, Value, View, view_of
from fetchstash.server.tools._arguments import checked
from fetchstash.server.tools._log import log_call
from fetchstash.server.tools._specs import ToolSpec
from fetchstash.stash import Stash
from fetchstash.text import clip

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reports:
    """Who is told how far a call is: bytes that came, pages that were read, URLs that are done."""

    received: Progress | None = None
    read: Progress | None = None
    fetched: Progress | None = None


NO_REPORTS = Reports()


async def answer(
    stash: Stash,
    host: Host,
    tool: ToolSpec,
    arguments: Arguments,
    reports: Reports = NO_REPORTS,
) -> View:
    """Check a tool's arguments, run it, and return the view. Raises FetchstashError."""
    checked_arguments = checked(tool, arguments)
    value = await _CALLS[tool.name](stash, checked_arguments, reports)
    view = view_of(host, value, checked_arguments.get("maxChars"))
    log_call(stash, tool.name, arguments, value, view)
    return view


def tool_named(name: str, tools: Mapping[str, ToolSpec]) -> ToolSpec:
    """Return a tool by its name. Raises BadArgument for an unknown one, and names the nearest."""
    if name not in tools:
        advice = did_you_mean(name, tools) or f"There are {', '.join(tools)}."
        raise BadArgument(f"There is no tool {clip(name, 60)!r}.", advice)
    return tools[name]


def _limit(stash: Stash, arguments: Arguments) -> int:
    """Return how many characters a read needs at most."""
    views = stash.settings.views
    return views.max_chars(arguments["maxChars"], views.default_max_chars)


async def _fetch_content(stash: Stash, arguments: Arguments, reports: Reports) -> Value:
    options: dict[str, Any] = {
        "focus": arguments["focus"],
        "max_chars": arguments["maxChars"],
        "refresh": arguments["refresh"],
    }
    urls = arguments["urls"] or [arguments["url"]]
    if len(urls) == 1:
        received, read = reports.received, reports.read
        return await stash.fetch(urls[0], **options, progress=received, reading=read)
    return await stash.fetch_many(urls, **options, progress=reports.fetched)


async def _get_search_content(stash: Stash, arguments: Arguments, _: Reports) -> Value:
    limit = _limit(stash, arguments)
    return await stash.read(arguments["artifact_ref"], arguments["offset"], max_chars=limit)


async def _artifact_grep(stash: Stash, arguments: Arguments, _: Reports) -> Value:
    refs = arguments["artifact_refs"] or [arguments["artifact_ref"]]
    names = ("literal", "ignore_case", "context", "max_matches", "offset")
    return await stash.grep(arguments["pattern"], refs, **{name: arguments[name] for name in names})


async def _artifact_slice(stash: Stash, arguments: Arguments, reports: Reports) -> Value:
    ref, path, start = arguments["artifact_ref"], arguments["path"], arguments["start"]
    if arguments["render"] == "image":
        shown = await stash.picture(ref, start, path=path)
        return replace(shown, asked_end=arguments["end"])
    return await stash.slice(
        ref,
        path=path,
        unit=arguments["unit"],
        start=start,
        end=arguments["end"],
        max_chars=_limit(stash, arguments),
        progress=reports.read,
    )


async def _artifact_search(stash: Stash, arguments: Arguments, _: Reports) -> Value:
    refs = arguments["artifact_refs"] or ()
    return await stash.search(arguments["query"], refs, max_results=arguments["max_results"])


async def _artifact_info(stash: Stash, arguments: Arguments, _: Reports) -> Value:
    if ref := arguments["artifact_ref"]:
        return await stash.store.get(ref)
    return await stash.list()


async def _stash_file(stash: Stash, arguments: Arguments, _: Reports) -> Value:
    return await stash.add_file(
        arguments["path"],
        within=stash.settings.ingest.read_roots,
        focus=arguments["focus"],
        max_chars=arguments["maxChars"],
    )


_CALLS: Mapping[str, Callable[[Stash, Arguments, Reports], Awaitable[Value]]] = {
    "fetch_content": _fetch_content,
    "get_search_content": _get_search_content,
    "artifact_grep": _artifact_grep,
    "artifact_slice": _artifact_slice,
    "artifact_search": _artifact_search,
    "artifact_info": _artifact_info,
    "stash_file": _stash_file,
}

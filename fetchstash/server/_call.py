"""From a tool's checked arguments to the one method of Stash that answers."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from fetchstash.fetch import Progress
from fetchstash.render import View
from fetchstash.stash import Stash
from fetchstash.store import GrepQuery

Arguments = Mapping[str, Any]
Call = Callable[[Stash, Arguments, Progress], Awaitable[View]]


async def _fetch_content(stash: Stash, given: Arguments, progress: Progress) -> View:
    urls = given["urls"] or [given["url"]]
    return await stash.fetch(
        urls,
        focus=given["focus"],
        max_chars=given["maxChars"],
        refresh=given["refresh"],
        progress=progress,
    )


async def _get_search_content(stash: Stash, given: Arguments, _progress: Progress) -> View:
    return await stash.read(given["artifact_ref"], given["offset"], given["maxChars"])


async def _artifact_grep(stash: Stash, given: Arguments, _progress: Progress) -> View:
    query = GrepQuery(
        pattern=given["pattern"],
        literal=given["literal"],
        ignore_case=given["ignore_case"],
        context=given["context"],
        max_matches=given["max_matches"],
        offset=given["offset"],
    )
    return await stash.grep(
        given["artifact_refs"] or [given["artifact_ref"]], query, max_chars=given["maxChars"]
    )


async def _artifact_slice(stash: Stash, given: Arguments, _progress: Progress) -> View:
    ref, path, unit, start, end = (
        given[name] for name in ("artifact_ref", "path", "unit", "start", "end")
    )
    if given["render"] == "image":
        return await stash.render(ref, path=path, start=start)
    return await stash.slice(
        ref, path=path, unit=unit, start=start, end=end, max_chars=given["maxChars"]
    )


async def _artifact_search(stash: Stash, given: Arguments, _progress: Progress) -> View:
    return await stash.search(
        given["query"],
        given["artifact_refs"] or (),
        max_results=given["max_results"],
        max_chars=given["maxChars"],
    )


async def _artifact_info(stash: Stash, given: Arguments, _progress: Progress) -> View:
    return await (stash.info(given["artifact_ref"]) if given["artifact_ref"] else stash.list())


async def _stash_file(stash: Stash, given: Arguments, _progress: Progress) -> View:
    return await stash.add_file(
        Path(given["path"]), focus=given["focus"], max_chars=given["maxChars"]
    )


CALLS: Mapping[str, Call] = {
    "fetch_content": _fetch_content,
    "get_search_content": _get_search_content,
    "artifact_grep": _artifact_grep,
    "artifact_slice": _artifact_slice,
    "artifact_search": _artifact_search,
    "artifact_info": _artifact_info,
    "stash_file": _stash_file,
}

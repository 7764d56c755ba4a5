"""Wording of results: errors, sizes, and the length of a frame."""

import json
from dataclasses import dataclass, replace

from fetchstash.errors import Call, Wording

FRAME_CHARS = 1_200
"""Around the body of one artifact. The longest URL, name and path that are shown fit."""

FRAME_CHARS_OF_SEVERAL = 600


CALL_CHARS = 640
"""A longer call, one with a very long pattern, is named by what changes in it.

Ten references and a usual pattern fit.
"""

_TOOLS = {
    "fetch": "fetch_content",
    "fetch_site": "fetch_site",
    "read": "get_search_content",
    "slice": "artifact_slice",
    "picture": "artifact_slice",
    "grep": "artifact_grep",
    "search": "artifact_search",
    "info": "artifact_info",
    "list": "artifact_info",
    "add_file": "stash_file",
    "delete": "artifact_delete",
}
_NAMES = {"ref": "artifact_ref", "refs": "artifact_refs", "max_chars": "maxChars", "page": "start"}
_EMPTY = ("fetch.ca_file", "fetch.proxy")
_ALLOWING = ("fetch.allow_", "fetch.ports", "ingest.read_roots")


def as_tool(call: Call) -> str:
    """Word a next step as a tool call; arguments that are None are left out."""
    if call.action == "repair":
        return "the operator can repair the store"
    if call.action == "setting":
        name: str = call.arguments["name"]
        verb = "allow it by" if name.startswith(_ALLOWING) else "change"
        verb = "set" if name in _EMPTY else verb
        return f"the operator can {verb} {name}"
    if call.action == "export":
        return f"{as_tool(Call('slice', {'ref': call.arguments['ref'], 'unit': 'bytes'}))}"
    tool = _TOOLS[call.action]
    arguments = dict(call.arguments)
    if call.action == "picture":
        unit = "pages" if "page" in arguments else None
        arguments = {"ref": arguments.get("ref"), "render": "image", "unit": unit, **arguments}
    written = ", ".join(
        f"{_NAMES.get(name, name)}={json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
        if value is not None
    )
    return f"{tool}({written})" if written or call.action == "list" else tool


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """How a front end (server, command, library) words calls and the arguments in notices."""

    word: Wording
    max_chars: str
    refresh: str

    def continuation(self, call: Call, more: dict[str, object], changed: tuple[str, ...]) -> str:
        """Return the call that goes on, with ``more`` arguments.

        Where it would be too long, only what is ``changed`` and ``more`` is named.
        """
        arguments = {**call.arguments, **more}
        whole = self.word(replace(call, arguments=arguments))
        if len(whole) <= CALL_CHARS:
            return whole
        kept = {name: value for name, value in arguments.items() if name in (*changed, *more)}
        short = self.word(replace(call, arguments=kept))
        if short.endswith(")"):
            return f"{short[:-1]}, and the rest as before)"
        return f"{short}, and the rest as before"


MODEL = FrontEnd(as_tool, "maxChars", "refresh=true")

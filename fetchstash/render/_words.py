"""How a model is told what to do next: as a tool call. Settings are the operator's."""

import json

from fetchstash.errors import Call

_TOOLS = {
    "fetch": "fetch_content",
    "read": "get_search_content",
    "slice": "artifact_slice",
    "picture": "artifact_slice",
    "grep": "artifact_grep",
    "search": "artifact_search",
    "info": "artifact_info",
    "list": "artifact_info",
    "add_file": "stash_file",
}
_NAMES = {"ref": "artifact_ref", "refs": "artifact_refs", "max_chars": "maxChars", "page": "start"}
_ALLOWING = ("fetch.allow_", "fetch.ports", "ingest.read_roots")


def as_tool(call: Call) -> str:
    """Word a next step for a model: a tool call, with the arguments that are not None as JSON."""
    if call.action == "repair":
        return "the operator can repair the store"
    if call.action == "setting":
        name: str = call.arguments["name"]
        return f"the operator can {'allow it' if name.startswith(_ALLOWING) else f'change {name}'}"
    tool = _TOOLS[call.action]
    arguments = dict(call.arguments)
    if call.action == "picture":
        arguments = {"ref": arguments.get("ref"), "render": "image", **arguments}
    written = ", ".join(
        f"{_NAMES.get(name, name)}={json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
        if value is not None
    )
    return f"{tool}({written})" if written or call.action == "list" else tool

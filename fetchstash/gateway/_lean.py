"""List the tools of wrapped servers short, and check their calls against the whole schema."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from fetchstash.gateway._protocol import meta_of
from fetchstash.text import clip
from fetchstash.text.untyped import as_array, as_object

TOOL_SCHEMA = "tool_schema"
DESCRIPTION_CHARS = 100
ENUM_CHARS = 80
"""A longer list of allowed values is left out."""

MAX_DEPTH = 20
"""How deep the values of a call are looked at."""

LISTED: dict[str, Any] = {
    "name": TOOL_SCHEMA,
    "title": "Whole schema of a tool",
    "description": (
        'Return the whole description and schema of a tool whose description ends in "…". '
        "Call it before the first call of such a tool, unless its arguments are plain."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "The tool's name as listed"}},
        "required": ["name"],
    },
    "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
}

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
    "number": (int, float),
    "integer": (int, float),
}


def _is(kind: str, value: object) -> bool:
    """Return whether a value is of a type of JSON Schema; true is no number, 1.0 is an integer."""
    if isinstance(value, bool):
        return kind == "boolean"
    is_whole = not isinstance(value, float) or value.is_integer()
    return isinstance(value, _TYPES[kind]) and (kind != "integer" or is_whole)


def short(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool with the beginning of its description, and names and types of its arguments.

    The very same where that is no shorter.
    """
    schema = as_object(tool.get("inputSchema"))
    properties = as_object(schema.get("properties"))
    names = {name: _type_of(as_object(item)) for name, item in properties.items()}
    kept = {key: schema[key] for key in ("type", "required") if key in schema}
    whole = " ".join(str(tool.get("description") or "").split())
    sentence = whole.partition(". ")[0].rstrip(".")
    lean = {key: item for key, item in tool.items() if key != "outputSchema"}
    lean["inputSchema"] = {**kept, "properties": names}
    lean["description"] = clip(sentence, DESCRIPTION_CHARS).removesuffix("…") + " …"
    is_shorter = len(json.dumps(lean)) < len(json.dumps(tool))
    return lean if is_shorter and "properties" in schema else dict(tool)


def _type_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: schema[key] for key in ("type", "enum") if key in schema}
    return kept if len(json.dumps(kept)) <= ENUM_CHARS else {"type": schema.get("type", "string")}


def described(tool: Mapping[str, Any], name: str) -> str:
    """Return the full description of a tool that is listed under ``name``."""
    kept = {key: tool[key] for key in ("description", "inputSchema") if key in tool}
    return json.dumps({"name": name, **kept}, ensure_ascii=False)


def faults(schema: Mapping[str, Any], value: Any, name: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the faults of arguments: unknown names, wrong types, values that are not allowed.

    Patterns and references are the server's own to check: here they could stop all other calls.
    """
    kinds = schema.get("type")
    allowed = [kinds] if isinstance(kinds, str) else [str(kind) for kind in as_array(kinds)]
    known = [kind for kind in allowed if kind in _TYPES]
    shown = name or "The argument"
    if known and len(known) == len(allowed) and not any(_is(kind, value) for kind in known):
        yield f"{shown} must be of type {' or '.join(known)}"
        return
    if "enum" in schema and value not in as_array(schema["enum"]):
        yield f"{shown} must be one of {clip(json.dumps(schema['enum']), 200)}"
    if depth == MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        values, properties = as_object(cast("object", value)), as_object(schema.get("properties"))
        outer = f"{name}." if name else ""
        yield from (
            f"{outer}{key} is missing"
            for key in as_array(schema.get("required"))
            if key not in values
        )
        if schema.get("additionalProperties") is False and "patternProperties" not in schema:
            yield from (f"there is no {outer}{key}" for key in values if key not in properties)
        for key, item in values.items():
            yield from faults(as_object(properties.get(key)), item, f"{outer}{key}", depth + 1)
    for item in as_array(cast("object", value)):
        yield from faults(as_object(schema.get("items")), item, f"an item of {name}", depth + 1)


def is_for_page_alone(tool: Mapping[str, Any]) -> bool:
    """Return whether no model sees a tool."""
    return as_array(as_object(meta_of(tool).get("ui")).get("visibility")) == ["app"]

"""Check arguments from a model against a tool's schema; name the first fault in one line."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from fetchstash.errors import BadArgument, did_you_mean
from fetchstash.server.tools._other_names import is_other_name, meant
from fetchstash.server.tools._specs import Schema, ToolSpec
from fetchstash.text import clip

HOST_ARGUMENTS = {"wait_for_previous": "Gemini CLI"}
"""Arguments that a host adds to every tool by itself, with the host. They are ignored."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {
    "string": "a string",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list of strings",
}


def checked(tool: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with the defaults filled in. A null counts as missing.

    Raises BadArgument for an unknown or missing name, a wrong type, a value outside its bounds, or
    two where one is wanted.
    """
    present = {
        name: value
        for name, value in arguments.items()
        if value is not None and name not in HOST_ARGUMENTS
    }
    for name in present:
        if name not in tool.properties:
            raise _unknown(tool, name, present)
    for name in tool.required:
        if name not in present:
            raise BadArgument(f"{tool.name} needs {name}.", f"Give {name}.")
    if tool.one_of and sum(name in present for name in tool.one_of) != 1:
        names = " and ".join(tool.one_of)
        raise BadArgument(
            f"{tool.name} needs exactly one of {names}.", f"Give {' or '.join(tool.one_of)}."
        )
    for name, value in present.items():
        _check(name, value, tool.properties[name])
    return {**tool.defaults, **present}


def _unknown(tool: ToolSpec, name: str, arguments: Mapping[str, Any]) -> BadArgument:
    """Return the error for an argument that a tool does not have, with the call to make instead."""
    what = f"{tool.name} has no argument {clip(name, 60)!r}."
    question = did_you_mean(name, tool.properties)
    if question and not is_other_name(tool, name, arguments[name]):
        return BadArgument(what, question)
    call, all_meant = meant(tool, arguments)
    if not all_meant:
        return BadArgument(what, f"It has {', '.join(tool.properties)}. Try {{}}.", call)
    first = "Fetch first, then try" if tool.open_world and call.action == "slice" else "Try"
    return BadArgument(what, f"{first} {{}}.", call)


def _check(name: str, value: Any, schema: Schema) -> None:
    kind = schema["type"]
    if not _is(value, kind):
        raise BadArgument(f"{name} is {_shown(value)}.", f"It must be {_WORDS[kind]}.")
    if kind == "string":
        _check_text(name, value, schema)
    elif kind == "integer":
        low, high = schema["minimum"], schema.get("maximum")
        if value < low or (high is not None and value > high):
            bounds = f"from {low} to {high}" if high is not None else f"{low} at the least"
            raise BadArgument(f"{name} is {value}.", f"It must be {bounds}.")
    elif kind == "array":
        items = cast("Sequence[Any]", value)
        low, high = schema["minItems"], schema["maxItems"]
        if not low <= len(items) <= high:
            raise BadArgument(f"{name} has {len(items)} items.", f"Give {low} to {high}.")
        for item in items:
            _check(f"An item of {name}", item, schema["items"])


def _check_text(name: str, value: str, schema: Schema) -> None:
    if "enum" in schema and value not in schema["enum"]:
        raise BadArgument(
            f"{name} is {_shown(value)}.", f"It must be one of {', '.join(schema['enum'])}."
        )
    if not value and "default" not in schema:
        raise BadArgument(f"{name} is empty.", f"Give {name}.")
    if len(value) > schema.get("maxLength", len(value)):
        raise BadArgument(
            f"{name} has {len(value)} characters.", f"Give {schema['maxLength']} at the most."
        )
    if not value.isascii() and _SURROGATE.search(value):
        raise BadArgument(
            f"{name} holds half a character (a lone surrogate).", "Send well-formed Unicode."
        )


def _is(value: Any, kind: str) -> bool:
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "boolean": bool, "array": list}[kind])


def _shown(value: Any) -> str:
    return clip(json.dumps(value) if isinstance(value, bool) else repr(value), 80)

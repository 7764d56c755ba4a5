"""Check the arguments of a call, and understand the names that other programs use.

Models know the tools of many servers: `pages="5"`, `start_line`, `max_length`, `query`. The guess
is a next step, never carried out: only the model knows what it meant.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from fetchstash.errors import BadArgument, Call, between, did_you_mean
from fetchstash.server.tools._shapes import understood
from fetchstash.server.tools._specs import Schema, ToolSpec
from fetchstash.text import clip
from fetchstash.text.untyped import is_array

_METHODS_NAMES = {"artifact_ref": "ref", "artifact_refs": "refs", "maxChars": "max_chars"}
_COUNTS = "limit count headlimit maxcount maxresults numresults topk top k n m"
_LENGTHS = "length chars characters size maxlength maxlen maxcharacters maxsize limit"
_TEXTS = "query q text term terms keyword keywords words string search"
_OTHERS: Mapping[str, str] = {
    "url": "uri link href address website page webpage site target",
    "urls": "uris links hrefs pages websites sites",
    "artifact_ref": "ref reference id artifact artifactid resource document doc uri url source",
    "artifact_refs": "artifactref ref artifact document url source refs references ids artifacts "
    "documents sources urls in",
    "pattern": f"regex regexp expression needle match {_TEXTS}",
    "query": f"pattern question prompt {_TEXTS}",
    "focus": f"question prompt goal objective topic instruction instructions {_TEXTS}",
    "path": "section heading title sheet tab table member file filename entry selector xpath "
    "jsonpath jsonpointer pointer key anchor fragment",
    "start": "from begin first offset",
    "end": "to until last stop",
    "offset": "startindex start from begin skip position",
    "max_matches": _COUNTS,
    "max_results": _COUNTS,
    "context": "contextlines around surrounding before after a b c",
    "ignore_case": "ignorecase caseinsensitive insensitive nocase i",
    "literal": "fixed fixedstring fixedstrings plain exact f",
    "refresh": "force forcerefresh nocache reload fresh bypasscache update",
    "unit": "units by mode",
    "maxChars": _LENGTHS,
}
"""Other names for ours, in lower case without _ and -. The tool's first argument with it wins."""

_PLACES = "from|start|begin|first", "to|until|end|last"
_PART = re.compile(
    rf"(?P<before>{'|'.join(_PLACES)})?(?P<unit>page|line|row|char|character|byte)s?"
    rf"(?P<after>{'|'.join(_PLACES)}|range|number|no|num)?"
)
_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:(?:[-:,\u2013]|\.\.|to)\s*(\d{1,9}))?\s*")
_SHOWN_CHARS = 100


def meant(tool: ToolSpec, arguments: Mapping[str, Any]) -> tuple[Call, bool]:
    """Return the call that unknown arguments are likely to mean, and whether each means something.

    Arguments without a meaning are left out.
    """
    known = {name: value for name, value in arguments.items() if name in tool.properties}
    unknown = {name: value for name, value in arguments.items() if name not in tool.properties}
    unknown = dict(_in_our_terms(tool, name, value) for name, value in unknown.items())
    known |= {name: unknown.pop(name) for name in [*unknown] if name in tool.properties}
    method, count, all_meant = tool.action, None, True
    for name, value in unknown.items():
        part = _part(plain(name), value)
        target = next((t for t in tool.properties if plain(name) in _OTHERS.get(t, "").split()), "")
        if part and tool.name in ("artifact_slice", "get_search_content", "fetch_content"):
            method, known = "slice", {**_of_slice(known), **part}
        elif tool.name == "artifact_slice" and plain(name) in _COUNTS.split() and _bounds(value):
            count = _bounds(value)
        elif target and target not in known:
            known[target] = _as_kind(value, tool.properties[target])
        else:
            all_meant = False
    if count and "end" not in known:
        known["end"] = known.get("start", 1) + count[0] - 1
    for name in ("artifact_ref",) if method == "slice" else (*tool.required, *tool.one_of[:1]):
        if not any(other in known for other in (name, *tool.one_of)):
            known[name] = "…"
    if method == "info" and not known:
        method = "list"
    named = {_METHODS_NAMES.get(name, name): _short(value) for name, value in known.items()}
    return Call(method, named), all_meant


def _in_our_terms(tool: ToolSpec, name: str, value: Any) -> tuple[str, Any]:
    """Return the argument of ours that an argument of another tool's schema stands for."""
    if "ignore_case" in tool.properties:
        if plain(name) in ("casesensitive", "matchcase") and str(value).lower() in ("false", "0"):
            return "ignore_case", True
        if plain(name) == "flags" and isinstance(value, str) and "i" in value:
            return "ignore_case", True
    singular = next((own for own in tool.properties if f"{own}s" == name), "")
    if singular and is_array(value) and len(value) == 1:
        return singular, value[0]
    return name, value


def is_other_name(tool: ToolSpec, name: str, value: Any) -> bool:
    """Return whether a name is one that other servers use, and not one of ours in other letters."""
    if plain(name) in map(plain, tool.properties):
        return False
    known = any(
        plain(name) in _OTHERS.get(property_name, "").split() for property_name in tool.properties
    )
    return known or _part(plain(name), value) is not None


def plain(name: str) -> str:
    """Return a name in lower case, without _ and -."""
    return re.sub("[_-]", "", name.lower())


def _of_slice(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that fit a slice; a URL that was fetched names its artifact."""
    kept = ("artifact_ref", "path", "start", "end", "maxChars")
    kept_arguments = {name: value for name, value in arguments.items() if name in kept}
    return (
        {"artifact_ref": arguments["url"], **kept_arguments}
        if "url" in arguments
        else kept_arguments
    )


def _part(name: str, value: Any) -> dict[str, Any] | None:
    """Parse `pages="5-7"` or `start_line=20` into unit, start and end; None for another name."""
    match, bounds = _PART.fullmatch(name), _bounds(value)
    if match is None or bounds is None:
        return None
    unit = {"character": "char"}.get(match["unit"], match["unit"]) + "s"
    place = match["before"] or match["after"] or ""
    first, last = bounds
    if place in _PLACES[1].split("|"):
        return {"unit": unit, "end": last}
    if place in _PLACES[0].split("|"):
        return {"unit": unit, "start": first}
    # A single character or byte ends before the next one: their end is excluded.
    if first == last and unit in ("chars", "bytes"):
        last += 1
    return {"unit": unit, "start": first, "end": last}


def _bounds(value: Any) -> tuple[int, int] | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("Sequence[object]", value)
        value = "-".join(map(str, items[:3]))
    match = _RANGE.fullmatch(str(value))
    return None if match is None else (int(match[1]), int(match[2] or match[1]))


def _as_kind(value: Any, schema: Schema) -> Any:
    """Convert a value to the argument's type if its words allow it, within its bounds."""
    if schema["type"] == "integer" and isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if schema["type"] == "integer" and _is(value, "integer"):
        return max(min(value, schema.get("maximum", value)), schema["minimum"])
    if schema["type"] == "boolean" and isinstance(value, str):
        return value.strip().lower() in ("true", "1", "yes")
    if schema["type"] == "array" and isinstance(value, str):
        return [value]
    return value


def _short(value: Any) -> Any:
    return "…" if isinstance(value, str) and len(value) > _SHOWN_CHARS else value


HOST_ARGUMENTS = {"wait_for_previous": "Gemini CLI"}
"""Arguments that a host adds to every tool by itself, with the host. They are ignored."""

MOST_ARGUMENTS = 50
"""A call with more arguments is refused before any of them is looked at."""

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
    if len(arguments) > MOST_ARGUMENTS:
        what = f"{tool.name} is called with {len(arguments):,} arguments."
        raise BadArgument(what, f"It has {', '.join(tool.properties)}.")
    present = {
        name: value
        for name, value in understood(tool, arguments).items()
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
    if other := _of_another_tool(tool, arguments):
        return BadArgument(what, "Try {}.", other)
    question = did_you_mean(name, tool.properties)
    if question and not is_other_name(tool, name, arguments[name]):
        near = question.removeprefix("Did you mean ").removesuffix("?")
        value = understood(tool, {near: arguments[name]}).get(near)
        if value is None or near in arguments or not _is(value, tool.properties[near]["type"]):
            return BadArgument(what, question)
        renamed = {key: item for key, item in arguments.items() if key != name}
        renamed[near] = _as_kind(value, tool.properties[near])
        return BadArgument(what, f"{question} {{}}", meant(tool, understood(tool, renamed))[0])
    call, all_meant = meant(tool, arguments)
    if not all_meant:
        return BadArgument(what, f"It has {', '.join(tool.properties)}. Try {{}}.", call)
    first = "Fetch first, then try" if tool.open_world and call.action == "slice" else "Try"
    return BadArgument(what, f"{first} {{}}.", call)


_ONLY_THERE = {"pattern": ("artifact_ref", "grep"), "path": ("artifact_ref", "slice")}
"""Arguments that one other action alone has, for a tool that takes one artifact."""


def _of_another_tool(tool: ToolSpec, arguments: Mapping[str, Any]) -> Call | None:
    """Return the call of another tool that has all of the arguments; None if it is not plain."""
    if tool.action not in ("read", "info") or "artifact_ref" not in arguments:
        return None
    for name, (_, action) in _ONLY_THERE.items():
        if set(arguments) == {"artifact_ref", name}:
            return Call(action, {"ref": arguments["artifact_ref"], name: _short(arguments[name])})
    if set(arguments) == {"artifact_ref", "query"}:
        return Call("search", {"query": arguments["query"], "refs": [arguments["artifact_ref"]]})
    return None


def _check(name: str, value: Any, schema: Schema) -> None:
    kind = schema["type"]
    if not _is(value, kind):
        raise BadArgument(f"{name} is {_shown(value)}.", f"It must be {_WORDS[kind]}.")
    if kind == "string":
        _check_text(name, value, schema)
    elif kind == "integer":
        low, high = schema["minimum"], schema.get("maximum")
        if value < low or (high is not None and value > high):
            raise BadArgument(f"{name} is {value}.", f"It must be {between(low, high)}.")
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

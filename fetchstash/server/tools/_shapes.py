"""Understand arguments that a model wrote in another shape than the schema's.

A Markdown link for a URL, a list as a string of JSON, a number as a string, a reference with what
stood around it. Only what can mean one thing is changed; the rest is left to ``checked``, which
says what is wrong.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from fetchstash.server.tools._specs import Schema, ToolSpec
from fetchstash.text.untyped import as_object, is_array
from fetchstash.text.urls import urls_in

_PLURALS = {"url": "urls", "artifact_ref": "artifact_refs"}
_NAMES_A_DOCUMENT = frozenset({*_PLURALS, *_PLURALS.values()})
_REF = re.compile(r"\bart[_ -]([a-z2-7]{26})\b", re.IGNORECASE)
_BARE_REF = re.compile(r"\W*([a-z2-7]{26})\W*", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d{1,3}(?:([,_ ])\d{3})*(?:\1\d{3})*|[+-]?\d{1,15}")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_THOUSANDS = re.compile(r"(\d{1,6})k", re.IGNORECASE)
_LINE = re.compile(r"L(\d{1,9})", re.IGNORECASE)
_ALL = frozenset({"all", "*", "any"})
_MOST_CHARS = 100_000
"""A longer string is read as no JSON, and no URL is looked for in it."""
_MOST_ITEMS = 100
"""A longer list stays as it is: it is too long for any argument."""


def understood(tool: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments in the shapes of the schema, where their meaning is plain."""
    shaped: dict[str, Any] = {}
    for name, value in arguments.items():
        schema = tool.properties.get(name)
        if value is None or schema is None:
            shaped[name] = value
            continue
        if name in tool.one_of and value in ("", []) and len(arguments) > 1:
            continue  # given empty beside the other
        optional = name in _NAMES_A_DOCUMENT and name not in (*tool.required, *tool.one_of)
        if optional and isinstance(value, str) and value.strip().lower() in _ALL:
            continue  # what it means where it is left out
        shaped[name] = _shaped(name, value, schema)
    for one, several in _PLURALS.items():
        if {one, several} <= set(tool.one_of):
            _one_or_several(shaped, one, several)
        elif isinstance(shaped.get(one), list):
            items = cast("Sequence[Any]", shaped[one])
            shaped[one] = items[0] if len(items) == 1 else items
    return shaped


def _one_or_several(arguments: dict[str, Any], one: str, several: str) -> None:
    """Move a list to the plural argument, and merge both arguments without repeats."""
    named, listed = arguments.get(one), arguments.get(several)
    if is_array(named) and listed is None:
        del arguments[one]
        arguments.update({one: named[0]} if len(named) == 1 else {several: named})
    elif (is_array(named) or isinstance(named, str)) and is_array(listed):
        first = named if is_array(named) else [named]
        del arguments[one]
        arguments[several] = [*first, *(item for item in listed if item not in first)]


def _shaped(name: str, value: Any, schema: Schema) -> Any:
    kind = schema["type"]
    value = _unwrapped(value)
    if name in _NAMES_A_DOCUMENT:
        return _documents(_parsed(value), kind)
    if kind == "integer":
        return _number(value)
    if kind == "boolean" and not isinstance(value, bool):
        return _FLAGS.get(str(value).strip().lower(), value)
    if kind == "string":
        return _text(name, value, schema)
    return value


def _text(name: str, value: Any, schema: Schema) -> Any:
    """Return the one text that a number or a list means, in the spelling of an enum."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list):
        items = cast("Sequence[Any]", value)
        texts = all(isinstance(item, str) for item in items)
        if len(items) > 1 and texts and name in _JOINTS:
            return _JOINTS[name].join(items)
        return items[0] if len(items) == 1 else items
    if isinstance(value, str) and "enum" in schema:
        word = value.strip().lower()
        word = _UNITS.get(word, word)
        return next((known for known in schema["enum"] if known in (word, f"{word}s")), value)
    return value


_JOINTS = {"pattern": "|", "query": " ", "focus": " "}
_UNITS = {"character": "chars", "characters": "chars", "picture": "image", "png": "image"}


def _number(value: Any) -> Any:
    if isinstance(value, str) and _NUMBER.fullmatch(text := value.strip()):
        return int(re.sub("[,_ ]", "", text))
    if isinstance(value, str) and (thousands := _THOUSANDS.fullmatch(value.strip())):
        return 1_000 * int(thousands[1])
    if isinstance(value, str) and (line := _LINE.fullmatch(value.strip())):
        return int(line[1])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _parsed(value: Any) -> Any:
    """Return the list that a string of JSON, or of Python, is; anything else as it is."""
    if not isinstance(value, str) or len(value) > _MOST_CHARS:
        return value
    text = value.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return value
    for written in (text, text.replace("'", '"')):
        with suppress(ValueError):
            items = json.loads(written)
            return items or value
    return value


def _documents(value: Any, kind: str) -> Any:
    """Return the URLs and references in a value: one, or a list if they are several."""
    if isinstance(value, str):
        found = _named(value)
        return found[0] if len(found) == 1 and kind == "string" else found
    if isinstance(value, list):
        given = cast("Sequence[Any]", value)
        if len(given) > _MOST_ITEMS:
            return given
        items = [_unwrapped(item) for item in given]
        parts = [
            part for item in items for part in (_named(item) if isinstance(item, str) else [item])
        ]
        are_texts = all(isinstance(part, str) for part in parts)
        return list(dict.fromkeys(parts)) if are_texts else parts
    return value


def _unwrapped(item: Any) -> Any:
    """Return the one text in an object, ``{"url": "…"}``; anything else as it is."""
    inside = list(as_object(item).values())
    is_one = len(inside) == 1 and (is_array(inside[0]) or isinstance(inside[0], str))
    return inside[0] if is_one else item


def _named(text: str) -> list[str]:
    """Return the references or URLs in a text, the text itself if it has neither."""
    if len(text) > _MOST_CHARS:
        return [text]
    is_ref = "://" not in text or text.strip().startswith(_RESOURCE)
    refs = [_BARE_REF.fullmatch(text), *_REF.finditer(text)] if is_ref else []
    found = [f"art_{match[1].lower()}" for match in refs if match]
    return list(dict.fromkeys(found)) or urls_in(text)


_RESOURCE = "fetchstash://artifact/"
"""Begins the address of an artifact as a resource."""

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
from fetchstash.text.urls import urls_in

_PLURALS = {"url": "urls", "artifact_ref": "artifact_refs"}
_NAMES_A_DOCUMENT = frozenset({*_PLURALS, *_PLURALS.values()})
_REF = re.compile(r"\bart_[a-z2-7]{26}\b")
_NUMBER = re.compile(r"[+-]?\d{1,3}(?:([,_ ])\d{3})*(?:\1\d{3})*|[+-]?\d{1,15}")
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}
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
        shaped[name] = _shaped(name, value, schema)
    for one, several in _PLURALS.items():
        if {one, several} <= set(tool.one_of):
            _one_or_several(shaped, one, several)
        elif isinstance(shaped.get(one), list):
            items = cast("Sequence[Any]", shaped[one])
            shaped[one] = items[0] if len(items) == 1 else items
    return shaped


def _one_or_several(arguments: dict[str, Any], one: str, several: str) -> None:
    """Give a list under its own name, and one that both names have, once."""
    named, listed = arguments.get(one), arguments.get(several)
    if isinstance(named, list) and listed is None:
        items = list(cast("Sequence[Any]", arguments.pop(one)))
        arguments.update({one: items[0]} if len(items) == 1 else {several: items})
    elif isinstance(named, str) and isinstance(listed, list) and named in listed:
        del arguments[one]


def _shaped(name: str, value: Any, schema: Schema) -> Any:
    kind = schema["type"]
    if name in _NAMES_A_DOCUMENT:
        return _documents(_parsed(value), kind)
    if kind == "integer":
        return _number(value)
    if kind == "boolean" and isinstance(value, str):
        return _FLAGS.get(value.strip().lower(), value)
    if kind == "string" and isinstance(value, list):
        items = cast("Sequence[Any]", value)
        return items[0] if len(items) == 1 else items
    return value


def _number(value: Any) -> Any:
    if isinstance(value, str) and _NUMBER.fullmatch(text := value.strip()):
        return int(re.sub("[,_ ]", "", text))
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
        items = cast("Sequence[Any]", value)
        if len(items) > _MOST_ITEMS:
            return items
        return [
            part for item in items for part in (_named(item) if isinstance(item, str) else [item])
        ]
    return value


def _named(text: str) -> list[str]:
    if len(text) > _MOST_CHARS:
        return [text]
    refs = [] if "://" in text else list(dict.fromkeys(_REF.findall(text)))
    return refs or urls_in(text)

"""JSON as a tree: one level at a time, by JSON pointer (RFC 6901)."""

import json
from itertools import islice
from typing import Any, cast

from fetchstash.errors import BadArgument, NoText

MAX_CHARS = 16 * 2**20
"""A longer document is read by path alone: parsing takes many times its size in memory."""
CHILDREN = 200
_SHOWN_CHARS = 200


def parsed(text: str) -> Any:
    """Return the value of a JSON text. Raises NoText."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoText("This is no JSON that a tree can be made of.", "Read its text.") from error


def at_pointer(value: Any, pointer: str) -> Any:
    """Return what a pointer names. Raises BadArgument."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        try:
            place = int(key) if isinstance(value, list) else key
            value = cast("Any", value)[place]
        except (LookupError, ValueError, TypeError) as error:
            raise BadArgument("That path leads nowhere.", "Open the tree from its root.") from error
    return value


def level(value: Any, pointer: str, start: int) -> dict[str, Any]:
    """Return a value's type, its count, and CHILDREN of its children from ``start`` on."""
    items: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        items = list(islice(pairs, start, start + CHILDREN))
    elif isinstance(value, list):
        values = cast("list[Any]", value)[start : start + CHILDREN]
        items = [(str(start + i), item) for i, item in enumerate(values)]
    children = [
        {"key": key, "path": f"{pointer}/{_escaped(key)}", **_node(child)} for key, child in items
    ]
    return {"path": pointer, "start": start, **_node(value), "children": children}


def _node(value: Any) -> dict[str, Any]:
    if isinstance(value, dict | list):
        kind = "object" if isinstance(value, dict) else "array"
        return {"type": kind, "count": len(cast("list[Any]", value))}
    text = json.dumps(value, ensure_ascii=False)
    kind = {str: "string", bool: "boolean", type(None): "null"}.get(type(value), "number")
    return {"type": kind, "text": text[:_SHOWN_CHARS], "cut": len(text) > _SHOWN_CHARS}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")

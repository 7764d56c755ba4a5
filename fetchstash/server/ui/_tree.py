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
    node = _node(value)
    pairs: Any = ()
    if node["type"] == "object":
        pairs = value.items()
    elif node["type"] == "array":
        pairs = ((str(i), item) for i, item in enumerate(value))
    items = islice(pairs, start, start + CHILDREN)
    children = [
        {"key": key, "path": f"{pointer}/{_escaped(key)}", **_node(child)} for key, child in items
    ]
    return {"path": pointer, "start": start, **node, "children": children}


def _node(value: Any) -> dict[str, Any]:
    kinds = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    kind = kinds.get(value.__class__, "number")
    if kind in ("object", "array"):
        return {"type": kind, "count": len(value)}
    text = json.dumps(value, ensure_ascii=False)
    return {"type": kind, "text": text[:_SHOWN_CHARS], "cut": len(text) > _SHOWN_CHARS}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")

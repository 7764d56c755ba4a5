"""Texts and JSON trees for the view, in pages; and the rights of the person who looks."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, cast

from fetchstash.errors import BadArgument, NoText, Wording, as_method
from fetchstash.store import Facts, Passage, TextReader, language_of, stems, words


@dataclass(frozen=True, slots=True)
class Person:
    """The viewer: ``word`` words a next step, ``open_copy`` opens a kept file (None: none)."""

    word: Wording = as_method
    open_copy: Callable[[Facts, Path], object] | None = None


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
    """Return the value at a JSON pointer. Raises BadArgument."""
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


LINE_CHARS = 2_000
"""Longer lines are cut; the rest is asked for in pieces."""
WINDOW_LINES = 500
_AT_ONCE = 2**18


async def line_window(reader: TextReader, start: int, count: int) -> dict[str, Any]:
    """Return ``count`` lines from ``start`` (from 1), each cut at LINE_CHARS.

    ``cut`` holds the cut ones by their place in ``lines``: where they begin and end, in characters
    of the text.
    """
    start = max(start, 1)
    end = min(start + min(count, WINDOW_LINES), reader.lines + 1)
    lines: list[str] = []
    cut: dict[int, tuple[int, int]] = {}
    if start > reader.lines:
        return {"start": start, "lines": lines, "cut": cut, "total": reader.lines}
    first, last = await reader.char_of_line(start), await reader.char_of_line(end)
    if last - first <= _AT_ONCE:
        at = first
        for line in (await reader.read_chars(first, last)).removesuffix("\n").split("\n"):
            _add(lines, cut, line[: LINE_CHARS + 1], at, len(line))
            at += len(line) + 1
    else:
        bounds = [await reader.char_of_line(line) for line in range(start, end + 1)]
        for at, following in pairwise(bounds):
            line = await reader.read_chars(at, min(following, at + LINE_CHARS + 1))
            _add(lines, cut, line.removesuffix("\n"), at, following - at - 1)
    return {"start": start, "lines": lines, "cut": cut, "total": reader.lines}


def _add(
    lines: list[str], cut: dict[int, tuple[int, int]], line: str, at: int, length: int
) -> None:
    if length > LINE_CHARS:
        cut[len(lines)] = (at, at + length)
    lines.append(line[:LINE_CHARS])


_TOKEN = re.compile(r"[^\W_]+")
_SHOWN_PASSAGE = 800


def hit(query: str, passage: Passage) -> dict[str, Any]:
    """Return the line of a passage's best match, as segments with the matching words marked.

    A part is [text, whether it is a word of the query].
    """
    stem = stems(language_of(passage.text))
    terms = {stem[word] for word in words(query)}
    line = passage.first_line + passage.text.count("\n", 0, passage.hit)
    start = max(passage.text.rfind("\n", 0, max(passage.hit - _SHOWN_PASSAGE // 2, 0)) + 1, 0)
    start = max(start, passage.hit - _SHOWN_PASSAGE // 2)
    text = passage.text[start : start + _SHOWN_PASSAGE]
    parts: list[tuple[str, bool]] = []
    marked: dict[str, None] = {}
    end = 0
    for token in _TOKEN.finditer(text):
        pairs = words(token[0].casefold())
        pieces = [token.span()]
        if len(pairs) > 1:  # a script without spaces: two characters are a word
            pieces = [(token.start() + n, token.start() + n + 2) for n in range(len(pairs))]
        for pair, (first, last) in zip(pairs, pieces, strict=False):
            if stem[pair] in terms and first >= end:
                parts += [(text[end:first], False), (text[first:last], True)]
                marked[text[first:last].casefold()] = None
                end = last
    parts.append((text[end:], False))
    return {"line": line, "parts": [part for part in parts if part[0]], "words": list(marked)}

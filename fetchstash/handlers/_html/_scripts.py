"""Data that a page brings along: in its scripts, and the metadata in its head.

Next.js (``__NEXT_DATA__``, and the stream of React Server Components), Nuxt, Remix and React Router
(their streams are flat arrays of references), whatever else is JSON in a script, and what a script
assigns to a name. The head has Open Graph, Dublin Core and schema.org.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from fetchstash.text.untyped import is_array, is_object

MAX_CHARS = 8_000_000  # of the scripts that are read
MAX_NODES = 100_000
MAX_FAILED_CHARS = 500_000_000
"""Characters before values that cannot be read, all together: about 0.3 s."""
MAX_DEPTH = 60
MAX_STRINGS = 20_000
MIN_ASSIGNED, MAX_LITERAL = 40, 2_000_000
"""Characters of an object or array that a script assigns to a name."""

_MARKERS = (
    "__NUXT__",
    "__remixContext",
    "__reactRouterContext",
    "__next_f",
    "__INITIAL_STATE__",
    "__PRELOADED_STATE__",
    "__APOLLO_STATE__",
    "__INITIAL_DATA__",
    "__DATA__",
    "__STATE__",
    "__sveltekit",
    "ytInitialData",
    "__staticRouterHydrationData",
)
_MARKER = re.compile("|".join(_MARKERS))
_JSON_TYPES = re.compile(r"(?:application|text)/(?:[\w.+-]{0,40}\+)?json\b", re.IGNORECASE)
_ASSIGNED = re.compile(r"[\w$\].\"']\s{0,20}=\s{0,20}(?:JSON\.parse\(\s{0,20})?(?=[{\[\"])")
_NAME = re.compile(r"[\w$.\[\]\"']{1,80}$")
_PUSHED = re.compile(r"__next_f\.push\(\s{0,20}(?=\[)|\.enqueue\(\s{0,20}(?=\")")
# A quote behind a backslash begins no string: else each of many would be followed to the end.
_STRING = re.compile(r"(?<!\\)\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"")
_ROW = re.compile(rb"([0-9a-f]{1,8}):(T([0-9a-f]{1,8}),)?")
_REFERENCE = re.compile(r"\$[L@]?([0-9a-f]{1,8})")
_DECODER = json.JSONDecoder()
_TOKEN = re.compile(
    r"(?P<gap>\s+|//[^\n]*|/\*.*?\*/)|"
    r"(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`\\$]*`)|"
    r"(?P<bracket>[{}\[\]:,])|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))|"
    r"(?P<word>![01]|void 0|[A-Za-z_$][\w$]*)",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.|\n))", re.DOTALL)
_NO_NAME = str.maketrans("[", ".", "]\"'")  # window["x"] is window.x
_WORDS = {
    "true": "true",
    "false": "false",
    "null": "null",
    "undefined": "null",
    "void 0": "null",
    "NaN": "null",
    "!0": "true",
    "!1": "false",
}


def name_of(attributes: dict[str, str], text: str) -> str:
    """Return the name of the data that a script holds as a whole, "" if it holds none."""
    if _JSON_TYPES.match(attributes.get("type", "")):
        return attributes.get("id") or "JSON"
    match = _MARKER.search(text)
    return match[0] if match else ""


def values(
    scripts: Iterable[tuple[dict[str, str], str]], *, assigned: bool = True
) -> Iterator[tuple[str, Any]]:
    """Yield the data of a page's scripts with their names. What cannot be read is left out.

    Those are JSON, the streams and states of known frameworks, and where ``assigned`` is wanted
    whatever else a script assigns to a name as one object or array.
    """
    streams: dict[str, list[str]] = {}
    spare = MAX_CHARS
    for attributes, text in scripts:
        spare -= len(text)
        if spare < 0:
            return
        name = name_of(attributes, text)
        pushed = [value for _, _, value in _values_behind(_PUSHED, text)] if name else []
        if pushed:  # strings, or [1, string]
            pieces = (value[-1] if is_array(value) and value else value for value in pushed)
            streams.setdefault(name, []).extend(piece for piece in pieces if isinstance(piece, str))
        elif name not in _MARKERS and name:
            value = loaded(text)
            yield name, _unflattened(_strings(text) if value is None else value)
        elif found := list(assignments(text)) if name or assigned else []:
            for variable, value in found:
                yield variable, _unflattened(value)
        elif name:
            yield name, _strings(text)
    for name, parts in streams.items():
        stream = "".join(parts)
        if name == "__next_f":
            yield name, _Rows(stream).all()
            continue
        rows = [value for line in stream.split("\n")[:MAX_STRINGS] if (value := loaded(line))]
        yield name, list(map(_unflattened, rows))


def assignments(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects and arrays that a script assigns to names: ``var x = {…}``.

    Small ones are settings of the script itself, and left out.
    """
    for size, name, assigned in _values_behind(_ASSIGNED, text):
        # A string is what JSON.parse is called with.
        value = loaded(assigned) if isinstance(assigned, str) else assigned
        if size >= MIN_ASSIGNED and (is_object(value) or is_array(value)):
            yield name, value


def loaded(text: str) -> Any:
    """Return the value of a JSON text, None for any other."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _values_behind(start: re.Pattern[str], text: str) -> Iterator[tuple[int, str, Any]]:
    """Yield size, name and value of what stands behind each match outside of another value."""
    end, spare = 0, MAX_FAILED_CHARS
    for match in start.finditer(text):
        if match.end() < end:
            continue
        try:
            value, end = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            spare -= match.end()  # json counts the lines before an error
            if spare < 0:
                return
            value, end = _literal(text, match.end())
            spare -= 20 * max(end - match.end(), 0)
            if value is None:
                end = 0
                continue
        begin = match.start() + 1  # a match begins with the end of the name
        named = _NAME.search(text, max(begin - 80, 0), begin)
        name = named[0].translate(_NO_NAME) if named else ""
        yield end - match.end(), name.removeprefix("window.").strip("."), value


def _literal(text: str, start: int) -> tuple[Any, int]:
    """Return an object or array as JavaScript writes it, and where it ends; None if it is none.

    Its keys may be without quotes, its strings in single ones, with commas at the ends of lists and
    comments (ECMA-262, 13.2). Anything that has to be run, a call or a name, ends it.
    """
    written: list[str] = []
    open_brackets: list[str] = []
    at = start
    last = ""
    while (token := _TOKEN.match(text, at)) is not None and at - start < MAX_LITERAL:
        at = token.end()
        kind, word = token.lastgroup, token[0]
        if kind == "gap":
            continue
        is_key = open_brackets[-1:] == ["{"] and last in "{,"
        if kind == "bracket":
            if word in "]}":
                if last == ",":
                    written.pop()  # [1, 2, ]
                if not open_brackets or open_brackets.pop() != {"]": "[", "}": "{"}[word]:
                    return None, at
            elif word in "[{":
                open_brackets.append(word)
            written.append(word)
        elif kind == "string":
            inner = _ESCAPED.sub(_unescaped, word[1:-1])
            written.append(json.dumps(inner))
        elif is_key:
            written.append(json.dumps(word))
        elif kind == "word" and word not in _WORDS:
            return None, at
        else:
            written.append(_WORDS.get(word, word))
        last = word if kind == "bracket" else "value"
        if not open_brackets:
            return loaded("".join(written)), at
    return None, at


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "\n": ""}.get(escape[2], escape[2])


def _strings(text: str) -> list[str]:
    """Return the strings of a script that is no JSON: Nuxt 2 passes them to a function."""
    strings = (loaded(match[0]) for match in islice(_STRING.finditer(text), MAX_STRINGS))
    return [string for string in strings if isinstance(string, str)]


def _is_flat(value: Any) -> bool:
    """Return whether an array holds references into itself (devalue, turbo-stream)."""
    if not is_array(value) or len(value) < 2:
        return False
    first: Any = value[0]
    numbers: list[Any] = []
    if is_object(first):
        numbers = list(first.values())
    elif is_array(first) and first and isinstance(first[0], str):
        numbers = first[1:]
    return bool(numbers) and all(type(number) is int for number in numbers)


def _unflattened(value: Any) -> Any:
    """Return the value that a flat array stands for, any other value as it is."""
    return _Flat(value).value(0, 0) if _is_flat(value) else value


class _Flat:
    """A flat array, whose items refer to each other by number."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items
        self._nodes = 0

    def value(self, number: Any, depth: int) -> Any:
        """Return the value of an item; None for a reference to nowhere and beyond the limits."""
        self._nodes += 1
        if type(number) is not int or not 0 <= number < len(self._items):
            return None
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            return None
        item = self._items[number]
        if is_object(item):
            return {self._key(key): self.value(at, depth + 1) for key, at in item.items()}
        if is_array(item) and item and isinstance(item[0], str):  # ["Reactive", 7], ["Date", "…"]
            inner = [self.value(at, depth + 1) for at in item[1:] if type(at) is int]
            return inner[0] if len(inner) == 1 else inner or item[-1]
        return [self.value(at, depth + 1) for at in item] if is_array(item) else item

    def _key(self, key: str) -> str:
        number = int(key[1:]) if key[:1] == "_" and key[1:].isdecimal() and len(key) < 9 else -1
        name = self._items[number] if 0 <= number < len(self._items) else key
        return name if isinstance(name, str) else key


class _Rows:
    """The rows of a stream of React Server Components, which refer to each other by name."""

    def __init__(self, stream: str) -> None:
        self._rows: dict[str, Any] = {}
        self._nodes = 0
        data = stream.encode("utf-8", "replace")
        at = 0
        while (row := _ROW.match(data, at)) is not None and len(self._rows) < MAX_STRINGS:
            if row[3]:  # a text of so many bytes
                at = end = row.end() + int(row[3], 16)
            else:
                end = data.find(b"\n", row.end())
                end = end if end >= 0 else len(data)
                at = end + 1
            text = data[row.end() : end].decode("utf-8", "replace")
            self._rows[row[1].decode()] = text if row[3] else loaded(text)

    def all(self) -> list[Any]:
        """Return the rows in order, each where it is first referred to."""
        rows = (self._rows.pop(name, None) for name in list(self._rows))
        return [self._filled(row, 0) for row in rows if row is not None]

    def _filled(self, value: Any, depth: int) -> Any:
        self._nodes += 1
        if depth > 2 * MAX_DEPTH or self._nodes > MAX_NODES:
            return None
        if isinstance(value, str):
            match = _REFERENCE.fullmatch(value)
            row = self._rows.pop(match[1], None) if match else None
            return self._filled(row, depth + 1) if row is not None else value
        if is_array(value):
            return [self._filled(item, depth + 1) for item in value]
        if is_object(value):
            return {key: self._filled(item, depth + 1) for key, item in value.items()}
        return value

"""What a page says of itself: metadata, and data in its scripts.

Next.js (``__NEXT_DATA__``, and the stream of React Server Components), Nuxt, Remix and React Router
(their streams are flat arrays of references), JSON-LD, and whatever else is JSON in a script.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any, cast

from fetchstash.handlers._data._json_values import is_array, is_object
from fetchstash.handlers._html._tree import Page

MAX_CHARS = 8_000_000
"""Of the scripts that are read."""
MAX_NODES = 100_000
MAX_FAILED_CHARS = 500_000_000
"""Characters before values that cannot be read, all together: about 0.3 s."""
MAX_DEPTH = 60
MAX_STRINGS = 20_000

_MARKERS = (
    "__NUXT__", "__remixContext", "__reactRouterContext", "__next_f", "__INITIAL_STATE__",
    "__PRELOADED_STATE__", "__APOLLO_STATE__", "__INITIAL_DATA__", "__DATA__", "__STATE__",
    "__sveltekit", "ytInitialData", "__staticRouterHydrationData",
)  # fmt: skip
_MARKER = re.compile("|".join(_MARKERS))
_JSON_TYPES = re.compile(r"(?:application|text)/(?:[\w.+-]{0,40}\+)?json\b", re.IGNORECASE)
_ASSIGNED = re.compile(r"[\w$\].\"')]\s{0,20}=\s{0,20}(?:JSON\.parse\(\s{0,20})?(?=[{\[\"])")
_PUSHED = re.compile(r"__next_f\.push\(\s{0,20}(?=\[)|\.enqueue\(\s{0,20}(?=\")")
# A quote behind a backslash begins no string: else each of many would be followed to the end.
_STRING = re.compile(r"(?<!\\)\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"")
_ROW = re.compile(rb"([0-9a-f]{1,8}):(T([0-9a-f]{1,8}),)?")
_REFERENCE = re.compile(r"\$[L@]?([0-9a-f]{1,8})")
_DECODER = json.JSONDecoder()

Source = tuple[str, str]
"""The name and the text of a script."""


def is_data(attributes: dict[str, str], text: str) -> str:
    """Return the name of the data that a script holds, "" if it holds none."""
    identity = attributes.get("id", "")
    if _JSON_TYPES.match(attributes.get("type", "")):
        return identity or "JSON"
    match = _MARKER.search(text)
    return match[0] if match else ""


def values(sources: list[Source]) -> Iterator[tuple[str, Any]]:
    """Yield the data of a page's scripts with their names. What cannot be read is left out."""
    streams: dict[str, list[str]] = {}
    spare = MAX_CHARS
    for name, text in sources:
        spare -= len(text)
        if spare < 0:
            return
        pieces = [value for _, value in _values_behind(_PUSHED, text)]
        if pieces:
            streams.setdefault(name, []).extend(filter(None, map(_piece, pieces)))
            continue
        value = _assigned(text) if name in _MARKERS else _loaded(text)
        if value is None:
            value = _strings(text)
        yield name, unflattened(value) if _is_flat(value) else value
    for name, parts in streams.items():
        stream = "".join(parts)
        if name == "__next_f":
            yield name, flight(stream)
            continue
        rows = [value for line in stream.split("\n")[:MAX_STRINGS] if (value := _loaded(line))]
        yield name, [unflattened(row) if _is_flat(row) else row for row in rows]


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _at(text: str, start: int) -> Any:
    try:
        return _DECODER.raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _piece(pushed: Any) -> str:
    """Return the text that was pushed: a string, or the last of [1, string]."""
    last = pushed[-1:] if is_array(pushed) else [pushed]
    return last[0] if last and isinstance(last[0], str) else ""


def _assigned(text: str) -> Any:
    """Return the largest JSON value that a script assigns, None if there is none."""
    values: list[tuple[int, Any]] = []
    for size, assigned in _values_behind(_ASSIGNED, text):
        # A string is what JSON.parse is called with.
        value = _loaded(assigned) if isinstance(assigned, str) else assigned
        if is_object(value) or is_array(value):
            values.append((size, value))
    return max(values, key=itemgetter(0))[1] if values else None


def _values_behind(start: re.Pattern[str], text: str) -> Iterator[tuple[int, Any]]:
    """Yield size and value of the JSON behind each match that is not inside of another value."""
    end, spare = 0, MAX_FAILED_CHARS
    for match in start.finditer(text):
        if match.end() < end:
            continue
        try:
            value, end = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            end = 0
            spare -= match.end()  # json counts the lines before an error
            if spare < 0:
                return
            continue
        yield end - match.end(), value


def _strings(text: str) -> list[str]:
    """Return the strings of a script that is no JSON: Nuxt 2 passes them to a function."""
    matches = islice(_STRING.finditer(text), MAX_STRINGS)
    strings = (_at(match[0], 0) for match in matches)
    return [string for string in strings if isinstance(string, str)]


def _is_flat(value: Any) -> bool:
    """Return whether an array holds references into itself (devalue, turbo-stream)."""
    if not is_array(value) or len(value) < 2:
        return False
    first: Any = value[0]
    if is_object(first):
        numbers = list(first.values())
    elif is_array(first) and first and isinstance(first[0], str):
        numbers = first[1:]
    else:
        return False
    return bool(numbers) and all(type(number) is int for number in numbers)


def unflattened(flat: list[Any]) -> Any:
    """Return the value that a flat array stands for: its items refer to each other by number."""
    return _Flat(flat).value(0, 0)


class _Flat:
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
            pairs = item.items()
            return {self._key(key): self.value(inner, depth + 1) for key, inner in pairs}
        if is_array(item):
            references = item
            if references and isinstance(references[0], str):  # ["Reactive", 7], ["Date", "…"]
                inner = [self.value(i, depth + 1) for i in references[1:] if type(i) is int]
                return inner[0] if len(inner) == 1 else inner or references[-1]
            return [self.value(inner, depth + 1) for inner in references]
        return item

    def _key(self, key: str) -> str:
        number = int(key[1:]) if key[:1] == "_" and key[1:].isdecimal() and len(key) < 9 else -1
        name = self._items[number] if 0 <= number < len(self._items) else key
        return name if isinstance(name, str) else key


def flight(stream: str) -> Any:
    """Return the rows of a stream of React Server Components, references put in, once each."""
    rows: dict[str, Any] = {}
    data = stream.encode("utf-8", "replace")
    at = 0
    while (row := _ROW.match(data, at)) is not None and len(rows) < MAX_STRINGS:
        if row[3]:  # a text of so many bytes
            end = row.end() + int(row[3], 16)
            rows[row[1].decode()] = data[row.end() : end].decode("utf-8", "replace")
            at = end
            continue
        end = data.find(b"\n", row.end())
        end = end if end >= 0 else len(data)
        rows[row[1].decode()] = _loaded(data[row.end() : end].decode("utf-8", "replace"))
        at = end + 1
    return _Rows(rows).all()


class _Rows:
    def __init__(self, rows: dict[str, Any]) -> None:
        self._rows = rows
        self._nodes = 0

    def all(self) -> list[Any]:
        """Return the rows in order, each where it is first referred to."""
        placed: list[Any] = []
        for name in list(self._rows):
            row = self._rows.pop(name, None)
            if row is not None:
                placed.append(self._filled(row, 0))
        return placed

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
            pairs = value.items()
            return {key: self._filled(item, depth + 1) for key, item in pairs}
        return value


_TITLES = ("og:title", "twitter:title", "dc.title")
_AUTHORS = (
    "author",
    "article:author",
    "dc.creator",
    "parsely-author",
    "sailthru.author",
    "twitter:creator",
)
_DATES = (
    "article:published_time", "datepublished", "date", "dc.date", "dc.date.issued",
    "dcterms.created", "parsely-pub-date", "sailthru.date", "og:published_time", "publishdate",
    "citation_publication_date",
)  # fmt: skip
_INNER_OBJECTS = ("@graph", "mainEntity", "mainEntityOfPage", "video", "audio")
_SITES = ("og:site_name", "application-name", "twitter:site")
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?|\d{4}/\d\d/\d\d"
)
VALUE_CHARS = 300
MAX_JSON_LD = 500_000
MAX_JSON_NODES = 2_000


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a page, "" for what is missing. ``published`` is an ISO 8601 date or time.

    ``linked_data`` are the objects of its JSON-LD.
    """

    title: str
    author: str
    published: str
    site: str
    language: str
    canonical: str
    linked_data: tuple[dict[str, Any], ...] = ()
    is_article: bool = False


def read(page: Page) -> Metadata:
    """Return the metadata in the head of a page."""
    meta: dict[str, str] = {}
    for attributes in page.meta:
        name = (
            attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or ""
        ).lower()
        content = " ".join(attributes.get("content", "").split())[:VALUE_CHARS]
        if name and content:
            meta.setdefault(name, content)
    linked = list(_linked_data(page.json_ld))
    author = _first(meta, _AUTHORS)
    if not author or author.startswith(("http://", "https://", "@")):
        author = next((name for item in linked if (name := _name(item.get("author")))), author)
    dates = [_first(meta, _DATES), *(str(item.get("datePublished", "")) for item in linked)]
    canonical = next(
        (link.get("href", "") for link in page.links if link.get("rel", "").lower() == "canonical"),
        "",
    )
    return Metadata(
        title=page.title[:VALUE_CHARS] or _first(meta, _TITLES),
        author=author,
        published=next((match[0] for date in dates if (match := _DATE.search(date))), ""),
        site=_first(meta, _SITES),
        language=(page.language or meta.get("og:locale", "")).replace("_", "-")[:35],
        canonical=(canonical or meta.get("og:url", "")).strip(),
        linked_data=tuple(linked),
        is_article=_is_article(meta, linked),
    )


def _is_article(meta: dict[str, str], linked: list[dict[str, Any]]) -> bool:
    """Return whether a page says that it is an article (Open Graph, schema.org)."""
    if meta.get("og:type", "").lower() == "article" or "article:published_time" in meta:
        return True
    return any(str(item.get("@type", "")).endswith(("Article", "BlogPosting")) for item in linked)


def _first(meta: dict[str, str], names: tuple[str, ...]) -> str:
    return next((meta[name] for name in names if name in meta), "")


def _linked_data(sources: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON-LD, outer objects first (JSON-LD 1.1, @graph)."""
    for source in sources:
        if len(source) > MAX_JSON_LD:
            continue
        try:
            pending: list[Any] = [json.loads(source)]
        except (ValueError, RecursionError):
            continue
        for _ in range(MAX_JSON_NODES):
            if not pending:
                break
            item = pending.pop(0)
            if isinstance(item, dict):
                properties = cast("dict[str, Any]", item)
                yield properties
                pending += [properties[key] for key in _INNER_OBJECTS if key in properties]
            elif isinstance(item, list):
                pending += item


def _name(author: object) -> str:
    """Return the names of a schema.org author: a string, a Person or a list of them."""
    if isinstance(author, str):
        return " ".join(author.split())[:VALUE_CHARS]
    if isinstance(author, dict):
        return _name(cast("dict[str, Any]", author).get("name"))
    if isinstance(author, list):
        return ", ".join(filter(None, map(_name, cast("list[object]", author)[:5])))[:VALUE_CHARS]
    return ""

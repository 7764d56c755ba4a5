"""JSON and JSON Lines, one record a line."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fetchstash.handlers._charset import decode, read_text
from fetchstash.handlers._contract import Extracted, Hints, Part
from fetchstash.handlers._data import DataReason, _json_values
from fetchstash.handlers._data._aggregate import answer
from fetchstash.handlers._data._json_paths import value_at
from fetchstash.handlers._data._json_values import lay_out, write
from fetchstash.handlers._data._rows import Records, json_rows, value_rows
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._parts import Reading, Streamed, TextParts
from fetchstash.handlers._previews import fits
from fetchstash.handlers._worker._protocol import MAX_HEADINGS
from fetchstash.text import PreviewLimits, clip, counted, largest
from fetchstash.text.facts import is_query
from fetchstash.text.ranges import Heading, Preview
from fetchstash.text.untyped import is_array, is_object

# Items of an array that are examined; the others are counted.
_SAMPLE_ITEMS = 1_000
# Keys of an object that are examined; the others are counted.
_MAX_KEYS = 1_000
_MAX_NAME = 60


# A number that is no integer is of a class of ours.
_TYPES: dict[object, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    type(None): "null",
}


@dataclass(slots=True)
class _Shape:
    """The shape of the values in one place: counts by type, and the shapes inside of them."""

    types: Counter[str] = field(default_factory=Counter[str])
    items: int = 0
    item: "_Shape | None" = None
    keys: "dict[str, _Shape]" = field(default_factory=dict[str, "_Shape"])
    more_keys: set[str] = field(default_factory=set[str])

    def add(self, value: Any, depth: int) -> None:
        """Add a value, down to ``depth`` levels."""
        self.types[_type(value)] += 1
        if is_object(value) and depth > 0:
            for key, inner in value.items():
                if key in self.keys or len(self.keys) < _MAX_KEYS:
                    self.keys.setdefault(key, _Shape()).add(inner, depth - 1)
                else:
                    self.more_keys.add(key)
        elif is_array(value):
            self.items += len(value)
            self.item = self.item or _Shape()
            for inner in value[:_SAMPLE_ITEMS] if depth > 0 else ():
                self.item.add(inner, depth - 1)

    def described(self) -> str:
        """Return the shape in words ("array of 3 objects"), without counts for many records."""
        array = "array"
        if self.item:
            count = self.items if self.types.total() == 1 else 0
            array += f" of {f'{count:,} ' if count else ''}{self.item.names(one=count == 1)}"
        names = (name for name, _ in self.types.most_common())
        return " | ".join(array if name == "array" else name for name in names)

    def names(self, *, one: bool) -> str:
        """Return the types of an array's items, in the plural unless it is ``one``."""
        end = "" if one else "s"
        return " | ".join(f"{name}{end}" for name, _ in self.types.most_common()) or f"value{end}"

    def lines(self, limits: PreviewLimits, indent: str = "") -> list[str]:
        """Return the keys, one a line, deeper ones indented."""
        shape = self
        while shape.item and not shape.keys:
            shape = shape.item
        lines: list[str] = []
        for key, inner in list(shape.keys.items())[: limits.max_object_keys]:
            mark = "?" if inner.types.total() < shape.types["object"] else ""
            lines.append(f"{indent}{clip(key, _MAX_NAME)}{mark}: {inner.described()}")
            lines += inner.lines(limits, indent + "  ")
        if len(shape.keys) > limits.max_object_keys:
            hidden = len(shape.keys) + len(shape.more_keys) - limits.max_object_keys
            lines.append(f"{indent}… {counted(hidden, 'more key')}")
        return lines


def _type(value: object) -> str:
    return _TYPES.get(type(value), "number")


def preview(value: Any, limits: PreviewLimits, *, records: int | None = None) -> Preview:
    """Return shape and sample of ``value`` in at most ``structured_tokens``.

    For JSON Lines, ``value`` is the list of the first records and ``records`` the number of all.
    """
    shape = _Shape()
    shape.add(value, limits.max_nesting_depth)
    lines = shape.lines(limits)
    head = shape.described()
    if records is not None:
        kinds = shape.item.names(one=records == 1) if shape.item else "values"
        head = f"{counted(records, 'record')}, {kinds}"

    def shape_text(n: int) -> str:
        more = f"… {counted(len(lines) - n, 'more line')} of this shape"
        shown = [head, *(f"  {line}" for line in lines[:n])]
        return "\n".join(shown if n == len(lines) else [*shown, more])

    budget = limits.structured_tokens
    # If the whole shape leaves a third of the budget, add a sample; else show the part of the shape
    # that fits.
    shown = largest(len(lines), lambda n: fits(shape_text(n), budget))
    text = shape_text(shown)
    if not fits(text, budget * 2 // 3):
        return Preview(clip(text, largest(len(text), lambda n: fits(clip(text, n), budget))))
    biggest = max(limits.max_array_items, limits.max_object_keys // 2, limits.max_cell_length // 10)
    size = largest(biggest, lambda n: fits(f"{text}\n{_sample(value, n, limits, records)}", budget))
    sample = _sample(value, size, limits, records) if size else ""
    rows = None if records is None else min(size, limits.max_array_items, len(value))
    return Preview(text, sample, rows_shown=rows, total_rows=records)


def _sample(value: Any, size: int, limits: PreviewLimits, records: int | None) -> str:
    """Return the beginning of ``value`` as valid JSON, of ``size`` items, within ``limits``."""
    sample = _cut(value, size, limits.max_nesting_depth, limits)
    if records is not None and len(value) < records:
        shown = min(size, limits.max_array_items)
        sample = [*sample[:shown], f"… {records - shown:,} more"]
    return "".join(lay_out(write(sample))).rstrip("\n")


def _cut(value: Any, size: int, depth: int, limits: PreviewLimits) -> Any:
    if isinstance(value, str):
        return clip(value, min(limits.max_cell_length, 20 + 10 * size))
    if is_array(value):
        items = min(size, limits.max_array_items) if depth > 0 else 0
        rest = [f"… {len(value) - items:,} more"] if len(value) > items else []
        return [*(_cut(item, size, depth - 1, limits) for item in value[:items]), *rest]
    if is_object(value):
        entries = list(value.items())
        keys = min(4 + 2 * size, limits.max_object_keys) if depth > 0 else 0
        more = {"…": f"{len(entries) - keys:,} more"} if len(entries) > keys else {}
        return {
            clip(key, _MAX_NAME): _cut(inner, size, depth - 1, limits)
            for key, inner in entries[:keys]
        } | more
    return value


def summary(value: Any, *, records: int | None = None) -> str:
    """Return the type and the first keys in one line."""
    first = value
    while is_array(first) and first:
        first = first[0]
    keys = list(first)[:20] if is_object(first) else []
    names = ", ".join(clip(key, _MAX_NAME) for key in keys)
    if is_object(value):
        return f"object of {counted(len(value), 'key')}: {names}"
    if is_array(value):
        count = f"array of {counted(len(value), 'item')}"
        if records is not None:
            count = counted(records, "record")
        return f"{count}: {names}" if names else count
    return _type(value)


_NEXT = ("next", "next_url", "nextUrl", "next_page_url", "nextLink", "@odata.nextLink", "href")
_NEXT_WITHIN = ("links", "_links", "paging", "pagination", "meta", "page", "next", "info")


def next_page(value: Any, depth: int = 3) -> str:
    """Return the address of the next page that the body of an API names, "" if it names none.

    The shapes are those of Django REST, JSON:API, HAL, OData and Laravel.
    """
    if not is_object(value) or not depth:
        return ""
    for key in _NEXT[:-1] if depth == 3 else _NEXT:
        if isinstance(found := value.get(key), str) and found.startswith(("http", "/", "?")):
            return found
    return next(filter(None, (next_page(value.get(key), depth - 1) for key in _NEXT_WITHIN)), "")


_LISTS_WITHIN = (*_NEXT_WITHIN, "data", "hits", "response", "result", "results")
_TOTALS = (
    "total",
    "total_count",
    "totalCount",
    "total_results",
    "totalResults",
    "totalItems",
    "total_items",
    "totalElements",
    "totalSize",
    "totalHits",
    "total_rows",
    "recordsTotal",
    "numFound",
    "nbHits",
    "@odata.count",
    "count",
)
_LAST_PAGES = (
    "last_page",
    "lastPage",
    "total_pages",
    "totalPages",
    "page_count",
    "pageCount",
    "num_pages",
    "nbPages",
    "pages",
)
_MAX_COUNT = 10**12


def list_facts(value: Any) -> dict[str, Any]:
    """Return how many items a list has here and in all, and its last page, as an API states them.

    A total that is not larger than what is here says nothing: "count" may be that of a page.
    """
    places = [value, *_within(value)] if is_object(value) else list[dict[str, Any]]()
    lists = [value] if is_array(value) else [v for p in places for v in p.values() if is_array(v)]
    items = max(map(len, lists), default=None)
    total = _count(places, _TOTALS)
    if total is None:  # Elasticsearch
        nested = [p["total"] for p in places if is_object(p.get("total"))]
        total = _count(nested, ("value",))
    if total is not None and total <= (items or 0):
        total = None
    return {"items": items, "items_total": total, "last_page": _count(places, _LAST_PAGES)}


def _within(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a body that may describe its list, and those inside of these."""
    for key in _LISTS_WITHIN:
        if is_object(inner := value.get(key)):
            yield inner
            yield from (v for k in ("page", "pagination") if is_object(v := inner.get(k)))


def _count(places: list[dict[str, Any]], names: tuple[str, ...]) -> int | None:
    """Return the first number that one of ``places`` has under one of ``names``."""
    values = (place.get(name) for name in names for place in places)
    return next((v for v in values if type(v) is int and 0 <= v < _MAX_COUNT), None)


# A document up to this size is held in memory and laid out; a larger one is kept unchanged.
_MAX_LAYOUT_BYTES = 64 * 2**20
# A document up to this size is read into values, which take some ten times as much memory.
_MAX_VALUE_BYTES = 32 * 2**20
_SHAPE_RECORDS = 1_000


class JsonHandler(TextParts):
    """One JSON document."""

    name = "json"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the document with one value a line; unchanged if its lines are short."""
        extracted = Extracted(parts=None)
        if source.stat().st_size > _MAX_LAYOUT_BYTES:
            extracted.learn(structure_info="too large for its shape")
            extracted.parts = (Part(chunk) for chunk in read_text(source, hints.charset))
            return extracted
        text = decode(source.read_bytes(), hints.charset).replace("\r\n", "\n").replace("\r", "\n")
        if len(text) > _MAX_VALUE_BYTES or _describe(extracted, text, limits):
            extracted.parts = _parts(text)
        else:
            extracted.parts = [Part(text)]
        return extracted

    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the value at ``path`` (a pointer or a JSONPath), or the answer to a query.

        Raises OutOfRange or BadArgument.
        """
        with DataReason.BAD_JSON.instead_of(ValueError):
            text = decode(source.read_bytes(), hints.charset)
            if is_query(path) and not path.isalpha():
                return answer(path, partial(json_rows, text))
            value = _json_values.read(text)
            is_key = is_object(value) and path in value  # which is called like an aggregate
            if is_query(path) and not is_key:
                return answer(path, partial(json_rows, text))
        return value_at(value, path)


def _describe(extracted: Extracted, text: str, limits: ExtractLimits) -> bool:
    """Add the facts of the values; return False if the text is no JSON and stays unchanged."""
    try:
        value = _json_values.read(text)
    except ValueError:
        extracted.fail(DataReason.BAD_JSON.cause())
        return False
    except (RecursionError, MemoryError) as error:
        deep = isinstance(error, RecursionError)
        info = "nested more than a thousand deep" if deep else "too large for its shape"
        extracted.learn(structure_info=info)
        return True
    extracted.learn(structure_info=summary(value), next_url=next_page(value), **list_facts(value))
    extracted.preview = preview(value, limits.preview)
    return True


def _parts(text: str) -> Iterator[Part]:
    if not _json_values.has_long_lines(text):
        yield Part(text, headings=_headings(_json_values.find_keys(text, MAX_HEADINGS)))
        return
    keys: list[tuple[str, int]] = []
    written, room = 0, MAX_HEADINGS
    for batch in lay_out(text, keys):
        yield Part(batch, headings=_headings(keys[:room], written))
        written += batch.count("\n")
        room -= min(len(keys), room)
        keys.clear()


def _headings(keys: list[tuple[str, int]], written: int = 0) -> tuple[Heading, ...]:
    """Return keys as headings of a part, behind ``written`` lines of the document."""
    return tuple(Heading(_unquoted(key), 1, "lines", line - written) for key, line in keys)


def _unquoted(key: str) -> str:
    try:
        return str(json.loads(key, strict=False))
    except ValueError:
        return key.strip('"')


class JsonLinesHandler(Streamed, TextParts):
    """JSON Lines: kept unchanged, without empty lines."""

    name = "jsonl"

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield the records, one a line; learn the shape of the first thousand."""
        first: list[Any] = []
        count = 0
        for chunk in read_text(source, extracted.hints.charset):
            lines = _record_lines(chunk)
            first += [_record(line) for line in lines[: _SHAPE_RECORDS - len(first)]]
            if lines:
                text, table = "".join(f"{line}\n" for line in lines), None if count else ""
                yield Part(text, table=table, rows=len(lines))
            count += len(lines)
        extracted.learn(rows=count, structure_info=summary(first, records=count))
        extracted.preview = preview(first, extracted.limits.preview, records=count)

    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the value at ``path`` in the array of all records, or the answer to a query.

        Raises OutOfRange or BadArgument.
        """

        def records(name: str = "") -> Records:
            values = (
                _record(line)
                for chunk in read_text(source, hints.charset)
                for line in _record_lines(chunk)
            )
            return value_rows(list(values), name) if name else Records(values)

        return answer(path, records) if is_query(path) else value_at(list(records().all), path)


def _record_lines(chunk: str) -> list[str]:
    # RFC 7464: a record separator begins each record, and a line feed ends it.
    return [line for line in chunk.replace("\x1e", "").split("\n") if line.strip()]


def _record(line: str) -> Any:
    try:
        return _json_values.read(line)
    except (ValueError, RecursionError):
        return line

"""Rows for queries: of a table, a sheet, a database, or an array of JSON records.

They are read one by one. All cells are texts, and numbers are read from them as decimals.
"""

import csv
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import Any

from fetchstash.errors import FetchstashError
from fetchstash.handlers._data import DataReason, _json_values
from fetchstash.handlers._data._json_paths import pick
from fetchstash.handlers._data._json_values import array_items, write
from fetchstash.handlers._previews import one_line
from fetchstash.text import clip
from fetchstash.text.untyped import is_array, is_object

_SAMPLE_ROWS = 1_000
_MAX_COLUMNS, _MAX_NAMES, _MAX_NAME = 400, 40, 60

_PLAIN = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_BY_COMMAS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII)
_BY_POINTS = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+(?:,\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
# Signs of currencies, percent, and what groups digits besides commas and points.
_SIGNS = re.compile(r"[$€£¥₹₩₽¢%\s'\u2019\u00a0\u202f]")
_DOTTED_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(.*)", re.ASCII | re.DOTALL)

Cell = Callable[[Any], str]
"""Returns the cell of a column in a row."""


def number(text: str, *, comma: bool = False) -> Decimal | None:
    """Return the number in a cell, None if there is none; ``comma``: "1,234" is less than 2.

    Signs of currencies, percent and groups of digits are left out. NaN and infinities are none.
    """
    if _PLAIN.fullmatch(text) and not (comma and _BY_POINTS.fullmatch(text)):
        return Decimal(text)
    text = _SIGNS.sub("", text)
    if _BY_COMMAS.fullmatch(text) and not (comma and _DECIMAL_COMMA.fullmatch(text)):
        text = text.replace(",", "")
    elif _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    elif _BY_POINTS.fullmatch(text) and (comma or "," in text or text.count(".") > 1):
        text = text.replace(".", "").replace(",", ".")
    return Decimal(text) if _PLAIN.fullmatch(text) else None


def in_order(text: str) -> str:
    """Return the sort key of a text: a date such as 31.12.2024 has its year first."""
    date = _DOTTED_DATE.fullmatch(text)
    return f"{date[3]}-{date[2]:0>2}-{date[1]:0>2}{date[4]}" if date else text


class Rows(ABC):
    """Rows that are read once; the first thousand are looked at before.

    ``names`` are the columns, as far as they are known. ``comma``: numbers have decimal commas,
    unless a column shows otherwise.
    """

    comma = False
    names: Sequence[str]

    def __init__(self, rows: Iterable[Any]) -> None:
        rows = iter(rows)
        self.sample = list(islice(rows, _SAMPLE_ROWS))
        self.all = chain(self.sample, rows)

    @abstractmethod
    def cell(self, name: str) -> Cell:
        """Return a function that reads a column. Raises OutOfRange if there is none."""

    @abstractmethod
    def line(self, row: Any) -> str:
        """Return a whole row as a line."""

    def header(self) -> str:
        """Return the header line for an answer of whole rows, "" if there is none."""
        return ""

    def check(self) -> None:  # noqa: B027 - most tables know their columns
        """Raise OutOfRange for a column that no row had."""

    def numbers(self, name: str) -> Callable[[str], Decimal | None]:
        """Return a function that reads a column's numbers; first cells tell the decimal mark."""
        read = self.cell(name)
        texts = [_SIGNS.sub("", read(row)) for row in self.sample]
        commas = any(
            _DECIMAL_COMMA.fullmatch(text) and not _BY_COMMAS.fullmatch(text) for text in texts
        ) or any("," in text and _BY_POINTS.fullmatch(text) for text in texts)
        points = any("." in text and _PLAIN.fullmatch(text) for text in texts)
        if commas or (self.comma and not points):
            return lambda text: number(text, comma=True)
        return number

    def named(self, name: str) -> str | None:
        """Return the column that ``name`` stands for: as spelled, else in another case."""
        if name in self.names:
            return name
        plain = [known.strip().casefold() for known in self.names]
        wanted = name.strip().casefold()
        return self.names[plain.index(wanted)] if wanted in plain else None

    def hint(self) -> str:
        """Return the columns and a query that works, for the caller's fence."""
        shown = ", ".join(_quoted(clip(name, _MAX_NAME)) for name in self.names[:_MAX_NAMES])
        return f"Columns: {shown}\nFor example: {self._example()}"

    def _example(self) -> str:
        adds = groups = ""
        for name in self.names[:_MAX_NAMES]:
            read, numbers = self.cell(name), self.numbers(name)
            texts = [text for row in self.sample if (text := read(row))]
            if texts and all(numbers(text) is not None for text in texts):
                adds = name  # the last: the first are often counters
            elif texts and not groups and len(set(texts)) <= max(len(texts) // 2, 1):
                groups = name
        what = f"sum({_quoted(adds)})" if adds else "count"
        return f"{what} by {_quoted(groups)}" if groups else what


def _quoted(name: str) -> str:
    """Return a column as a query names it."""
    if re.fullmatch(r"[^\W\d][\w.$-]*|\d+", name):
        return name
    return '"' + name.replace('"', '""') + '"'


class Table(Rows):
    """Rows of cells under the names of columns, which are numbers where the table has no header."""

    def __init__(
        self, rows: Iterable[Sequence[str]], names: Sequence[str], *, comma: bool = False
    ) -> None:
        super().__init__(rows)
        self.comma = comma
        width = max([len(names), *map(len, self.sample)])
        self.names = [name.strip() for name in names]
        self.names += map(str, range(len(names) + 1, width + 1))

    def cell(self, name: str) -> Cell:
        known = self.named(name)
        if known is None and not (name.isdecimal() and 1 <= int(name) <= len(self.names)):
            raise DataReason.QUERY_NO_COLUMN.error(name=name)
        place = int(name) - 1 if known is None else self.names.index(known)

        def read(row: Sequence[str]) -> str:
            return row[place] if place < len(row) else ""

        return read

    def line(self, row: Sequence[str]) -> str:
        return csv_line(row)

    def header(self) -> str:
        return csv_line(self.names)


class Records(Rows):
    """JSON values: of objects the keys are columns, inner ones as ``outer.inner``.

    Of arrays the places are columns, from 1; any other value is the column ``value``.
    """

    def __init__(self, rows: Iterable[Any]) -> None:
        super().__init__(rows)
        self.names = list(dict.fromkeys(chain.from_iterable(map(_columns, self.sample))))
        self._asked: dict[str, bool] = {}

    def cell(self, name: str) -> Cell:
        name = self.named(name) or name
        keys = name.split(".")
        place = int(name) - 1 if name.isdecimal() and len(name) < 6 else -1
        asked = self._asked
        asked.setdefault(name, False)

        def read(row: Any) -> str:
            if is_object(row):
                if name in row:
                    asked[name] = True
                    return plain(row[name])
                for key in keys:
                    if not is_object(row) or key not in row:
                        return ""
                    row = row[key]
            elif is_array(row):
                if not 0 <= place < len(row):
                    return ""
                row = row[place]
            elif name != "value":
                return ""
            asked[name] = True
            return plain(row)

        return read

    def check(self) -> None:
        for name, was_there in self._asked.items():
            if not was_there and name not in self.names:
                raise DataReason.QUERY_NO_COLUMN.error(name=name)

    def line(self, row: Any) -> str:
        return f"{write(row)}\n"


def _columns(row: Any) -> Iterator[str]:
    """Yield the columns of a record, at most a few hundred."""
    if is_array(row):
        yield from map(str, range(1, len(row[:_MAX_COLUMNS]) + 1))
    elif not is_object(row):
        yield "value"
    else:
        for key, value in islice(row.items(), _MAX_COLUMNS):
            inner = islice(value, _MAX_NAMES) if is_object(value) else ()
            yield from [f"{key}.{name}" for name in inner] or [key]


def plain(value: Any) -> str:
    """Return a JSON value as the text of a cell."""
    if isinstance(value, str):
        return value
    return "" if value is None else write(value)


def csv_line(cells: Iterable[str]) -> str:
    """Return a row of CSV (RFC 4180), its cells on one line."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([one_line(cell) for cell in cells])
    return line.getvalue()


def which_rows(names: Sequence[str]) -> FetchstashError:
    """Return the error for a query that must name one of several tables."""
    return _listing(DataReason.QUERY_WHICH_ROWS.error(count=len(names)), names)


def table_named(name: str, tables: Sequence[str], filled: Sequence[str]) -> str:
    """Return the table of this name in any case, or the only one that is ``filled``.

    Raises OutOfRange or BadArgument, with the names of the filled ones as excerpt.
    """
    named = [table for table in tables if table.casefold() == name.casefold()]
    if name and not named:
        raise _listing(DataReason.QUERY_NO_ROWS.error(name=name), filled)
    if not name and len(filled) > 1:
        raise which_rows(filled)
    return (named or filled or tables)[0]


def _listing(error: FetchstashError, names: Sequence[str]) -> FetchstashError:
    """Return ``error`` with the names of what has rows, for the caller's fence."""
    clipped = (clip(name, _MAX_NAME) for name in names[:_MAX_NAMES])
    shown = [n if re.fullmatch(r"/\S*", n) else _quoted(n) for n in clipped]
    if shown:
        error.excerpt = f"Tables: {', '.join(shown)}\nFor example: count from {shown[0]}"
    return error


def json_rows(text: str, source: str) -> Records:
    """Return the rows of a JSON text: of its array, or of the one at ``source``.

    Only one item is a value at a time, but for a JSONPath or an array deep within. Raises what
    ``pick`` raises, BadArgument where there are several arrays, ValueError for what is no JSON.
    """
    start = len(text) - len(text.lstrip("\ufeff \t\r\n"))
    if not source and text[start : start + 1] == "[":
        return Records(array_items(text, start))
    if text[start : start + 1] == "{" and not source.startswith("$") and "/" not in source[1:]:
        wanted = source.removeprefix("/").replace("~1", "/").replace("~0", "~")
        of_records = re.compile(r"\[\s*[\[{]")
        found = {
            key: at
            for key, at in _json_values.members(text, start)
            if text[at] == "[" and (key == wanted if source else of_records.match(text, at))
        }
        if len(found) == 1:
            return Records(array_items(text, *found.values()))
        if found:
            raise which_rows([f"/{key}" for key in found])
    return value_rows(_json_values.read(text), source)


def value_rows(value: Any, source: str) -> Records:
    """Return the rows of a JSON value: of its array, or of what ``source`` picks."""
    if source:
        picked = pick(value, source)
        return Records(picked if is_array(picked) else [picked])
    if is_array(value):
        return Records(value)
    arrays = dict(_arrays(value, "", 4))
    if len(arrays) > 1:
        raise which_rows(list(arrays))
    return Records(*arrays.values()) if arrays else Records([value])


def _arrays(value: Any, path: str, depth: int) -> Iterator[tuple[str, list[Any]]]:
    """Yield the arrays of records within an object, with their pointers."""
    if is_array(value) and value and (is_object(value[0]) or is_array(value[0])):
        yield path, value
    elif is_object(value) and depth:
        for key, inner in value.items():
            name = key.replace("~", "~0").replace("/", "~1")
            yield from _arrays(inner, f"{path}/{name}", depth - 1)

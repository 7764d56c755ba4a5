"""Answer a query over rows.

Rows are read one by one; kept are groups, distinct values and the rows of a top, each bounded.
Numbers are added as decimals, so that prices add up.
"""

import heapq
import operator as op
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Context, Decimal, localcontext
from functools import partial
from itertools import islice
from typing import Any

from fetchstash.errors import FetchstashError
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._data._query import Item, Query, Test, Value, parse
from fetchstash.handlers._data._rows import Cell, Rows, csv_line, in_order, number
from fetchstash.handlers._parts import up_to
from fetchstash.handlers._worker._protocol import MAX_PART_TEXT
from fetchstash.text import clip, counted

_MAX_KEPT = 100_000
"""Groups, distinct values and rows of a top that are kept."""
_MAX_WORD = 60

# Sums are exact up to 60 digits. Nothing traps: an overflow is an infinity, and shows as one.
_EXACT = Context(prec=60, Emin=-99_999, Emax=99_999, traps=[])
_MEAN = Context(prec=15, Emin=-99_999, Emax=99_999, traps=[])

_DECIMALS = 12

_OPERATORS = {
    "=": op.eq,
    "!=": op.ne,
    "<": op.lt,
    "<=": op.le,
    ">": op.gt,
    ">=": op.ge,
}

Rank = tuple[int, Decimal, str]


def answer(path: str, open_rows: Callable[[str], Rows]) -> str:
    """Return the answer to the query ``path``, a line for each group or row.

    ``open_rows`` opens the rows of a source ("": the only ones). Raises BadArgument, OutOfRange or
    TooLarge, with the columns as excerpt.
    """
    rows: Rows | None = None
    try:
        query = parse(path)
        rows = open_rows(query.source)
        with localcontext(_EXACT):
            # More than one answer may hold, so that the cut is said.
            return up_to(MAX_PART_TEXT + 1, _Answer(query, rows).lines())
    except FetchstashError as error:
        if rows is None and not error.excerpt:
            with suppress(FetchstashError):
                rows = open_rows("")
        error.excerpt = error.excerpt or (rows.hint() if rows else "")
        raise


def _rank(numbers: Callable[[str], Decimal | None], text: str, *, lowest: bool) -> Rank:
    """Return the sort key of a cell: numbers come before texts, from above and from below."""
    value = numbers(text)
    if value is None:
        return int(lowest), Decimal(0), in_order(text)
    return int(not lowest), value, ""


class _Answer:
    """One query over one table."""

    def __init__(self, query: Query, rows: Rows) -> None:
        self.query, self.rows = query, rows
        self.notes: list[str] = []
        self.skipped: dict[tuple[str, bool], list[int]] = {}
        self.kept = 0

    def lines(self) -> Iterator[str]:
        """Yield notes, the header and the rows of the answer."""
        query, rows = self.query, self.rows
        chosen: Iterator[Any] = rows.all
        if query.where:
            chosen = filter(self._predicate(query.where), chosen)
        if query.is_distinct or any(item.function for item in query.items):
            body = self._grouped(chosen)
        else:
            body = self._picked(chosen)
        first = list(islice(body, 1))
        notes = [
            f"# left out, no numbers: {others:,} of {counted(others + numbers, 'cell')} of {name}\n"
            for (name, needs_numbers), (numbers, others) in self.skipped.items()
            if others and (numbers or needs_numbers)
        ]
        yield from (*self.notes, *notes, *first)
        yield from body
        rows.check()

    def _picked(self, chosen: Iterator[Any]) -> Iterator[str]:
        query, rows = self.query, self.rows
        cells = [rows.cell(item.column) for item in query.items]
        if query.top is not None and query.order:
            chosen = self._highest(chosen, query.top, query.order.column)
        elif query.top is not None:
            chosen = islice(chosen, abs(query.top))
        yield csv_line(map(self._title, query.items)) if cells else rows.header()
        for row in chosen:
            yield csv_line([cell(row) for cell in cells]) if cells else rows.line(row)

    def _highest(self, chosen: Iterator[Any], top: int, column: str) -> Iterator[Any]:
        """Return the rows with the highest or, below 0, lowest cells; empty ones are left out."""
        if abs(top) > _MAX_KEPT:
            raise DataReason.QUERY_GROUPS.error(limit=_MAX_KEPT)
        cell, numbers = self.rows.cell(column), self.rows.numbers(column)
        rank = partial(_rank, numbers, lowest=top < 0)
        ranked = ((rank(text), row) for row in chosen if (text := cell(row)))
        pick = heapq.nlargest if top > 0 else heapq.nsmallest
        return iter([row for _, row in pick(abs(top), ranked, key=op.itemgetter(0))])

    def _grouped(self, chosen: Iterator[Any]) -> Iterator[str]:
        """Yield a line for each group, the largest first, or all rows as one."""
        query, rows = self.query, self.rows
        items: tuple[Item, ...] = () if query.is_distinct else query.items
        by = tuple(item.column for item in query.items) if query.is_distinct else query.by
        extra = query.order if query.order and query.order.function else None
        sums = items if extra is None or extra in items else (*items, extra)
        keys = [rows.cell(name) for name in by]
        makers = [self._tally(item) for item in sums]
        groups: dict[tuple[str, ...], list[_Tally]] = {} if by else {(): [m() for m in makers]}
        for row in chosen:
            key = tuple([cell(row) for cell in keys])
            tallies = groups.get(key)
            if tallies is None:
                self.keep()
                tallies = groups[key] = [make() for make in makers]
            for tally in tallies:
                tally.add(row)
        yield csv_line([*(rows.named(name) or name for name in by), *map(self._title, items)])
        values = [(key, [tally.value() for tally in group]) for key, group in groups.items()]
        if by and (sums or query.order):
            place = len(by) + (sums.index(extra) if extra else 0)
            if query.order and not extra:
                place = by.index(query.order.column)
            values = self._sorted(values, place, lowest=(query.top or 0) < 0)
        for key, results in values[: None if query.top is None else abs(query.top)]:
            yield csv_line([*key, *map(_shown, results[: len(items)])])

    def _sorted(self, values: list[Any], place: int, *, lowest: bool) -> list[Any]:
        """Return groups by their cell at ``place``; those with an empty cell come last."""

        def cell(group: Any) -> Any:
            key, results = group
            return [*key, *results][place]

        def rank(group: Any) -> Rank:
            return _rank(number, str(cell(group)), lowest=lowest)

        there = [group for group in values if cell(group) not in {None, ""}]
        rest = [group for group in values if cell(group) in {None, ""}]
        return sorted(there, key=rank, reverse=not lowest) + rest

    def keep(self) -> None:
        """Count one more group or value. Raises TooLarge."""
        self.kept += 1
        if self.kept > _MAX_KEPT:
            raise DataReason.QUERY_GROUPS.error(limit=_MAX_KEPT)

    def _title(self, item: Item) -> str:
        name = self.rows.named(item.column) or item.column
        return f"{item.function}({name})" if item.function and name else item.function or name

    def _tally(self, item: Item) -> "Callable[[], _Tally]":
        """Return a function that makes the accumulator of an item for one more group."""
        if not item.column:
            return _Tally
        cell, numbers = self.rows.cell(item.column), self.rows.numbers(item.column)
        if item.function == "count":
            return lambda: _Filled(cell)
        if item.function == "distinct":
            return lambda: _Distinct(cell, self.keep)
        finds_best = item.function in {"min", "max"}
        counts = [0, 0]
        self.skipped[self._title(Item("", item.column)), not finds_best] = counts

        def read(text: str) -> Decimal | None:
            value = numbers(text)
            counts[value is None] += 1
            return value

        if finds_best:
            return lambda: _Best(cell, read, highest=item.function == "max")
        return lambda: _Sum(cell, read, mean=item.function == "mean")

    def _predicate(self, test: Test) -> Callable[[Any], bool]:
        inner = [self._predicate(part) for part in test.inner]
        match test.operator:
            case "and":
                return lambda row: all(part(row) for part in inner)
            case "or":
                return lambda row: any(part(row) for part in inner)
            case "not":
                return lambda row: not inner[0](row)
            case _:
                pass
        cell = self.rows.cell(test.column)
        if test.operator == "empty":
            return lambda row: not cell(row).strip()
        compares = [self._comparison(test, value, cell) for value in test.values]
        return compares[0] if len(compares) == 1 else lambda row: any(c(row) for c in compares)

    def _comparison(self, test: Test, value: Value, cell: Cell) -> Callable[[Any], bool]:
        """Return a test that compares a cell with a value, or with the cell of another column."""
        numbers = self.rows.numbers(test.column)
        operator = "=" if test.operator == "in" else test.operator
        if value.kind == "word" and self.rows.named(value.text) is not None:
            other, others = self.rows.cell(value.text), self.rows.numbers(value.text)

            def against(row: Any) -> bool:
                left, right = cell(row), other(row)
                return _compare(operator, left, right, numbers(left), others(right))

            return against
        text, wanted = value.text, number(value.text)
        if value.kind == "word":
            wanted = None
            if text.lower() in {"true", "false"}:
                return lambda row: (cell(row).lower() == text.lower()) == (operator == "=")
            text = "" if text.lower() == "null" else text
            note = f"# {clip(text, _MAX_WORD)} is no column here, and read as a text\n"
            if text and note not in self.notes:
                self.notes.append(note)
        if operator == "contains":
            folded = text.casefold()
            return lambda row: folded in cell(row).casefold()
        if operator in {"=", "!="} and value.kind != "number":
            return lambda row: (cell(row) == text) == (operator == "=")

        def compare(row: Any) -> bool:
            left = cell(row)
            found = None if wanted is None else numbers(left)
            if found is None and value.kind == "number":
                return operator == "!="
            return _compare(operator, left, text, found, wanted)

        return compare


def _compare(
    operator: str, left: str, right: str, first: Decimal | None, second: Decimal | None
) -> bool:
    """Compare two cells: as numbers if both are, else as texts; nothing is below or above empty."""
    if operator == "contains":
        return right.casefold() in left.casefold()
    a: Any
    b: Any
    a, b = (first, second) if first is not None and second is not None else (left, right)
    if isinstance(a, str):
        if operator not in {"=", "!="} and not (left and right):
            return False
        a, b = in_order(left), in_order(right)
    return bool(_OPERATORS[operator](a, b))


Result = Decimal | int | str | None


class _Tally:
    """Counts the rows of a group; the base of the accumulators of cells."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count: int = 0

    def add(self, row: Any) -> None:
        """Add a row."""
        del row
        self.count += 1

    def value(self) -> Result:
        """Return the result, None if there is none."""
        return self.count


class _Filled(_Tally):
    """Counts cells that are not empty."""

    __slots__ = ("cell",)

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def add(self, row: Any) -> None:
        self.count += self.cell(row) != ""


class _Distinct(_Filled):
    """Counts different cells."""

    __slots__ = ("keep", "seen")

    def __init__(self, cell: Cell, keep: Callable[[], None]) -> None:
        super().__init__(cell)
        self.keep, self.seen = keep, set[str]()

    def add(self, row: Any) -> None:
        if (text := self.cell(row)) and text not in self.seen:
            self.keep()
            self.seen.add(text)

    def value(self) -> Result:
        return len(self.seen)


class _Sum(_Filled):
    """Adds up numbers."""

    __slots__ = ("mean", "read", "total")

    def __init__(self, cell: Cell, read: Callable[[str], Decimal | None], *, mean: bool) -> None:
        super().__init__(cell)
        self.read, self.mean, self.total = read, mean, Decimal(0)

    def add(self, row: Any) -> None:
        if (text := self.cell(row)) and (value := self.read(text)) is not None:
            self.total += value
            self.count += 1

    def value(self) -> Result:
        if not self.mean:
            return self.total
        return _MEAN.divide(self.total, Decimal(self.count)).normalize() if self.count else None


class _Best(_Filled):
    """Keeps the lowest or the highest number; of cells without any, the text."""

    __slots__ = ("highest", "number", "rank", "read", "text")

    def __init__(self, cell: Cell, read: Callable[[str], Decimal | None], *, highest: bool) -> None:
        super().__init__(cell)
        self.read, self.highest = read, highest
        self.number: Decimal | None = None
        self.text = self.rank = ""

    def add(self, row: Any) -> None:
        if not (text := self.cell(row)):
            return
        value = self.read(text)
        if value is None:
            rank = in_order(text)
            if not self.text or (rank > self.rank) == self.highest:
                self.text, self.rank = text, rank
        elif self.number is None or (value > self.number) == self.highest:
            self.number = value

    def value(self) -> Result:
        return (self.text or None) if self.number is None else self.number


def _shown(value: Result) -> str:
    """Return a result as the text of a cell: in full digits, unless there are very many.

    Many decimals are those of binary numbers: .1 + .2 is shown as .3.
    """
    if not isinstance(value, Decimal):
        return "" if value is None else str(value)
    if value.is_finite() and int(value.as_tuple().exponent) < -_DECIMALS:
        value = _MEAN.plus(value).normalize()
    return f"{value:f}" if value.is_finite() and -20 < value.adjusted() < 40 else str(value)

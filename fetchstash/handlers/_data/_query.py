"""The queries over rows: their grammar, and their parsed form.

``sum(price), count by region where year >= 2024 top 5 from orders``. A query is a path like others,
read by lark (LALR: linear, no recursion); it is never SQL, and runs nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from fetchstash.handlers._data import DataReason

if TYPE_CHECKING:
    from lark import Lark

_MAX_CHARS = 1_000
_MEANS = {"avg": "mean", "average": "mean"}

_GRAMMAR = r"""
start: [what] clause*
what: _DISTINCT column ("," column)*  -> distinct
    | item ("," item)*                -> items
?item: FUNCTION "(" column ")"        -> aggregate
    | COUNT                           -> count
    | column                          -> plain
clause: _BY column ("," column)*      -> by
    | _WHERE any                      -> where
    | TOP INT [_BY item]              -> top
    | _FROM (SOURCE | TEXT | QUOTED | NAME) -> source
?any: all
    | all (_OR all)+                  -> any_of
?all: test
    | test (_AND test)+               -> all_of
?test: _NOT test                      -> negated
    | "(" any ")"
    | column OPERATOR value           -> compared
    | column [NOT] _IN "(" value ("," value)* ")" -> among
    | column _IS [NOT] _EMPTY         -> empty
column: NAME | QUOTED | INT
value: NUMBER | TEXT | QUOTED | NAME

COUNT.4: /count\s*\(\s*\*?\s*\)|count\b(?!\s*\()/i
FUNCTION.3: /(sum|min|max|mean|avg|average|count|distinct)(?=\s*\()/i
_DISTINCT.3: /distinct\b(?!\s*\()/i
TOP.2: /(top|bottom)\b/i
_BY.2: /(group\s+|order\s+)?by\b/i
_WHERE.2: /where\b/i
_FROM.2: /from\b/i
_AND.2: /and\b/i
_OR.2: /or\b/i
_NOT.2: /not\b/i
NOT.2: /not\b/i
_IN.2: /in\b/i
_IS.2: /is\b/i
_EMPTY.2: /(empty|null)\b/i
OPERATOR.2: /<=|>=|<>|!=|==|=|<|>|contains\b/i
SOURCE.2: /\$.*|\/\S*/
NUMBER.3: /[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?(?![\w.:\/-])/
TEXT.2: /'([^']|'')*'|\d+[-.\/:][\w.:\/+-]*([ ]\d\d:[\d:.+]+)?/
QUOTED: /"([^"]|"")*"|`[^`]*`/
INT: /\d+/
NAME: /[^\W\d][\w.$-]*/
%ignore /\s+/
"""


class Item(NamedTuple):
    """A column, or a ``function`` of one; the column of ``count`` may be "": it counts rows."""

    function: str
    column: str


class Value(NamedTuple):
    """The value that a cell is compared with; a ``word`` may be a column."""

    kind: Literal["number", "text", "word"]
    text: str


@dataclass(frozen=True, slots=True)
class Test:
    """A condition of a column (an operator, "in", "empty"), or "and", "or", "not" of others."""

    operator: str
    column: str = ""
    values: tuple[Value, ...] = ()
    inner: tuple["Test", ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query: ``top`` is how many, less than 0 for the lowest, None for all."""

    items: tuple[Item, ...] = ()
    is_distinct: bool = False
    by: tuple[str, ...] = ()
    where: Test | None = None
    top: int | None = None
    order: Item | None = None
    source: str = ""
    clauses: tuple[str, ...] = field(default=(), repr=False)


def parse(text: str) -> Query:
    """Parse a query. Raises BadArgument with the piece that is not understood."""
    from lark import UnexpectedInput  # noqa: PLC0415 - for queries alone
    from lark.exceptions import UnexpectedEOF  # noqa: PLC0415

    if len(text) > _MAX_CHARS:
        raise DataReason.BAD_QUERY.error(name=text)
    try:
        parser: Any = _parser()
        query: Query = parser.parse(text)
    except UnexpectedInput as error:
        at = error.pos_in_stream
        ended = isinstance(error, UnexpectedEOF) or at is None or at >= len(text.rstrip())
        if ended or getattr(getattr(error, "token", None), "type", "") == "$END":
            raise DataReason.QUERY_ENDS.error(name=text) from None
        raise DataReason.BAD_QUERY.error(name=text[at:].strip()) from None
    if len(set(query.clauses)) < len(query.clauses) or not (query.items or query.clauses):
        raise DataReason.BAD_QUERY.error(name=text)
    return _settled(query, text)


def _settled(query: Query, text: str) -> Query:
    """Return the query with its columns where they belong. Raises BadArgument."""
    items, by, order = query.items, query.by, query.order
    aggregates = any(item.function for item in items)
    if aggregates and order and not order.function and not by:
        by, order = (order.column,), None  # "sum(price) top 5 by region"
    if by:
        items = tuple(item for item in items if item.function or item.column not in by)
    plain = any(not item.function for item in items)
    if (by and not aggregates) or (aggregates and plain) or (query.is_distinct and by):
        raise DataReason.QUERY_MIXED.error(name=text)
    fits = not order or bool(order.function) == aggregates or order.column in by
    if not fits:
        raise DataReason.QUERY_MIXED.error(name=text)
    return replace(query, items=items, by=by, order=order)


def _unquoted(token: str) -> str:
    if token[:1] in {'"', "'", "`"}:
        return token[1:-1].replace(token[0] * 2, token[0])
    return str(token)


def _start(pieces: list[Any]) -> Query:
    what, *clauses = pieces
    query = replace(Query(), **(what or {}))
    for name, changes in clauses:
        query = replace(query, clauses=(*query.clauses, name), **changes)
    return query


def _top(pieces: list[Any]) -> tuple[str, dict[str, Any]]:
    word, count, order = pieces
    most = min(int(count[:9]), 10**9)
    return "top", {"top": most if word.lower() == "top" else -most, "order": order}


def _compared(pieces: list[Any]) -> Test:
    column, operator, value = pieces
    word = str(operator).lower()
    return Test({"==": "=", "<>": "!="}.get(word, word), column, (value,))


def _unless(negated: Any, test: Test) -> Test:
    return Test("not", inner=(test,)) if negated else test


_KINDS: dict[str, Any] = {"NUMBER": "number", "NAME": "word"}
_BUILD: dict[str, Callable[[list[Any]], Any]] = {
    "start": _start,
    "distinct": lambda names: {"items": tuple(Item("", n) for n in names), "is_distinct": True},
    "items": lambda items: {"items": tuple(items)},
    "aggregate": lambda p: Item(_MEANS.get(name := str(p[0]).lower(), name), p[1]),
    "count": lambda _: Item("count", ""),
    "plain": lambda p: Item("", p[0]),
    "by": lambda columns: ("by", {"by": tuple(columns)}),
    "where": lambda tests: ("where", {"where": tests[0]}),
    "top": _top,
    "source": lambda p: ("from", {"source": _unquoted(p[0]).strip()}),
    "any_of": lambda tests: Test("or", inner=tuple(tests)),
    "all_of": lambda tests: Test("and", inner=tuple(tests)),
    "negated": lambda tests: Test("not", inner=tuple(tests)),
    "compared": _compared,
    "among": lambda p: _unless(p[1], Test("in", p[0], tuple(p[2:]))),
    "empty": lambda p: _unless(p[1], Test("empty", p[0])),
    "column": lambda p: _unquoted(p[0]),
    "value": lambda p: Value(_KINDS.get(p[0].type, "text"), _unquoted(p[0])),
}
"""What each rule of the grammar makes of the pieces that it holds."""


@cache
def _parser() -> "Lark":
    """Return the parser, which builds the query as it reads, by ``_BUILD``."""
    from lark import Lark  # noqa: PLC0415 - for queries alone

    builder: Any = SimpleNamespace(**_BUILD)
    return Lark(_GRAMMAR, parser="lalr", transformer=builder, maybe_placeholders=True)

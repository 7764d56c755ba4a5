#!/usr/bin/env python3
"""Fuzz previews: they keep their bound, count what they show, and a sample of JSON is JSON.

scripts/ci fuzz runs it. Takes libFuzzer's arguments, such as ``-max_total_time=60``.
"""

import json
import sys
from typing import Any

import atheris

FUZZED = [
    "fetchstash.handlers._previews",
    "fetchstash.handlers._data._json",
    "fetchstash.text._cut",
]

with atheris.instrument_imports(include=FUZZED):
    from fetchstash.handlers._data._json import preview
    from fetchstash.handlers._previews import TableEnds, table_preview
    from fetchstash.text import PreviewLimits, head_and_tail
    from fetchstash.text.tokens import count


def text(provider: Any) -> str:
    """Return some of what is left of the data, on lines."""
    return str(provider.ConsumeUnicodeNoSurrogates(provider.ConsumeIntInRange(0, 2_000))).replace(
        "\r", ""
    )


def ends(provider: Any) -> None:
    """Show both ends of a text."""
    most = (provider.ConsumeIntInRange(0, 20), provider.ConsumeIntInRange(0, 20))
    bound, width = provider.ConsumeIntInRange(1, 500), provider.ConsumeIntInRange(1, 300)
    lines = text(provider).split("\n")
    shown, number = head_and_tail(
        lines, lines, len(lines), most, width, lambda text: len(text) <= bound
    )
    assert len(shown) <= bound
    assert number <= max(sum(most), 1)


def table(provider: Any) -> None:
    """Show both ends of a table."""
    limits = PreviewLimits(
        structured_tokens=provider.ConsumeIntInRange(1, 300),
        rows_head=provider.ConsumeIntInRange(0, 9),
        rows_tail=provider.ConsumeIntInRange(0, 9),
        max_columns=provider.ConsumeIntInRange(1, 9),
        max_cell_length=provider.ConsumeIntInRange(1, 99),
    )
    tables, header, title = (
        provider.ConsumeIntInRange(1, 5),
        text(provider).replace("\n", ""),
        text(provider).replace("\n", ""),
    )
    rows = text(provider).split("\n")
    head, tail = rows[: limits.rows_head], rows[max(len(rows) - limits.rows_tail, 0) :]
    columns = max(row.count(",") for row in rows) + 1
    one = TableEnds(head, tail, len(rows), columns, lambda row: row.split(","), ",", header, title)
    found = table_preview([one] * tables, limits)
    assert count(found.text).tokens <= limits.structured_tokens
    assert 0 <= (found.rows_shown or 0) <= (found.total_rows or 0)


def value(provider: Any, depth: int) -> Any:
    """Return a value that JSON can say."""
    match provider.ConsumeIntInRange(0, 6 if depth else 4):
        case 0:
            return text(provider)
        case 1:
            return provider.ConsumeInt(8)
        case 2:
            return provider.ConsumeRegularFloat()
        case 3:
            return provider.ConsumeBool()
        case 4:
            return None
        case 5:
            return [value(provider, depth - 1) for _ in range(provider.ConsumeIntInRange(0, 9))]
        case _:
            return {
                text(provider): value(provider, depth - 1)
                for _ in range(provider.ConsumeIntInRange(0, 9))
            }


def shape(provider: Any) -> None:
    """Show the shape and a sample of JSON."""
    limits = PreviewLimits(
        structured_tokens=provider.ConsumeIntInRange(1, 300),
        max_nesting_depth=provider.ConsumeIntInRange(1, 6),
        max_array_items=provider.ConsumeIntInRange(1, 9),
        max_object_keys=provider.ConsumeIntInRange(1, 9),
    )
    found = preview(value(provider, 7), limits)
    assert (
        count(f"{found.text}\n{found.sample}" if found.sample else found.text).tokens
        <= limits.structured_tokens
    )
    if found.sample:
        json.loads(found.sample)


def one(data: bytes) -> None:
    """Show one glimpse of each kind."""
    provider = atheris.FuzzedDataProvider(data)
    (ends, table, shape)[provider.ConsumeIntInRange(0, 2)](provider)


atheris.Setup(sys.argv, one)
atheris.Fuzz()

"""Parquet files: the facts of the footer (parquet-format, FileMetaData).

Rows are not read: that takes a library larger than all of fetchstash.
"""

import datetime as dt
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fetchstash.handlers._contract import Extracted, Hints, Part
from fetchstash.handlers._data._thrift import CompactReader, Struct
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._reasons import Reason
from fetchstash.text import clip
from fetchstash.text.facts import DocumentFacts

_MAX_FOOTER = 64 * 2**20
_MAX_VALUE = 80
_HEADER = "Column\tType\tNulls\tSmallest\tLargest\n"

# Field numbers of parquet.thrift.
_SCHEMA, _ROWS, _GROUPS, _CREATED_BY = 2, 3, 4, 6
_TYPE, _REPETITION, _NAME, _CHILDREN, _CONVERTED, _LOGICAL = 1, 3, 4, 5, 6, 10
_CHUNKS, _CHUNK_META, _CODEC, _STATISTICS = 1, 3, 4, 12
_NULLS, _LARGEST, _SMALLEST = 3, 5, 6
_OPTIONAL = 1

_PHYSICAL = ("boolean", "int32", "int64", "int96", "float", "double", "bytes", "bytes")
_CONVERTED_TYPES = {
    0: "string", 4: "enum", 5: "decimal", 6: "date", 7: "time", 8: "time", 9: "timestamp[ms]",
    10: "timestamp[us]", 11: "uint8", 12: "uint16", 13: "uint32", 14: "uint64", 15: "int8",
    16: "int16", 17: "int32", 18: "int64", 19: "json", 20: "bson",
}  # fmt: skip
_LOGICAL_TYPES = {
    1: "string",
    4: "enum",
    5: "decimal",
    6: "date",
    7: "time",
    11: "null",
    12: "json",
    13: "bson",
    14: "uuid",
}
_TIMESTAMP, _UNITS = 8, {1: "ms", 2: "us", 3: "ns"}
_CODECS = ("uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4")
# Layouts of values without a logical type, by physical type.
_LAYOUTS = {"int32": "<i", "int64": "<q", "float": "<f", "double": "<d"}
_PER_SECOND = {"timestamp[ms]": 10**3, "timestamp[us]": 10**6, "timestamp[ns]": 10**9}


class ParquetHandler:
    """Reads the footer of Parquet files."""

    name = "parquet"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - the file is enough
        """Return the facts of the file and a row for each column.

        Raises NoText if the file is damaged or encrypted.
        """
        footer = CompactReader(_footer(source)).struct()
        try:
            return _described(footer)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError):
            raise Reason.PARQUET_DAMAGED.error() from None


@dataclass(frozen=True, slots=True)
class _Column:
    """A column with values; ``name`` is its path in the schema."""

    name: str
    physical: str
    kind: str


def _footer(source: Path) -> bytes:
    """Return the metadata: their length and the magic follow them at the end of the file."""
    with source.open("rb") as file:
        size = file.seek(0, 2)
        if size < 12:
            raise Reason.CUT_FILE.error()
        file.seek(size - 8)
        length, magic = struct.unpack("<L4s", file.read(8))
        if magic == b"PARE":
            raise Reason.PARQUET_ENCRYPTED.error()
        if magic != b"PAR1" or length > min(size - 12, _MAX_FOOTER):
            raise Reason.PARQUET_CUT.error()
        file.seek(size - 8 - length)
        return file.read(length)


def _described(footer: Struct) -> Extracted:
    columns = list(_columns(footer[_SCHEMA]))
    groups: list[Struct] = footer.get(_GROUPS, [])
    rows: int = footer[_ROWS]
    chunks: list[list[Struct]] = [
        [chunk.get(_CHUNK_META, {}) for chunk in group[_CHUNKS]] for group in groups
    ]
    codecs = {_CODECS[int(chunk[_CODEC])] for group in chunks for chunk in group if _CODEC in chunk}
    facts = [f"{rows:,} rows in {len(groups):,} row groups", ", ".join(sorted(codecs))]
    if _CREATED_BY in footer:
        facts.append(f"written by {_string(footer[_CREATED_BY])}")
    info = ", ".join(filter(None, facts))
    lines = [
        _line(column, [group[number] for group in chunks if number < len(group)])
        for number, column in enumerate(columns)
    ]
    return Extracted(
        parts=[
            Part(f"Parquet file: {info}. Its rows are not read here.\n\n{_HEADER}{''.join(lines)}")
        ],
        facts=DocumentFacts(
            rows=rows,
            columns=len(columns),
            structure_info=f"{info}: {', '.join(f'{c.name} {c.kind}' for c in columns)}",
        ),
    )


def _columns(schema: Sequence[Struct]) -> Iterator[_Column]:
    """Yield the columns with values. The schema is a tree in depth-first order."""
    open_groups: list[tuple[str, int]] = []
    for number, element in enumerate(schema):
        if not number:
            open_groups.append(("", element.get(_CHILDREN, 0)))
            continue
        while open_groups and not open_groups[-1][1]:
            open_groups.pop()
        prefix, left = open_groups[-1]
        open_groups[-1] = (prefix, left - 1)
        name = prefix + _string(element[_NAME])
        if element.get(_CHILDREN):
            open_groups.append((f"{name}.", element[_CHILDREN]))
            continue
        physical = _PHYSICAL[int(element[_TYPE])]
        optional = " or null" if element.get(_REPETITION) == _OPTIONAL else ""
        yield _Column(name, physical, _kind(element, physical) + optional)


def _kind(element: Struct, physical: str) -> str:
    """Return the logical type, else the older converted type, else the physical one."""
    logical: Struct = element.get(_LOGICAL, {})
    if _TIMESTAMP in logical:
        return f"timestamp[{_UNITS[next(iter(logical[_TIMESTAMP][2]))]}]"
    known = next((_LOGICAL_TYPES[number] for number in logical if number in _LOGICAL_TYPES), "")
    return known or _CONVERTED_TYPES.get(element.get(_CONVERTED, -1), physical)


def _line(column: _Column, chunks: Sequence[Struct]) -> str:
    """Return the row of a column, with nulls, minimum and maximum of all row groups."""
    statistics = [chunk.get(_STATISTICS, {}) for chunk in chunks]
    nulls = (
        sum(each[_NULLS] for each in statistics)
        if statistics and all(_NULLS in each for each in statistics)
        else ""
    )
    smallest = [
        value for each in statistics if (value := _value(column, each.get(_SMALLEST))) is not None
    ]
    largest = [
        value for each in statistics if (value := _value(column, each.get(_LARGEST))) is not None
    ]
    cells = (
        column.name,
        column.kind,
        nulls,
        min(smallest) if smallest else "",
        max(largest) if largest else "",
    )
    return "\t".join(clip(" ".join(str(cell).split()), _MAX_VALUE) for cell in cells) + "\n"


def _value(column: _Column, raw: bytes | None) -> Any:
    """Return a value of the statistics, None if it is missing or has no plain meaning."""
    kind = column.kind.removesuffix(" or null")
    if raw is None or kind in {"decimal", "time", "uuid"}:
        return None
    if kind == "string":
        return _string(raw)
    layout = _LAYOUTS.get(column.physical)
    if layout is None or len(raw) != struct.calcsize(layout):
        return None
    number = struct.unpack(layout.upper() if kind.startswith("uint") else layout, raw)[0]
    try:
        if kind == "date":
            return dt.date(1970, 1, 1) + dt.timedelta(days=number)
        if kind in _PER_SECOND:
            return dt.datetime(1970, 1, 1, tzinfo=dt.UTC).replace(tzinfo=None) + dt.timedelta(
                seconds=number / _PER_SECOND[kind]
            )
    except OverflowError:
        return None
    return number


def _string(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")

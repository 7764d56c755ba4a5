"""JSON and JSON Lines: one record a line, the shape as preview, values by pointer or path."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fetchstash.handlers._charset import decode, read_text
from fetchstash.handlers._contract import Extracted, Hints, Part
from fetchstash.handlers._data import DataReason, _json_shape, _json_values
from fetchstash.handlers._data._json_layout import find_keys, has_long_lines, lay_out
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._shared._part_text import TextParts
from fetchstash.handlers._worker._protocol import MAX_HEADINGS
from fetchstash.text.ranges import Heading

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
        """Return the value at ``path`` (a pointer or a JSONPath), laid out like the document.

        Raises OutOfRange or BadArgument.
        """
        return _json_values.on_lines(_json_values.pick(_value(source, hints.charset), path))


def _describe(extracted: Extracted, text: str, limits: ExtractLimits) -> bool:
    """Add the facts of the values; return False if the text is no JSON and stays unchanged."""
    try:
        value = _json_values.read(text)
    except ValueError:
        extracted.learn(structure_info="not valid JSON")
        return False
    except RecursionError:
        extracted.learn(structure_info="nested more than a thousand deep")
        return True
    except MemoryError:
        extracted.learn(structure_info="too large for its shape")
        return True
    extracted.learn(structure_info=_json_shape.summary(value))
    extracted.preview = _json_shape.preview(value, limits.preview)
    return True


def _parts(text: str) -> Iterator[Part]:
    if not has_long_lines(text):
        headings = tuple(_headings(find_keys(text, MAX_HEADINGS)))
        yield Part(text, headings=headings)
        return
    keys: list[tuple[str, int]] = []
    written, room = 0, MAX_HEADINGS
    for batch in lay_out(text, keys):
        # The lines of keys count from the start of the text, those of a part from its own.
        yield Part(
            batch, headings=tuple(_headings([(key, line - written) for key, line in keys[:room]]))
        )
        written += batch.count("\n")
        room -= min(len(keys), room)
        keys.clear()


def _headings(keys: list[tuple[str, int]]) -> Iterator[Heading]:
    for key, line in keys:
        yield Heading(_unquoted(key), 1, "lines", line)


def _unquoted(key: str) -> str:
    try:
        return str(json.loads(key, strict=False))
    except ValueError:
        return key.strip('"')


def _value(source: Path, charset: str) -> Any:
    try:
        return _json_values.read(decode(source.read_bytes(), charset))
    except ValueError:
        raise DataReason.BAD_JSON.error() from None


class JsonLinesHandler(TextParts):
    """JSON Lines: kept unchanged, without empty lines."""

    name = "jsonl"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the records, one a line, with the shape of the first thousand."""
        extracted = Extracted(parts=None)
        extracted.parts = _record_parts(extracted, read_text(source, hints.charset), limits)
        return extracted

    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the value at ``path`` in the array of all records.

        Raises OutOfRange or BadArgument.
        """
        records = [
            _record(line)
            for chunk in read_text(source, hints.charset)
            for line in _record_lines(chunk)
        ]
        return _json_values.on_lines(_json_values.pick(records, path))


def _record_parts(
    extracted: Extracted, chunks: Iterator[str], limits: ExtractLimits
) -> Iterator[Part]:
    first: list[Any] = []
    count = 0
    for chunk in chunks:
        lines = _record_lines(chunk)
        first += [_record(line) for line in lines[: _SHAPE_RECORDS - len(first)]]
        if lines:
            yield Part(
                "".join(f"{line}\n" for line in lines), table=None if count else "", rows=len(lines)
            )
        count += len(lines)
    extracted.learn(rows=count, structure_info=_json_shape.summary(first, records=count))
    extracted.preview = _json_shape.preview(first, limits.preview, records=count)


def _record_lines(chunk: str) -> list[str]:
    # RFC 7464: a record separator begins each record, and a line feed ends it.
    return [line for line in chunk.replace("\x1e", "").split("\n") if line.strip()]


def _record(line: str) -> Any:
    try:
        return _json_values.read(line)
    except (ValueError, RecursionError):
        return line

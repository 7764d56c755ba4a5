"""From a part that is asked for to a Reading that views can cut and frame."""

from collections.abc import Sequence
from pathlib import Path

from fetchstash.errors import BadArgument, OutOfRange
from fetchstash.handlers import PartText
from fetchstash.ranges import Heading, Unit
from fetchstash.render import Reading, Subject
from fetchstash.stash import _parts
from fetchstash.store import Facts, TextReader

_HEX_ROW = 16
# How a path to a value begins, by what the text is: a JSON Pointer, a JSONPath, a path of elements.
_VALUE_PATHS = {
    "json": "/$",
    "jsonl": "/$",
    "yaml": "/$",
    "application/toml": "/$",
    "xml": "/",
    "image/svg+xml": "/",
}


def answered_by_handler(facts: Facts, path: str) -> bool:
    """Return whether a path names something that the handler must find: a value, a member, a page's links, columns."""
    if not path:
        return False
    if begins := _VALUE_PATHS.get(facts.content_kind) or _VALUE_PATHS.get(facts.media_type):
        return path[0] in begins
    if facts.content_kind == "image":
        return path == "exif"
    if facts.content_kind == "html":
        return path in ("links", "tables") and all(
            heading.title.casefold() != path for heading in facts.outline
        )
    return facts.content_kind in ("archive", "csv", "email")


async def onwards(reader: TextReader, subject: Subject, offset: int, reach: int) -> Reading:
    """Return the text from character ``offset`` on."""
    if offset > reader.chars or (offset == reader.chars and offset):
        hint = f"Use an offset under {reader.chars}." if reader.chars else "Leave offset out."
        raise OutOfRange(_parts.there_are(reader.chars, "characters", f"offset is {offset}"), hint)
    text = await reader.read_chars(offset, offset + reach)
    rest = reader.chars - offset
    return Reading(
        subject,
        "get_search_content",
        text,
        rest,
        "chars",
        offset,
        reader.chars,
        reader.chars,
        offset,
    )


async def part(
    reader: TextReader,
    subject: Subject,
    outline: Sequence[Heading],
    path: str,
    unit: Unit,
    start: int | None,
    end: int | None,
    reach: int,
) -> Reading:
    """Return lines, characters, pages or rows of the text, or of the heading or sheet that ``path`` names."""
    span = await _parts.span(reader, outline, path, unit, start, end)
    text = await reader.read_chars(span.start, min(span.end, span.start + reach))
    return Reading(
        subject=subject,
        tool="artifact_slice",
        text=text,
        total=span.end - span.start,
        unit=unit,
        start=span.first,
        end=span.last,
        count=span.count,
        char=span.start,
        path=path,
        page_ends=span.pages,
    )


def of_value(
    found: PartText, subject: Subject, path: str, unit: Unit, start: int | None, end: int | None
) -> Reading:
    """Return lines or characters of a text that is no part of the stored one: a JSON value, a member."""
    text = found.text
    if unit == "chars":
        first, last = _parts.half_open(start, end, len(text), "characters")
        part, count, char = text[first:last], len(text), first
    elif unit == "lines":
        lines = text.splitlines(keepends=True)
        first, last = _parts.closed(start, end, len(lines), "lines")
        part, count = "".join(lines[first - 1 : last]), len(lines)
        char = sum(map(len, lines[: first - 1]))
    else:
        raise BadArgument(
            f"This part is not counted in {unit}.", 'Use unit="lines" or unit="chars".'
        )
    cut_at = len(text) if found.cut else None
    return Reading(
        subject,
        "artifact_slice",
        part,
        len(part),
        unit,
        first,
        last,
        count,
        char,
        path,
        path,
        cut_at=cut_at,
    )


def hex_dump(
    raw: Path, subject: Subject, start: int | None, end: int | None, reach: int
) -> Reading:
    """Return the raw bytes [start, end) of an artifact without text, sixteen a line."""
    first, last = _parts.half_open(start, end, subject.size_bytes, "bytes")
    with raw.open("rb") as file:
        file.seek(first)
        data = file.read(min(last - first, reach))  # a byte takes more than one character
    rows = [(first + at, data[at : at + _HEX_ROW]) for at in range(0, len(data), _HEX_ROW)]
    text = "".join(
        f"{at:08x}  {row.hex(' '):<{3 * _HEX_ROW - 1}}  {_printable(row):<{_HEX_ROW}}\n"
        for at, row in rows
    )
    whole = -(-(last - first) // _HEX_ROW) * len(
        f"{0:08x}  {'':<{3 * _HEX_ROW - 1}}  {'':<{_HEX_ROW}}\n"
    )
    return Reading(
        subject,
        "artifact_slice",
        text,
        whole,
        "bytes",
        first,
        last,
        subject.size_bytes,
        0,
        bytes_per_line=_HEX_ROW,
    )


def _printable(row: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)


def past_the_matches(offset: int, total: int) -> OutOfRange:
    """Return the error for a grep that goes on behind the last match."""
    return OutOfRange(
        _parts.there_are(total, "matches", f"offset is {offset}"), f"Use an offset under {total}."
    )

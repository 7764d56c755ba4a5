"""Build slices: of the stored text, of a part that a handler read, of raw bytes."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from fetchstash.errors import BadArgument, BadPattern, Call, NoText, OutOfRange
from fetchstash.handlers import PartText
from fetchstash.stash import _parts
from fetchstash.stash._facts import described
from fetchstash.stash._parts import Part
from fetchstash.stash._values import Slice
from fetchstash.store import Facts, StoredText, TextReader

_HEX_ROW = 16
_HEX_LINE = len(f"{0:08x}  {'':<{3 * _HEX_ROW - 1}}  {'':<{_HEX_ROW}}\n")


def answered_by_handler(facts: Facts, path: str) -> bool:
    """Return whether the handler must find what ``path`` names: a value, a member, links.

    A heading of that title goes first, but where all paths are the handler's: an attachment may be
    called like the subject of its mail.
    """
    paths = described(facts).paths
    if not path or "*" in paths:
        return path != ""
    title = path.strip("# ").casefold()
    named = any(fnmatchcase(path, pattern) for pattern in paths)
    return named and all(heading.title.casefold() != title for heading in facts.outline)


def text_of(facts: Facts, text: TextReader | None) -> TextReader:
    """Return the text. Raises NoText for an artifact without one, with the call that shows it."""
    if text is not None:
        return text
    ref = facts.artifact_ref
    if described(facts).pictures and not facts.extraction_error:
        raise NoText(f"{ref} has no text.", "{} shows it.", Call("picture", {"ref": ref}))
    part = {"ref": ref, "unit": "bytes", "start": 0, "end": 256}
    raise NoText(f"{ref} has no text.", "Its bytes are there: {}.", Call("slice", part))


def with_list_of_parts(error: OutOfRange, facts: Facts) -> OutOfRange:
    """Return the error for a part that is not there, with the call that lists the parts."""
    if error.calls:
        return error
    info = Call("info", {"ref": facts.artifact_ref})
    return OutOfRange(error.what, f"{error.next_step} {{}} lists its parts.", info, **error.details)


def with_artifacts(error: BadPattern, refs: Sequence[str]) -> BadPattern:
    """Return the error of a pattern whose calls name the artifacts that were searched."""
    named = {"ref": refs[0]} if len(refs) == 1 else {"refs": list(refs)}
    calls = (replace(call, arguments={**named, **call.arguments}) for call in error.calls)
    return BadPattern(error.what, error.next_step, *calls)


async def from_offset(
    reader: TextReader, facts: Facts, offset: int, max_chars: int | None
) -> Slice:
    """Return the text from character ``offset`` on, at most ``max_chars`` of it."""
    if offset > reader.chars or (offset == reader.chars and offset):
        hint = f"Use an offset under {reader.chars}." if reader.chars else "Leave the offset out."
        raise OutOfRange(_parts.there_are(reader.chars, "characters", f"offset is {offset}"), hint)
    end = reader.chars if max_chars is None else min(offset + max_chars, reader.chars)
    return Slice(
        facts,
        await reader.read_chars(offset, end),
        total=reader.chars - offset,
        unit="chars",
        start=offset,
        end=reader.chars,
        count=reader.chars,
        char=offset,
        by="read",
    )


async def of_text(reader: TextReader, facts: Facts, part: Part, max_chars: int | None) -> Slice:
    """Return lines, characters, bytes, pages or rows of the text, or of what a path names."""

    def read(text: StoredText) -> tuple[_parts.Span, str]:
        span = _parts.span(text, reader.ranges, facts, part)
        end = span.end if max_chars is None else min(span.end, span.start + max_chars)
        return span, text.chars(span.start, end)

    span, shown = await reader.read(read)
    return Slice(
        facts,
        shown,
        total=span.end - span.start,
        unit=part.unit,
        start=span.first,
        end=span.last,
        count=span.count,
        char=span.start,
        path=part.path,
        page_ends=span.pages,
    )


def of_value(value: PartText, facts: Facts, part: Part) -> Slice:
    """Return lines, rows or characters of a text that a handler read: a JSON value, columns."""
    text = value.text
    is_table = described(facts).unit == "rows"
    if part.unit == "chars":
        first, last = _parts.half_open(part.start, part.end, len(text), "characters")
        body, count, char = text[first:last], len(text), first
    elif part.unit == "lines" or (part.unit == "rows" and is_table):
        lines = text.splitlines(keepends=True)
        has_header = part.unit == "rows" and (facts.text_lines or 0) > (facts.rows or 0)
        header = "".join(lines[:has_header])
        units = lines[has_header:]
        if value.cut and (part.start or 1) > len(units):
            raise _beyond_the_cut(facts, part, len(units), is_table=is_table)
        first, last = _parts.closed(part.start, part.end, len(units), part.unit)
        body, count = "".join(units[first - 1 : last]), len(units)
        char = len(header) + sum(map(len, units[: first - 1]))
    else:
        what = f"This part is not counted in {part.unit}."
        raise BadArgument(what, "Try {}.", part.in_unit(facts, "lines"))
    return Slice(
        facts,
        body,
        total=len(body),
        unit=part.unit,
        start=first,
        end=last,
        count=count,
        char=char,
        path=part.path,
        char_path=part.path,
        cut_at=len(text) if value.cut else None,
    )


def _beyond_the_cut(facts: Facts, part: Part, count: int, *, is_table: bool) -> OutOfRange:
    """Return the error for a part that begins where the worker had stopped reading."""
    what = f"Only the first {count} {part.unit} of what this path names can be read."
    if not is_table:
        return OutOfRange(what, f"Use a start up to {count}.")
    place = {"unit": part.unit, "start": part.start, "end": part.end}
    call = Call("slice", {"ref": facts.artifact_ref, **place})
    return OutOfRange(what, "All columns can: {}.", call)


def hex_dump(raw: Path, facts: Facts, part: Part, max_chars: int | None) -> Slice:
    """Return raw bytes [start, end) as a dump, sixteen a line."""
    first, last = _parts.half_open(part.start, part.end, facts.size_bytes, "bytes")
    with raw.open("rb") as file:
        file.seek(first)
        # A byte takes more than one character.
        data = file.read(last - first if max_chars is None else min(last - first, max_chars))
    rows = [(first + at, data[at : at + _HEX_ROW]) for at in range(0, len(data), _HEX_ROW)]
    text = "".join(
        f"{at:08x}  {row.hex(' '):<{3 * _HEX_ROW - 1}}  {_printable(row):<{_HEX_ROW}}\n"
        for at, row in rows
    )
    return Slice(
        facts,
        text,
        total=-(-(last - first) // _HEX_ROW) * _HEX_LINE,
        unit="bytes",
        start=first,
        end=last,
        count=facts.size_bytes,
        char=0,
        bytes_per_line=_HEX_ROW,
    )


def _printable(row: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)


def past_the_matches(offset: int, total: int) -> OutOfRange:
    """Return the error for a grep whose offset is behind the last match."""
    return OutOfRange(
        _parts.there_are(total, "matches", f"offset is {offset}"), f"Use an offset under {total}."
    )

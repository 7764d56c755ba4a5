"""Read a part of a document: from its text, or by its handler."""

import re
import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

from fetchstash.errors import BadArgument, Call, NoText, OutOfRange, did_you_mean
from fetchstash.handlers import PartText
from fetchstash.stash._facts import described
from fetchstash.stash._values import Slice
from fetchstash.store import ArtifactStore, Facts, StoredText, TextReader
from fetchstash.text import clip, counted
from fetchstash.text.facts import QUERY, is_query
from fetchstash.text.ranges import Heading, Ranges, Table, Unit

_VALUE = re.compile(r"(?=.{1,400}\Z)(?:[^./\[\]|]{0,100}[./\[|])[^\n]*")
"""A path as jq and programs write it: ``items[3].name``, ``.items[]``, ``items/3``, ``items.3``."""
_NUMBER = re.compile(r"(?:\d+(?:\.\d+)*[.)]?|\(?[a-z]{1,5}[.)])\s+")
"""The number of a heading, as readers show it before its title: "1.2", "b)", "IV."."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part that is asked for: a path, a unit, and where to start and end (None: at the ends)."""

    path: str = ""
    unit: Unit = "lines"
    start: int | None = None
    end: int | None = None

    def in_unit(self, facts: Facts, unit: Unit) -> Call:
        """Return the call for the same part in another unit."""
        return Call("slice", {"ref": facts.artifact_ref, "path": self.path or None, "unit": unit})


@dataclass(frozen=True, slots=True)
class Span:
    """The characters [start, end) of a text that a slice shows.

    ``first`` and ``last`` are the units that were asked for, resolved, and ``count`` how many there
    are in what the path names. ``pages`` are the characters at which the span's pages end, counted
    from its start, ``header`` the names of its rows' columns.
    """

    start: int
    end: int
    first: int
    last: int
    count: int
    pages: tuple[int, ...] = ()
    header: str = ""


def span(text: StoredText, ranges: Ranges, facts: Facts, part: Part) -> Span:
    """Return the characters that are asked for. May block. Raises OutOfRange or BadArgument."""
    table = _table(ranges.tables, part.path)
    begin, stop = _named(text, ranges, facts, part.path, table)
    if part.unit == "chars":
        first, last = half_open(part.start, part.end, stop - begin, "characters")
        return Span(begin + first, begin + last, first, last, stop - begin)
    if part.unit == "bytes":
        if part.path:
            chars = part.in_unit(facts, "chars")
            raise BadArgument("Bytes are counted in the whole text.", "Try {}.", chars)
        return _bytes(text, part)
    if part.unit == "rows":
        return _rows(text, ranges, facts, part, table)
    if part.unit == "pages":
        return _pages([*ranges.pages, text.index.chars], facts, part, begin, stop)
    line = text.line_of_char(begin) if text.index.chars else 1
    count = (text.line_of_char(stop - 1) - line + 1) if stop > begin else 0
    first, last = closed(part.start, part.end, count, "lines")
    if not count:
        return Span(begin, begin, first, last, count)
    end = min(text.char_of_line(line + last), stop)
    return Span(text.char_of_line(line + first - 1), end, first, last, count)


def _bytes(text: StoredText, part: Part) -> Span:
    """Return a range of bytes, widened to whole characters."""
    size = text.index.size
    first, last = half_open(part.start, part.end, size, "bytes")
    if first == last:
        return Span(0, 0, first, last, size)
    begin, final = text.char_of_byte(first), text.char_of_byte(last - 1)
    while first and text.char_of_byte(first - 1) == begin:
        first -= 1
    return Span(begin, final + 1, first, last, size)


def _rows(text: StoredText, ranges: Ranges, facts: Facts, part: Part, table: Table | None) -> Span:
    if table is None:
        tables = [] if part.path else list(ranges.tables)
        if len(tables) > 1:
            info = Call("info", {"ref": facts.artifact_ref})
            what = f"There are {len(tables)} tables here."
            raise BadArgument(what, "Name one as the path; {} lists them.", info)
        if not tables:
            lines = part.in_unit(facts, "lines")
            raise BadArgument("This part has no table rows.", "Try {}.", lines)
        table = tables[0]
    is_cut = facts.extraction_truncated and QUERY in described(facts).paths
    if is_cut and (part.start or 1) > table.rows:
        query = Call("slice", {"ref": facts.artifact_ref, "path": "from … where … > 0"})
        what = f"The text ends at row {table.rows}, and start is {part.start}."
        raise OutOfRange(what, "A query reads all of them: {}.", query)
    first, last = closed(part.start, part.end, table.rows, "rows")
    begin, end = (text.char_of_line(table.first_line + row) for row in (first - 1, last))
    header = text.chars(_head(text, table), text.char_of_line(table.first_line))
    return Span(begin, end, first, last, table.rows, header=header)


def _head(text: StoredText, table: Table) -> int:
    """Return the character at which a table begins with its header, if it has one."""
    above = text.char_of_line(max(table.first_line - 1, 1))
    is_rule = text.chars(above, above + 4) == "| --"
    return text.char_of_line(max(table.first_line - 1 - is_rule, 1))


def _pages(bounds: Sequence[int], facts: Facts, part: Part, begin: int, stop: int) -> Span:
    pages = [
        (a, b) for a, b in pairwise(bounds) if begin <= a < stop or (a == b and begin <= a <= stop)
    ]
    if not pages:
        raise BadArgument("This text has no pages.", "Try {}.", part.in_unit(facts, "lines"))
    first, last = closed(part.start, part.end, len(pages), "pages")
    char = pages[first - 1][0]
    ends = tuple(b - char for _, b in pages[first - 1 : last])
    return Span(char, pages[last - 1][1], first, last, len(pages), ends)


def _table(tables: Sequence[Table], path: str) -> Table | None:
    position = _titled([table.title for table in tables], path)
    return None if position is None else tables[position]


def _titled(titles: Sequence[str], path: str) -> int | None:
    """Return the title that ``path`` names: spelled exactly, else without case, "#" or number."""
    asked = path.strip("# ").casefold()
    plain = [title.strip("# ").casefold() for title in titles]
    bare = [_NUMBER.sub("", title) for title in plain]
    for all_titles, wanted in ((titles, path), (plain, asked), (bare, asked)):
        if wanted and wanted in all_titles:
            return all_titles.index(wanted)
    return None


def _named(
    text: StoredText, ranges: Ranges, facts: Facts, path: str, table: Table | None
) -> tuple[int, int]:
    """Return the character range that ``path`` points to: a heading's section, or a sheet."""
    chars = text.index.chars
    if not path:
        return 0, chars
    outline = facts.outline
    position = _titled([heading.title for heading in outline], path)
    if position is not None:
        heading = outline[position]
        following = next(
            (other for other in outline[position + 1 :] if other.level <= heading.level), None
        )
        begin = _char(text, ranges, heading)
        end = _char(text, ranges, following) if following else chars
        return begin, max(end, begin)
    if table is not None:
        return _head(text, table), text.char_of_line(table.first_line + table.rows)
    reason = f"There is no part {clip(path, 80)!r} here."
    question = _near(path, facts)
    if (outline or ranges.tables) and not question:
        info = Call("info", {"ref": facts.artifact_ref})
        raise OutOfRange(reason, "{} lists its parts.", info)
    raise OutOfRange(reason, question or "It has no outline; leave the path out.")


def _near(path: str, facts: Facts) -> str:
    """Return a question with a path that is spelt much like this one, "" if there is none.

    Headings are a document's own words, which stand in no error.
    """
    paths = described(facts).paths
    return did_you_mean(path, (known for known in paths if "*" not in known))


def _char(text: StoredText, ranges: Ranges, heading: Heading) -> int:
    if heading.unit == "pages":
        pages = ranges.pages
        return pages[heading.start - 1] if heading.start <= len(pages) else text.index.chars
    return text.char_of_line(min(heading.start, text.index.lines + 1))


def closed(start: int | None, end: int | None, count: int, word: str) -> tuple[int, int]:
    """Resolve a range that counts from 1 and includes both ends; clamp its end."""
    return _range(start, end, count, word, 1)


def half_open(start: int | None, end: int | None, count: int, word: str) -> tuple[int, int]:
    """Resolve a range that counts from 0 and excludes its end."""
    return _range(start, end, count, word, 0)


def _range(start: int | None, end: int | None, count: int, word: str, base: int) -> tuple[int, int]:
    first, last = base if start is None else start, count if end is None else end
    if first < base:
        what = f"{word.capitalize()} count from {base}, and start is {first}."
        raise OutOfRange(what, f"Start at {base}.")
    if end is not None and last < first:
        what = f"start is {first} and end is {last}."
        raise BadArgument(what, "Give an end at or after the start.")
    if first > max(count - 1 + base, base):
        hint = f"Use a start {'up to' if base else 'under'} {count}."
        what = there_are(count, word, f"start is {first}")
        raise OutOfRange(what, hint if count else "Leave the start out.")
    return first, min(last, count)


def there_are(count: int, word: str, asked: str) -> str:
    """Return "There are 8 lines, and start is 9."; ``word`` is a plural, ``asked`` a clause."""
    one = word.removesuffix("es" if word == "matches" else "s")
    are = "is" if count == 1 else "are"
    return f"There {are} {counted(count, one, word, digits='d')}, and {asked}."


_HEX_ROW = 16
_HEX_LINE = len(f"{0:08x}  {'':<{3 * _HEX_ROW - 1}}  {'':<{_HEX_ROW}}\n")


def answered_by_handler(facts: Facts, path: str) -> bool:
    """Return whether ``path`` needs the handler: a value, a member, links.

    A heading of that title goes first, but where all paths are the handler's: an attachment may be
    called like the subject of its mail.
    """
    paths = described(facts).paths
    if not path or "*" in paths:
        return path != ""
    title = path.strip("# ").casefold()
    named = any(fnmatchcase(path, pattern) for pattern in paths)
    named = named or (QUERY in paths and is_query(path))
    named = named or ("$*" in paths and _VALUE.fullmatch(path) is not None)
    starts = [heading.start for heading in facts.outline if heading.title.casefold() == title]
    if starts and "$*" in paths:  # a key on a line with others is no part of the text
        return sum(heading.start == starts[0] for heading in facts.outline) > 1
    return named and not starts


def asks_for(facts: Facts, path: str, name: str) -> bool:
    """Return whether ``path`` begins with ``name``, and no heading is titled so."""
    is_heading = _titled([heading.title for heading in facts.outline], path) is not None
    return path.partition("/")[0] == name and not is_heading


def text_of(facts: Facts, text: TextReader | None) -> TextReader:
    """Return the text. Raises NoText for an artifact without one, with the call that shows it."""
    if text is not None:
        return text
    ref = facts.artifact_ref
    if described(facts).pictures and not facts.extraction_error:
        raise NoText(f"{ref} has no text.", "{} shows it.", Call("picture", {"ref": ref}))
    part = {"ref": ref, "unit": "bytes", "start": 0, "end": 256}
    raise NoText(f"{ref} has no text.", "Its bytes are there: {}.", Call("slice", part))


def with_list_of_parts(error: OutOfRange, facts: Facts, path: str) -> OutOfRange:
    """Return the error for a part that is not there, with a near one or the call that lists all."""
    if error.calls or error.excerpt:
        return error
    if question := _near(path, facts):
        return OutOfRange(error.what, question, **error.details)
    info = Call("info", {"ref": facts.artifact_ref})
    return OutOfRange(error.what, f"{error.next_step} {{}} lists its parts.", info, **error.details)


async def beginning(store: ArtifactStore, ref: str, most: int = sys.maxsize) -> str:
    """Return a text up to ``most`` characters. Raises NoText for an artifact without one."""
    async with aclosing(await store.open_text(ref)) as reader:
        return await reader.read_chars(0, most)


async def from_offset(
    reader: TextReader, facts: Facts, offset: int, max_chars: int | None
) -> Slice:
    """Return the text from character ``offset`` on, at most ``max_chars`` of it."""
    if offset > reader.chars or (offset == reader.chars and offset):
        hint = f"Use an offset under {reader.chars}." if reader.chars else "Leave the offset out."
        raise OutOfRange(there_are(reader.chars, "characters", f"offset is {offset}"), hint)
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
    """Return lines, characters, bytes, pages or rows of the text, or of the part at a path."""

    def read(text: StoredText) -> tuple[Span, str]:
        whole = span(text, reader.ranges, facts, part)
        end = whole.end if max_chars is None else min(whole.end, whole.start + max_chars)
        return whole, text.chars(whole.start, end)

    whole, shown = await reader.read(read)
    return Slice(
        facts,
        shown,
        total=whole.end - whole.start,
        unit=part.unit,
        start=whole.first,
        end=whole.last,
        count=whole.count,
        char=whole.start,
        path=part.path,
        page_ends=whole.pages,
        header=whole.header,
    )


def of_value(value: PartText, facts: Facts, part: Part) -> Slice:
    """Return lines, rows or characters of a text that a handler read: a JSON value, columns."""
    text, header = value.text, ""
    is_table = described(facts).unit == "rows"
    if part.unit == "chars":
        first, last = half_open(part.start, part.end, len(text), "characters")
        body, count, char = text[first:last], len(text), first
    elif part.unit == "lines" or (part.unit == "rows" and is_table):
        lines = text.splitlines(keepends=True)
        has_header = part.unit == "rows" and (facts.text_lines or 0) > (facts.rows or 0)
        header = "".join(lines[:has_header])
        units = lines[has_header:]
        if value.cut and (part.start or 1) > len(units):
            raise _beyond_the_cut(facts, part, len(units), is_table=is_table)
        first, last = closed(part.start, part.end, len(units), part.unit)
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
        header=header,
        cut_at=len(text) if value.cut else None,
    )


def _beyond_the_cut(facts: Facts, part: Part, count: int, *, is_table: bool) -> OutOfRange:
    """Return the error for a part that begins where the worker had stopped reading."""
    what = f"What this path names can be read up to {part.unit.removesuffix('s')} {count}."
    if not is_table:
        return OutOfRange(what, f"Use a start up to {count}.")
    place = {"unit": part.unit, "start": part.start, "end": part.end}
    call = Call("slice", {"ref": facts.artifact_ref, **place})
    return OutOfRange(what, "All columns can: {}.", call)


def hex_dump(raw: Path, facts: Facts, part: Part, max_chars: int | None) -> Slice:
    """Return raw bytes [start, end) as a dump, sixteen a line."""
    first, last = half_open(part.start, part.end, facts.size_bytes, "bytes")
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
    what = there_are(total, "matches", f"offset is {offset}")
    return OutOfRange(what, f"Use an offset under {total}.")

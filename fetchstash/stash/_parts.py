"""Which part of a text a path, a unit, a start and an end name: every answer is a range of characters."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fetchstash.errors import BadArgument, OutOfRange
from fetchstash.ranges import Heading, Table, Unit
from fetchstash.store import TextReader
from fetchstash.text import clip


@dataclass(frozen=True, slots=True)
class Span:
    """The characters [start, end) of a text that a slice is to show.

    ``first`` and ``last`` are the units that were asked for, resolved, and ``count`` how many there
    are in what the path names. ``pages`` are the characters at which the span's pages end, counted
    from its start.
    """

    start: int
    end: int
    first: int
    last: int
    count: int
    pages: tuple[int, ...] = ()


async def span(
    reader: TextReader,
    outline: Sequence[Heading],
    path: str,
    unit: Unit,
    start: int | None,
    end: int | None,
) -> Span:
    """Return the characters that are asked for. Raises OutOfRange or BadArgument where there is no such part."""
    table = _table(reader.ranges.tables, path)
    begin, stop = await _named(reader, outline, path, table)
    if unit == "chars":
        first, last = half_open(start, end, stop - begin, "characters")
        return Span(begin + first, begin + last, first, last, stop - begin)
    if unit == "bytes":
        if path:
            raise BadArgument(
                "Bytes are counted in the whole text.", 'Leave path out, or use unit="chars".'
            )
        return await _bytes(reader, start, end)
    if unit == "rows":
        return await _rows(reader, path, table, start, end)
    if unit == "pages":
        return _pages(reader, begin, stop, start, end)
    line = await reader.line_of_char(begin) if reader.chars else 1
    count = (await reader.line_of_char(stop - 1) - line + 1) if stop > begin else 0
    first, last = closed(start, end, count, "lines")
    return Span(
        await reader.char_of_line(line + first - 1) if count else begin,
        min(await reader.char_of_line(line + last), stop) if count else begin,
        first,
        last,
        count,
    )


async def _bytes(reader: TextReader, start: int | None, end: int | None) -> Span:
    """Widen a range that cuts a character, so that it begins and ends with the whole one."""
    first, last = half_open(start, end, reader.bytes, "bytes")
    if first == last:
        return Span(0, 0, first, last, reader.bytes)
    begin, final = await reader.char_of_byte(first), await reader.char_of_byte(last - 1)
    while first and await reader.char_of_byte(first - 1) == begin:
        first -= 1
    return Span(begin, final + 1, first, last, reader.bytes)


async def _rows(
    reader: TextReader, path: str, table: Table | None, start: int | None, end: int | None
) -> Span:
    if table is None:
        tables = [] if path else list(reader.ranges.tables)
        if len(tables) > 1:
            raise BadArgument(
                f"There are {len(tables)} tables here.",
                "Name one with path; artifact_info lists them.",
            )
        if not tables:
            raise BadArgument("This part has no table rows.", 'Use unit="lines".')
        table = tables[0]
    first, last = closed(start, end, table.rows, "rows")
    return Span(
        await reader.char_of_line(table.first_line + first - 1),
        await reader.char_of_line(table.first_line + last),
        first,
        last,
        table.rows,
    )


def _pages(reader: TextReader, begin: int, stop: int, start: int | None, end: int | None) -> Span:
    bounds = [*reader.ranges.pages, reader.chars]
    pages = [
        (a, b) for a, b in pairwise(bounds) if begin <= a < stop or (a == b and begin <= a <= stop)
    ]
    if not pages:
        raise BadArgument("This text has no pages.", 'Use unit="lines".')
    first, last = closed(start, end, len(pages), "pages")
    char = pages[first - 1][0]
    ends = tuple(b - char for _, b in pages[first - 1 : last])
    return Span(char, pages[last - 1][1], first, last, len(pages), ends)


def _table(tables: Sequence[Table], path: str) -> Table | None:
    position = _titled([table.title for table in tables], path)
    return None if position is None else tables[position]


def _titled(titles: Sequence[str], path: str) -> int | None:
    """Return which title ``path`` names: the one spelled so, else one in another case or without the # of Markdown."""
    plain = [title.strip("# ").casefold() for title in titles]
    for all_titles, wanted in ((titles, path), (plain, path.strip("# ").casefold())):
        if wanted and wanted in all_titles:
            return all_titles.index(wanted)
    return None


async def _named(
    reader: TextReader, outline: Sequence[Heading], path: str, table: Table | None
) -> tuple[int, int]:
    """Return the characters of what ``path`` names: a heading and all under it, a sheet; "" is the whole text."""
    if not path:
        return 0, reader.chars
    position = _titled([heading.title for heading in outline], path)
    if position is not None:
        heading = outline[position]
        following = next(
            (other for other in outline[position + 1 :] if other.level <= heading.level), None
        )
        begin = await _char(reader, heading)
        end = await _char(reader, following) if following else reader.chars
        return begin, max(end, begin)
    if table is not None:
        begin = await reader.char_of_line(table.first_line)
        return begin, await reader.char_of_line(table.first_line + table.rows)
    hint = "artifact_info lists its parts." if outline else "It has no outline; leave path out."
    raise OutOfRange(f"There is no part {clip(path, 80)!r} here.", hint)


async def _char(reader: TextReader, heading: Heading) -> int:
    if heading.unit == "pages":
        pages = reader.ranges.pages
        return pages[heading.start - 1] if heading.start <= len(pages) else reader.chars
    return await reader.char_of_line(min(heading.start, reader.lines + 1))


def closed(start: int | None, end: int | None, count: int, word: str) -> tuple[int, int]:
    """Resolve a range that counts from 1 and includes both ends; an end behind the last is the last."""
    first, last = 1 if start is None else start, count if end is None else end
    if first < 1:
        raise OutOfRange(
            f"{word.capitalize()} count from 1, and start is {first}.", "Use start=1 for the first."
        )
    if end is not None and last < first:
        raise BadArgument(
            f"start is {first} and end is {last}.", "Give an end that is not before the start."
        )
    if first > max(count, 1):
        raise OutOfRange(
            there_are(count, word, f"start is {first}"),
            f"Use a start up to {count}." if count else "Leave start out.",
        )
    return first, min(last, count)


def half_open(start: int | None, end: int | None, count: int, word: str) -> tuple[int, int]:
    """Resolve a range that counts from 0 and excludes its end."""
    first, last = start or 0, count if end is None else end
    if end is not None and last < first:
        raise BadArgument(
            f"start is {first} and end is {last}.", "Give an end that is not before the start."
        )
    if first > count or (first == count and count):
        raise OutOfRange(
            there_are(count, word, f"start is {first}"),
            f"Use a start under {count}." if count else "Leave start out.",
        )
    return first, min(last, count)


def there_are(count: int, word: str, asked: str) -> str:
    """Return the sentence for a part that begins behind the last: ``word`` is a plural, ``asked`` what was asked for."""
    return f"There {'is 1 ' + word.removesuffix('s') if count == 1 else f'are {count} {word}'}, and {asked}."

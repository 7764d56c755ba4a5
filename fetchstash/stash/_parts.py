"""Find the characters that a path, a unit, a start and an end name."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fetchstash.errors import BadArgument, Call, OutOfRange
from fetchstash.store import Facts, StoredText
from fetchstash.text import clip
from fetchstash.text.ranges import Heading, Ranges, Table, Unit


@dataclass(frozen=True, slots=True)
class Part:
    """A part that is asked for: a path, a unit, and where to start and end (None: at the ends)."""

    path: str = ""
    unit: Unit = "lines"
    start: int | None = None
    end: int | None = None

    def in_unit(self, facts: Facts, unit: Unit) -> Call:
        """Return the call that asks for what ``path`` names in another unit."""
        return Call("slice", {"ref": facts.artifact_ref, "path": self.path or None, "unit": unit})


@dataclass(frozen=True, slots=True)
class Span:
    """The characters [start, end) of a text that a slice shows.

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


def span(text: StoredText, ranges: Ranges, facts: Facts, part: Part) -> Span:
    """Return the characters that are asked for. May block. Raises OutOfRange or BadArgument."""
    table = _table(ranges.tables, part.path)
    begin, stop = _named(text, ranges, facts, part.path, table)
    if part.unit == "chars":
        first, last = half_open(part.start, part.end, stop - begin, "characters")
        return Span(begin + first, begin + last, first, last, stop - begin)
    if part.unit == "bytes":
        if part.path:
            raise BadArgument(
                "Bytes are counted in the whole text.", "Try {}.", part.in_unit(facts, "chars")
            )
        return _bytes(text, part)
    if part.unit == "rows":
        return _rows(text, ranges, facts, part, table)
    if part.unit == "pages":
        return _pages([*ranges.pages, text.index.chars], facts, part, begin, stop)
    line = text.line_of_char(begin) if text.index.chars else 1
    count = (text.line_of_char(stop - 1) - line + 1) if stop > begin else 0
    first, last = closed(part.start, part.end, count, "lines")
    return Span(
        text.char_of_line(line + first - 1) if count else begin,
        min(text.char_of_line(line + last), stop) if count else begin,
        first,
        last,
        count,
    )


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
            raise BadArgument(
                f"There are {len(tables)} tables here.",
                "Name one as the path; {} lists them.",
                Call("info", {"ref": facts.artifact_ref}),
            )
        if not tables:
            lines = part.in_unit(facts, "lines")
            raise BadArgument("This part has no table rows.", "Try {}.", lines)
        table = tables[0]
    first, last = closed(part.start, part.end, table.rows, "rows")
    return Span(
        text.char_of_line(table.first_line + first - 1),
        text.char_of_line(table.first_line + last),
        first,
        last,
        table.rows,
    )


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
    """Return which title ``path`` names: spelled exactly, else in another case or without "#"."""
    plain = [title.strip("# ").casefold() for title in titles]
    for all_titles, wanted in ((titles, path), (plain, path.strip("# ").casefold())):
        if wanted and wanted in all_titles:
            return all_titles.index(wanted)
    return None


def _named(
    text: StoredText, ranges: Ranges, facts: Facts, path: str, table: Table | None
) -> tuple[int, int]:
    """Return the characters of what ``path`` names: a heading and all under it, or a sheet."""
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
        begin = text.char_of_line(table.first_line)
        return begin, text.char_of_line(table.first_line + table.rows)
    reason = f"There is no part {clip(path, 80)!r} here."
    if outline:
        info = Call("info", {"ref": facts.artifact_ref})
        raise OutOfRange(reason, "{} lists its parts.", info)
    raise OutOfRange(reason, "It has no outline; leave the path out.")


def _char(text: StoredText, ranges: Ranges, heading: Heading) -> int:
    if heading.unit == "pages":
        pages = ranges.pages
        return pages[heading.start - 1] if heading.start <= len(pages) else text.index.chars
    return text.char_of_line(min(heading.start, text.index.lines + 1))


def closed(start: int | None, end: int | None, count: int, word: str) -> tuple[int, int]:
    """Resolve a range that counts from 1 and includes both ends; clamp its end."""
    first, last = 1 if start is None else start, count if end is None else end
    if first < 1:
        raise OutOfRange(f"{word.capitalize()} count from 1, and start is {first}.", "Start at 1.")
    if end is not None and last < first:
        raise BadArgument(
            f"start is {first} and end is {last}.", "Give an end at or after the start."
        )
    if first > max(count, 1):
        raise OutOfRange(
            there_are(count, word, f"start is {first}"),
            f"Use a start up to {count}." if count else "Leave the start out.",
        )
    return first, min(last, count)


def half_open(start: int | None, end: int | None, count: int, word: str) -> tuple[int, int]:
    """Resolve a range that counts from 0 and excludes its end."""
    first, last = start or 0, count if end is None else end
    if end is not None and last < first:
        raise BadArgument(
            f"start is {first} and end is {last}.", "Give an end at or after the start."
        )
    if first > count or (first == count and count):
        raise OutOfRange(
            there_are(count, word, f"start is {first}"),
            f"Use a start under {count}." if count else "Leave the start out.",
        )
    return first, min(last, count)


def there_are(count: int, word: str, asked: str) -> str:
    """Return "There are 8 lines, and start is 9."; ``word`` is a plural, ``asked`` a clause."""
    there = f"There is 1 {word.removesuffix('s')}" if count == 1 else f"There are {count} {word}"
    return f"{there}, and {asked}."

"""Fragments of URLs that name lines, a page, a time, a quotation or a heading of a text."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from fetchstash.errors import FetchstashError
from fetchstash.stash._facts import described
from fetchstash.store import Facts, GrepQuery, TextReader

_LINES = re.compile(
    r"(?:L|n|line-?|lines-)(\d{1,9})(?:C\d+)?(?:[-:]L?(\d{1,9})(?:C\d+)?)?", re.IGNORECASE
)
"""As the hosts of code write them: #L12, #L12-L20, #L12C3-L20C7, #n12, #line-12, #lines-12:20."""
_LINES_BETWEEN = re.compile(r"line=(\d{0,9})(?:,(\d{0,9}))?(?:;.*)?")
"""RFC 5147, section 2.2.2: positions between lines, so that 10,20 are lines 11 to 20."""
_ROWS = re.compile(r"(?:row|cell)=(\d{1,9})(?:,[\d*]+)?(?:-(\d{1,9}|\*?)(?:,[\d*]+)?)?(?:;.*)?")
"""RFC 7111, section 2: rows of a CSV file, its header the first; a record is a line here."""
_PAGE = re.compile(r"(?:.*&)?page=(\d{1,7})(?:&.*)?")
"""RFC 8118, section 3."""
_TIME = re.compile(r"(?:.*&)?t=(?:npt:)?([\dhms:.]{1,20})(?:,.*)?(?:&.*)?")
"""Media Fragments URI 1.0, section 4.2.1, and the hours, minutes and seconds of video sites."""
_QUOTATION = re.compile(r"(?:.*:~:|.*&)?text=([^&]+).*")
"""URL Fragment Text Directives: text=[prefix-,]start[,end][,-suffix]."""
_CLOCK = re.compile(r"(?:- |\[)?(?:(\d+):)?(\d{1,2}):(\d\d)\b")
_STAMPED = r"^(?:- |\[)?(?:\d+:)?\d{1,2}:\d\d\b"
_AROUND = 10
"""Lines around a quotation or a time that are shown."""
_MOST_STAMPS = 20_000
_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 20
_LEAST_BROKEN = 6
"""Words of a quotation of which the first half is looked for, too: three are no chance."""
_MOST_LINE_CHARS = 1_000_000


@dataclass(frozen=True, slots=True)
class Named:
    """Lines that a fragment names, from 1, both ends included.

    ``quoted`` is the character at which a quotation begins (None: the lines themselves are named).
    """

    first: int
    last: int
    quoted: int | None = None


async def lines_named(reader: TextReader, facts: Facts, fragment: str) -> Named | None:
    """Return the lines of a text that a fragment names.

    None if it is no such fragment, or names nothing that is there.
    """
    fragment = unquote(fragment) if ":~:" not in fragment else fragment
    named: Named | None = None
    if match := _LINES.fullmatch(fragment):
        named = _lines(reader, facts, int(match[1]), int(match[2] or match[1]))
    elif match := _LINES_BETWEEN.fullmatch(fragment):
        first = int(match[1] or 0) + 1
        last = int(match[2] or reader.lines) if match[2] is not None else first
        named = _lines(reader, facts, first, last)
    elif _is_rows(facts) and (match := _ROWS.fullmatch(fragment)):
        last = reader.lines if match[2] in ("", "*") else int(match[2] or match[1])
        named = _lines(reader, facts, int(match[1]), last)
    elif (match := _PAGE.fullmatch(fragment)) and 0 < int(match[1]) <= len(reader.ranges.pages):
        starts = [*reader.ranges.pages, reader.chars]
        named = await _between(reader, *starts[int(match[1]) - 1 : int(match[1]) + 1])
    elif match := _TIME.fullmatch(fragment):
        named = await _at_time(reader, match[1])
    elif match := _QUOTATION.fullmatch(fragment) if ":~:" in fragment else None:
        named = await _quoted(reader, match[1])
    return named


async def section_named(reader: TextReader, facts: Facts, fragment: str) -> Named | None:
    """Return the section under a heading, by the name that hosts of Markdown give it."""
    wanted = _slug(unquote(fragment))
    headings = iter(facts.outline)
    heading = next((one for one in headings if wanted and _slug(one.title) == wanted), None)
    if heading is None:
        return None
    starts: list[int] = []
    for one in (heading, next((one for one in headings if one.level <= heading.level), None)):
        if one is None:
            starts.append(reader.chars)
        elif one.unit == "pages":
            pages = reader.ranges.pages
            starts.append(pages[one.start - 1] if one.start <= len(pages) else reader.chars)
        else:
            starts.append(await reader.char_of_line(min(one.start, reader.lines)))
    return await _between(reader, *starts) if starts[0] < reader.chars else None


def _is_rows(facts: Facts) -> bool:
    """Return whether the lines of a text are the rows of a table, as those of CSV are."""
    shown = described(facts)
    return shown.is_text and shown.unit == "rows"


def _lines(reader: TextReader, facts: Facts, one: int, other: int) -> Named | None:
    """Return these lines of a text whose lines are its own, not made by extraction."""
    first, last = sorted((one, other))
    if not described(facts).is_text or not 0 < first <= reader.lines:
        return None
    return Named(first, min(last, reader.lines))


async def _between(reader: TextReader, begin: int, end: int) -> Named:
    """Return the lines that hold these characters, the end excluded."""
    first = await reader.line_of_char(begin)
    return Named(first, await reader.line_of_char(max(end - 1, begin)) if end else first)


def _slug(title: str) -> str:
    """Return a heading as its fragment: "The North Pier!" is "the-north-pier"."""
    return re.sub(r"[\s_-]+", "-", re.sub(r"[^\w\s-]", "", title.lower())).strip("-")


async def _at_time(reader: TextReader, time: str) -> Named | None:
    """Return the lines around the last one that is stamped with a time up to this."""
    units = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)(?:\.\d*)?s?)?", time)
    clock = re.fullmatch(r"(?:(\d+):)?(\d+):(\d+)(?:\.\d*)?", time)
    if not (parts := clock or units):
        return None
    seconds = _seconds(parts)
    found = await _grep(reader, _STAMPED, _MOST_STAMPS)
    stamps = [(_seconds(stamp), n) for n, text in found if (stamp := _CLOCK.match(text))]
    passed = [number for at, number in stamps if at <= seconds]
    if not passed:
        return None
    return Named(passed[-1], min(passed[-1] + _AROUND, reader.lines))


def _seconds(parts: re.Match[str]) -> int:
    hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return 3600 * hours + 60 * minutes + seconds


async def _quoted(reader: TextReader, directive: str) -> Named | None:
    """Return the lines around the beginning of a quotation, to its end where that is given."""
    terms = [unquote(term) for term in directive.split(",")]
    terms = [t for t in terms if not (t.startswith("-") or t.endswith("-"))][:2]
    words = _WORD.findall(terms[0])[:_MOST_WORDS] if terms else []
    found: list[tuple[int, str]] = []
    # A quotation may go on in the next line of a text whose lines are broken.
    while words and not (found := await _grep(reader, _in_row(words), 1)):
        words = words[: len(words) // 2] if len(words) >= _LEAST_BROKEN else []
    if not found:
        return None
    number = last = found[0][0]
    if len(terms) > 1 and (ending := _WORD.findall(terms[1])[:_MOST_WORDS]):
        ends = await _grep(reader, _in_row(ending), 100)
        last = next((end for end, _ in ends if end >= number), number)
    begin = await reader.char_of_line(number)
    line = await reader.read_chars(begin, begin + _MOST_LINE_CHARS)
    match = re.search(r"[\W_]+".join(words), line, re.IGNORECASE)
    around = max(number - _AROUND // 2, 1), min(last + _AROUND // 2, reader.lines)
    return Named(*around, begin + (match.start() if match else 0))


def _in_row(words: list[str]) -> str:
    return "(?i)" + r"[^\p{L}\p{N}]+".join(words)


async def _grep(reader: TextReader, pattern: str, most: int) -> list[tuple[int, str]]:
    try:
        found = await reader.grep(GrepQuery(pattern, context=0, max_matches=most))
    except FetchstashError:
        return []
    return [(line.number, line.text) for group in found.groups for line in group if line.match]

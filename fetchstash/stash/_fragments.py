"""Fragments of URLs that name lines, a page, a time or a quotation of a text."""

import re
from urllib.parse import unquote

from fetchstash.errors import FetchstashError
from fetchstash.stash._facts import described
from fetchstash.store import Facts, GrepQuery, TextReader

_LINES = re.compile(r"L(\d{1,9})(?:C\d+)?(?:[-:]L?(\d{1,9})(?:C\d+)?)?", re.IGNORECASE)
"""As the hosts of code write them: #L12, #L12-L20, #L12C3-L20C7."""
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


async def lines_named(reader: TextReader, facts: Facts, fragment: str) -> tuple[int, int] | None:
    """Return the lines (from 1, both included) of a text that a fragment names.

    None if it is no such fragment, or names nothing that is there.
    """
    fragment = unquote(fragment) if ":~:" not in fragment else fragment
    named: tuple[int, int] | None = None
    if match := _LINES.fullmatch(fragment):
        first, last = sorted((int(match[1]), int(match[2] or match[1])))
        if described(facts).is_text and 0 < first <= reader.lines:
            named = first, min(last, reader.lines)
    elif (match := _PAGE.fullmatch(fragment)) and 0 < int(match[1]) <= len(reader.ranges.pages):
        starts = [*reader.ranges.pages, reader.chars]
        begin, end = starts[int(match[1]) - 1 : int(match[1]) + 1]
        first = await reader.line_of_char(begin)
        named = first, await reader.line_of_char(max(end - 1, begin)) if end else first
    elif match := _TIME.fullmatch(fragment):
        named = await _at_time(reader, match[1])
    elif ":~:" in fragment and (match := _QUOTATION.fullmatch(fragment)):
        named = await _quoted(reader, match[1])
    return named


async def _at_time(reader: TextReader, time: str) -> tuple[int, int] | None:
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
    return passed[-1], min(passed[-1] + _AROUND, reader.lines)


def _seconds(parts: re.Match[str]) -> int:
    hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return 3600 * hours + 60 * minutes + seconds


async def _quoted(reader: TextReader, directive: str) -> tuple[int, int] | None:
    """Return the lines around the beginning of a quotation, to its end where that is given."""
    terms = [unquote(term) for term in directive.split(",")]
    terms = [t for t in terms if not (t.startswith("-") or t.endswith("-"))][:2]
    numbers: list[int] = []
    for term in terms:
        words = re.findall(r"[^\W_]+", term)[:20]
        if not words:
            break
        found = await _grep(reader, "(?i)" + r"[^\p{L}\p{N}]+".join(words), 100)
        later = [number for number, _ in found if not numbers or number >= numbers[0]]
        if not later:
            break
        numbers.append(later[0])
    if not numbers:
        return None
    return max(numbers[0] - _AROUND // 2, 1), min(numbers[-1] + _AROUND // 2, reader.lines)


async def _grep(reader: TextReader, pattern: str, most: int) -> list[tuple[int, str]]:
    try:
        found = await reader.grep(GrepQuery(pattern, context=0, max_matches=most))
    except FetchstashError:
        return []
    return [(line.number, line.text) for group in found.groups for line in group if line.match]

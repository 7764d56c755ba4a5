"""Parts that are text, and ranges of it: lines, characters, bytes or rows."""

from abc import ABC, abstractmethod
from pathlib import Path

from fetchstash.handlers._contract import Hints, PartRequest, PartText
from fetchstash.handlers._reasons import Reason
from fetchstash.text.ranges import Unit


class TextParts(ABC):
    """Base of handlers whose parts are text: a subclass finds the text, this cuts the range."""

    @abstractmethod
    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the text of what ``path`` names. Raises OutOfRange, BadArgument or NoText."""

    def part(self, request: PartRequest) -> PartText:
        """Return a range of what the path names. Raises OutOfRange, BadArgument or NoText."""
        if request.render == "image":
            raise Reason.NOT_A_PICTURE.error()
        return part_text(self.find(request.source, request.path, request.hints), request)


def part_text(text: str, request: PartRequest) -> PartText:
    """Return the range of ``text`` that ``request`` asks for, and how many there are of its unit.

    Lines and rows count from 1 with both ends included, characters and bytes from 0 with the end
    left out; a byte range that cuts a character begins and ends with the whole one. Raises
    OutOfRange if the range starts behind the end of the text, BadArgument for pages.
    """
    unit, start, end = request.unit, request.start, request.end
    if unit == "pages":
        raise Reason.NO_PAGES.error()
    if unit in {"lines", "rows"}:
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        first, last = _bounds(start, end, len(lines), unit, from_one=True)
        return PartText("".join(f"{line}\n" for line in lines[first:last]), len(lines))
    if unit == "chars":
        first, last = _bounds(start, end, len(text), unit, from_one=False)
        return PartText(text[first:last], len(text))
    data = text.encode("utf-8")
    first, last = _bounds(start, end, len(data), unit, from_one=False)
    while first > 0 and data[first] & 0xC0 == 0x80:
        first -= 1
    while last < len(data) and data[last] & 0xC0 == 0x80:
        last += 1
    return PartText(data[first:last].decode("utf-8"), len(data))


def _bounds(
    start: int | None, end: int | None, total: int, unit: Unit, *, from_one: bool
) -> tuple[int, int]:
    """Return the slice [first, last) of a sequence of ``total``."""
    base = 1 if from_one else 0
    first = base if start is None else start
    last = total if end is None else min(end, total)
    if first < base or (end is not None and end < first):
        raise Reason.BAD_RANGE.error(unit=unit, base=base)
    if first >= total + base and total:
        raise Reason.BEHIND_END.error(total=total, unit=unit, last=total - 1 + base)
    return first - base, last

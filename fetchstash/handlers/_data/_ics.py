"""Calendars (iCalendar, RFC 5545), whose entries become outline and parts, and cards (RFC 6350).

Their text is kept as it is, but for pictures, sounds and keys in it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fetchstash.handlers._charset import read_text
from fetchstash.handlers._contract import Hints, Part
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._parts import Reading, Streamed, TextParts
from fetchstash.handlers._previews import list_preview
from fetchstash.text import clip, counted
from fetchstash.text.ranges import Heading

_ENTRIES = {"VEVENT": "event", "VTODO": "to-do", "VJOURNAL": "note", "VFREEBUSY": "free/busy"}
_MAX_OUTLINE = 2_000
_MAX_LINE = 100_000
_MAX_TITLE = 100
_MAX_DEPTH = 10
# Name, parameters, of which a quoted one may hold a colon, and value (section 3.1).
_PROPERTY = re.compile(
    r"([A-Za-z0-9-]{1,60})((?:;[^:;\"]*(?:\"[^\"]*\"[^:;\"]*)*)*):(.*)", re.DOTALL
)
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?$")
_ZONE = re.compile(r";TZID=\"?([^\";]{1,60})", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([\\;,nN])")

# The end of a property: the next line does not go on with it, as folded lines do, and in a card of
# vCard 2.1 those that hold base64 alone.
_END = re.compile(r"\n(?![ \t]|[A-Za-z0-9+/=]*(?![^\n]))")
# A value in base64 follows a data URI (RFC 6350, section 6.2.4) or a parameter that says so
# (RFC 5545, section 3.2.7; vCard 2.1 and 3.0).
_VALUE = re.compile(
    r"((?:[\w-]{1,60}\.)?([\w-]{1,60})((?:;[^:;\"\n]*(?:\"[^\"\n]*\"[^:;\"\n]*)*)*)):"
    r"(?:data:([^;,\n]{0,100})[^,\n]{0,200};base64\\?,)?",
    re.IGNORECASE,
)
_IN_BASE64 = re.compile(r";(?:ENCODING=\"?B(?:ASE64)?\"?|BASE64)(?:;|$)", re.IGNORECASE)
_MEDIA_TYPE = re.compile(r";(?:FMT|MEDIA)?TYPE=\"?([\w.+/-]{1,100})", re.IGNORECASE)
_FAMILIES = {"PHOTO": "image", "LOGO": "image", "SOUND": "audio"}
_MAX_PARAMETERS = 2_000  # characters


def without_media(chunks: Iterable[str]) -> Iterator[str]:
    """Yield a text with media type and size in the place of each value in base64."""
    held, tail = list[str](), ""  # of a property: its lines, and the last of them
    for chunk in chunks:
        *ended, tail = _END.split(tail + chunk)
        if ended:
            ended[0] = "".join((*held, ended[0]))
            held.clear()
            yield "".join(_without_media(f"{lines}\n") for lines in ended)
        before, feed, last = tail.rpartition("\n")
        held += (before, "" if feed else last)
        tail = feed and feed + last
    yield _without_media("".join((*held, tail)))


def _without_media(lines: str) -> str:
    value = _VALUE.match(re.sub(r"\n[ \t]", "", lines[:_MAX_PARAMETERS]))
    if value is None or (value[4] is None and not _IN_BASE64.search(value[3])):
        return lines
    named, family = _MEDIA_TYPE.search(value[3]), _FAMILIES.get(value[2].upper(), "")
    kind = (value[4] or (named[1] if named else "")).lower()
    kind = "/".join(filter(None, (family, kind))) if "/" not in kind else kind
    size = len("".join(lines.split())) - len("".join(value[0].split()))
    return f"{value[1]}:({kind or 'data'}, {size * 3 // 4:,} bytes)\n"


@dataclass(slots=True)
class _Entry:
    """An event, a to-do, a note: its first line in the file, and its properties as lines.

    ``values`` holds the first of each property, without those of an alarm.
    """

    kind: str
    line: int
    values: dict[str, str] = field(default_factory=dict[str, str])
    lines: list[str] = field(default_factory=list[str])

    @property
    def title(self) -> str:
        title = self.values.get("SUMMARY") or self.values.get("UID") or "(no title)"
        return clip(" ".join(title.split()), _MAX_TITLE)

    def row(self) -> str:
        """Return date, title and place on one line."""
        when = self.values.get("DTSTART") or self.values.get("DUE") or "(no date)"
        place = clip(" ".join(self.values.get("LOCATION", "").split()), _MAX_TITLE)
        return " · ".join(filter(None, (when, self.title, place)))


class IcsHandler(Streamed, TextParts):
    """Reads calendars, and cards, which have no entries."""

    name = "ics"

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield the text; its entries become the outline and the preview."""
        yield from map(Part, without_media(read_text(source, extracted.hints.charset)))
        outline: list[Heading] = []
        rows: list[str] = []
        counts: Counter[str] = Counter()
        for entry in _entries(source, extracted.hints):
            counts[_ENTRIES[entry.kind]] += 1
            if len(outline) < _MAX_OUTLINE:
                outline.append(Heading(entry.title, 1, "lines", entry.line))
                rows.append(entry.row())
        info = ", ".join(counted(count, kind) for kind, count in counts.items())
        extracted.learn(outline=tuple(outline), structure_info=info)
        extracted.preview = list_preview(rows, counts.total(), extracted.limits.preview)

    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the entry that ``/NUMBER`` or ``/UID`` names, unfolded and without escapes."""
        name, count = path.removeprefix("/"), 0
        for count, entry in enumerate(_entries(source, hints), 1):
            if name in (str(count), entry.values.get("UID")):
                return "".join(f"{line}\n" for line in entry.lines)
        if not count:
            raise DataReason.NO_ENTRIES.error(name=path)
        raise DataReason.NO_ENTRY.error(name=path, count=count)


def _entries(source: Path, hints: Hints) -> Iterator[_Entry]:
    """Yield the entries of a calendar, the last even if it is cut short."""
    entry: _Entry | None = None
    depth = 0
    for number, line in _lines(without_media(read_text(source, hints.charset))):
        match = _PROPERTY.match(line)
        if not match:
            continue
        name, parameters, value = match[1].upper(), match[2], match[3].strip()
        if name == "BEGIN" and entry is None:
            if value.upper() in _ENTRIES:
                entry, depth = _Entry(value.upper(), number), 0
        elif entry is None:
            continue
        elif name == "END" and depth == 0:
            yield entry
            entry = None
        else:
            text = _readable(parameters, value)
            depth -= name == "END"
            indent = "  " * min(depth, _MAX_DEPTH)
            entry.lines.append(f"{indent}{name}{parameters}: {text}".replace("\n", f"\n{indent}  "))
            depth += name == "BEGIN"
            if depth == 0 and name != "END":
                entry.values.setdefault(name, text)
    if entry:
        yield entry


def _lines(chunks: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield unfolded lines (section 3.1) with the number of their first, each up to a bound."""
    start, pieces, size = 0, list[str](), 0
    number = 0
    for chunk in chunks:
        for line in chunk.removesuffix("\n").split("\n"):
            number += 1
            if line[:1] in (" ", "\t") and pieces:
                pieces.append(line[1 : 1 + max(_MAX_LINE - size, 0)])
            else:
                if pieces:
                    yield start, "".join(pieces)
                start, pieces, size = number, [line[:_MAX_LINE]], 0
            size += len(pieces[-1])
    if pieces:
        yield start, "".join(pieces)


def _readable(parameters: str, value: str) -> str:
    """Return a date as people write it, and text without its escapes (section 3.3.11)."""
    if time := _TIME.match(value):
        year, month, day, hour, minute, utc = time.groups()
        zone = _ZONE.search(parameters)
        words = (f"{hour}:{minute}" if hour else "", "UTC" if utc else zone[1] if zone else "")
        return " ".join(filter(None, (f"{year}-{month}-{day}", *words)))
    return _ESCAPED.sub(lambda m: "\n" if m[1] in "nN" else m[1], value)

"""Views of a part of a text: reading on, and slices by lines, characters, bytes, pages and rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fetchstash.ranges import Unit
from fetchstash.render._texts import Subject, next_call, truncation_notice
from fetchstash.render._view import Host, View
from fetchstash.text import clip_middle, prefix_length, utf8_length, whole_lines


@dataclass(frozen=True, slots=True)
class Reading:
    """A part of an artifact that was asked for, and the beginning of it.

    ``text`` begins with the part; it may be longer than what will be shown, never than the part.
    ``total`` is the part's length in characters. ``start`` and ``end`` are what was asked for in
    ``unit``, resolved: lines, pages and rows from 1 and both included, chars and bytes from 0 and
    end excluded. ``count`` says how many units there are in what ``path`` names ("": the whole
    text). ``char`` is where the part begins, in characters, counted in what ``char_path`` names.
    ``page_ends``: where in ``text`` each page ends, for unit "pages". ``bytes_per_line``: the text
    is a dump of so many bytes a line (0: it is not). ``cut_at``: what ``path`` names goes on behind
    so many characters, and nothing here counts what lies there (None: it does not).
    """

    subject: Subject
    tool: Literal["get_search_content", "artifact_slice"]
    text: str
    total: int
    unit: Unit
    start: int
    end: int
    count: int
    char: int
    path: str = ""
    char_path: str = ""
    page_ends: tuple[int, ...] = ()
    bytes_per_line: int = 0
    cut_at: int | None = None


_WORDS: Mapping[Unit, str] = {
    "lines": "lines",
    "chars": "characters",
    "bytes": "bytes",
    "pages": "pages",
    "rows": "rows",
}


def read(host: Host, reading: Reading, max_chars: int | None = None) -> View:
    """Return the view of a part, cut at the last whole unit that fits. Raises BadArgument for a maxChars under 200."""
    default = host.limits.default_max_chars
    applied = host.max_chars(max_chars, default)
    more = host.said(max_chars, default)
    # Reading on counts in the whole text, as its offsets do; a slice in the part that was asked
    # for.
    total = reading.count if reading.tool == "get_search_content" else reading.total

    unit = "bytes" if host.limits.count_bytes else "chars"
    cut: tuple[str, ...] = ()
    if reading.cut_at is not None:
        cut = (
            f"[What this path names goes on behind its first {reading.cut_at} chars. Name a narrower path for the rest.]",
        )

    def view(limit: int) -> View:
        shown = _cut(host, reading, limit)
        body = reading.text[:shown]
        if shown == reading.total:
            head: tuple[str, ...] = (_opening(reading, body, None), *cut)
            tail: tuple[str, ...] = ()
        else:
            advice = "Use a higher maxChars to retrieve more."
            if applied == host.limits.max_chars_ceiling:
                advice = "Continue with the call above."
            head = (
                _opening(reading, body, shown),
                *cut,
                truncation_notice(applied, unit, total, "Continue with the call at the end."),
            )
            tail = (
                _continuation(reading, body, more),
                truncation_notice(applied, unit, total, advice),
            )
        record: dict[str, object] = {
            "artifact_ref": reading.subject.ref,
            "path": reading.path,
            "unit": reading.unit,
            "start": reading.start,
            "count": reading.count,
            "text": body,
            "whole": shown == reading.total and not cut,
        }
        block = host.fenced(body, reading.subject.source, head, tail)
        return View((block,), (reading.subject.facts,), records=(record,))

    first = view(applied)
    over = host.over(first.blocks[0].frame)
    return view(applied - over) if over else first


def _cut(host: Host, reading: Reading, limit: int) -> int:
    """Return how many characters to show: whole units, or a piece of the first where not even that fits."""
    fits = prefix_length(reading.text, limit, host.measure)
    if fits == reading.total or (reading.unit in ("chars", "bytes") and not reading.bytes_per_line):
        return fits
    if reading.unit == "pages":
        return max((end for end in reading.page_ends if end <= fits), default=0) or fits
    return whole_lines(reading.text, limit, host.measure) or fits


def _units(reading: Reading, body: str) -> int:
    """Return how many whole units ``body`` holds."""
    if reading.bytes_per_line:
        return min(body.count("\n") * reading.bytes_per_line, reading.end - reading.start)
    if reading.unit == "chars":
        return len(body)
    if reading.unit == "bytes":
        return utf8_length(body)
    if reading.unit == "pages":
        return sum(end <= len(body) for end in reading.page_ends)
    return body.count("\n") + (len(body) == reading.total and not body.endswith("\n"))


def _opening(reading: Reading, body: str, shown: int | None) -> str:
    """Return the line of what this is: ``[art_…: lines 200 to 260 of 9000]``."""
    word, units = _WORDS[reading.unit], _units(reading, body)
    where = f" in {clip_middle(reading.path, 80)!r}" if reading.path else ""
    if not reading.count:
        return f"[{reading.subject.ref}{where}: {word} 0 of 0]"
    if reading.unit in ("chars", "bytes"):
        return f"[{reading.subject.ref}{where}: {word} {reading.start} to {reading.start + units} of {reading.count}]"
    if shown is not None and not units:
        inside = f"its first {shown} characters"
        return (
            f"[{reading.subject.ref}{where}: {word} {reading.start} of {reading.count}, {inside}]"
        )
    last = reading.end if shown is None else reading.start + units - 1
    return f"[{reading.subject.ref}{where}: {word} {reading.start} to {last} of {reading.count}]"


def _continuation(reading: Reading, body: str, more: Mapping[str, object]) -> str:
    """Return the call that goes on where the body ended; ``more`` is said where it was not the default."""
    ref, units = reading.subject.ref, _units(reading, body)
    if reading.tool == "get_search_content":
        return next_call(
            reading.tool, {"artifact_ref": ref}, {"offset": reading.start + units, **more}
        )
    if units or reading.unit in ("chars", "bytes"):
        same = {"artifact_ref": ref, "path": reading.path or None, "unit": reading.unit}
        return next_call(
            reading.tool, same, {"start": reading.start + units, "end": reading.end, **more}
        )
    begin, end = reading.char + len(body), reading.char + reading.total
    same = {"artifact_ref": ref, "path": reading.char_path or None, "unit": "chars"}
    return next_call(reading.tool, same, {"start": begin, "end": end, **more})

"""The view of a slice: reading on, lines, characters, bytes, pages and rows."""

from fetchstash.render._texts import truncation_notice
from fetchstash.render._view import Host, View
from fetchstash.stash import Slice
from fetchstash.text import clip_middle


def read(host: Host, part: Slice, max_chars: int | None = None) -> View:
    """Return the view of a part, cut at the last whole unit that fits.

    Raises BadArgument for too small a limit.
    """
    default = host.limits.default_max_chars
    applied = host.limits.max_chars(max_chars, default)
    more = host.repeated(max_chars, default)
    subject = host.subject(part.facts)
    # Reading on counts in the whole text, as its offsets do; a slice in the part itself.
    total = part.count if part.by == "read" else part.total
    unit = "bytes" if host.limits.count_bytes else "chars"

    def view(limit: int) -> View:
        shown = part.cut(limit, host.measure)
        head = [_opening(shown)]
        if part.cut_at is not None:
            head.append(
                f"[What this path names goes on behind its first {part.cut_at} chars. "
                "Name a narrower path for the rest.]"
            )
        tail: tuple[str, ...] = ()
        if shown.is_whole and (following := shown.next):
            head.append(
                f"[Page {part.unread} was not read in time. Continue with the call at the end.]"
            )
            tail = (host.word(following),)
        elif following := shown.next:
            at_ceiling = applied == host.limits.max_chars_ceiling
            advice = "Continue with the call above." if at_ceiling else host.higher_limit
            at_end = "Continue with the call at the end."
            head.append(truncation_notice(applied, unit, total, at_end))
            call = host.face.continuation(following, more, ("offset", "start", "end"))
            tail = (call, truncation_notice(applied, unit, total, advice))
        record: dict[str, object] = {
            "artifact_ref": subject.ref,
            "path": part.path,
            "unit": part.unit,
            "start": part.start,
            "count": part.count,
            "text": shown.text,
            "whole": shown.is_whole and part.cut_at is None,
        }
        block = host.fenced(shown.text, subject.source, tuple(head), tail)
        return View((block,), (subject.facts,), records=(record,))

    first = view(applied)
    over = host.over(first.blocks[0].frame)
    return view(applied - over) if over else first


def _opening(shown: Slice) -> str:
    """Return the line of what this is: ``[art_…: lines 200 to 260 of 9000]``."""
    where = f" in {clip_middle(shown.path, 80)!r}" if shown.path else ""
    word = "characters" if shown.unit == "chars" else shown.unit
    opening, units = f"[{shown.facts.artifact_ref}{where}: {word}", shown.units
    if not shown.count:
        return f"{opening} 0 of 0]"
    if shown.unit in ("chars", "bytes"):
        return f"{opening} {shown.start} to {shown.start + units} of {shown.count}]"
    if not shown.is_whole and not units:
        inside = f"its first {len(shown.text)} characters"
        return f"{opening} {shown.start} of {shown.count}, {inside}]"
    last = shown.end if shown.is_whole else shown.start + units - 1
    return f"{opening} {shown.start} to {last} of {shown.count}]"

"""Views of a fetch: the whole text where it fits, else a preview, a reference and the calls to make next."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fetchstash.errors import FetchstashError
from fetchstash.views._cut import clip, clip_middle, prefix_length
from fetchstash.views._limits import FRAME_CHARS_OF_SEVERAL
from fetchstash.views._texts import (
    OF_SEVERAL_CHARS,
    REFERENCE_LINE_CHARS,
    SENTENCE,
    Subject,
    condition_lines,
    facts_line,
    follow_up_calls,
    preview_notice,
    reference_line,
)
from fetchstash.views._view import FACTS_AT_MOST, Block, Host, View, error_line

ROOM_FOR_A_BODY = 400
"""Where several URLs share a result, a share under this holds a reference line and no body."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What came of one URL.

    ``text`` is the beginning of the artifact's text, one character more than the limit if there are more. ``glimpse`` shows a long
    text better than its beginning does ("": it does not): the handler's preview, or the passages that match a focus. Those begin
    with the best, which is ``lines``. ``unfocused``: no passage has a word of the focus.
    """

    subject: Subject
    text: str = ""
    glimpse: str = ""
    lines: tuple[int, int] | None = None
    unfocused: bool = False
    picture: tuple[bytes, str] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """What came instead of one of several URLs, and which one that was."""

    error: FetchstashError
    source: str

    def line(self, limit: int) -> str:
        """Return the line in its place, with as much of the URL as there is room for."""
        line = error_line(self.error)
        room = min(limit - len(line) - 3, OF_SEVERAL_CHARS)
        return clip(f"{line} ({clip_middle(self.source, room)})" if room > len("https://…") else line, limit)


def _body(host: Host, arrival: Arrival, limit: int) -> tuple[str, int | None]:
    """Return the body for ``limit``, and where reading goes on: None if this is the whole text, 0 if it is not its beginning."""
    if len(arrival.text) == arrival.subject.chars and host.measure(arrival.text) <= limit:
        return arrival.text, None
    bound = min(host.limits.preview_chars, limit)
    if arrival.glimpse:
        return arrival.glimpse[: prefix_length(arrival.glimpse, bound, host.measure)], 0
    end = prefix_length(arrival.text, bound, host.measure)
    return arrival.text[:end], end


def fetched(host: Host, arrival: Arrival, max_chars: int | None = None) -> View:
    """Return the view of one fetched artifact. Raises BadArgument for a maxChars under 200."""
    subject = arrival.subject
    limit = host.max_chars(max_chars, host.limits.inline_threshold)
    facts = (subject.facts,)
    pictures = (arrival.picture,) if arrival.picture else ()
    head = (facts_line(subject), *condition_lines(subject))
    if subject.chars is None:
        return View((Block(head),), facts, pictures)

    def view(subject: Subject, limit: int) -> Block:
        body, offset = _body(host, arrival, limit)
        if offset is None:
            return host.fenced(body, subject.source, head, ())
        notices = (*_of_a_preview(arrival), preview_notice(subject, len(body), with_path=True))
        calls = follow_up_calls([subject], offset, arrival.lines)
        return host.fenced(body, subject.source, (*head, *notices), calls)

    block = view(subject, limit)
    if host.over(block.frame) and subject.path:  # a very long path: the reference says as much
        block = view(replace(subject, path=""), limit)
    if over := host.over(block.frame):
        block = view(replace(subject, path=""), limit - over)
    return View((block,), facts, pictures)


def _of_a_preview(arrival: Arrival) -> list[str]:
    """Return what to know of a preview: that it owes something to the cache, and that it is not what the focus asked for."""
    lines: list[str] = []
    if arrival.subject.from_cache:
        lines.append(f"[From the cache: {arrival.subject.from_cache}.]")
    if arrival.unfocused:
        lines.append("[No passage has a word of the focus.]")
    return lines


def fetched_several(host: Host, arrivals: Sequence[Arrival | Failure], max_chars: int | None = None) -> View:
    """Return one view of several URLs, each in its turn, all within one budget."""
    limit = host.max_chars(max_chars, host.limits.inline_threshold)
    good = [arrival for arrival in arrivals if isinstance(arrival, Arrival)]
    facts = tuple(arrival.subject.facts for arrival in good)[:FACTS_AT_MOST]
    pictures = tuple(arrival.picture for arrival in good if arrival.picture)
    if limit // len(arrivals) < ROOM_FOR_A_BODY:
        lines = [
            reference_line(item.subject) if isinstance(item, Arrival) else item.line(REFERENCE_LINE_CHARS) for item in arrivals
        ]
        return View((Block(tuple(lines)),), facts, pictures, is_error=not good)
    blocks = _share(host, arrivals, limit)
    # What the frames of many need beyond that of one comes off the bodies.
    for _ in range(2):
        if over := host.over("\n".join(block.frame for block in blocks)):
            blocks = _share(host, arrivals, max(limit - over, 0))
    return View(tuple(blocks), facts, pictures, is_error=not good)


def _share(host: Host, arrivals: Sequence[Arrival | Failure], room: int) -> list[Block]:
    """Return the blocks of all, whose bodies share ``room``: what a short text leaves goes to the others in order."""
    bodied = [item for item in arrivals if isinstance(item, Arrival) and item.subject.chars is not None]
    lengths = [host.measure(item.text) if len(item.text) == item.subject.chars else room + 1 for item in bodied]
    shares = dict(zip(map(id, bodied), _shares(lengths, room), strict=True))
    blocks = [Block((SENTENCE,))] if bodied else []
    previewed: list[tuple[Subject, int]] = []
    for item in arrivals:
        if isinstance(item, Failure):
            blocks.append(Block((item.line(FRAME_CHARS_OF_SEVERAL),)))
            continue
        head = [facts_line(item.subject, OF_SEVERAL_CHARS), *condition_lines(item.subject)]
        if item.subject.chars is None:
            blocks.append(Block(tuple(head)))
            continue
        body, offset = _body(host, item, shares[id(item)])
        if offset is not None:
            head += [*_of_a_preview(item), preview_notice(item.subject, len(body), with_path=False)]
            previewed.append((item.subject, offset))
        source = item.subject.source
        blocks.append(host.fenced(body, source, tuple(head), sentence=False, source_chars=OF_SEVERAL_CHARS))
    if previewed:
        blocks.append(Block(follow_up_calls([subject for subject, _ in previewed], previewed[0][1])))
    return blocks


def _shares(lengths: Sequence[int], room: int) -> list[int]:
    """Return what each of several texts may take of ``room``: an equal share, and what short ones leave, in order."""
    equal = room // len(lengths) if lengths else 0
    left = sum(equal - length for length in lengths if length < equal)
    shares: list[int] = []
    for length in lengths:
        extra = min(max(length - equal, 0), left)
        left -= extra
        shares.append(equal + extra)
    return shares

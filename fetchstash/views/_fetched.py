"""Views of a fetch: the whole text where it fits, else a preview, a reference and the calls to make next."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fetchstash.errors import FetchstashError
from fetchstash.views._cut import clip, prefix_length
from fetchstash.views._limits import FRAME_CHARS
from fetchstash.views._texts import (
    OF_SEVERAL_CHARS,
    REFERENCE_LINE_CHARS,
    SENTENCE,
    Subject,
    call,
    condition_lines,
    facts_line,
    follow_up_calls,
    preview_notice,
    reference_line,
)
from fetchstash.views._view import FACTS_AT_MOST, Block, Host, View

ROOM_FOR_A_BODY = 400
"""Where several URLs share a result, a share under this holds a reference line and no body."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What came of one URL.

    ``text`` is the beginning of the artifact's text, one character more than the limit if there are more. ``glimpse`` shows a long
    text better than its beginning does ("": it does not): the handler's preview, or the passages that match a focus.
    """

    subject: Subject
    text: str = ""
    glimpse: str = ""
    picture: tuple[bytes, str] | None = None


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
        notice = preview_notice(subject, len(body), with_path=True)
        return host.fenced(body, subject.source, (*head, notice), tuple(follow_up_calls(subject, offset)))

    block = view(subject, limit)
    if host.over(block.frame) and subject.path:  # a very long path: the reference says as much
        block = view(replace(subject, path=""), limit)
    if over := host.over(block.frame):
        block = view(replace(subject, path=""), limit - over)
    return View((block,), facts, pictures)


def fetched_several(host: Host, arrivals: Sequence[Arrival | FetchstashError], max_chars: int | None = None) -> View:
    """Return one view of several URLs, each in its turn, all within one budget."""
    limit = host.max_chars(max_chars, host.limits.inline_threshold)
    good = [arrival for arrival in arrivals if isinstance(arrival, Arrival)]
    facts = tuple(arrival.subject.facts for arrival in good)[:FACTS_AT_MOST]
    pictures = tuple(arrival.picture for arrival in good if arrival.picture)
    if limit // len(arrivals) < ROOM_FOR_A_BODY:
        lines = [
            reference_line(item.subject) if isinstance(item, Arrival) else clip(item.line(), REFERENCE_LINE_CHARS)
            for item in arrivals
        ]
        return View((Block(tuple(lines)),), facts, pictures, is_error=not good)
    blocks = _share(host, arrivals, limit)
    # What the frames of many need beyond that of one comes off the bodies.
    for _ in range(2):
        if over := host.over("\n".join(block.frame for block in blocks)):
            blocks = _share(host, arrivals, max(limit - over, 0))
    return View(tuple(blocks), facts, pictures, is_error=not good)


def _share(host: Host, arrivals: Sequence[Arrival | FetchstashError], room: int) -> list[Block]:
    """Return the blocks of all, whose bodies share ``room``: what a short text leaves goes to the others in order."""
    bodied = [item for item in arrivals if isinstance(item, Arrival) and item.subject.chars is not None]
    lengths = [host.measure(item.text) if len(item.text) == item.subject.chars else room + 1 for item in bodied]
    shares = dict(zip(map(id, bodied), _shares(lengths, room), strict=True))
    blocks = [Block((SENTENCE,))] if bodied else []
    previewed: list[tuple[Subject, int]] = []
    for item in arrivals:
        if isinstance(item, FetchstashError):
            blocks.append(Block((clip(item.line(), FRAME_CHARS // 2),)))
            continue
        head = [facts_line(item.subject, OF_SEVERAL_CHARS), *condition_lines(item.subject)]
        if item.subject.chars is None:
            blocks.append(Block(tuple(head)))
            continue
        body, offset = _body(host, item, shares[id(item)])
        if offset is not None:
            head.append(preview_notice(item.subject, len(body), with_path=False))
            previewed.append((item.subject, offset))
        source = item.subject.source
        blocks.append(host.fenced(body, source, tuple(head), sentence=False, source_chars=OF_SEVERAL_CHARS))
    if previewed:
        grep = call("artifact_grep", artifact_refs=[subject.ref for subject, _ in previewed], pattern="…")
        first, offset = previewed[0]
        blocks.append(Block((grep, *follow_up_calls(first, offset)[1:])))
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

"""Views of a fetch: the whole text where it fits, else a preview, a reference and the calls to make next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fetchstash.errors import FetchstashError
from fetchstash.render._body import Arrival, Shown, shown_of
from fetchstash.render._frame import FRAME_CHARS_OF_SEVERAL
from fetchstash.render._texts import (
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
from fetchstash.render._view import FACTS_AT_MOST, Block, Host, View, error_line
from fetchstash.text import clip, clip_middle

ROOM_FOR_A_BODY = 400
"""Where several URLs share a result, a share under this holds a reference line and no body."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What came instead of one of several URLs, and which one that was."""

    error: FetchstashError
    source: str

    def line(self, limit: int) -> str:
        """Return the line in its place, with as much of the URL as there is room for."""
        line = error_line(self.error)
        room = min(limit - len(line) - 3, OF_SEVERAL_CHARS)
        return clip(
            f"{line} ({clip_middle(self.source, room)})" if room > len("https://…") else line, limit
        )

    def record(self) -> Mapping[str, object]:
        """Return it as data."""
        return {
            "source_url": self.source,
            "error": {
                "code": self.error.code,
                "line": error_line(self.error),
                **self.error.details,
            },
        }


def fetched(host: Host, arrival: Arrival, max_chars: int | None = None) -> View:
    """Return the view of one fetched artifact. Raises BadArgument for a maxChars under 200."""
    subject = arrival.subject
    limit = host.max_chars(max_chars, host.limits.inline_threshold)
    pictures = (arrival.picture,) if arrival.picture else ()
    head = (facts_line(subject), *condition_lines(subject))
    if subject.chars is None:
        return View((Block(head),), (subject.facts,), pictures)

    def view(subject: Subject, limit: int) -> tuple[Block, Shown]:
        shown = shown_of(host, arrival, limit)
        if shown.info is None:
            return host.fenced(shown.body, subject.source, head, ()), shown
        calls = follow_up_calls([subject], shown.offset, arrival.lines)
        return host.fenced(
            shown.body,
            subject.source,
            (*head, *_notices(arrival, shown, subject, with_path=True)),
            calls,
        ), shown

    block, shown = view(subject, limit)
    if host.over(block.frame) and subject.path:  # a very long path: the reference says as much
        block, shown = view(replace(subject, path=""), limit)
    if over := host.over(block.frame):
        block, shown = view(replace(subject, path=""), limit - over)
    return View((block,), (shown.told(subject.facts),), pictures)


def _notices(arrival: Arrival, shown: Shown, subject: Subject, *, with_path: bool) -> list[str]:
    """Return what to know of a preview: what it owes to the cache, that it is not what the focus asked for, how much it shows."""
    lines: list[str] = []
    if subject.from_cache:
        lines.append(f"[From the cache: {subject.from_cache}.]")
    if arrival.unfocused:
        lines.append("[No passage has a word of the focus.]")
    lines.append(preview_notice(subject, len(shown.body), with_path=with_path))
    return [*lines, shown.info.line()] if shown.info else lines


def fetched_several(
    host: Host, arrivals: Sequence[Arrival | Failure], max_chars: int | None = None
) -> View:
    """Return one view of several URLs, each in its turn, all within one budget."""
    limit = host.max_chars(max_chars, host.limits.inline_threshold)
    good = [arrival for arrival in arrivals if isinstance(arrival, Arrival)]
    pictures = tuple(arrival.picture for arrival in good if arrival.picture)
    if limit // len(arrivals) < ROOM_FOR_A_BODY:
        lines = [
            reference_line(item.subject)
            if isinstance(item, Arrival)
            else item.line(REFERENCE_LINE_CHARS)
            for item in arrivals
        ]
        return _several(
            (Block(tuple(lines)),), arrivals, [item.subject.facts for item in good], pictures
        )
    blocks, facts = _share(host, arrivals, limit)
    # What the frames of many need beyond that of one comes off the bodies.
    for _ in range(2):
        if over := host.over("\n".join(block.frame for block in blocks)):
            blocks, facts = _share(host, arrivals, max(limit - over, 0))
    return _several(tuple(blocks), arrivals, facts, pictures)


def _several(
    blocks: tuple[Block, ...],
    arrivals: Sequence[Arrival | Failure],
    facts: Sequence[Mapping[str, object]],
    pictures: tuple[tuple[bytes, str], ...],
) -> View:
    """Return the view of several URLs, an error where all failed. ``facts`` are those of what came; what failed has its record."""
    told = iter(facts)
    records = tuple(item.record() if isinstance(item, Failure) else next(told) for item in arrivals)
    return View(blocks, tuple(facts)[:FACTS_AT_MOST], pictures, is_error=not facts, records=records)


def _share(
    host: Host, arrivals: Sequence[Arrival | Failure], room: int
) -> tuple[list[Block], list[Mapping[str, object]]]:
    """Return the blocks and facts of all, whose bodies share ``room``: what a short text leaves goes to the others in order."""
    bodied = [
        item for item in arrivals if isinstance(item, Arrival) and item.subject.chars is not None
    ]
    lengths = [
        host.measure(item.text) if len(item.text) == item.subject.chars else room + 1
        for item in bodied
    ]
    shares = dict(zip(map(id, bodied), _shares(lengths, room), strict=True))
    blocks = [Block((SENTENCE,))] if bodied else []
    facts: list[Mapping[str, object]] = []
    previewed: list[tuple[Subject, int]] = []
    for item in arrivals:
        if isinstance(item, Failure):
            blocks.append(Block((item.line(FRAME_CHARS_OF_SEVERAL),)))
            continue
        head = [facts_line(item.subject, OF_SEVERAL_CHARS), *condition_lines(item.subject)]
        if item.subject.chars is None:
            blocks.append(Block(tuple(head)))
            facts.append(item.subject.facts)
            continue
        shown = shown_of(host, item, shares[id(item)])
        facts.append(shown.told(item.subject.facts))
        if shown.info:
            head += _notices(item, shown, item.subject, with_path=False)
            previewed.append((item.subject, shown.offset))
        source = item.subject.source
        blocks.append(
            host.fenced(
                shown.body, source, tuple(head), sentence=False, source_chars=OF_SEVERAL_CHARS
            )
        )
    if previewed:
        blocks.append(
            Block(follow_up_calls([subject for subject, _ in previewed], previewed[0][1]))
        )
    return blocks, facts


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

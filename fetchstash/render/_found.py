"""Views of what a grep or a search found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fetchstash.render._grep_lines import NumberedLine, grep_lines
from fetchstash.render._texts import (
    OF_SEVERAL_CHARS,
    SENTENCE,
    SOURCE_CHARS,
    Subject,
    call,
    counted,
    next_call,
)
from fetchstash.render._view import FACTS_AT_MOST, Block, Host, View
from fetchstash.text import prefix_length


@dataclass(frozen=True, slots=True)
class Found:
    """What a grep found in one artifact: groups of neighbouring lines from the match after ``skipped`` on, of ``total``.

    ``stopped`` says what ended the count early, "" if nothing did: then the total is "at least".
    """

    subject: Subject
    groups: Sequence[Sequence[NumberedLine]]
    skipped: int
    total: int
    stopped: str = ""


def grep(
    host: Host,
    found: Sequence[Found],
    offset: int,
    arguments: Mapping[str, object],
    max_chars: int | None = None,
) -> View:
    """Return the matches in one or several artifacts, and the call for the next ones.

    ``arguments`` are those of this call that were not the default, as the next one repeats them.
    Raises BadArgument for a maxChars under 200.
    """
    default = host.limits.short_max_chars
    limit = host.max_chars(max_chars, default)
    more = host.said(max_chars, default)

    def view(limit: int) -> list[Block]:
        blocks, shown = _matches(host, found, limit)
        total = sum(one.total for one in found)
        if shown and offset + shown < total:
            at_least = "at least " if any(one.stopped for one in found) else ""
            following = next_call("artifact_grep", arguments, {"offset": offset + shown, **more})
            notice = (
                f"[Showing {shown} of {at_least}{total} matches. Continue with the call above.]"
            )
            blocks.append(Block((following, notice)))
        return blocks

    blocks = view(limit)
    if over := host.over("\n".join(block.frame for block in blocks)):
        blocks = view(limit - over)
    records = tuple(
        {
            "artifact_ref": one.subject.ref,
            "line": line.number,
            "text": line.text,
            "match": line.match,
        }
        for one in found
        for group in one.groups
        for line in group
    )
    return View(
        tuple(blocks), tuple(one.subject.facts for one in found)[:FACTS_AT_MOST], records=records
    )


def _matches(host: Host, found: Sequence[Found], room: int) -> tuple[list[Block], int]:
    """Return a block for each artifact, with as many matches as fit ``room`` together, and how many they are."""
    several = len(found) > 1
    blocks: list[Block] = []
    shown = 0
    full = False
    for one in found:
        text, printed = "", 0
        if one.groups and not full:
            text, printed = grep_lines(one.groups, room, host.measure, at_least_one=not shown)
        full = full or printed < sum(line.match for group in one.groups for line in group)
        room = max(room - host.measure(text), 0)
        shown += printed
        head = (_opening(one, printed),)
        source_chars = OF_SEVERAL_CHARS if several else SOURCE_CHARS
        fenced = host.fenced(
            text, one.subject.source, head, sentence=not several, source_chars=source_chars
        )
        blocks.append(fenced if printed else Block(head))
    if several and shown:
        blocks.insert(0, Block((SENTENCE,)))
    return blocks, shown


def _opening(found: Found, shown: int) -> str:
    total = (
        f"at least {found.total}, stopped {found.stopped}" if found.stopped else str(found.total)
    )
    if not shown:
        return f"[{found.subject.ref}: matches 0 of {total}]"
    return (
        f"[{found.subject.ref}: matches {found.skipped + 1} to {found.skipped + shown} of {total}]"
    )


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked passage: lines ``first_line`` to ``last_line`` of an artifact, both included."""

    subject: Subject
    first_line: int
    last_line: int
    text: str


def passages(
    hits: Sequence[Hit], limit: int, host: Host, *, with_ref: bool = False
) -> tuple[str, int]:
    """Return the passages that fit ``limit``, each under a line that says where it stands, and how many they are.

    Their own lines carry their numbers, so that none of them can look like that line. The first
    passage always gets in, cut where it has to be.
    """
    body, shown = "", 0
    for hit in hits:
        ref = f"{hit.subject.ref}, " if with_ref else ""
        lines = (
            f"lines {hit.first_line} to {hit.last_line}"
            if hit.last_line > hit.first_line
            else f"line {hit.first_line}"
        )
        numbered = (
            f"{number}:{line}"
            for number, line in enumerate(hit.text.rstrip("\n").split("\n"), start=hit.first_line)
        )
        piece = "\n".join((f"-- {ref}{lines}", *numbered))
        joined = f"{body}\n{piece}" if body else piece
        if host.measure(joined) > limit:
            if not body:
                return piece[: prefix_length(piece, limit, host.measure)], 1
            break
        body, shown = joined, shown + 1
    return body, shown


def search(
    host: Host,
    hits: Sequence[Hit],
    searched: int,
    max_chars: int | None = None,
    *,
    pending: int = 0,
) -> View:
    """Return ranked passages out of ``searched`` artifacts, best first.

    ``pending`` counts the texts that are not indexed yet. Raises BadArgument for a maxChars under
    200.
    """
    limit = host.max_chars(max_chars, host.limits.short_max_chars)
    subjects = {hit.subject.ref: hit.subject for hit in hits}
    facts = tuple(subject.facts for subject in subjects.values())[:FACTS_AT_MOST]
    out_of = counted(searched, "artifact")
    if pending:
        out_of += f", {counted(pending, 'text')} not indexed yet: search again later"
    if not hits:
        return View((Block((f"[No passage of {out_of} has a word of the query.]",)),))
    sources = list(dict.fromkeys(subject.source for subject in subjects.values()))
    source = sources[0] if len(sources) == 1 else f"{len(sources)} sources"

    def view(limit: int) -> Block:
        body, shown = passages(hits, limit, host, with_ref=True)
        head = f"[passages 1 to {shown} of {len(hits)}, best first, out of {out_of}]"
        first = hits[0]
        around = call(
            "artifact_slice",
            artifact_ref=first.subject.ref,
            unit="lines",
            start=max(first.first_line - 20, 1),
            end=first.last_line + 20,
        )
        notice = (
            f"[Showing {shown} of {len(hits)} passages. Use a higher maxChars to retrieve more.]"
        )
        return host.fenced(
            body, source, (head,), (around, notice) if shown < len(hits) else (around,)
        )

    block = view(limit)
    if over := host.over(block.frame):
        block = view(limit - over)
    records = tuple(
        {
            "artifact_ref": hit.subject.ref,
            "first_line": hit.first_line,
            "last_line": hit.last_line,
            "text": hit.text,
        }
        for hit in hits
    )
    return View((block,), facts, records=records)

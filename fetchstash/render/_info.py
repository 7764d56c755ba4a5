"""Views of what is known: the facts and the outline of one artifact, or the list of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from fetchstash.ranges import Heading
from fetchstash.render._texts import (
    Subject,
    call,
    calls_without_text,
    condition_lines,
    counted,
    follow_up_calls,
    reference_line,
)
from fetchstash.render._view import FACTS_AT_MOST, Block, Host, View
from fetchstash.text import clip, prefix_length, whole_lines

_LINE_CHARS = 300


def info(host: Host, subject: Subject, outline: Sequence[Heading]) -> View:
    """Return the facts of an artifact, its outline as far as there is room, and how to read it."""
    told = {
        **subject.facts,
        "text_tokens": None if subject.chars is None else subject.tokens,
    }  # an estimate is marked as one
    lines = [
        f"{key}: {_plain(value)}"
        for key, value in told.items()
        if _known(value) and key != "text_tokens_exact"
    ]
    if outline:
        lines.append("outline:")
        lines += [
            f"{'  ' * heading.level}{heading.title} ({heading.unit.removesuffix('s')} {heading.start})"
            for heading in outline
        ]
    calls = (
        follow_up_calls([subject], 0) if subject.chars is not None else calls_without_text(subject)
    )
    head = (f"[{subject.ref}: facts]", *condition_lines(subject))
    block = _bounded(host, [clip(line, _LINE_CHARS) for line in lines], subject.source, head, calls)
    return View(
        (block,),
        (subject.facts,),
        records=({**subject.facts, "outline": [asdict(heading) for heading in outline]},),
    )


def listing(host: Host, run: str, subjects: Sequence[Subject], total: int) -> View:
    """Return a run's artifacts, newest first, a line each, as far as there is room."""
    if not total:
        return View(
            (Block((f"[Run {run}: no artifacts yet.]", call("fetch_content", url="https://…"))),)
        )
    lines = [
        f"{reference_line(subject)[1:-1]}, {clip(subject.source, 120)}" for subject in subjects
    ]
    head = (f"[Run {run}: {counted(total, 'artifact')}, newest first]",)
    calls = (call("artifact_info", artifact_ref=subjects[0].ref),)
    block = _bounded(host, lines, f"run {run}", head, calls)
    shown = sum(line.startswith("art_") for line in (block.body or "").split("\n"))
    if shown < total:
        more = f"[Showing {shown} of {total}. artifact_search finds passages in all of them.]"
        block = _bounded(host, lines, f"run {run}", head, (*calls, more))
    return View((block,), tuple(subject.facts for subject in subjects)[:FACTS_AT_MOST])


def _bounded(
    host: Host, lines: Sequence[str], source: str, head: tuple[str, ...], calls: tuple[str, ...]
) -> Block:
    """Return a block that is within the short limit with its frame, its body cut at a whole line."""
    body, limit = "\n".join(lines), host.limits.short_max_chars
    room = limit - host.measure(host.fenced("", source, head, calls).frame)
    shown = (
        body
        if host.measure(body) <= room
        else body[: whole_lines(body, room - 1, host.measure)] + "…"
    )
    return host.fenced(shown[: prefix_length(shown, room, host.measure)], source, head, calls)


def _known(value: object) -> bool:
    return (
        value not in (None, "", False)
        and value != []
        and not (isinstance(value, Mapping) and not value)
    )


def _plain(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "; ".join(str(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value)


def picture(
    subject: Subject, data: bytes, media_type: str, width: int, height: int, *, page: int | None
) -> View:
    """Return a picture under the line that says what it is of."""
    what = f"page {page} as a picture" if page is not None else "picture"
    head = (f"[{subject.ref}: {what}, {width}×{height} px]",)
    return View((Block(head),), (subject.facts,), ((data, media_type),))

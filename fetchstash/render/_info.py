"""Views of facts: one artifact's with its outline, the list of a run, a picture."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple

from fetchstash.errors import Call
from fetchstash.render._texts import (
    calls_without_text,
    condition_lines,
    counted,
    follow_up_calls,
    reference_line,
)
from fetchstash.render._view import FACTS_AT_MOST, Block, Host, View
from fetchstash.stash import Listing, Picture
from fetchstash.store import Facts
from fetchstash.text import clip, prefix_length, whole_lines

_LINE_CHARS = 300


def info(host: Host, facts: Facts) -> View:
    """Return the facts of an artifact, its outline as far as there is room, and how to read it."""
    subject, outline = host.subject(facts), facts.outline
    # The token count prints as TokenCount does, so that an estimate is marked as one.
    tokens = {"text_tokens": None if subject.chars is None else subject.tokens}
    lines = [
        f"{key}: {_plain(value)}"
        for key, value in {**subject.facts, **tokens}.items()
        if _is_known(value) and key != "text_tokens_exact"
    ]
    if outline:
        lines.append("outline:")
        lines += [
            f"{'  ' * level}{title} ({unit.removesuffix('s')} {start})"
            for title, level, unit, start in map(astuple, outline)
        ]
    if subject.chars is None:
        calls = calls_without_text(subject, host.word)
    else:
        calls = follow_up_calls([subject], 0, host.word)
    head = (f"[{subject.ref}: facts]", *condition_lines(subject, host.word))
    block = _bounded(host, [clip(line, _LINE_CHARS) for line in lines], subject.source, head, calls)
    record = {**subject.facts, "outline": [heading.to_json() for heading in outline]}
    return View((block,), (subject.facts,), records=(record,))


def listing(host: Host, page: Listing) -> View:
    """Return a run's artifacts, newest first, a line each, as far as there is room."""
    run, total = page.run, page.total
    if not total:
        fetch = host.word(Call("fetch", {"url": "https://…"}))
        return View((Block((f"[Run {run}: no artifacts yet.]", fetch)),))
    subjects = [host.subject(facts) for facts in page.facts]
    lines = [
        f"{reference_line(subject)[1:-1]}, {clip(subject.source, 120)}" for subject in subjects
    ]
    head = (f"[Run {run}: {counted(total, 'artifact')}, newest first]",)
    calls = (host.word(Call("info", {"ref": subjects[0].ref})),)
    block = _bounded(host, lines, f"run {run}", head, calls)
    shown = sum(line.startswith("art_") for line in (block.body or "").split("\n"))
    if shown < total:
        search = host.word(Call("search"))
        more = f"[Showing {shown} of {total}. {search} finds passages in all of them.]"
        block = _bounded(host, lines, f"run {run}", head, (*calls, more))
    return View((block,), tuple(subject.facts for subject in subjects)[:FACTS_AT_MOST])


def _bounded(
    host: Host, lines: Sequence[str], source: str, head: tuple[str, ...], calls: tuple[str, ...]
) -> Block:
    """Return a block within the short limit, frame included, its body cut at a whole line."""
    body, limit = "\n".join(lines), host.limits.short_max_chars
    room = limit - host.measure(host.fenced("", source, head, calls).frame)
    if host.measure(body) > room:
        body = body[: whole_lines(body, room - 1, host.measure)] + "…"
    return host.fenced(body[: prefix_length(body, room, host.measure)], source, head, calls)


def _is_known(value: object) -> bool:
    is_empty = value == [] or (isinstance(value, Mapping) and not value)
    return value not in (None, "", False) and not is_empty


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "; ".join(str(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value)


def picture(host: Host, shown: Picture) -> View:
    """Return a picture under the line that says what it is of."""
    subject = host.subject(shown.facts)
    title = "picture" if shown.page is None else f"page {shown.page} as a picture"
    head = [f"[{subject.ref}: {title}, {shown.width}×{shown.height} px]"]
    if shown.page and shown.page < min(shown.asked_end or 0, shown.facts.pages or 0):
        following = {"ref": subject.ref, "page": shown.page + 1, "end": shown.asked_end}
        head.append(host.word(Call("picture", following)))
    return View((Block(tuple(head)),), (subject.facts,), ((shown.data, shown.media_type),))

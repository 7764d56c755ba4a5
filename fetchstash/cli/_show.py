"""Values as lines for a person at a terminal; the sums of stats."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fetchstash.cli._terminal import (
    Column,
    Link,
    Screen,
    cells,
    clip_cells,
    safe,
    safe_line,
    table,
    window_cells,
)
from fetchstash.cli._words import age, as_command, command_line, short_ref
from fetchstash.errors import Call, NoText
from fetchstash.text import counted
from fetchstash.text.facts import LANDINGS, NO_BROWSER, PAGE_VERDICTS, QUERY
from fetchstash.text.tokens import TokenCount

if TYPE_CHECKING:
    from datetime import datetime

    from fetchstash.stash import Artifact, Passages, Slice, Stash, Trace, Unread
    from fetchstash.store import Facts

_AROUND_HIT = 2
"""Lines before and after the best one of a passage."""


def heading(screen: Screen, facts: "Facts") -> list[str]:
    """Return two lines: the title, linked to its page, and the facts."""
    name = facts.title or facts.name or facts.final_url
    linked = screen.link(screen.style(safe_line(name), "title"), facts.final_url)
    about = " · ".join((*described_in_words(facts), short_ref(facts.artifact_ref)))
    return [linked, screen.style(about, "dim")]


def described_in_words(facts: "Facts") -> list[str]:
    """Return an artifact's facts in words: kind, size, pages or the like, characters."""
    from fetchstash.render import size  # noqa: PLC0415 - heavy
    from fetchstash.stash import described  # noqa: PLC0415 - as above

    facts = described(facts)
    words = [safe_line(facts.word), "" if facts.site_prefix else size(facts.size_bytes)]
    if facts.width is not None and facts.height is not None and facts.pages is None:
        words.append(f"{facts.width}×{facts.height} px")
    counts = (
        (facts.page_word.removesuffix("s"), facts.pages),
        ("sheet", facts.sheets),
        ("member", facts.members),
        ("row", facts.rows),
    )
    words += [counted(count, word) for word, count in counts if count is not None][:1]
    if facts.extracted_chars is not None:
        words.append(counted(facts.extracted_chars, "character"))
    return words


def is_prose(facts: "Facts") -> bool:
    """Return whether lines may be wrapped: ours are made for reading, unlike code and data."""
    from fetchstash.stash import described  # noqa: PLC0415 - heavy

    return facts.media_type == "text/markdown" or not described(facts).is_text


def conditions(facts: "Facts") -> list[str]:
    """Return a line for each thing that is wrong with a document, or with its text."""
    if facts.extracted_chars is None:
        reason = _why_no_text(facts)
        return [f"It has no text: {reason}."] if reason else []
    lines: list[str] = []
    if facts.extraction_error:
        opening = "Not all of it could be read: " if facts.extraction_truncated else ""
        lines.append(f"{opening}{facts.extraction_error}")
    elif facts.extraction_truncated:
        lines.append("Not all of its text could be read.")
    if landed := LANDINGS.get(facts.landed):
        lines.append(landed)
    elif verdict := PAGE_VERDICTS.get(facts.page_verdict):
        lines.append(verdict)
    lines += _browser_hint(facts)
    if (facts.items_total or 0) > (facts.items or 0):
        lines.append(f"{facts.items or 0:,} of {counted(facts.items_total or 0, 'item')} here.")
    if facts.is_page_of_list:
        following = Call("slice", {"ref": facts.artifact_ref, "path": "next"})
        lines.append(f"The next page: {as_command(following)}")
    if facts.unreadable_pages:
        picture = Call("picture", {"ref": facts.artifact_ref, "page": facts.unreadable_from})
        pages = counted(facts.unreadable_pages, "page")
        lines.append(f"{pages} in a font that does not say its letters: {as_command(picture)}.")
    if facts.incomplete:
        lines.append(f"It is {_lack(facts)}.")
    return lines


def _browser_hint(facts: "Facts") -> list[str]:
    hint = "A browser could show more: `fetchstash register --browser` adds one."
    return [hint] if facts.rendered == NO_BROWSER else []


def _lack(facts: "Facts") -> str:
    return f"{'incomplete' if facts.size_bytes else 'empty'}: {facts.incomplete}"


def _why_no_text(facts: "Facts") -> str:
    """Return the main reason why a document has no text, "" if its kind explains it."""
    if facts.incomplete:
        return f"it is {_lack(facts)}"
    verdict = "" if facts.page_verdict == "no_text" else PAGE_VERDICTS.get(facts.page_verdict, "")
    reason = verdict[:1].lower() + verdict[1:] or facts.extraction_error
    return " ".join([reason, *_browser_hint(facts)]).removesuffix(".")


async def no_text(stash: "Stash", facts: "Facts") -> NoText | None:
    """Return the one line on a document without text: why, and the commands that show it."""
    from fetchstash.stash import described  # noqa: PLC0415 - heavy

    if facts.extracted_chars is not None:
        return None
    reason = _why_no_text(facts)
    what = f"{short_ref(facts.artifact_ref)} has no text{f': {reason}' if reason else ''}."
    if pages := await stash.scans.unread(facts):
        return NoText(what, f"{{}} {_does(pages)}.", pages.call)
    ref, target = facts.artifact_ref, safe_line(facts.name).replace("/", "-") or "FILE"
    calls = [
        Call("open", {"ref": ref}),
        Call("export", {"ref": ref, "target": target, "raw": True}),
    ]
    if described(facts).pictures:
        calls.insert(1, Call("picture", {"ref": ref}))
    if facts.leads_to:
        calls.insert(0, Call("fetch", {"url": facts.leads_to}))
    return NoText(what, f"Try {' or '.join('{}' for _ in calls)}.", *calls)


def unread(pages: "Unread | None") -> list[str]:
    """Return a line for pages without text, with the command that reads or shows them."""
    if pages is None:
        return []
    count = counted(pages.pages, "page")
    return [f"{count} without a text layer: {as_command(pages.call)} {_does(pages)}."]


def _does(pages: "Unread") -> str:
    return "reads them by OCR" if pages.is_readable else "shows one; fetchstash[ocr] reads them"


def next_steps(screen: Screen, calls: Sequence[Call], pipe: str = "") -> list[str]:
    """Return the follow-up commands, one a line; the first may be piped into ``pipe``."""
    lines = [command_line(call) for call in calls]
    lines[:1] = [f"{line} | {pipe}" for line in lines[:1] if pipe] or lines[:1]
    return [screen.style(f"  {line}", "key") for line in lines]


def what_next(screen: Screen, part: "Slice", calls: Sequence[Call], pipe: str = "") -> list[str]:
    """Return a part's heading, and the commands that continue behind it."""
    return ["", screen.style(f"{opening_of(part)}. Next:", "dim"), *next_steps(screen, calls, pipe)]


def after_preview(artifact: "Artifact") -> tuple[Call, ...]:
    """Return how to go on after a preview: all of it, grep, and a part."""
    ref, facts = artifact.ref, artifact.facts
    unit = "pages" if facts.page_range else facts.unit if facts.rows else "lines"
    start, end = artifact.excerpt.lines or (1, 2 if unit == "pages" else 100)
    unit = "lines" if artifact.excerpt.lines else unit
    part = {"ref": ref, "unit": None if unit == "lines" else unit, "start": start, "end": end}
    rows = {"ref": ref, "path": "sum(COLUMN) by COLUMN"} if QUERY in facts.paths else None
    return (
        Call("read", {"ref": ref}),
        Call("grep", {"ref": ref, "pattern": "WORDS"}),
        Call("slice", part),
        *([Call("slice", rows)] if rows else []),
    )


def opening_of(part: "Slice") -> str:
    """Return the heading of a part: ``k3xq5y7, lines 7 to 9 of 10,000``."""
    word = "characters" if part.unit == "chars" else part.unit
    where = f" in {safe_line(part.path)!r}" if part.path else ""
    opening, units = f"{short_ref(part.facts.artifact_ref)}{where}, {word}", part.units
    if part.unit in ("chars", "bytes") or not part.count:
        return f"{opening} {part.start:,} to {part.start + units:,} of {part.count:,}"
    if not part.is_whole and not units:
        opening = opening.removesuffix("s")
        return f"{opening} {part.start:,} of {part.count:,}, its beginning"
    last = part.end if part.is_whole else part.start + units - 1
    return f"{opening} {part.start:,} to {last:,} of {part.count:,}"


_LISTED = (
    Column("", right=True, style="dim"),
    Column("ref", from_width=70, style="reference"),
    Column("age", right=True),
    Column("size", right=True),
    Column("kind", least=5),
    Column("title", least=8, weight=3),
    Column("from", least=6, weight=2),
    Column("expires", right=True),
)


def listed(
    screen: Screen, artifacts: Sequence["Facts"], first: int = 1, tenant: str = ""
) -> list[str]:
    """Return the table of artifacts, the newest with number ``first``; of a ``tenant``, if any."""
    from fetchstash.render import size  # noqa: PLC0415 - heavy
    from fetchstash.stash import described  # noqa: PLC0415 - as above

    rows: list[tuple[str | Link, ...]] = [
        (
            f"@{number}",
            short_ref(facts.artifact_ref),
            _age(facts.created_at),
            counted(facts.members or 0, "page") if facts.site_prefix else size(facts.size_bytes),
            safe_line(described(facts).word),
            Link(safe_line(facts.title or facts.name), facts.final_url),
            safe_line(urlsplit(facts.final_url).netloc) or "file",
            "pinned" if facts.pinned else _age(facts.expires_at),
            *([tenant] if tenant else []),
        )
        for number, facts in enumerate(artifacts, start=first)
    ]
    columns = (*_LISTED, Column("tenant", least=6)) if tenant else _LISTED
    return table(screen, columns, rows)


def _age(time: "datetime | None") -> str:
    return age(time) if time else ""


def plain_row(facts: "Facts", tenant: str = "") -> str:
    """Return a row of a listing for a program: whole values between tabs, the tenant last."""
    ends = None if facts.pinned else facts.expires_at
    times = [t.isoformat(timespec="seconds") if t else "" for t in (facts.created_at, ends)]
    values = (
        facts.artifact_ref,
        times[0],
        str(facts.size_bytes),
        facts.content_kind,
        facts.title or facts.name,
        facts.final_url or "file",
        "pinned" if facts.pinned else "",
        times[1],
        *([tenant] if tenant else []),
    )
    return "\t".join(map(safe_line, values))


def passages(screen: Screen, found: "Passages", query: str) -> list[str]:
    """Return ranked passages: title, reference and lines, and the lines around the best hit."""
    words = re.compile("|".join(map(re.escape, query.split())), re.IGNORECASE)
    lines: list[str] = []
    for passage in found:
        facts = found.facts[passage.artifact_ref]
        texts = passage.text.rstrip("\n").split("\n")
        hit = min(passage.text.count("\n", 0, passage.hit), len(texts) - 1)
        first, last = max(hit - _AROUND_HIT, 0), min(hit + _AROUND_HIT, len(texts) - 1)
        where = f"{short_ref(facts.artifact_ref)}, line {passage.first_line + hit:,}"
        title = clip_cells(
            safe_line(facts.title or facts.name), max(screen.width - cells(where) - 2, 10)
        )
        linked = screen.link(screen.style(title, "title"), facts.final_url)
        lines += ["", f"{linked}  {screen.style(where, 'dim')}"]
        gutter = len(str(passage.first_line + last))
        for number in range(first, last + 1):
            text = texts[number]
            match = words.search(text)
            start, end = match.span() if match else (0, 0)
            shown = window_cells(safe(text), start, end, screen.width - gutter - 2)
            painted = words.sub(lambda word: screen.style(word[0], "match"), shown)
            place = screen.style(f"{passage.first_line + number:>{gutter}}", "key")
            lines.append(f"{place}  {painted}")
    return lines[1:]


def origins(screen: Screen, traced: "Trace") -> list[str]:
    """Return each sentence, its supporting passage with place, and the calls that showed it."""
    lines: list[str] = []
    for origin in traced:
        mark = screen.style("+", "key") if origin.is_supported else screen.style("-", "warning")
        lines += ["", f"{mark} {safe_line(origin.sentence)}"]
        if not (passage := origin.passage) or not (facts := origin.facts):
            lines.append("  Nothing kept comes near it.")
            continue
        if not origin.is_supported:
            lacks = ", ".join(map(safe_line, origin.missing[:8]))
            lines.append(f"  Nothing kept supports it. The nearest passage lacks: {lacks}")
        lines.append(f"  {safe_line(passage.text)}")
        name = facts.final_url or facts.name or facts.title
        when = f"{facts.created_at:%Y-%m-%d %H:%M} UTC, " if facts.created_at else ""
        place = f"{short_ref(facts.artifact_ref)}, line {passage.first_line:,}, {when}"
        lines.append(screen.style(f"  {place}{safe_line(name)}", "dim"))
        calls = ", ".join(f"{call.tool} at {call.time}" for call in origin.shown)
        lines.append(
            f"  A model was shown it: {safe_line(calls)}" if calls else "  No call showed it."
        )
    return lines[1:]


def known(screen: Screen, facts: "Facts") -> list[str]:
    """Return a document's facts for a person, and its outline."""
    from fetchstash.fetch import mask_url  # noqa: PLC0415 - heavy
    from fetchstash.stash import tokens_of  # noqa: PLC0415 - as above

    asked, final = facts.source_url, facts.final_url
    if facts.pinned:
        kept = "until it is unpinned"
    else:
        kept = f"for {_age(facts.expires_at)} from now" if facts.expires_at else ""
    rows = {
        "reference": facts.artifact_ref,
        "from": mask_url(final),
        "asked for": mask_url(asked) if asked != final else "",
        "fetched": f"{_age(facts.created_at)} ago" if facts.created_at else "",
        "kept": kept,
        "author": facts.author,
        "published": facts.published,
        "modified": facts.modified,
        "site": facts.site,
        "language": facts.language,
        "tokens": f"{tokens_of(facts):,}" if facts.extracted_chars is not None else "",
        "structure": facts.structure_info,
        "left out": facts.left_out,
        "media type": facts.media_type,
        "text": facts.path or "",
    }
    lines = heading(screen, facts)
    lines += [
        f"{screen.style(f'{name:<10}', 'dim')}  {safe_line(v)}" for name, v in rows.items() if v
    ]
    lines += [screen.style(line, "warning") for line in map(safe_line, conditions(facts))]
    if facts.outline:
        lines.append(screen.style("outline", "dim"))
    width = max((len(str(entry.start)) for entry in facts.outline), default=0)
    for entry in facts.outline:
        place = screen.style(f"{entry.unit.removesuffix('s')} {entry.start:>{width}}", "dim")
        lines.append(f"  {place}  {'  ' * (entry.level - 1)}{safe_line(entry.title)}")
    return lines


@dataclass(frozen=True, slots=True)
class Row:
    """Artifacts of one kind or from one host, with their bytes as fetched and their tokens."""

    group: str
    name: str
    artifacts: int
    size_bytes: int
    tokens: int
    tokens_exact: bool


def rows_of(artifacts: "Sequence[Facts]", origins: Mapping[str, str]) -> list[Row]:
    """Sum up by kind, then by origin, the most tokens first. ``origins`` are by reference."""
    groups: dict[tuple[str, str], list[Facts]] = {}
    for facts in artifacts:
        for key in (("kind", facts.content_kind), ("host", origins[facts.artifact_ref])):
            groups.setdefault(key, []).append(facts)
    rows = [
        Row(
            *key,
            artifacts=len(members),
            size_bytes=sum(facts.size_bytes for facts in members),
            tokens=sum(facts.text_tokens or 0 for facts in members),
            tokens_exact=all(facts.text_tokens_exact for facts in members if facts.text_tokens),
        )
        for key, members in groups.items()
    ]
    return sorted(rows, key=lambda row: (row.group == "host", -row.tokens, row.name))


Costs = Sequence[tuple[str, int, int, float]]
"""Tools with their calls, tokens shown and milliseconds."""


def printed(screen: Screen, rows: Sequence[Row], tools: Costs, shown: int | None) -> list[str]:
    """Return the lines for a person."""
    from fetchstash.server.ui import took  # noqa: PLC0415 - heavy

    lines: list[str] = []
    numbers = [Column(name, right=True) for name in ("artifacts", "bytes", "tokens")]
    for group in dict.fromkeys(row.group for row in rows):
        texts = [
            (
                safe_line(row.name),
                f"{row.artifacts:,}",
                f"{row.size_bytes:,}",
                f"{TokenCount(row.tokens, row.tokens_exact):,}",
            )
            for row in rows
            if row.group == group
        ]
        lines += [*table(screen, [Column(group, least=8), *numbers], texts), ""]
    if tools:
        costs = [
            (safe_line(name), f"{n:,}", f"{tokens:,}", took(ms)) for name, n, tokens, ms in tools
        ]
        heads = [Column(name, right=True) for name in ("calls", "shown", "took")]
        lines += [*table(screen, [Column("tool", least=8), *heads], costs), ""]
    whole = sum(row.tokens for row in rows if row.group == "kind")
    together = TokenCount(whole, all(row.tokens_exact for row in rows))
    lines.append(f"Tokens of all texts together: {together:,}.")
    if shown is None:
        lines.append("No call of a model is logged for them.")
    else:
        lines.append(f"Shown: about {shown:,}. Kept out: about {max(whole - shown, 0):,}.")
    return lines


def as_objects(
    rows: Sequence[Row], tools: Costs, shown: int | None
) -> tuple[Mapping[str, object], ...]:
    """Return the same as data."""
    whole = sum(row.tokens for row in rows if row.group == "kind")
    total = {
        "group": "all",
        "tokens": whole,
        "shown": shown,
        "kept_out": None if shown is None else max(whole - shown, 0),
    }
    names = ("name", "calls", "tokens", "ms")
    calls = ({"group": "tool", **dict(zip(names, row, strict=True))} for row in tools)
    return (*(asdict(row) for row in rows), *calls, total)

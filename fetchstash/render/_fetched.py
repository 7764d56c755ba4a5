"""Results of a fetch, and facts of a document."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from fetchstash.errors import Call, Wording
from fetchstash.render._texts import (
    ABOUT_CHARS,
    NAME_CHARS,
    OF_SEVERAL_CHARS,
    REFERENCE_LINE_CHARS,
    SENTENCE,
    SOURCE_CHARS,
    Subject,
    about_line,
    condition_lines,
    dead_end_calls,
    facts_line,
    follow_up_calls,
    left_out_line,
    preview_notice,
    reference_line,
    size,
    unread_lines,
)
from fetchstash.render._view import FACTS_AT_MOST, Block, Host, View, error_line, error_record
from fetchstash.render._words import FRAME_CHARS_OF_SEVERAL
from fetchstash.stash import (
    ROOM_FOR_A_BODY,
    Deleted,
    Failure,
    Listing,
    Picture,
    Shown,
    StoredDocument,
    described,
    fits,
    shown_of,
    tokens_of,
)
from fetchstash.store import Facts
from fetchstash.text import clip, clip_middle, counted, prefix_length, whole_lines

_LINE_CHARS = 300


def info(host: Host, facts: Facts) -> View:
    """Return an artifact's facts, as much of its outline as fits, and how to read it."""
    subject, outline = host.subject(facts), facts.outline
    # The token count prints as TokenCount does, so that an estimate is marked as one.
    tokens = {"text_tokens": None if subject.chars is None else tokens_of(facts)}
    known = {**subject.record, **tokens}
    lines = [f"{name}: {_plain(known[name])}" for name in known if _says_something(name, known)]
    if outline:
        lines.append("outline:")
        lines += [
            f"{'  ' * at.level}{at.title} ({at.unit.removesuffix('s')} {at.start})"
            for at in outline
        ]
    calls = dead_end_calls(subject, host.word)
    if subject.chars is not None:
        calls = follow_up_calls([subject], 0, host.word)
    elif facts.page_verdict == "leads_on":
        calls = ()  # the facts have its address
    head = (f"[{subject.ref}: facts]", *condition_lines(subject, host.word))
    block = _bounded(host, [clip(line, _LINE_CHARS) for line in lines], subject.source, head, calls)
    record = {**subject.record, "outline": [heading.to_json() for heading in outline]}
    return View((block,), (subject.record,), records=(record,))


def deleted(host: Host, value: Deleted) -> View:
    """Return the line that says which artifact is gone."""
    subject = host.subject(value.facts)
    line = (
        f"[Deleted {subject.ref}, {described(value.facts).word}, {size(value.facts.size_bytes)}.]"
    )
    return View((Block((line,)),), (subject.record,))


def listing(host: Host, page: Listing) -> View:
    """Return a run's artifacts, newest first, a line each, as far as there is room."""
    run, total = page.run, page.total
    if not total:
        fetch = host.word(Call("fetch", {"url": "https://…"}))
        return View((Block((f"[Run {run}: no artifacts yet.]", f"To fetch one: {fetch}")),))
    subjects = [host.subject(facts) for facts in page.facts]
    lines = _listed(subjects)
    head = (f"[Run {run}: {counted(total, 'artifact')}, newest first]", _COLUMNS)
    calls = (host.word(Call("info", {"ref": subjects[0].ref})),)
    search = host.word(Call("search"))

    def block(shown: int) -> Block:
        notice = f"[Showing {shown} of {total}. {search} finds passages in all of them.]"
        tail = calls if shown == total else (*calls, notice)
        return _bounded(host, lines, f"run {run}", head, tail)

    shown = total
    for _ in range(2):  # the notice takes room, too
        body = block(shown).body or ""
        shown = sum(line.startswith("art_") for line in body.split("\n"))
    return View((block(shown),), tuple(subject.record for subject in subjects)[:FACTS_AT_MOST])


_COLUMNS = "[The beginning of an artifact_ref, which is enough for a call, title, tokens]"
_SHORT_REF, _TITLE_CHARS, _PLACE_CHARS = len("art_") + 5, 40, 40


def _listed(subjects: Sequence[Subject]) -> list[str]:
    """Return a line for each artifact: its title, and its place where others are titled so.

    A whole reference would take as many tokens as the rest of the line.
    """
    titles = [" ".join(subject.facts.title.split()) for subject in subjects]
    refs = Counter(subject.ref[:_SHORT_REF] for subject in subjects)
    usual = Counter(titles)
    lines: list[str] = []
    for subject, title in zip(subjects, titles, strict=True):
        ref = subject.ref if refs[subject.ref[:_SHORT_REF]] > 1 else subject.ref[:_SHORT_REF]
        label = clip(title, _TITLE_CHARS)
        if not title or usual[title] > 1:
            place = subject.source.partition("://")[2] or subject.source
            label = f"{label} {clip_middle(place.rstrip('/'), _PLACE_CHARS)}".strip()
        count = tokens_of(subject.facts).tokens
        amount = str(count) if count < 1_000 else f"{count / 1_000:.0f}k"
        lines.append(f"{ref} {label}, {'no text' if subject.chars is None else amount}")
    return lines


def _bounded(
    host: Host, lines: Sequence[str], source: str, head: tuple[str, ...], calls: tuple[str, ...]
) -> Block:
    """Return a block within the short limit, frame included, its body cut at a whole line."""
    body, limit = "\n".join(lines), host.limits.short_max_chars
    room = limit - host.measure(host.fenced("", source, head, calls).frame)
    if host.measure(body) > room:
        body = body[: whole_lines(body, room - 1, host.measure)] + "…"
    return host.fenced(body[: prefix_length(body, room, host.measure)], source, head, calls)


_SAME = {"final_url": "source_url", "declared_type": "media_type", "text_bytes": "extracted_chars"}
_USUAL = (("unit", "lines"), ("page_word", "pages"), ("text_tokens_exact", True))


def _says_something(name: str, facts: Mapping[str, Any]) -> bool:
    """Return whether a fact is worth a line: known, not redundant, not its usual value."""
    value, same = facts[name], facts.get(_SAME.get(name, ""))
    return value not in (None, "", False, [], {}, same) and (name, value) not in _USUAL


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "; ".join(str(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value)


def picture(host: Host, shown: Picture) -> View:
    """Return a picture under a line that names its artifact and page."""
    subject = host.subject(shown.facts)
    title = "picture" if shown.page is None else f"page {shown.page} as a picture"
    head = [f"[{subject.ref}: {title}, {shown.width}×{shown.height} px]"]
    if shown.page and shown.page < min(shown.asked_end or 0, shown.facts.pages or 0):
        following = {"ref": subject.ref, "page": shown.page + 1, "end": shown.asked_end}
        head.append(host.word(Call("picture", following)))
    return View((Block(tuple(head)),), (subject.record,), ((shown.data, shown.media_type),))


@dataclass(frozen=True, slots=True)
class _Item:
    """An artifact, and the part of its text that the host is shown."""

    artifact: StoredDocument
    subject: Subject

    def shown(self, host: Host, limit: int) -> Shown:
        artifact = self.artifact
        return shown_of(artifact.excerpt, artifact.facts, host.limits, host.preview, limit)

    def record(self, shown: Shown | None) -> Mapping[str, Any]:
        """Return the facts for ``_meta``, with the shown part where it is not the whole text."""
        more = {"shown": asdict(shown.info)} if shown and shown.info else {}
        return {**self.subject.record, **more}

    @property
    def aside(self) -> str:
        """Why a document of several is left to one line; "" if it is not."""
        excerpt = self.artifact.excerpt
        searched = "So far as there was time, n" if excerpt.partly else "N"
        if excerpt.unfocused:
            return f"{searched}o passage has a word of the focus"
        return "Others answer the focus better" if excerpt.elsewhere else ""

    @property
    def lead(self) -> str:
        """The address that a page without text leads to, "" of any other."""
        has_text = self.subject.chars is not None
        return "" if has_text else clip(self.subject.facts.leads_to, _LINE_CHARS)

    @property
    def pictures(self) -> tuple[tuple[bytes, str], ...]:
        image = self.artifact.image
        return ((image.data, image.media_type),) if image else ()


def fetched(host: Host, artifact: StoredDocument, max_chars: int | None = None) -> View:
    """Return the view of one fetched artifact. Raises BadArgument for too small a limit."""
    item = _Item(artifact, host.subject(artifact.facts, artifact.cache))
    limit = host.limits.max_chars(max_chars, host.limits.inline_threshold)
    block, shown = _block(host, item, limit)
    if shown and host.over(block.frame):
        # A very long path: the reference says as much.
        item = replace(item, subject=replace(item.subject, path=""))
        block, shown = _block(host, item, limit)
        if over := host.over(block.frame):
            block, shown = _block(host, item, limit - over)
    return View((block,), (item.record(shown),), item.pictures)


def _block(
    host: Host, item: _Item, limit: int, *, several: bool = False
) -> tuple[Block, Shown | None]:
    """Return an artifact's block, and the part of its text in it (None: it has no text).

    With ``several`` the caller adds the sentence and the calls after previews once for all.
    """
    subject, word = item.subject, host.word
    chars = OF_SEVERAL_CHARS if several else NAME_CHARS
    unread = unread_lines(item.artifact.unread, word)
    head = [facts_line(subject, chars), *left_out_line(subject.facts)]
    head += [*condition_lines(subject, word), *unread]
    if item.artifact.note:
        head.append(f"[{item.artifact.note}]")
    if item.artifact.excerpt.no_section:
        head.append("[The fragment of the URL names nothing that is here.]")
    # A picture is shown, and the line on unread pages has the call for them.
    tail = () if item.pictures or unread else dead_end_calls(subject, word)
    source_chars = OF_SEVERAL_CHARS if several else SOURCE_CHARS
    fenced = partial(host.fenced, sentence=not several, source_chars=source_chars)
    if subject.chars is None:
        if not item.lead:
            return Block((*head, *tail)), None
        if subject.facts.page_verdict != "leads_on":
            head.append("[The page names its own Markdown or feed. Fetch that.]")
        return fenced(clip(item.lead, limit), subject.source, tuple(head), tail), None
    shown = item.shown(host, limit)
    if several:
        tail = ()
    elif shown.info:
        tail += follow_up_calls([subject], shown.offset, word, item.artifact.excerpt.lines)
    if shown.info:
        notice = preview_notice(subject, len(shown.body), with_path=not several)
        head += _notices(item, shown, notice)
        if item.artifact.excerpt.passages_over is not None and not several:
            facts = item.artifact.facts
            if fits(item.artifact.excerpt, facts, host.limits, limit):
                head.append(f"[The whole text would fit, at {tokens_of(facts)} tokens.]")
    about = about_line(subject.facts, shown.body, ABOUT_CHARS // 2 if several else ABOUT_CHARS)
    return fenced(shown.body, subject.source, tuple(head), tail, about=about), shown


def _notices(item: _Item, shown: Shown, notice: str) -> list[str]:
    """Return the lines above a preview: cache, focus, ``notice``, and how much is shown."""
    lines: list[str] = []
    if item.subject.from_cache:
        lines.append(f"[From the cache: {item.subject.from_cache}.]")
    excerpt = item.artifact.excerpt
    if excerpt.unfocused:
        lines.append("[No passage has a word of the focus.]")
    if excerpt.partly:
        lines.append("[Only the beginning of the text could be searched for the focus in time.]")
    lines.append(notice)
    return [*lines, shown.info.line()] if shown.info else lines


def fetched_several(
    host: Host, results: Sequence[StoredDocument | Failure], max_chars: int | None = None
) -> View:
    """Return one view of several URLs, each in its turn, all within one budget."""
    limit = host.limits.max_chars(max_chars, host.limits.inline_threshold)
    items = [
        _Item(result, host.subject(result.facts, result.cache))
        if isinstance(result, StoredDocument)
        else result
        for result in results
    ]
    shown = sum(not (isinstance(item, _Item) and item.aside) for item in items)
    if limit // max(shown, 1) < ROOM_FOR_A_BODY:
        lines = tuple(
            reference_line(item.subject)
            if isinstance(item, _Item)
            else _failure_line(host, item, REFERENCE_LINE_CHARS)
            for item in items
        )
        subjects = [item.subject for item in items if isinstance(item, _Item)]
        facts = [subject.record for subject in subjects]
        with_text = list(dict.fromkeys(s.ref for s in subjects if s.chars is not None))
        if with_text:
            lines += (host.word(Call("grep", {"refs": with_text, "pattern": "…"})),)
        return _several(host, (Block(lines),), items, facts)
    blocks, facts = _share(host, items, limit)
    # Frame overhead beyond that of one artifact is subtracted from the bodies.
    for _ in range(2):
        if over := host.over("\n".join(block.frame for block in blocks)):
            blocks, facts = _share(host, items, max(limit - over, 0))
    return _several(host, tuple(blocks), items, facts)


def _several(
    host: Host,
    blocks: tuple[Block, ...],
    items: Sequence[_Item | Failure],
    facts: Sequence[Mapping[str, Any]],
) -> View:
    """Return the view of several URLs, an error where all failed."""
    rest = iter(facts)
    records = tuple(
        {"source_url": item.url, "error": error_record(host.shown(item.error), host.word)}
        if isinstance(item, Failure)
        else next(rest)
        for item in items
    )
    pictures = tuple(
        picture for item in items if isinstance(item, _Item) for picture in item.pictures
    )
    return View(blocks, tuple(facts)[:FACTS_AT_MOST], pictures, is_error=not facts, records=records)


def _failure_line(host: Host, failure: Failure, limit: int) -> str:
    """Return the line of a URL that failed, with as much of the URL as fits."""
    line = error_line(host.shown(failure.error), host.word)
    room = min(limit - len(line) - 3, OF_SEVERAL_CHARS)
    named = f"{line} ({clip_middle(failure.url, room)})" if room > len("https://…") else line
    return clip(named, limit)


def _share(
    host: Host, items: Sequence[_Item | Failure], room: int
) -> tuple[list[Block], list[Mapping[str, Any]]]:
    """Return the blocks and facts of several artifacts, whose bodies share ``room`` characters."""
    with_text = [
        item
        for item in items
        if isinstance(item, _Item)
        and not item.aside
        and (item.lead or item.subject.chars is not None)
    ]
    lengths = [_length(host, item, room) for item in with_text]
    shares = dict(zip(map(id, with_text), _shares(lengths, room), strict=True))
    blocks = [Block((SENTENCE,))] if with_text else []
    facts: list[Mapping[str, Any]] = []
    previewed: list[tuple[int, Subject, int, tuple[int, int] | None]] = []
    for item in items:
        if isinstance(item, Failure):
            blocks.append(Block((_failure_line(host, item, FRAME_CHARS_OF_SEVERAL),)))
            continue
        if item.aside:
            blocks.append(Block((_aside_line(item), *_faults(item, host.word))))
            facts.append(item.record(None))
            continue
        block, shown = _block(host, item, shares.get(id(item), 0), several=True)
        blocks.append(replace(block, ref=item.subject.ref))
        facts.append(item.record(shown))
        if shown and shown.info:
            excerpt = item.artifact.excerpt
            previewed.append((excerpt.place, item.subject, shown.offset, excerpt.lines))
    if previewed:
        previewed.sort(key=lambda one: one[0])
        _, _, offset, lines = previewed[0]
        subjects = [subject for _, subject, *_ in previewed]
        blocks.append(Block(follow_up_calls(subjects, offset, host.word, lines)))
    elif asides := [item.subject.ref for item in items if isinstance(item, _Item) and item.aside]:
        refs = list(dict.fromkeys(asides))
        blocks.append(Block((host.word(Call("grep", {"refs": refs, "pattern": "…"})),)))
    return blocks, facts


def _length(host: Host, item: _Item, room: int) -> int:
    """Return how many characters a document's body may take; more than its text has means all."""
    excerpt = item.artifact.excerpt
    if item.lead:
        return host.measure(item.lead)
    if excerpt.passages_over is not None and excerpt.preview.text:
        return max(excerpt.passages_over, host.measure(excerpt.preview.text))
    return host.measure(excerpt.text) if len(excerpt.text) == item.subject.chars else room + 1


def _aside_line(item: _Item) -> str:
    """Return the one line of a document that does not answer the focus."""
    return f"{reference_line(item.subject)[:-1]}. {item.aside}.]"


def _faults(item: _Item, word: Wording) -> list[str]:
    """Return the warning lines of a document whose text is not shown."""
    facts = item.subject.facts
    faulty = facts.page_verdict or facts.incomplete or facts.extraction_error
    return condition_lines(item.subject, word) if faulty else []


def _shares(lengths: Sequence[int], room: int) -> list[int]:
    """Return each text's share: an equal one, plus what shorter texts before it left over."""
    equal = room // len(lengths) if lengths else 0
    left = sum(equal - length for length in lengths if length < equal)
    shares: list[int] = []
    for length in lengths:
        extra = min(max(length - equal, 0), left)
        left -= extra
        shares.append(equal + extra)
    return shares

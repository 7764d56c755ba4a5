"""Results of grep, search, read and slice, and the model's view of any value."""

from fetchstash.errors import Call, FetchstashError, type_checked
from fetchstash.render._fetched import deleted, fetched, fetched_several, info, listing, picture
from fetchstash.render._texts import (
    OF_SEVERAL_CHARS,
    SENTENCE,
    SOURCE_CHARS,
    list_lines,
    truncation_notice,
    unread_lines,
)
from fetchstash.render._view import FACTS_AT_MOST, Block, Host, View, error_view
from fetchstash.stash import (
    ArtifactMatches,
    Deleted,
    Failure,
    Listing,
    Matches,
    Passages,
    Picture,
    Slice,
    StoredDocument,
    grep_body,
    passages_body,
)
from fetchstash.store import Facts
from fetchstash.text import clip_middle, counted

_CONTEXT_LINES = 20
"""Lines around the best passage that the next call reads."""


def grep(host: Host, matches: Matches, max_chars: int | None = None) -> View:
    """Return the matches in one or several artifacts, and the call for the next ones.

    Raises BadArgument for too small a limit.
    """
    default = host.limits.short_max_chars
    limit = host.limits.max_chars(max_chars, default)
    more = host.repeated(max_chars, default)

    def view(limit: int) -> list[Block]:
        blocks, shown = (_of_sites if matches.sites else _blocks)(host, matches, limit)
        if following := matches.next_after(shown):
            call = host.front_end.continuation(following, more, ("offset",))
            total = f"at least {matches.total}" if matches.stopped else str(matches.total)
            notice = f"[Showing {shown} of {total} matches. Continue with the call above.]"
            blocks.append(Block((call, notice)))
        elif hint := matches.hint:
            said = " ".join(filter(None, (hint.found, hint.how)))
            blocks.append(Block((f"[As written nothing matches. {said}: {host.word(hint.call)}]",)))
        return blocks

    blocks = view(limit)
    if over := host.over("\n".join(block.frame for block in blocks)):
        blocks = view(limit - over)
    records = tuple(
        {
            "artifact_ref": artifact.facts.artifact_ref,
            "line": line.number,
            "text": line.text,
            "match": line.match,
        }
        for artifact in matches.artifacts
        for group in artifact.groups
        for line in group
    )
    facts = tuple(host.subject(artifact.facts).record for artifact in matches.artifacts)
    return View(tuple(blocks), facts[:FACTS_AT_MOST], records=records)


def _of_sites(host: Host, matches: Matches, limit: int) -> tuple[list[Block], int]:
    """Return one block for the matching pages of sites, each under its reference.

    Its line begins with --, and every line of a page with a number, so that none can look like it.
    """
    pieces: list[str] = []
    room, shown = limit, 0
    for artifact in (item for item in matches.artifacts if item.groups):
        source = clip_middle(host.subject(artifact.facts).source, 120)
        title = f"-- {artifact.facts.artifact_ref} {source}"
        left = room - host.measure(title) - 2
        text, printed = grep_body(
            artifact.groups, max(left, 0), host.measure, at_least_one=not shown
        )
        if not printed:
            break
        pieces.append(f"{title}\n{text}")
        room, shown = left - host.measure(text), shown + printed
        if printed < artifact.shown:
            break
    pages = sum(site.pages - site.unsearched for site in matches.sites)
    ref = ", ".join(site.facts.artifact_ref for site in matches.sites)
    total = f"at least {matches.total}" if matches.stopped else str(matches.total)
    first = f"{matches.query.offset + 1} to {matches.query.offset + shown}" if shown else "0"
    found = f"{len(matches.artifacts)} of {counted(pages, 'page')}"
    head = (f"[{ref}: matches {first} of {total}, in {found}]",)
    if not shown:
        return [Block(head)], 0
    first_page = next(item for item in matches.artifacts if item.groups)
    line = next(line.number for line in first_page.groups[0] if line.match)
    start, end = max(line - _CONTEXT_LINES, 1), line + _CONTEXT_LINES
    part = {"ref": first_page.facts.artifact_ref, "unit": "lines", "start": start, "end": end}
    sources = [host.subject(site.facts).source for site in matches.sites]
    tail = (host.word(Call("slice", part)),)
    return [host.fenced("\n".join(pieces), ", ".join(sources), head, tail)], shown


def _blocks(host: Host, matches: Matches, room: int) -> tuple[list[Block], int]:
    """Return a block per artifact with its matches, as many as fit into ``room`` characters."""
    artifacts = matches.artifacts
    several = len(artifacts) > 1
    blocks: list[Block] = []
    shown = 0
    full = False
    for artifact in artifacts:
        text, printed = "", 0
        if artifact.groups and not full:
            text, printed = grep_body(artifact.groups, room, host.measure, at_least_one=not shown)
        full = full or printed < artifact.shown
        room = max(room - host.measure(text), 0)
        shown += printed
        left_out = _left_out(host, artifact.left_out, artifact.facts)
        unread = unread_lines(artifact.unread, host.word)
        members = _members(host, artifact.facts)
        head = (_opening(artifact, printed), *left_out, *unread, *members)
        source_chars = OF_SEVERAL_CHARS if several else SOURCE_CHARS
        source = host.subject(artifact.facts).source
        fenced = host.fenced(text, source, head, sentence=not several, source_chars=source_chars)
        blocks.append(fenced if printed else Block(head))
    if several and shown:
        blocks.insert(0, Block((SENTENCE,)))
    return blocks, shown


def _left_out(host: Host, count: int, facts: Facts) -> tuple[str, ...]:
    """Return the line on matches in the parts that a page's text leaves out, if there are any."""
    if not count:
        return ()
    call = host.word(Call("slice", {"ref": facts.artifact_ref, "path": "left_out"}))
    return (f"[{counted(count, 'line')} more in the parts left out of the text: {call}]",)


def _members(host: Host, facts: Facts) -> tuple[str, ...]:
    """Return the hint on an archive's members; its own text is only the list of them."""
    if facts.members is None or facts.site_prefix:
        return ()
    call = host.word(Call("slice", {"ref": facts.artifact_ref, "path": "…"}))
    return (f"[Of an archive the list of its members is searched. One of them: {call}]",)


def _opening(artifact: ArtifactMatches, shown: int) -> str:
    ref, total = artifact.facts.artifact_ref, str(artifact.total)
    if artifact.stopped:
        total = f"at least {artifact.total}, stopped {artifact.stopped}"
    if not shown:
        return f"[{ref}: matches 0 of {total}]"
    return f"[{ref}: matches {artifact.skipped + 1} to {artifact.skipped + shown} of {total}]"


def search(host: Host, passages: Passages, max_chars: int | None = None) -> View:
    """Return ranked passages, best first. Raises BadArgument for too small a limit."""
    limit = host.limits.max_chars(max_chars, host.limits.short_max_chars)
    count = len(passages.best_first)
    subjects = {
        passage.artifact_ref: host.subject(passages.facts[passage.artifact_ref])
        for passage in passages
    }
    facts = tuple(subject.record for subject in subjects.values())[:FACTS_AT_MOST]
    out_of = counted(passages.searched, "artifact")
    if passages.pending:
        out_of += f", {counted(passages.pending, 'text')} not searched whole yet"
        going_on = host.front_end.continuation(passages.next, {}, ()) if passages.next else ""
        out_of += f": {going_on or 'they are being indexed'}"
    left_out = [
        line
        for ref, n in passages.left_out.items()
        for line in _left_out(host, n, passages.facts[ref])
    ]
    left_out += [line for known in passages.facts.values() for line in _members(host, known)]
    if not count:
        none = f"[No passage of {out_of} has a word of the query.]"
        if passages.pending:
            none = f"[No passage has a word of the query yet, out of {out_of}.]"
        return View((Block((none, *left_out)),))
    sources = list(dict.fromkeys(subject.source for subject in subjects.values()))
    source = sources[0] if len(sources) == 1 else f"{len(sources)} sources"
    best = passages.best_first[0]
    first, last = max(best.first_line - _CONTEXT_LINES, 1), best.last_line + _CONTEXT_LINES
    part = {"ref": best.artifact_ref, "unit": "lines", "start": first, "end": last}
    around = host.word(Call("slice", part))

    def view(limit: int) -> Block:
        body, shown = passages_body(passages, limit, host.measure, with_ref=True)
        head = f"[passages 1 to {shown} of {count}, best first, out of {out_of}]"
        notice = f"[Showing {shown} of {count} passages. {host.higher_limit}]"
        tail = (around, notice) if shown < count else (around,)
        return host.fenced(body, source, (head, *left_out), tail)

    block = view(limit)
    if over := host.over(block.frame):
        block = view(limit - over)
    records = tuple(
        {
            "artifact_ref": passage.artifact_ref,
            "first_line": passage.first_line,
            "last_line": passage.last_line,
            "heading": passage.heading,
            "text": passage.text,
        }
        for passage in passages
    )
    return View((block,), facts, records=records)


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

    header = part.header if 4 * host.measure(part.header) <= applied else ""

    def view(limit: int) -> View:
        shown = part.cut(limit - host.measure(header), host.measure)
        head = [_read_opening(shown, subject.facts)]
        if part.path and not part.count:
            return View((Block(tuple(head)),), (subject.record,))
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
            call = host.front_end.continuation(following, more, ("offset", "start", "end"))
            tail = (call, truncation_notice(applied, unit, total, advice))
        elif not part.path and shown.end == part.count:
            head += list_lines(subject, host.word)
        record: dict[str, object] = {
            "artifact_ref": subject.ref,
            "path": part.path,
            "unit": part.unit,
            "start": part.start,
            "count": part.count,
            "text": shown.text,
            "whole": shown.is_whole and part.cut_at is None,
        }
        block = host.fenced(header + shown.text, subject.source, tuple(head), tail)
        return View((block,), (subject.record,), records=(record,))

    first = view(applied)
    over = host.over(first.blocks[0].frame)
    return view(applied - over) if over else first


def _read_opening(shown: Slice, facts: Facts) -> str:
    """Return the opening line of a read: ``[art_…: lines 200 to 260 of 9000]``."""
    where = f" in {clip_middle(shown.path, 80)!r}" if shown.path else ""
    word = "characters" if shown.unit == "chars" else shown.unit
    opening, units = f"[{facts.artifact_ref}{where}: {word}", shown.units
    if where and not shown.count:
        held = ", ".join(path for path in facts.paths if path in facts.filled_paths)
        nothing = f"[{facts.artifact_ref}{where}: nothing is there. What there is: "
        return f"{nothing}{held or 'the text, without a path'}.]"
    if not shown.count:
        return f"{opening} 0 of 0]"
    if shown.unit in ("chars", "bytes"):
        return f"{opening} {shown.start} to {shown.start + units} of {shown.count}]"
    if not shown.is_whole and not units:
        inside = f"its first {len(shown.text)} characters"
        return f"{opening} {shown.start} of {shown.count}, {inside}]"
    last = shown.end if shown.is_whole else shown.start + units - 1
    return f"{opening} {shown.start} to {last} of {shown.count}]"


Value = (
    StoredDocument
    | tuple[StoredDocument | Failure, ...]
    | Slice
    | Matches
    | Passages
    | Picture
    | Listing
    | Deleted
    | Facts
    | FetchstashError
)
"""What a Stash returns or raises, and a front end shows."""


def view_of(host: Host, value: Value, max_chars: int | None = None) -> View:
    """Return the view of a value for ``host``. Raises BadArgument for too small a limit."""
    match value:
        case StoredDocument():
            return fetched(host, value, max_chars)
        case tuple():
            return fetched_several(host, value, max_chars)
        case Slice():
            return read(host, value, max_chars)
        case Matches():
            return grep(host, value, max_chars)
        case Passages():
            return search(host, value, max_chars)
        case Picture():
            return picture(host, value)
        case Listing():
            return listing(host, value)
        case Deleted():
            return deleted(host, value)
        case Facts():
            return info(host, value)
        case FetchstashError():
            return error_view(host, value)


@type_checked
def as_shown(value: Value, max_chars: int | None = None) -> str:
    """Return a value as a model sees it: facts, notices, the fenced text and next calls.

    ``max_chars`` bounds the text as the tools' maxChars does. Facts are shown as artifact_info
    shows them.
    """
    return view_of(Host(), value, max_chars).text

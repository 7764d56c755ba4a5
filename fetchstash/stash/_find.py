"""Grep and search in artifacts; a site's index is expanded to its pages."""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

import anyio

from fetchstash.errors import (
    BadPattern,
    Call,
    ExpiredRef,
    FetchstashError,
    NoText,
    UnknownRef,
)
from fetchstash.stash import _read
from fetchstash.stash._documents import Documents
from fetchstash.stash._patterns import Spelling, other_spellings, repaired, words_of
from fetchstash.stash._scans import Scans
from fetchstash.stash._site import pages as pages_of
from fetchstash.stash._values import (
    ArtifactMatches,
    Hint,
    Matches,
    Passages,
    SiteGrep,
    call_of,
)
from fetchstash.store import ArtifactStore, Facts, GrepQuery
from fetchstash.text import counted

_HINT_SECONDS = 2.0
"""For other spellings of a pattern, all together."""
_SHORT_CHARS = 80


async def grep(scans: Scans, query: GrepQuery, refs: Sequence[str], deadline: float) -> Matches:
    """Return the lines that match, until ``deadline`` on the loop's clock; see Stash.

    Where none does, the result has a call for another spelling of the pattern that was seen to
    match.
    """
    try:
        matches = await _grep(scans, query, refs, deadline)
    except BadPattern as error:
        hint = await _hint(scans, repaired(query), refs, deadline)
        if hint is None:
            advice = error.next_step if not error.calls else _RE2
            raise BadPattern(error.what, advice) from None
        step = f"{hint.found} {hint.how}: {{}}."
        raise BadPattern(error.what, step, hint.call) from None
    if matches.total or query.offset or any(item.left_out for item in matches.artifacts):
        return matches
    hint = await _hint(scans, other_spellings(query), refs, deadline)
    return replace(matches, hint=hint or await _passages(scans.documents, query, refs))


_RE2 = "RE2 has no look-around and no back-references, and as plain text it matches nothing."


async def _hint(
    scans: Scans, spellings: Iterable[Spelling], refs: Sequence[str], deadline: float
) -> Hint | None:
    """Return the call for the first spelling that matches, None if none does."""
    last = min(deadline, anyio.current_time() + _HINT_SECONDS)
    for spelling in spellings:
        if anyio.current_time() > last:
            break
        query = replace(spelling.query, offset=0, max_matches=1, context=0)
        with suppress(FetchstashError):
            matches = await _grep(scans, query, refs, last)
            if matches.total:
                call = call_of(replace(spelling.query, offset=0), refs)
                at_least = "at least " if matches.stopped else ""
                verb = "matches" if matches.total == 1 else "match"
                return Hint(
                    f"{at_least}{counted(matches.total, 'line')} {verb}", spelling.how, call
                )
    return None


async def _passages(documents: Documents, query: GrepQuery, refs: Sequence[str]) -> Hint | None:
    """Return the search for the words of a pattern, if it finds a passage; None for one word."""
    pattern = query.pattern[:_SHORT_CHARS]
    words = words_of(re.escape(pattern) if query.literal else pattern)
    if len(words) > 1:
        with suppress(FetchstashError):
            asked = " ".join(words)
            found = await search(documents, asked, refs, 1)
            if found.best_first:
                call = Call("search", {"query": asked, "refs": list(refs)})
                return Hint("Passages have words of it", "", call)
    return None


async def _grep(scans: Scans, query: GrepQuery, refs: Sequence[str], deadline: float) -> Matches:
    documents = scans.documents
    results: list[ArtifactMatches] = []
    sites: list[SiteGrep] = []
    skip, wanted = query.offset, query.max_matches
    waiting, of_site = deque(refs), dict[str, int]()
    while waiting:
        ref = waiting.popleft()
        number = of_site.get(ref)
        if number is not None and anyio.current_time() > deadline:
            sites[number] = replace(sites[number], unsearched=len(waiting) + 1)
            break
        with suppress(*((UnknownRef, ExpiredRef, NoText) if number is not None else ())):
            async with documents.opened(ref) as (facts, text):
                if facts.site_prefix:
                    pages = await pages_of(documents.store, facts)
                    of_site |= dict.fromkeys(pages, len(sites))
                    sites.append(SiteGrep(facts, len(pages)))
                    waiting.extendleft(reversed(pages))
                    continue
                await scans.refuse_scan(facts)
                page = replace(query, offset=skip, max_matches=max(wanted, 1))
                here = await _read.text_of(facts, text).grep(page)
            if number is not None and not here.total:
                continue
            groups, shown = (here.groups, here.shown) if wanted else ((), 0)
            skipped, left_out = min(skip, here.total), 0
            if number is None and not query.offset:
                left_out = await documents.count_left_out(facts, query)
            unread = await scans.unread(facts)
            results.append(
                ArtifactMatches(facts, groups, skipped, here.total, here.stopped, left_out, unread)
            )
            skip, wanted = max(skip - here.total, 0), max(wanted - shown, 0)
    matches = Matches(query, tuple(refs), tuple(results), tuple(sites))
    if matches.total and query.offset >= matches.total and not matches.stopped:
        raise _read.past_the_matches(query.offset, matches.total)
    return matches


async def search(
    documents: Documents, query: str, refs: Sequence[str], max_results: int
) -> Passages:
    """Return the passages that match the words of ``query`` best; see Stash."""
    store = documents.store
    known: dict[str, Facts] = {}
    of_sites: list[str] = []
    for ref in refs:
        facts = await store.get(ref)
        if facts.site_prefix:
            of_sites += await pages_of(store, facts)
        else:
            known[facts.artifact_ref] = facts
    named = list(known)
    among = list(dict.fromkeys((*known, *of_sites)))
    try:
        ranked = await store.search(query, among, max_results)
    except (UnknownRef, ExpiredRef):  # a page of a site went before its index
        among = [ref for ref in among if ref in known or await _is_kept(store, ref)]
        ranked = await store.search(query, among, max_results)
    for passage in ranked.passages:
        if passage.artifact_ref not in known:
            known[passage.artifact_ref] = await store.get(passage.artifact_ref)
    searched = len(among) or (await store.list(limit=1)).total
    any_word = GrepQuery("|".join(map(re.escape, query.split())), ignore_case=True)
    left_out = {
        ref: count
        for ref in (named if query.strip() else ())
        if (count := await documents.count_left_out(known[ref], any_word))
    }
    following: Call | None = None
    if ranked.pending and refs:  # they are long: a grep is sure to reach their ends
        options = {"pattern": any_word.pattern, "ignore_case": True}
        following = Call("grep", {"refs": list(refs), **options})
    elif ranked.pending and not ranked.passages:  # else it would show the same again
        following = Call("search", {"query": query, "max_results": max_results})
    return Passages(ranked.passages, known, searched, ranked.pending, left_out, following)


async def _is_kept(store: ArtifactStore, ref: str) -> bool:
    with suppress(UnknownRef, ExpiredRef):
        await store.get(ref)
        return True
    return False

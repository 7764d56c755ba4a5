"""Ingestion: fetch or open a document, read it, render it if it is scripts, and store it."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from fetchstash.config import Settings
from fetchstash.errors import BadArgument, Call, ExpiredRef, FetchstashError, NoText, UnknownRef
from fetchstash.fetch import (
    MAX_RULES,
    TWIN,
    Cached,
    Fetched,
    Fetcher,
    FetchLimits,
    Progress,
    Renderer,
    Rule,
    age_seconds,
    fetch_match,
    is_fresh,
    matching,
    may_be_fresh,
    may_keep,
)
from fetchstash.handlers import LEADING, Extractor, Hints, checked_lead, refreshed, route_file
from fetchstash.stash._changes import with_earlier
from fetchstash.stash._documents import hashed
from fetchstash.stash._facts import (
    TWIN_REACH,
    cached_of,
    described,
    failed,
    revalidated,
    same_again,
    says_the_same,
    with_extraction,
    with_response,
)
from fetchstash.stash._read import beginning
from fetchstash.stash._values import CacheUse, Picture
from fetchstash.store import ArtifactStore, Facts
from fetchstash.system import run_short, telemetry
from fetchstash.text import walls
from fetchstash.text.facts import NO_BROWSER
from fetchstash.text.hygiene import clean_line
from fetchstash.text.urls import key_of

SITE = "site"
"""The path of the outline of a page's site, which no handler answers."""
NEXT = "next"
"""The path of the next page of a list, which is fetched."""
_WHOLE_PAGE = "page"
"""The path that every web page answers, and no other document."""
_MASK = "***"
_SMALL_PAGE_BYTES = 2**15
_WALL_CHARS = 300
"""Characters of a page that may be a wall; one of more text was let through."""
_UNEXPLAINED = frozenset(("", "empty_shell", "no_text"))
"""Of a file that is looked at, and of a page that is read for a lead, without a thread: 2 ms."""


def is_web_page(facts: Facts) -> bool:
    """Return whether the document is a page that was fetched."""
    return _WHOLE_PAGE in described(facts).paths and bool(facts.final_url)


def wants_browser(facts: Facts, limits: FetchLimits) -> bool:
    """Return whether the settings have this page rendered."""
    if "off" in limits.browser or not is_web_page(facts):
        return False
    if "auto" in limits.browser and facts.page_verdict == "empty_shell":
        return True
    host = f".{(urlsplit(facts.final_url).hostname or '').removesuffix('.')}"
    return any(host.endswith(f".{domain.lstrip('.')}") for domain in limits.browser)


def _answers(facts: Facts, rule: Rule) -> bool:
    """Return whether a rule's address gave the document, and not just another page of the site."""
    if rule.media_type:
        is_read = facts.media_type == rule.media_type and bool(facts.extracted_chars)
        return is_read and not facts.extraction_error
    return not facts.page_verdict


_LEAST_EXTRACT_SECONDS = 1
_RESERVED_SECONDS = 4
_OF_A_DECISION = (
    "artifact_ref",
    "content_kind",
    "media_type",
    "declared_type",
    "decided_by",
    "handler",
)
"""For the extraction of a page that a browser rendered."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One call: its deadline on the loop's clock, and the receivers of its progress.

    ``within`` is the address below which redirects must stay ("": anywhere). Of ``kinds`` alone a
    document is kept (none: of every kind). ``known`` is the stored copy.
    """

    deadline: float
    progress: Progress | None = None
    on_page: Progress | None = None
    within: str = ""
    kinds: frozenset[str] = frozenset()
    known: Facts | None = None

    @property
    def seconds_left(self) -> float:
        return max(self.deadline - anyio.current_time(), 0)


@dataclass(frozen=True, slots=True)
class Intake:
    """Turns URLs and files into stored artifacts.

    ``ephemeral_refs`` are deleted at the end because their server said no-store (RFC 9111, section
    5.2.2.5). ``in_flight`` has a lock for each URL on its way, so that calls for one URL wait for
    each other and the later ones find what the first one kept.
    """

    settings: Settings
    fetcher: Fetcher
    extractor: Extractor
    store: ArtifactStore
    renderer: Renderer | None = None
    ephemeral_refs: set[str] = field(default_factory=set[str])
    in_flight: WeakValueDictionary[str, anyio.Lock] = field(
        default_factory=WeakValueDictionary[str, anyio.Lock]
    )

    async def url(
        self,
        url: str,
        *,
        refresh: bool = False,
        progress: Progress | None = None,
        on_page: Progress | None = None,
        within: str = "",
        kinds: frozenset[str] = frozenset(),
        until: float | None = None,
    ) -> tuple[Facts, CacheUse | None]:
        """Fetch a URL or reuse its stored copy; return the facts, and how the copy was used.

        A fresh copy is used; a stale one is revalidated (RFC 9111, section 4). ``progress`` is
        called with the bytes that came, ``on_page`` with the pages that were read. Redirects stay
        below ``within``, if it is given. It ends by ``until``, on the loop's clock. Raises NoText
        for a document that is of none of ``kinds`` or has no text, where kinds are given; it is not
        kept.
        """
        async with self.in_flight.setdefault(key_of(url), anyio.Lock(fast_acquire=True)):
            seconds = self.settings.fetch.deadline_seconds
            deadline = anyio.current_time() + seconds if until is None else until
            known = await self.known(url)
            if known and known.rule in self.settings.fetch.rules_off:
                known = None
            if known is None:  # else it may be unchanged
                self.extractor.prepare()
            call = _Call(deadline, progress, on_page, within, kinds, known)
            facts, use = await self._now(url, call, refresh=refresh)
            return await with_earlier(self.store, facts, known), use

    async def _now(self, url: str, call: _Call, *, refresh: bool) -> tuple[Facts, CacheUse | None]:
        """Fetch a URL now, conditionally if there is a stored copy; return facts and its use."""
        known = call.known
        cached = cached_of(known) if known else None
        may_be_used = known and cached and not refresh and may_be_fresh(cached)
        if known and cached and may_be_used and await anyio.to_thread.run_sync(is_fresh, cached):
            await self.fetcher.check(url, known.final_url)
            telemetry.count("cache", outcome="fresh")
            age = age_seconds(cached, datetime.now(UTC))
            return await self.store.touch(known.artifact_ref), CacheUse(age)
        if not call.within and (by_rule := await self._by_rule(url, cached, call)):
            return by_rule
        asked = call
        if known and known.page_ref:  # one that gave its Markdown is asked for by what it said
            page = await self.known(known.page_ref)
            asked, cached = replace(call, known=page), cached_of(page) if page else None
        with telemetry.span("fetch"):
            fetched = await self.fetcher.fetch(
                url,
                self.store.spool,
                cached=cached,
                progress=call.progress,
                seconds=call.seconds_left,
                within=call.within,
            )
        facts, use = await self._taken(fetched, asked)
        if known and use:
            same = facts.artifact_ref == known.artifact_ref
            return facts if same else await self.store.touch(known.artifact_ref), use
        facts, fetched = await self._follow(facts, fetched, call)
        if facts.leads_to and not facts.page_verdict and not call.within:
            return await self._twin(facts, fetched, call), None
        if self.renderer and wants_browser(facts, self.settings.fetch):
            facts = await self._rendered(facts, fetched, self.renderer, call)
        return facts, None

    async def _by_rule(
        self, url: str, cached: Cached | None, call: _Call
    ) -> tuple[Facts, CacheUse | None] | None:
        """Return the document that a rule gives for a URL; None where the page itself is wanted."""
        until = anyio.current_time() + call.seconds_left / 2
        for match in islice(matching(url, self.settings.fetch.rules_off), MAX_RULES):
            with suppress(FetchstashError):  # the page is fetched then, and says why
                with telemetry.span("fetch"):
                    fetched = await fetch_match(
                        self.fetcher,
                        match,
                        self.store.spool,
                        cached=cached,
                        progress=call.progress,
                        until=until,
                    )
                facts, use = await self._taken(fetched, call)
                if use or _answers(facts, match.rule):
                    return facts, use
                await self._delete(facts.artifact_ref)
        return None

    async def _twin(self, page: Facts, fetched: Fetched, call: _Call) -> Facts:
        """Return the facts of the Markdown that a page names as its own, else the page's facts."""
        with suppress(FetchstashError):
            fetched = await self.fetcher.fetch(
                page.leads_to, self.store.spool, after=fetched, seconds=call.seconds_left / 2
            )
            twin = await self._keep(replace(fetched, rule=TWIN), call)
            if await self._is_twin(page, twin):
                return await self.store.touch(
                    twin.artifact_ref, replace(twin, page_ref=page.artifact_ref)
                )
            await self._delete(twin.artifact_ref)
            return await self.store.touch(page.artifact_ref)  # the newest of its URL again
        return page

    async def _is_twin(self, page: Facts, twin: Facts) -> bool:
        """Return whether a Markdown has the page's content: no error, no other page, no list."""
        chars, most = twin.extracted_chars or 0, 4 * (page.extracted_chars or 0) + 4_000
        if not (twin.is_text and page.extracted_chars and 0 < chars <= most):
            return False
        reaches = (page, TWIN_REACH), (twin, most)
        texts = [await beginning(self.store, facts.artifact_ref, reach) for facts, reach in reaches]
        return says_the_same(*texts)

    async def _taken(self, fetched: Fetched, call: _Call) -> tuple[Facts, CacheUse | None]:
        """Return the facts of a response, and the use of the stored copy if that is unchanged."""
        known = call.known
        telemetry.count("bytes_in", fetched.size_bytes)
        outcome = "not_modified" if fetched.not_modified else "stale" if known else "miss"
        telemetry.count("cache", outcome=outcome)
        if fetched.path is None:
            assert known is not None  # only a conditional request is answered without a body
            facts = await self.store.touch(known.artifact_ref, revalidated(known, fetched))
            return facts, CacheUse()
        return await self._keep(fetched, call), None

    async def _follow(self, facts: Facts, fetched: Fetched, call: _Call) -> tuple[Facts, Fetched]:
        """Follow pages without text to where they lead; each counts as one more redirect."""
        responses = {facts.artifact_ref: fetched}
        while facts.page_verdict in LEADING and facts.leads_to:
            page = facts
            try:
                fetched = await self.fetcher.fetch(
                    facts.leads_to,
                    self.store.spool,
                    after=fetched,
                    seconds=call.seconds_left,
                    within=call.within,
                )
                facts = await self._keep(fetched, call)
            except FetchstashError:
                break  # the page stays, and names the address
            responses[facts.artifact_ref] = fetched
            is_text = facts.extracted_chars and facts.page_verdict in {"", "leads_on"}
            if page.page_verdict == "empty_shell" and not is_text:
                page, facts = facts, page
            if page.artifact_ref != facts.artifact_ref:
                await self._delete(page.artifact_ref)
            if facts.page_verdict == "empty_shell":
                break
        return facts, responses[facts.artifact_ref]

    async def _rendered(
        self, facts: Facts, fetched: Fetched, renderer: Renderer, call: _Call
    ) -> Facts:
        """Return the facts of a page as a browser renders it; of the page itself if it cannot."""
        reason = "it has no text then either"
        try:
            seconds = max(call.seconds_left - _RESERVED_SECONDS, 0)
            with telemetry.span("render"):
                page = await renderer.render(fetched.final_url, self.store.spool, seconds=seconds)
        except FetchstashError as error:
            reason = error.what
        else:
            try:
                hints = Hints(
                    fetched.masked_final_url, "text/html; charset=utf-8", name=fetched.name
                )
                new = with_response(Facts(), fetched)
                new = replace(new, rendered=page.browser, incomplete=page.incomplete)
                rendered = await self._take_in(page.path, hints, new, fetched.url, call)
            finally:
                page.path.unlink(missing_ok=True)
            if not may_keep(fetched.headers):
                self.ephemeral_refs.add(rendered.artifact_ref)
            has_text = rendered.extracted_chars and rendered.page_verdict != "empty_shell"
            await self._delete((facts if has_text else rendered).artifact_ref)
            if has_text:
                return rendered
        return await self.store.touch(facts.artifact_ref, replace(facts, rendered=f"no: {reason}"))

    async def screenshot(self, facts: Facts) -> Picture:
        """Return a web page as a browser shows it now, within the bounds of pictures."""
        assert self.renderer is not None
        if _MASK in facts.final_url:
            again = Call("read", {"ref": facts.artifact_ref})
            what = "The page's address holds a secret that is not kept, so it cannot be shown."
            raise BadArgument(what, "Try {}.", again)
        limits = self.settings.context
        rendered = await self.renderer.render(
            facts.final_url,
            self.store.spool,
            seconds=self.settings.fetch.deadline_seconds,
            edge=limits.max_image_edge_px,
            max_bytes=limits.max_image_size_bytes,
        )
        try:
            data = await anyio.to_thread.run_sync(rendered.path.read_bytes)
        finally:
            rendered.path.unlink(missing_ok=True)
        return Picture(facts, data, rendered.media_type, rendered.width, rendered.height)

    async def file(
        self, path: Path, name: str, label: str = "", on_page: Progress | None = None
    ) -> Facts:
        """Return the facts of a file that is in the spool, stored under ``label`` or ``name``.

        The same bytes so called stay the same artifact.
        """
        digest, size = await run_short(path.stat().st_size, partial(hashed, path))  # noqa: ASYNC240
        key = f"file:{digest}/{label or name}"  # no URL that can be fetched, and none to be guessed
        known = await self.known(key)
        if known and not failed(known):
            return await self.store.touch(known.artifact_ref)
        call = _Call(math.inf, on_page=on_page)
        facts = Facts(name=clean_line(label), sha256=digest, size_bytes=size)
        return await self._take_in(path, Hints(name=name), facts, key, call)

    async def delete_ephemeral(self) -> None:
        """Delete the artifacts whose servers forbade storing them."""
        for ref in self.ephemeral_refs:
            await self._delete(ref)

    async def _delete(self, ref: str) -> None:
        with suppress(FetchstashError):
            await self.store.delete(ref)

    async def known(self, url: str) -> Facts | None:
        """Return the facts of a URL's stored copy, None if there is none."""
        try:
            return await self.store.get(url)
        except (UnknownRef, ExpiredRef):
            return None

    async def _keep(self, fetched: Fetched, call: _Call) -> Facts:
        """Store a response. If the body is unchanged, keep the stored copy and update its facts."""
        raw, known = fetched.path, call.known
        assert raw is not None  # the answer is no 304
        try:
            if known and same_again(
                known, renewed := with_response(known, fetched), fetched.sha256
            ):
                return await self.store.touch(known.artifact_ref, renewed)
            declared = fetched.headers.get("content-type", "")
            hints = Hints(url=fetched.masked_final_url, declared_type=declared, name=fetched.name)
            hashed = Facts(sha256=fetched.sha256, size_bytes=fetched.size_bytes)
            facts = with_response(hashed, fetched)
            facts = await self._take_in(raw, hints, facts, fetched.url, call, fetched.headers)
            if not may_keep(fetched.headers):
                self.ephemeral_refs.add(facts.artifact_ref)
            return facts
        finally:
            raw.unlink(missing_ok=True)

    async def _take_in(
        self,
        raw: Path,
        hints: Hints,
        facts: Facts,
        url: str,
        call: _Call,
        fields: Mapping[str, str] | None = None,
    ) -> Facts:
        """Route, extract and store one file; ``fields`` are the header fields of its response."""
        shadow = self.settings.ingest.router == "shadow"
        headers = {"content-type": hints.declared_type} if hints.declared_type else {}
        route = partial(route_file, raw, headers, hints.name or hints.url, shadow=shadow)
        decision = await run_short(facts.size_bytes, route)
        not_wanted = NoText("It is no such document.", "Look for another.")
        if call.kinds and decision.kind not in call.kinds:
            raise not_wanted
        hints = replace(hints, charset=decision.charset)
        is_bound = call.deadline < math.inf
        seconds = max(int(call.seconds_left), _LEAST_EXTRACT_SECONDS) if is_bound else None
        with telemetry.span("extract", content_kind=decision.kind):
            extraction = await self.extractor.extract(
                raw, decision, hints, self.store.spool, seconds=seconds, on_page=call.on_page
            )
        if call.kinds and not extraction.chars:
            if extraction.text is not None:
                extraction.text.unlink(missing_ok=True)
            raise not_wanted
        threshold = self.settings.views.inline_threshold
        facts = with_extraction(
            facts, decision, extraction, name=facts.name or hints.name, inline_threshold=threshold
        )
        refresh, link = ((fields or {}).get(name, "") for name in ("refresh", "link"))
        address = refreshed(refresh, hints.url, facts.extracted_chars) if refresh else ""
        verdict = "leads_on" if address else ""
        if not address and decision.kind == "html":
            twins = TWIN not in self.settings.fetch.rules_off
            page = raw, hints.charset, hints.url, facts.page_verdict
            lead = partial(checked_lead, *page, twins=twins, header=link)
            verdict, address = await run_short(facts.size_bytes, lead, small=_SMALL_PAGE_BYTES)
            # What lets a page through may carry the field of its wall as well.
            is_short = (facts.extracted_chars or 0) <= _WALL_CHARS
            wall = walls.of_headers(fields) if fields and is_short else None
            if wall and wall.name in walls.PAGES and verdict in _UNEXPLAINED:
                verdict = wall.name
        paths = (*facts.paths, *[SITE] * is_web_page(facts), *[NEXT] * bool(facts.next_url))
        facts = replace(facts, paths=paths, page_verdict=verdict, leads_to=clean_line(address))
        if facts.page_verdict == "empty_shell" and not self.renderer and not facts.rendered:
            has_none = "auto" in self.settings.fetch.browser
            facts = replace(facts, rendered=NO_BROWSER if has_none else "")
        try:
            kept = await self.store.put(raw, extraction.text, facts, extraction.ranges, url=url)
        finally:
            if extraction.text is not None:
                extraction.text.unlink(missing_ok=True)
        told = {name: getattr(kept, name) for name in _OF_A_DECISION}
        more = {"evidence": list(kept.evidence), "shadow": decision.shadow}
        telemetry.event("ingest.decision", **told, **more)
        telemetry.count("extracted_chars", kept.extracted_chars or 0)
        return kept

"""Facts of a document with its preview."""

import re
from dataclasses import dataclass, field, replace
from typing import cast
from urllib.parse import urljoin

from fetchstash.fetch import Cached, Fetched, landing, mask_url, pager
from fetchstash.handlers import ContentKind, DecidedBy, Decision, Extraction, Hints, describe
from fetchstash.store import Facts
from fetchstash.text import (
    PreviewLimits,
    TruncationInfo,
    ViewLimits,
    head_and_tail,
    largest,
    prefix_length,
    tokens,
    whole_lines,
)
from fetchstash.text.hygiene import clean_line
from fetchstash.text.ranges import Preview
from fetchstash.text.tokens import TokenCount

_CHARS_PER_TOKEN = 4
"""Of English text in o200k, roughly."""


def with_extraction(
    facts: Facts, decision: Decision, extraction: Extraction, *, name: str, inline_threshold: int
) -> Facts:
    """Return ``facts`` with the router's decision and the extraction, each string on one line."""
    has_text = extraction.text is not None
    router = [f"router: {decision.shadow}"] if decision.shadow else []
    document = extraction.document_facts()
    document["media_type"] = extraction.media_type or decision.media_type
    document["next_url"] = facts.next_url or resolved(extraction.next_url, facts.final_url)
    for count in ("last_page", "items_total"):  # what the header fields say goes first
        own = getattr(facts, count)
        document[count] = document[count] if own is None else own
    if not extraction.word:  # the worker died before it could say what it read
        document |= describe(decision.kind, document["media_type"])
    return replace(
        facts,
        **document,
        declared_type=clean_line(decision.declared_type),
        charset=clean_line(decision.charset),
        name=clean_line(name),
        handler=extraction.handler,
        extracted_chars=extraction.chars if has_text else None,
        text_lines=extraction.lines if has_text else None,
        text_tokens=extraction.tokens if has_text else None,
        text_tokens_exact=extraction.tokens_exact,
        page_range=(1, len(extraction.ranges.pages)) if extraction.ranges.pages else None,
        decided_by=decision.decided_by,
        evidence=tuple(
            clean_line(item) for item in (*decision.evidence, *router, *extraction.notes)
        ),
        mismatch=decision.mismatch,
        is_oversized=has_text and extraction.chars > inline_threshold,
    )


def resolved(address: str, base: str) -> str:
    """Return the whole URL of an address on a page; "" if it is none, or holds a secret."""
    try:
        url = urljoin(base, address) if address and base else ""
    except ValueError:
        return ""
    is_other = url.startswith(("http://", "https://")) and url != base
    return url if is_other and mask_url(url) == url else ""


TWIN_REACH, _TWIN_SHARE = 6_000, 0.6
"""Of a page's first characters, how many words its own Markdown has."""
_LONG_WORD = re.compile(r"\w{4,40}")
_HTML = re.compile(r"\s*<(?:!doctype|html|head|title|meta|link|body)\b", re.IGNORECASE)


def says_the_same(page: str, twin: str) -> bool:
    """Return whether a text has most words of a page's beginning, and is not a web page itself."""
    said, found = (set(_LONG_WORD.findall(text.lower())) for text in (page, twin))
    return not _HTML.match(twin) and len(said & found) >= _TWIN_SHARE * len(said)


def described(facts: Facts) -> Facts:
    """Return facts with the format's description, for artifacts that were stored without one."""
    if facts.word:
        return facts
    return replace(facts, **describe(facts.content_kind, facts.media_type))


def decision_of(facts: Facts) -> Decision:
    """Return the router's decision at ingestion."""
    return Decision(
        kind=cast("ContentKind", facts.content_kind),
        media_type=facts.media_type,
        declared_type=facts.declared_type,
        decided_by=cast("DecidedBy", facts.decided_by),
        evidence=facts.evidence,
        mismatch=facts.mismatch,
    )


def hints_of(facts: Facts) -> Hints:
    """Return the hints that the handler had at ingestion."""
    return Hints(
        url=facts.final_url,
        declared_type=facts.declared_type,
        charset=facts.charset,
        name=facts.name,
    )


def tokens_of(facts: Facts) -> TokenCount:
    """Return the tokens of the text, estimated if they were never counted (a client's offload)."""
    if facts.text_tokens is None:
        return TokenCount((facts.extracted_chars or 0) // _CHARS_PER_TOKEN, exact=False)
    return TokenCount(facts.text_tokens, facts.text_tokens_exact)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The text that a preview is cut from.

    ``text`` is the beginning of the text, one character more than ``limit`` if there are more.
    ``preview`` shows a long text better than its beginning does: the handler's preview, or the
    passages that match a focus, best first; ``lines`` are the best passage's, with some around
    it. With a focus a text of more than ``passages_over`` characters is not shown whole, even if
    it fits (None: no focus); ``place`` orders the documents of a call by how well they answer, from
    1. ``unfocused``: no passage has a word of the focus; ``elsewhere``: other documents of the call
    answer it better. ``partly``: there was no time to look through the whole text for it.
    ``ending`` is the end of a text whose first and last lines are shown ("": only its beginning
    is). ``no_section``: the URL's fragment names nothing that is here.
    """

    limit: int = 0
    text: str = ""
    preview: Preview = field(default_factory=Preview)
    ending: str = ""
    lines: tuple[int, int] | None = None
    passages_over: int | None = None
    place: int = 0
    unfocused: bool = False
    elsewhere: bool = False
    no_section: bool = False
    partly: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """The body of a result. For a preview, ``info`` says how much of the text it is.

    ``offset`` is where the body ended if it is the beginning of the text, else 0.
    """

    body: str
    info: TruncationInfo | None = None
    offset: int = 0


def shown_of(
    excerpt: Excerpt, facts: Facts, views: ViewLimits, previews: PreviewLimits, limit: int
) -> Shown:
    """Return the whole text if it is within ``limit``, else the preview.

    With a focus only a short text is shown whole.
    """
    most = limit if excerpt.passages_over is None else min(excerpt.passages_over, limit)
    if fits(excerpt, facts, views, most):
        return Shown(excerpt.text)
    bound = min(views.preview_chars, limit)
    offset = 0
    cutter = _Cutter(views, previews, bound)
    if excerpt.preview.text:
        body, preview = cutter.preview(excerpt.preview)
    elif excerpt.ending:
        body, lines = cutter.ends(excerpt, max(facts.text_lines or 0, 1))
        preview = Preview(lines_shown=lines)
    else:
        body = excerpt.text[: cutter.prefix(excerpt.text)]
        offset = len(body)
        preview = Preview(lines_shown=body.count("\n") + (not body.endswith("\n")))
    # An estimate: counting would load the vocabulary into the server.
    cost = TokenCount(tokens.estimate(body), exact=False)
    ended = len(body) >= previews.max_total_output
    info = TruncationInfo.of(
        preview, facts.text_lines or 0, cost, tokens_of(facts), total_output_limit_reached=ended
    )
    return Shown(body, info, offset)


def fits(excerpt: Excerpt, facts: Facts, views: ViewLimits, limit: int) -> bool:
    """Return whether the whole text is within ``limit``, as the host counts."""
    return len(excerpt.text) == facts.extracted_chars and views.measure(excerpt.text) <= limit


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Cuts texts to ``bound``, as the host counts, and to the limits of previews."""

    views: ViewLimits
    previews: PreviewLimits
    bound: int

    def preview(self, preview: Preview) -> tuple[str, Preview]:
        """Return what fits, and the kind of preview; the number of rows in a cut one is unknown."""
        for candidate in (preview, preview.without_sample()):
            if self.prefix(candidate.whole) == len(candidate.whole):
                return candidate.whole, candidate
        end = self.prefix(preview.text)
        return preview.text[: whole_lines(preview.text, end) or end].removesuffix("\n"), Preview()

    def ends(self, excerpt: Excerpt, lines: int) -> tuple[str, int]:
        """Return first and last lines of a text that fit, and how many they are."""
        width = self.previews.max_line_length if lines > 1 else self.bound
        head, tail = excerpt.text.split("\n"), excerpt.ending.removesuffix("\n").split("\n")
        # The excerpt may begin and end inside a line. Such a piece is shown only where it is
        # longer than what would be shown of a line anyway.
        head, tail = head if len(head[-1]) > width else head[:-1], tail[1:]
        return head_and_tail(head, tail, lines, self.previews.lines, width, self._fits)

    def _fits(self, text: str) -> bool:
        limits = self.previews
        fits = len(text) <= limits.max_total_output and self.views.measure(text) <= self.bound
        most = limits.max_tokens_per_file  # a token has a character at least
        return fits and (len(text) <= most or tokens.estimate(text) <= most)

    def prefix(self, text: str) -> int:
        """Return how many characters fit; the limit of a line's length does not apply."""
        limits = self.previews
        end = prefix_length(text[: limits.max_total_output], self.bound, self.views.measure)
        lines = text[:end].split("\n", limits.max_lines)
        if len(lines) > limits.max_lines:
            end -= len(lines[-1])
        most = limits.max_tokens_per_file
        if tokens.estimate(text[:end]) > most:
            end = largest(end, lambda length: tokens.estimate(text[:length]) <= most)
        return end


# The response's fields that freshness is computed from (RFC 9111, sections 4.1, 4.2, 5.1 to 5.3).
_CACHING = ("age", "cache-control", "date", "expires", "pragma", "vary")


def with_response(facts: Facts, fetched: Fetched) -> Facts:
    """Return ``facts`` with those of a response. Header values are untrusted: clean them."""
    headers = {name: clean_line(value) for name, value in fetched.headers.items()}
    pages, final_url = pager(fetched.headers), clean_line(fetched.masked_final_url)
    return replace(
        facts,
        validated_at=fetched.fetched_at,
        caching=_freshness(fetched),
        source_url=clean_line(fetched.masked_url),
        final_url=final_url,
        http_status=fetched.status,
        etag=headers.get("etag", ""),
        last_modified=headers.get("last-modified", ""),
        incomplete=clean_line(fetched.incomplete),
        next_url=resolved(clean_line(pages.next_url), final_url) or facts.next_url,
        last_page=facts.last_page if pages.last_page is None else pages.last_page,
        items_total=facts.items_total if pages.items_total is None else pages.items_total,
        landed=landing(fetched.url, fetched.final_url)
        if fetched.redirects and not fetched.rule
        else "",
        rule=fetched.rule,
    )


def revalidated(facts: Facts, fetched: Fetched) -> Facts:
    """Return ``facts`` with the freshness that a response gives them (RFC 9111, section 4.3.4)."""
    return replace(facts, validated_at=fetched.fetched_at, caching=_freshness(fetched))


def _freshness(fetched: Fetched) -> dict[str, str]:
    headers = fetched.headers
    return {name: clean_line(headers[name]) for name in _CACHING if name in headers}


def failed(facts: Facts) -> bool:
    """Return whether a document was read incompletely or not at all, so that a retry may help."""
    is_whole = facts.is_text and facts.extracted_chars and not facts.extraction_truncated
    return bool(facts.extraction_error) and not is_whole


def cached_of(facts: Facts) -> Cached | None:
    """Return the validators of a stored copy; None if the body must be fetched again."""
    if facts.incomplete or failed(facts) or facts.validated_at is None:
        return None
    return Cached(
        facts.validated_at,
        facts.etag,
        facts.last_modified,
        facts.caching,
        facts.http_status or 200,
        facts.final_url,
    )


def same_again(known: Facts, renewed: Facts, sha256: str) -> bool:
    """Return whether the same bytes came again from the same place."""
    same_place = (known.final_url, known.incomplete) == (renewed.final_url, renewed.incomplete)
    same_place = same_place and known.rule == renewed.rule
    return known.sha256 == sha256 and same_place and not failed(known)

"""From the values of the rooms to the facts of an artifact, and from those to what a view has to know."""

from dataclasses import replace
from typing import cast

from fetchstash.handlers import ContentKind, DecidedBy, Decision, Extraction, Hints, kind_word
from fetchstash.hygiene import clean_line
from fetchstash.render import Subject
from fetchstash.store import Facts
from fetchstash.tokens import TokenCount

_CHARS_PER_TOKEN = 4
"""Of English in o200k, about."""


def with_findings(
    facts: Facts, decision: Decision, extraction: Extraction, *, name: str, inline_threshold: int
) -> Facts:
    """Return ``facts`` with what the bytes told: the router's decision and the handler's findings, clean and on one line."""
    has_text = extraction.text is not None
    router = [f"router: {decision.shadow}"] if decision.shadow else []
    document = extraction.document_facts()
    document["media_type"] = extraction.media_type or decision.media_type
    return replace(
        facts,
        **document,
        content_kind=decision.kind,
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
        evidence=tuple(clean_line(item) for item in (*decision.evidence, *router)),
        mismatch=decision.mismatch,
        is_oversized=has_text and extraction.chars > inline_threshold,
    )


def decision_of(facts: Facts) -> Decision:
    """Return what the router decided when the artifact was taken in."""
    return Decision(
        kind=cast("ContentKind", facts.content_kind),
        media_type=facts.media_type,
        declared_type=facts.declared_type,
        decided_by=cast("DecidedBy", facts.decided_by),
        evidence=facts.evidence,
        mismatch=facts.mismatch,
    )


def hints_of(facts: Facts) -> Hints:
    """Return what was known of the document besides its bytes when it was taken in."""
    return Hints(
        url=facts.final_url,
        declared_type=facts.declared_type,
        charset=facts.charset,
        name=facts.name,
    )


def dimension(facts: Facts) -> str:
    """Return the size of a document in its own terms: "pages 48", "1600×900 px"."""
    if facts.content_kind == "office_doc" and facts.pages is not None:
        return f"{'slides' if 'presentation' in facts.media_type else 'pages'} {facts.pages}"
    if facts.width is not None and facts.height is not None:
        return f"{facts.width}×{facts.height} px"
    counts = {
        "pages": facts.pages,
        "sheets": facts.sheets,
        "members": facts.members,
        "rows": facts.rows,
    }
    return next((f"{word} {count}" for word, count in counts.items() if count is not None), "")


def _tokens(facts: Facts) -> TokenCount:
    """Return how many tokens the text has; roughly, where nobody counted them: what a client offloaded."""
    if facts.text_tokens is None:
        return TokenCount((facts.extracted_chars or 0) // _CHARS_PER_TOKEN, exact=False)
    return TokenCount(facts.text_tokens, facts.text_tokens_exact)


def subject_of(facts: Facts, *, local: bool, from_cache: str = "") -> Subject:
    """Return what a view has to know of an artifact; over HTTP it is given no path."""
    shown = facts.to_json()
    del shown["outline"], shown["caching"]
    shown["from_cache"] = from_cache
    if not local:
        shown["path"] = None
    unit = (
        "pages"
        if facts.page_range
        else "rows"
        if facts.rows and facts.content_kind == "csv"
        else "lines"
    )
    return Subject(
        ref=facts.artifact_ref,
        word=kind_word(decision_of(facts)),
        name=facts.name,
        source=facts.final_url or facts.source_url or facts.name,
        size_bytes=facts.size_bytes,
        dimension=dimension(facts),
        chars=facts.extracted_chars,
        text_bytes=facts.text_bytes or 0,
        lines=facts.text_lines or 0,
        tokens=_tokens(facts),
        unit=unit,
        path=(facts.path or "") if local else "",
        truncated=facts.extraction_truncated,
        error=facts.extraction_error,
        incomplete=facts.incomplete,
        from_cache=from_cache,
        picturable=facts.content_kind in ("image", "pdf"),
        facts=shown,
    )

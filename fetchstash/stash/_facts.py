"""Map what fetch and the handlers return to the facts of an artifact, and back."""

from dataclasses import replace
from typing import cast

from fetchstash.handlers import ContentKind, DecidedBy, Decision, Extraction, Hints, describe
from fetchstash.store import Facts
from fetchstash.text.hygiene import clean_line
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


def described(facts: Facts) -> Facts:
    """Return facts with what the format says of the document, where they were stored without."""
    if facts.word:
        return facts
    return replace(facts, **describe(facts.content_kind, facts.media_type))


def decision_of(facts: Facts) -> Decision:
    """Return what the router decided at ingestion."""
    return Decision(
        kind=cast("ContentKind", facts.content_kind),
        media_type=facts.media_type,
        declared_type=facts.declared_type,
        decided_by=cast("DecidedBy", facts.decided_by),
        evidence=facts.evidence,
        mismatch=facts.mismatch,
    )


def hints_of(facts: Facts) -> Hints:
    """Return what else was known of the document at ingestion."""
    return Hints(
        url=facts.final_url,
        declared_type=facts.declared_type,
        charset=facts.charset,
        name=facts.name,
    )


def tokens_of(facts: Facts) -> TokenCount:
    """Return the tokens of the text, estimated where nobody counted them (a client's offload)."""
    if facts.text_tokens is None:
        return TokenCount((facts.extracted_chars or 0) // _CHARS_PER_TOKEN, exact=False)
    return TokenCount(facts.text_tokens, facts.text_tokens_exact)

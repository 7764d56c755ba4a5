"""The lines of a result about its artifact."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fetchstash.stash import CacheUse, described, tokens_of
from fetchstash.store import Facts
from fetchstash.text.tokens import TokenCount


@dataclass(frozen=True, slots=True)
class Subject:
    """The words and numbers of an artifact's lines, and its facts for ``_meta``.

    ``word`` is what people call it (PDF, HTML page), ``dimension`` its size in its own terms
    ("pages 48", or ""), ``chars`` the length of its text (None: it has none), ``path`` the file of
    the text ("" over HTTP), ``from_cache`` the cache notice ("" if the network answered).
    ``picturable``: it can be shown as a picture.
    """

    ref: str
    word: str
    name: str
    source: str
    size_bytes: int
    dimension: str
    chars: int | None
    text_bytes: int
    lines: int
    tokens: TokenCount
    unit: str
    path: str
    truncated: bool
    error: str
    incomplete: str
    from_cache: str
    picturable: bool
    facts: Mapping[str, Any]


def subject_of(
    facts: Facts, *, local: bool, cache: CacheUse | None = None, refresh: str = ""
) -> Subject:
    """Return what is shown of an artifact; ``refresh`` is how the face asks the server again.

    Only a reader that shares our file system (``local``) is given a path.
    """
    facts = described(facts)
    from_cache = _cache_notice(cache, refresh) if cache else ""
    shown = facts.to_json(without=("outline", "caching"))  # thousands of headings take long
    shown["from_cache"] = from_cache
    if not local:
        shown["path"] = None
    return Subject(
        ref=facts.artifact_ref,
        word=facts.word,
        name=facts.name,
        source=facts.final_url or facts.source_url or facts.name,
        size_bytes=facts.size_bytes,
        dimension=_dimension(facts),
        chars=facts.extracted_chars,
        text_bytes=facts.text_bytes or 0,
        lines=facts.text_lines or 0,
        tokens=tokens_of(facts),
        unit=_unit(facts),
        path=(facts.path or "") if local else "",
        truncated=facts.extraction_truncated,
        error=facts.extraction_error,
        incomplete=facts.incomplete,
        from_cache=from_cache,
        picturable=facts.pictures,
        facts=shown,
    )


def _cache_notice(cache: CacheUse, refresh: str) -> str:
    if cache.age_seconds is None:
        return "kept copy; the server says that it has not changed"
    age = f"kept copy, {cache.age_seconds} s old and still fresh"
    return f"{age}; the server was not asked. {refresh} asks it"


def _unit(facts: Facts) -> str:
    if facts.page_range:
        return "pages"
    return facts.unit if facts.rows else "lines"


def _dimension(facts: Facts) -> str:
    """Return the size of a document in its own terms: "pages 48", "1600×900 px, 3:05"."""
    length = "" if facts.seconds is None else _clock(facts.seconds)
    if facts.pages is not None:
        return f"{facts.page_word} {facts.pages}"
    if facts.width is not None and facts.height is not None:
        return ", ".join(filter(None, (f"{facts.width}×{facts.height} px", length)))
    if length:
        return length
    counts = {"sheets": facts.sheets, "members": facts.members, "rows": facts.rows}
    return next((f"{word} {count}" for word, count in counts.items() if count is not None), "")


def _clock(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

"""The values of a store: facts, references, queries, findings."""

import base64
import hashlib
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from fetchstash.errors import Call
from fetchstash.store._limits import REF_PREFIX
from fetchstash.store._text import StrideIndex
from fetchstash.text.facts import FACTS, DocumentFacts
from fetchstash.text.ranges import Heading

_TIMES = ("created_at", "expires_at", "validated_at", "earlier_at")
_LISTS = (
    *(name for name, fact in FACTS.items() if fact.shape in ("lines", "headings")),
    "evidence",
    "page_range",
)
"""The fields that JSON has no type for: times and tuples."""


@cache
def _names(without: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the fields of Facts, those of the document last."""
    names = (f.name for f in fields(Facts) if f.name not in without)
    return tuple(sorted(names, key=lambda name: name in FACTS))


@cache
def _values(names: tuple[str, ...]) -> "attrgetter[tuple[Any, ...]]":
    """Return a function that reads these fields."""
    return attrgetter(*names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts(DocumentFacts):
    """Facts of one artifact: of its document, and of its keeping (docs/facts.md).

    Every string is clean: hygiene done, secrets masked.
    The store fills artifact_ref, path, size_bytes, sha256, created_at, expires_at (UTC) and pinned,
    and counts extracted_chars, text_bytes and text_lines where there is a text; the rest is the
    caller's. ``caching`` holds the response's header fields that say how long it stays fresh,
    ``validated_at`` when the server last said that this is what it has. ``earlier_ref`` is what its
    URL gave before, until ``earlier_at``; ``changed_passages`` counts how the text differs (None:
    not counted). ``site_prefix``: this is the index of what lies below that address.
    """

    artifact_ref: str = ""
    path: str | None = None
    media_type: str = "application/octet-stream"
    declared_type: str = ""
    charset: str = ""
    size_bytes: int = 0
    sha256: str = ""
    source_url: str = ""
    final_url: str = ""
    name: str = ""
    created_at: datetime | None = None
    expires_at: datetime | None = None
    http_status: int | None = None
    etag: str = ""
    last_modified: str = ""
    validated_at: datetime | None = None
    caching: Mapping[str, str] = field(default_factory=dict[str, str])
    handler: str = ""
    extracted_chars: int | None = None
    text_bytes: int | None = None
    text_lines: int | None = None
    text_tokens: int | None = None
    text_tokens_exact: bool = True
    page_range: tuple[int, int] | None = None
    decided_by: str = "fallback"
    evidence: tuple[str, ...] = ()
    mismatch: bool = False
    incomplete: str = ""
    is_oversized: bool = False
    pinned: bool = False
    rendered: str = ""
    landed: str = ""
    rule: str = ""
    page_ref: str = ""
    earlier_ref: str = ""
    earlier_at: datetime | None = None
    changed_passages: int | None = None
    site_prefix: str = ""

    @property
    def is_page_of_list(self) -> bool:
        """Whether the document names a next page, as that of a list or of a split article does.

        The next chapter of a manual is another document: its address differs in words.
        """
        is_list = self.items is not None or self.last_page is not None
        if not self.next_url or is_list or "page" not in self.paths:
            return bool(self.next_url)
        following, own = (
            re.sub(r"\d+", "0", url.partition("?")[0]) for url in (self.next_url, self.final_url)
        )
        return following == own

    def to_json(self, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return plain JSON data: times as RFC 3339 in UTC, unknown values as null."""
        names = _names(without)
        data: dict[str, Any] = dict(zip(names, _values(names)(self), strict=True))
        for name in _TIMES:
            if at := data.get(name):
                data[name] = at.isoformat(timespec="seconds").replace("+00:00", "Z")
        for name in _LISTS:
            if (items := data.get(name)) is not None:
                data[name] = [i.to_json() if isinstance(i, Heading) else i for i in items]
        data["incomplete"] = self.incomplete or None
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any], **own: Any) -> "Facts":
        """Parse the output of ``to_json``; unknown names are ignored. ``own`` overrides its values.

        Raises KeyError, TypeError or ValueError on anything else.
        """
        values = {name: data[name] for name in _names() if name in data}
        for name in _TIMES:
            values[name] = datetime.fromisoformat(data[name]) if data.get(name) else None
        for name, fact in FACTS.items():
            if fact.shape == "lines":
                values[name] = tuple(data.get(name) or ())
            elif fact.shape == "headings":
                values[name] = tuple(Heading(**heading) for heading in data.get(name) or ())
        values["evidence"] = tuple(data.get("evidence", ()))
        values["page_range"] = tuple(data["page_range"]) if data.get("page_range") else None
        values["incomplete"] = data.get("incomplete") or ""
        return cls(**values | own)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a grep: its number from 1, and its text, a window of it if it is long."""

    number: int
    text: str
    match: bool


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches of a grep in one artifact: groups of neighbouring lines, in order.

    ``first`` and ``shown`` count matches (``first`` from 1). ``total`` is the count of all matches;
    where a limit stopped the count ``stopped`` says which ("after 2 s"), and total is "at least".
    """

    artifact_ref: str
    groups: tuple[tuple[Line, ...], ...]
    first: int
    shown: int
    total: int
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A ranked piece of a text: lines ``first_line`` to ``last_line``, both included.

    ``hit`` is the offset in ``text`` of the first word of the query, on the line that has most.
    ``heading`` is the title of the section that it stands in, "" if it begins with a heading.
    """

    artifact_ref: str
    first_line: int
    last_line: int
    text: str
    score: float
    hit: int = 0
    heading: str = ""


@dataclass(frozen=True, slots=True)
class GrepQuery:
    """A grep. ``pattern`` is RE2's, or plain text if ``literal``; ``offset`` skips matches."""

    pattern: str
    literal: bool = False
    ignore_case: bool = False
    context: int = 2
    max_matches: int = 30
    offset: int = 0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Ranked passages, best first. ``pending`` counts the texts that could not be searched yet."""

    passages: tuple[Passage, ...]
    pending: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a run's artifacts, newest first, and the count of all of them."""

    facts: tuple[Facts, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Run:
    """A run with its count of artifacts and the time of the newest."""

    name: str
    artifacts: int
    newest: datetime


@dataclass(frozen=True, slots=True)
class Usage:
    """What a store keeps in all runs, pinned artifacts too, and when the first of it expires.

    ``first_expiry`` is in seconds since 1970, 0 where nothing does.
    """

    artifacts: int
    bytes: int
    first_expiry: float = 0.0


@dataclass(frozen=True, slots=True)
class Removed:
    """An artifact that gc removed or would remove, and why: "age", "count", "bytes" or "orphan"."""

    artifact_ref: str
    size_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class CleanUp:
    """What a clean-up removed: artifacts (and files that this view may know of), and ``files``."""

    removed: tuple[Removed, ...] = ()
    files: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a health check: a sentence, and what to do next.

    ``artifact_ref`` is the artifact that it is about, "" if none. A fault is something lost or
    broken, a warning may become one, a note is only good to know. ``mendable``: repair can mend
    it, by removing what is lost for good if nothing better can be done. ``mended``: it did.
    ``calls`` fill the ``{}`` of next_step (errors.worded).
    """

    level: Literal["fault", "warning", "note"]
    what: str
    next_step: str
    artifact_ref: str = ""
    mendable: bool = False
    mended: bool = False
    calls: tuple[Call, ...] = ()


STORE_FACTS = (
    "artifact_ref",
    "path",
    "size_bytes",
    "sha256",
    "created_at",
    "expires_at",
    "pinned",
    "extracted_chars",
    "text_bytes",
    "text_lines",
)


_REF = re.compile(REF_PREFIX + "[a-z2-7]{26}")


def stamp(
    facts: Facts,
    sha256: str,
    size_bytes: int,
    text: StrideIndex | None,
    *,
    now: float,
    max_age_days: float,
    path: str | None = None,
) -> Facts:
    """Return the facts of a new artifact: a fresh reference, and the measures of its bytes.

    ``now`` is seconds since 1970.
    """
    created = datetime.fromtimestamp(now, UTC)
    return replace(
        facts,
        artifact_ref=new_ref(),
        path=path,
        size_bytes=size_bytes,
        sha256=sha256,
        created_at=created,
        expires_at=created + timedelta(days=max_age_days),
        extracted_chars=text.chars if text else facts.extracted_chars,
        text_bytes=text.size if text else None,
        text_lines=text.lines if text else None,
        pinned=False,
    )


def new_facts(facts: Facts, raw: Path, text: Path | None, *, max_age_days: float = 7) -> Facts:
    """Return the facts of a new artifact of these two files, as ``stamp`` does. Blocks."""
    data = raw.read_bytes()
    index = StrideIndex.of(text.read_bytes()) if text else None
    sha256 = hashlib.sha256(data).hexdigest()
    return stamp(facts, sha256, len(data), index, now=time.time(), max_age_days=max_age_days)


def is_ref(name: str) -> bool:
    """Return whether a name has the form of a reference."""
    return _REF.fullmatch(name) is not None


def new_ref() -> str:
    """Return a reference that nobody can guess: 128 random bits."""
    return REF_PREFIX + base64.b32encode(secrets.token_bytes(16)).decode().rstrip("=").lower()


def keep_store_facts(facts: Facts, kept: Facts, expires_at: datetime | None = None) -> Facts:
    """Return ``facts`` with the store's own from ``kept``, and another expiry if one is given."""
    own = {name: getattr(kept, name) for name in STORE_FACTS}
    return replace(facts, **own | {"expires_at": expires_at or kept.expires_at})

"""What the store room promises: what was put is there, whole, until retention takes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from fetchstash.ranges import Heading, Ranges

REF_PREFIX = "art_"
DEFAULT_RUN = "default"


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Where artifacts are kept, and for how long: the settings store.*. Sizes in bytes, ages in days."""

    folder: Path
    run: str = DEFAULT_RUN
    ephemeral: bool = False
    max_age_days: float = 7
    max_total_bytes: int = 2 * 2**30
    max_artifacts: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of one artifact (docs/facts.md). Every string is clean: hygiene done, secrets masked.

    The store fills artifact_ref, path, size_bytes, sha256, created_at, expires_at (UTC) and pinned,
    and counts extracted_chars, text_bytes and text_lines where there is a text; the rest is the
    caller's. ``caching`` holds the response's header fields that say how long it stays fresh,
    ``validated_at`` when the server last said that this is what it has.
    """

    artifact_ref: str = ""
    path: str | None = None
    content_kind: str = "unknown_binary"
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
    title: str = ""
    language: str = ""
    author: str = ""
    published: str = ""
    extracted_chars: int | None = None
    extraction_truncated: bool = False
    extraction_error: str = ""
    text_bytes: int | None = None
    text_lines: int | None = None
    text_tokens: int | None = None
    text_tokens_exact: bool = True
    page_range: tuple[int, int] | None = None
    pages: int | None = None
    sheets: int | None = None
    rows: int | None = None
    columns: int | None = None
    members: int | None = None
    width: int | None = None
    height: int | None = None
    outline: tuple[Heading, ...] = ()
    decided_by: str = "fallback"
    evidence: tuple[str, ...] = ()
    mismatch: bool = False
    incomplete: str = ""
    hidden_removed: int = 0
    is_oversized: bool = False
    structure_info: str = ""
    pinned: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data: times as RFC 3339 in UTC, unknown values as null."""
        data: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, datetime):
                value = value.isoformat(timespec="seconds").replace("+00:00", "Z")
            elif f.name == "outline":
                value = [
                    {"title": h.title, "level": h.level, "unit": h.unit, "start": h.start}
                    for h in self.outline
                ]
            elif isinstance(value, tuple):
                value = list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            data[f.name] = value
        data["incomplete"] = self.incomplete or None
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Facts":
        """Read what ``to_json`` made, passing over unknown names. Raises KeyError, TypeError or ValueError on anything else."""
        known = {f.name for f in fields(cls)}
        values = {name: value for name, value in data.items() if name in known}
        for name in ("created_at", "expires_at", "validated_at"):
            values[name] = datetime.fromisoformat(data[name]) if data.get(name) else None
        values["outline"] = tuple(Heading(**heading) for heading in data.get("outline", ()))
        values["evidence"] = tuple(data.get("evidence", ()))
        values["page_range"] = tuple(data["page_range"]) if data.get("page_range") else None
        values["incomplete"] = data.get("incomplete") or ""
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a grep: its number from 1, and its text or, where it is long, a window around the hit."""

    number: int
    text: str
    match: bool


@dataclass(frozen=True, slots=True)
class Matches:
    """What a grep found in one artifact: groups of neighbouring lines, in order.

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
    """A ranked piece of a text: lines ``first_line`` to ``last_line``, both included."""

    artifact_ref: str
    first_line: int
    last_line: int
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class GrepQuery:
    """What to grep for. ``pattern`` is RE2's, or plain text if ``literal``; ``offset`` skips that many matches."""

    pattern: str
    literal: bool = False
    ignore_case: bool = False
    context: int = 2
    max_matches: int = 30
    offset: int = 0


class TextReader(Protocol):
    """The stored text of one artifact, open for reading: what it says stays true even if gc runs meanwhile.

    Every read costs one look-up in the stride index and what it returns, whatever the size of the
    text.
    """

    chars: int
    lines: int
    bytes: int
    ranges: Ranges

    async def read_chars(self, start: int, end: int) -> str:
        """Return the characters [start, end), fewer at the end of the text."""
        ...

    async def read_lines(self, first: int, last: int, max_chars: int) -> str:
        """Return lines ``first`` to ``last`` (from 1, both included) with their line ends, at most ``max_chars`` of it."""
        ...

    async def char_of_line(self, line: int) -> int:
        """Return the character at which ``line`` (from 1) begins; the text's length for the line after the last."""
        ...

    async def line_of_char(self, char: int) -> int:
        """Return the line (from 1) on which this character stands."""
        ...

    async def char_of_byte(self, byte: int) -> int:
        """Return the character that this byte, or the last one before the end, belongs to."""
        ...

    async def grep(self, query: GrepQuery) -> Matches:
        """Search with RE2. Raises BadPattern."""
        ...

    async def rank(self, query: str, max_results: int) -> tuple[Passage, ...]:
        """Return the best-matching passages, best first. Deterministic; empty where no word of the query occurs."""
        ...

    async def aclose(self) -> None:
        """Close the file."""
        ...


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a run's artifacts, newest first, and the count of all of them."""

    facts: tuple[Facts, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Removed:
    """An artifact that gc removed or would remove, and why: "age", "count", "bytes" or "orphan"."""

    artifact_ref: str
    size_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What a health check found: a sentence, what to do next, and the artifact it is about ("" if none).

    A fault is something lost or broken, a warning may become one, a note is only good to know.
    ``mendable``: repair can mend it, by removing what is lost for good if nothing better can be
    done. ``mended``: it did.
    """

    level: Literal["fault", "warning", "note"]
    what: str
    next_step: str
    artifact_ref: str = ""
    mendable: bool = False
    mended: bool = False


class ArtifactStore(Protocol):
    """Artifacts of one folder or bucket, seen from one run.

    A reference is valid in every run (it is unguessable); lists, search and clean-up are of this
    run alone. All methods raise StoreError where the disk or the catalogue fails, and UnknownRef or
    ExpiredRef for a reference that leads nowhere.
    """

    @property
    def spool(self) -> Path:
        """A private folder on the store's own disk for files on their way into ``put``; what is left there long is swept."""
        ...

    async def put(
        self, raw: Path, text: Path | None, facts: Facts, ranges: Ranges, *, url: str = ""
    ) -> Facts:
        """Keep both files, which the store takes over, and return the facts with the store's own filled in.

        ``url`` is the whole URL by which the artifact can be found again; only a keyed hash of it
        is kept.
        """
        ...

    async def get(self, ref_or_url: str) -> Facts:
        """Return the facts of a reference, or of the newest artifact of this run that was put under this URL.

        Where the bytes of a URL's artifact are lost, the URL is unknown: who then fetches it again
        gets them back.
        """
        ...

    async def list(self, *, limit: int = 100, offset: int = 0) -> Listing:
        """List this run's artifacts."""
        ...

    async def open_text(self, ref_or_url: str) -> TextReader:
        """Open the text. Raises NoText where there is none."""
        ...

    async def open_raw(self, ref_or_url: str) -> Path:
        """Return the path of the raw blob, to be read at once and never written."""
        ...

    async def search(
        self, query: str, refs: Sequence[str], max_results: int
    ) -> tuple[Passage, ...]:
        """Rank passages over these artifacts, or all of the run where ``refs`` is empty, best first."""
        ...

    async def touch(self, ref: str, facts: Facts | None = None) -> Facts:
        """Mark as used now, so that it is the last to go; ``facts`` replaces the caller's own facts (a revalidation)."""
        ...

    async def pin(self, ref: str, *, pinned: bool = True) -> Facts:
        """Keep it until it is unpinned, outside age, bytes and count."""
        ...

    async def delete(self, ref: str) -> None:
        """Forget it, and unlink what no other artifact shares."""
        ...

    async def gc(self, *, dry_run: bool = False) -> tuple[Removed, ...]:
        """Apply retention: age first, then count, then bytes, least recently used first; then orphans."""
        ...

    async def aclose(self) -> None:
        """Close; an ephemeral store deletes its run's artifacts first."""
        ...

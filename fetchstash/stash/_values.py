"""Values that a Stash returns: small dataclasses that print well."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from fetchstash.errors import Call, FetchstashError
from fetchstash.stash._facts import described
from fetchstash.store import Facts, GrepQuery, Line, Passage
from fetchstash.text import Measure, clip, counted, largest, prefix_length, utf8_length, window
from fetchstash.text.ranges import Unit

_MAX_HEADING = 80


def grep_body(
    groups: Iterable[Sequence[Line]],
    limit: int | None,
    measure: Measure = len,
    *,
    at_least_one: bool = True,
) -> tuple[str, int]:
    """Print groups of neighbouring lines as grep does; return the text and its count of matches.

    ``12:text`` is a match, ``13-text`` is context, ``--`` separates groups. As many whole lines as
    fit are printed, all of them if ``limit`` is None. With ``at_least_one`` the first match is
    printed whatever the limit, without its context where that leaves no room for it.
    """
    printed: list[str] = []
    room, shown = limit, 0
    for group in groups:
        lines = [f"{line.number}{':' if line.match else '-'}{line.text}" for line in group]
        separators = 1 if printed else 0
        lines = ["--"] * separators + lines
        count, taken = _fitting(lines, room, measure, joined=bool(printed))
        matches = sum(line.match for line in group[: max(count - separators, 0)])
        if not matches and not shown and at_least_one and limit is not None:
            first = next(line for line in group if line.match)
            text = f"{first.number}:{first.text}"
            return text[: prefix_length(text, limit, measure)], 1
        if not matches:
            break
        printed += lines[:count]
        shown += matches
        if count < len(lines):
            break
        if room is not None:
            room -= taken
    return "\n".join(printed), shown


def _fitting(
    lines: Sequence[str], room: int | None, measure: Measure, *, joined: bool
) -> tuple[int, int]:
    """Return how many lines fit ``room`` and what they take; ``joined``: a line end comes first."""
    taken = 0
    for position, line in enumerate(lines):
        length = measure(line) + (1 if joined or position else 0)
        if room is not None and taken + length > room:
            return position, taken
        taken += length
    return len(lines), taken


def passages_body(
    passages: Iterable[Passage],
    limit: int | None,
    measure: Measure = len,
    *,
    with_ref: bool = False,
) -> tuple[str, int]:
    """Print the passages that fit, each under a line that locates it; return the text and a count.

    That line names the section too, unless the passage begins with its heading. The lines of a
    passage carry their numbers, so that none can look like that line. The first passage is always
    printed, cut around its hit where it has to be. A ``limit`` of None prints them all.
    """
    body, shown = "", 0
    for passage in passages:
        ref = f"{passage.artifact_ref}, " if with_ref else ""
        lines = passage.text.rstrip("\n").split("\n")
        piece = _numbered(ref, lines, passage.first_line, passage.heading)
        joined = f"{body}\n{piece}" if body else piece
        if limit is not None and measure(joined) > limit:
            if not body:
                return _around_hit(ref, passage, lines, limit, measure), 1
            break
        body, shown = joined, shown + 1
    return body, shown


def _numbered(ref: str, lines: Sequence[str], first: int, heading: str) -> str:
    """Print lines with their numbers, under the line that locates them."""
    last = first + len(lines) - 1
    where = f"lines {first} to {last}" if last > first else f"line {first}"
    numbered = (f"{number}:{line}" for number, line in enumerate(lines, start=first))
    section = f", in {clip(heading, _MAX_HEADING)}" if heading else ""
    return "\n".join((f"-- {ref}{where}{section}", *numbered))


def _around_hit(
    ref: str, passage: Passage, lines: Sequence[str], limit: int, measure: Measure
) -> str:
    """Print the line of the hit with as many lines around it as fit, or a window of that line."""
    before = passage.text[: passage.hit]
    hit = min(before.count("\n"), len(lines) - 1)
    column = len(before) - before.rfind("\n") - 1

    def around(first: int, last: int) -> str:
        return _numbered(ref, lines[first : last + 1], passage.first_line + first, passage.heading)

    def cut(width: int) -> str:
        line = window(lines[hit], column, column + 1, width)
        return _numbered(ref, [line], passage.first_line + hit, passage.heading)

    first = last = hit
    if measure(around(first, last)) > limit:
        text = cut(largest(len(lines[hit]), lambda width: measure(cut(width)) <= limit))
        return text[: prefix_length(text, limit, measure)]
    while True:
        if last + 1 < len(lines) and measure(around(first, last + 1)) <= limit:
            last += 1
        elif first and measure(around(first - 1, last)) <= limit:
            first -= 1
        else:
            return around(first, last)


@dataclass(frozen=True, slots=True)
class CacheUse:
    """A result that a stored copy answered: its age in seconds, or None after a 304."""

    age_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """One of several URLs that failed: the URL, its secrets masked, and the error."""

    url: str
    error: FetchstashError

    def __str__(self) -> str:
        return f"{self.error} ({self.url})"


@dataclass(frozen=True, slots=True)
class Unread:
    """Pages without text: how many, and the call that reads them by OCR, or else shows one.

    ``is_readable``: OCR is there.
    """

    pages: int
    call: Call
    is_readable: bool


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of an artifact's text.

    ``text`` is the part, or as much of it as was asked for; ``total`` is the length of the whole
    part in characters. ``start`` and ``end`` resolve what was asked for in ``unit``: lines, pages
    and rows from 1, both included; chars and bytes from 0, end excluded. ``count`` says how many
    units there are in what ``path`` names ("": the whole text). ``char`` is where the part begins,
    in characters of what ``char_path`` names. ``page_ends``: where in ``text`` each page ends.
    ``bytes_per_line``: the text is a hex dump (0: it is not). ``cut_at``: the worker stopped after
    so many characters of what ``path`` names (None: it did not). ``unread`` is the first page that
    was asked for and that there was no time to read (None: there is none), ``asked_end`` the last.
    ``header``: the names of the columns, which are not among the rows.
    """

    facts: Facts = field(repr=False)
    text: str = field(repr=False)
    total: int
    unit: Unit
    start: int
    end: int
    count: int
    char: int
    path: str = ""
    char_path: str = ""
    page_ends: tuple[int, ...] = ()
    bytes_per_line: int = 0
    cut_at: int | None = None
    unread: int | None = None
    asked_end: int | None = None
    by: Literal["read", "slice"] = "slice"
    header: str = ""

    def __str__(self) -> str:
        return self.text

    @property
    def is_whole(self) -> bool:
        """Whether ``text`` is all that was asked for."""
        return len(self.text) == self.total

    @property
    def units(self) -> int:
        """How many whole units ``text`` holds."""
        if self.bytes_per_line:
            return min(self.text.count("\n") * self.bytes_per_line, self.end - self.start)
        if self.unit == "chars":
            return len(self.text)
        if self.unit == "bytes":
            return utf8_length(self.text)
        if self.unit == "pages":
            return sum(end <= len(self.text) for end in self.page_ends)
        return self.text.count("\n") + (self.is_whole and not self.text.endswith("\n"))

    @property
    def next(self) -> Call | None:
        """The call that goes on where ``text`` ends; None where it is whole.

        A unit that did not fit by itself goes on in characters.
        """
        ref, units = self.facts.artifact_ref, self.units
        if self.is_whole and self.unread is None:
            return None
        if self.is_whole:  # there was no time for the pages from ``unread`` on
            part = {"unit": "pages", "start": self.unread, "end": self.asked_end}
            return Call("slice", {"ref": ref, "path": self.path or None, **part})
        if self.by == "read":
            return Call("read", {"ref": ref, "offset": self.start + units})
        if units or self.unit in ("chars", "bytes"):
            path, unit, start, end = self.path, self.unit, self.start + units, self.end
        else:
            path, unit = self.char_path, "chars"
            start, end = self.char + len(self.text), self.char + self.total
        part = {"ref": ref, "path": path or None, "unit": unit, "start": start, "end": end}
        return Call("slice", part)

    def cut(self, limit: int, measure: Measure = len) -> "Slice":
        """Return it cut at the last whole line, page or row that fits ``limit``.

        If not even one unit fits, it is cut inside.
        """
        fits = prefix_length(self.text, limit, measure)
        by_chars = self.unit in ("chars", "bytes") and not self.bytes_per_line
        if fits < self.total and not by_chars:
            if self.unit == "pages":
                fits = max((end for end in self.page_ends if end <= fits), default=0) or fits
            else:
                fits = self.text.rfind("\n", 0, fits) + 1 or fits
        return self if fits == len(self.text) else replace(self, text=self.text[:fits])


@dataclass(frozen=True, slots=True)
class Match:
    """A line that matches, numbered from 1."""

    artifact_ref: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.line}:{self.text}"


@dataclass(frozen=True, slots=True)
class ArtifactMatches:
    """The matches of one artifact: groups of neighbouring lines, from match ``skipped`` + 1 on.

    ``stopped`` says which limit ended the count ("": none); ``total`` is then "at least".
    ``left_out`` counts the matches in the parts of a web page that the text leaves out; ``unread``
    are pages without text, in which there may be more.
    """

    facts: Facts = field(repr=False)
    groups: tuple[tuple[Line, ...], ...] = field(repr=False)
    skipped: int
    total: int
    stopped: str = ""
    left_out: int = 0
    unread: Unread | None = None

    @property
    def shown(self) -> int:
        """How many matches the groups hold."""
        return sum(line.match for group in self.groups for line in group)


@dataclass(frozen=True, slots=True)
class SiteGrep:
    """The index of a site whose ``pages`` were searched, except the last ``unsearched`` ones."""

    facts: Facts = field(repr=False)
    pages: int
    unsearched: int = 0


@dataclass(frozen=True, slots=True)
class Hint:
    """A call that finds something where a grep found nothing.

    ``found`` and ``how`` are our words: "3 lines match", "ignoring case".
    """

    found: str
    how: str
    call: Call


def call_of(query: GrepQuery, refs: Sequence[str], **more: object) -> Call:
    """Return the call of a grep, without options that have their default."""
    usual = GrepQuery("")
    options = {
        name: value
        for name in ("literal", "ignore_case", "context", "max_matches")
        if (value := getattr(query, name)) != getattr(usual, name)
    }
    named = {"ref": refs[0]} if len(refs) == 1 else {"refs": list(refs)}
    return Call("grep", {**named, "pattern": query.pattern, **options, **more})


@dataclass(frozen=True, slots=True)
class Matches:
    """Matches of a grep in one artifact or several. Iterating gives each Match.

    Of ``sites`` only the pages that match are among ``artifacts``. ``hint``: where nothing matches,
    a call that finds something.
    """

    query: GrepQuery
    refs: tuple[str, ...]
    artifacts: tuple[ArtifactMatches, ...]
    sites: tuple[SiteGrep, ...] = ()
    hint: Hint | None = None

    def __iter__(self) -> Iterator[Match]:
        for artifact in self.artifacts:
            for group in artifact.groups:
                for line in group:
                    if line.match:
                        yield Match(artifact.facts.artifact_ref, line.number, line.text)

    def __str__(self) -> str:
        bodies = (grep_body(item.groups, limit=None)[0] for item in self.artifacts if item.shown)
        return "\n".join(bodies)

    @property
    def total(self) -> int:
        """How many matches there are in all, shown or not."""
        return sum(artifact.total for artifact in self.artifacts)

    @property
    def stopped(self) -> bool:
        """Whether a limit ended the count, so that ``total`` is "at least"."""
        unsearched = any(site.unsearched for site in self.sites)
        return unsearched or any(artifact.stopped for artifact in self.artifacts)

    @property
    def next(self) -> Call | None:
        """The call for the matches after these; None where there are none."""
        return self.next_after(sum(artifact.shown for artifact in self.artifacts))

    def next_after(self, shown: int) -> Call | None:
        """Return the call for the matches after the first ``shown`` of these."""
        offset = self.query.offset + shown
        if not shown or offset >= self.total:
            return None
        return call_of(self.query, self.refs, offset=offset)


@dataclass(frozen=True, slots=True)
class Passages:
    """Ranked passages, best first, out of ``searched`` artifacts. Iterating gives each Passage.

    ``facts`` are those of the artifacts by reference. ``pending`` counts the texts that could not
    be searched yet, and ``next`` is the call that goes on where none was found. ``left_out`` counts
    the lines of web pages, by reference, that have a word of the query and are left out of their
    texts.
    """

    best_first: tuple[Passage, ...] = field(repr=False)
    facts: Mapping[str, Facts] = field(repr=False)
    searched: int
    pending: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    next: Call | None = None

    def __iter__(self) -> Iterator[Passage]:
        return iter(self.best_first)

    def __str__(self) -> str:
        return passages_body(self.best_first, limit=None, with_ref=True)[0]


@dataclass(frozen=True, slots=True)
class Picture:
    """A page or an image as a picture that a model may be shown. ``page`` is None for an image.

    ``asked_end`` is the last page of those that were asked for, where that was more than one.
    """

    facts: Facts = field(repr=False)
    data: bytes = field(repr=False)
    media_type: str
    width: int
    height: int
    page: int | None = None
    asked_end: int | None = None

    def __str__(self) -> str:
        page = "" if self.page is None else f" of page {self.page}"
        return f"{self.media_type} picture{page}, {self.width}×{self.height} px"


@dataclass(frozen=True, slots=True)
class Listing:
    """A run's artifacts, newest first, and how many there are in all. Iterating gives Facts."""

    run: str
    facts: tuple[Facts, ...] = field(repr=False)
    total: int

    def __iter__(self) -> Iterator[Facts]:
        return iter(self.facts)

    def __str__(self) -> str:
        return "\n".join(map(summary, self.facts))


@dataclass(frozen=True, slots=True)
class Deleted:
    """An artifact that was deleted."""

    facts: Facts

    def __str__(self) -> str:
        return f"deleted: {summary(self.facts)}"


def summary(facts: Facts) -> str:
    """Return an artifact in one line."""
    size = (
        counted(facts.members or 0, "page")
        if facts.site_prefix
        else counted(facts.size_bytes, "byte")
    )
    words = [described(facts).word, facts.name, size]
    if facts.extracted_chars is not None:
        words.append(counted(facts.extracted_chars, "character"))
    if facts.incomplete:
        words.append(f"incomplete: {facts.incomplete}")
    return f"{facts.artifact_ref}: {', '.join(filter(None, words))}"

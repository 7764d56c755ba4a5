"""A view: a result as one host is shown it, and the host that it is made for."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from fetchstash.errors import FetchstashError, StoreError, Wording
from fetchstash.render._texts import NOT_IN_A_SOURCE, SENTENCE, SOURCE_CHARS, Subject, cache_notice
from fetchstash.render._words import FRAME_CHARS, MODEL, FrontEnd, as_tool
from fetchstash.stash import CacheUse, described
from fetchstash.store import Facts
from fetchstash.text import Measure, PreviewLimits, ViewLimits, clip_middle
from fetchstash.text.hygiene import clean_line
from fetchstash.text.urls import host_of

FACTS_AT_MOST = 10
STRUCTURED_FRAME = len('{"result":""}')


@dataclass(frozen=True, slots=True)
class Block:
    """Lines, a body between fences, and more lines. ``body`` is None where nothing is quoted.

    ``opening`` and ``closing`` are the lines of the fence, with the sentence that says what it
    holds. ``ref``: of several documents the one that this block shows.
    """

    head: tuple[str, ...] = ()
    opening: tuple[str, ...] = ()
    body: str | None = None
    closing: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    ref: str = ""

    @property
    def text(self) -> str:
        """The block as a model sees it."""
        body = () if self.body is None else (self.body,)
        return "\n".join((*self.head, *self.opening, *body, *self.closing, *self.tail))

    @property
    def frame(self) -> str:
        """All of it but the body, with the line ends around the body."""
        return replace(self, body=None if self.body is None else "").text


@dataclass(frozen=True, slots=True)
class View:
    """One result: blocks of text, facts of its artifacts, and pictures (data, media type).

    ``records`` is the result as data, one object for each match, passage or part; () where the
    facts say it all.
    """

    blocks: tuple[Block, ...]
    facts: tuple[Mapping[str, object], ...] = ()
    pictures: tuple[tuple[bytes, str], ...] = ()
    is_error: bool = False
    records: tuple[Mapping[str, object], ...] = ()

    @property
    def text(self) -> str:
        """The whole result as a model sees it."""
        return "\n".join(block.text for block in self.blocks)

    @property
    def body(self) -> str:
        """The content from outside, without any frame."""
        return "".join(block.body or "" for block in self.blocks)


_HOST_CHARS = 60


def _source(facts: Facts) -> str:
    """Return where a document came from, in the words of who asked for it.

    Where a server redirected to is in the facts; of its words the host alone stands beside a fence.
    """
    if not facts.source_url:
        return facts.final_url or facts.name
    asked, final = (host_of(url) for url in (facts.source_url, facts.final_url))
    moved = f", redirected to {clip_middle(final, _HOST_CHARS)}"
    return facts.source_url + (moved if final and final != asked and not facts.rule else "")


def error_line(error: FetchstashError, word: Wording = as_tool) -> str:
    """Return an error as one line; ``front_end`` words its next step.

    The quote of its cause is cleaned and clipped, so that the next step stays. A handler's
    reason is a clause, as it stands behind "Failed to extract text from PDF:"; here it becomes a
    sentence.
    """
    reason = clip_middle(clean_line(error.what), 400)
    advice = clip_middle(clean_line(error.advice(word)), 300)
    ended = reason if reason.endswith((".", "!", "?")) else f"{reason}."
    return type(error)(ended, advice).line()


def error_record(error: FetchstashError, word: Wording = as_tool) -> Mapping[str, object]:
    """Return an error as data: its code, its line, and its details."""
    record = {"code": error.code, "line": error_line(error, word), **error.details}
    return record | ({"excerpt": error.excerpt} if error.excerpt else {})


@dataclass(frozen=True, slots=True)
class Host:
    """The reader of a view: its limits, its unit of count, and the wording of its next steps.

    ``local``: it shares our file system, so that a path helps it.
    """

    limits: ViewLimits = field(default_factory=ViewLimits)
    local: bool = True
    preview: PreviewLimits = field(default_factory=PreviewLimits)
    front_end: FrontEnd = MODEL
    nonce: Callable[[], str] = field(default=lambda: secrets.token_hex(4))

    @property
    def measure(self) -> Measure:
        """How this host counts a text."""
        return self.limits.measure

    @property
    def word(self) -> Wording:
        """How the front end words a call."""
        return self.front_end.word

    def shown(self, error: FetchstashError) -> FetchstashError:
        """Return an error for this host: only a local one is told paths of the store.

        Another is told to try again only where that can help.
        """
        if self.local or not isinstance(error, StoreError):
            return error
        if error.lasting:
            step = "Trying again does not help: whoever runs the service has to see to it."
            return StoreError(error.what, step, lasting=True)
        return StoreError(
            "The store failed.",
            "Try again, or fetch the document anew; the operator's log says why.",
        )

    @property
    def higher_limit(self) -> str:
        """The advice to ask for more."""
        return f"Use a higher {self.front_end.max_chars} to retrieve more."

    def subject(self, facts: Facts, cache: CacheUse | None = None) -> Subject:
        """Return how an artifact is named to this host: only a local one is given a path."""
        facts = described(facts)
        from_cache = cache_notice(cache, self.front_end.refresh) if cache else ""
        record = facts.to_json(without=("outline", "caching"))  # thousands of headings take long
        record |= {"from_cache": from_cache} | ({} if self.local else {"path": None})
        path, chars = record["path"] or "", facts.extracted_chars
        return Subject(facts.artifact_ref, _source(facts), chars, path, from_cache, facts, record)

    def repeated(self, asked: int | None, default: int) -> dict[str, object]:
        """Return the limit as the next call repeats it: not at all where it was the default."""
        applied = self.limits.max_chars(asked, default)
        return {} if applied == self.limits.max_chars(None, default) else {"max_chars": asked}

    def over(self, frame: str) -> int:
        """Return by how much a frame exceeds FRAME_CHARS; the body gives that up."""
        extra = STRUCTURED_FRAME if self.limits.structured else 0
        return max(0, self.measure(frame) + extra - FRAME_CHARS)

    def fenced(
        self,
        body: str,
        source: str,
        head: tuple[str, ...],
        tail: tuple[str, ...] = (),
        *,
        sentence: bool = True,
        source_chars: int = SOURCE_CHARS,
        about: str = "",
    ) -> Block:
        """Return a block with its body between fences, under the sentence that marks it as data.

        ``about`` is a line of the document's words above the body. The nonce keeps a page from
        closing its fence.
        """
        nonce, shown = self.nonce(), clip_middle(NOT_IN_A_SOURCE.sub("_", source), source_chars)
        opening = *((SENTENCE,) if sentence else ()), f'<untrusted-{nonce} source="{shown}">'
        opening += (about,) if about else ()
        return Block(head, opening, body, (f"</untrusted-{nonce}>",), tail)


def error_view(host: Host, error: FetchstashError) -> View:
    """Return an error's view: its line, then an excerpt of the server's answer in a fence."""
    line = error_line(host.shown(error), host.word)
    if not error.excerpt:
        return View((Block((line,)),), is_error=True)
    return View((host.fenced(error.excerpt, error.source, (line,)),), is_error=True)

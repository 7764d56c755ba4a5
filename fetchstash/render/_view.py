"""A view: what a model is shown, and the host that it is shown to."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from fetchstash.errors import BadArgument, FetchstashError, Wording
from fetchstash.hygiene import clean_line
from fetchstash.render._frame import FRAME_CHARS
from fetchstash.render._texts import SENTENCE, SOURCE_CHARS, fence
from fetchstash.render._words import as_tool
from fetchstash.text import (
    MIN_MAX_CHARS,
    Measure,
    PreviewLimits,
    ViewLimits,
    clip_middle,
    json_length,
    utf8_length,
)

FACTS_AT_MOST = 10
STRUCTURED_FRAME = len('{"result":""}')


@dataclass(frozen=True, slots=True)
class Block:
    """Lines, a body between fences, and lines behind it. ``body`` is None where there is nothing from outside to show.

    ``opening`` and ``closing`` are the lines of the fence, with the sentence that says what it
    holds.
    """

    head: tuple[str, ...] = ()
    opening: tuple[str, ...] = ()
    body: str | None = None
    closing: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()

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
    """One result: blocks of text, the facts of the artifacts it speaks of, and pictures (data, media type).

    ``records`` is the same as data, one object for each thing found or read; () where the facts are
    all there is to say.
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
        """What came from outside, without any frame."""
        return "".join(block.body or "" for block in self.blocks)


def error_line(error: FetchstashError, word: Wording = as_tool) -> str:
    """Return the one line of an error, its next step in the words of a face.

    What it quotes of its cause is cleaned and clipped, so that the next step stays. A handler's
    reason is a clause, as it stands behind "Failed to extract text from PDF:"; here it becomes a
    sentence.
    """
    reason = clip_middle(clean_line(error.what), 400)
    advice = clip_middle(clean_line(error.advice(word)), 300)
    ended = reason if reason.endswith((".", "!", "?")) else f"{reason}."
    return type(error)(ended, advice).line()


def error_view(error: FetchstashError, word: Wording = as_tool) -> View:
    """Return the view of an error: its line."""
    return View((Block((error_line(error, word),)),), is_error=True)


@dataclass(frozen=True, slots=True)
class Host:
    """Whom a view is made for: its ceilings, how it counts, and whether it shares our file system (``local``: a path helps it)."""

    limits: ViewLimits = field(default_factory=ViewLimits)
    local: bool = True
    preview: PreviewLimits = field(default_factory=PreviewLimits)
    nonce: Callable[[], str] = field(default=lambda: secrets.token_hex(4))

    @property
    def measure(self) -> Measure:
        """How this host counts a text."""
        if self.limits.structured:
            return json_length
        return utf8_length if self.limits.count_bytes else len

    def max_chars(self, asked: int | None, default: int) -> int:
        """Return maxChars as applied. Raises BadArgument below 200."""
        if asked is not None and asked < MIN_MAX_CHARS:
            raise BadArgument(
                f"maxChars is {asked}, and the least is {MIN_MAX_CHARS}.",
                "Ask for more, or leave it out.",
            )
        return min(default if asked is None else asked, self.limits.max_chars_ceiling)

    def said(self, asked: int | None, default: int) -> Mapping[str, object]:
        """Return maxChars as the next call has to say it: not at all where it was the default."""
        return {
            "maxChars": None
            if self.max_chars(asked, default) == self.max_chars(None, default)
            else asked
        }

    def over(self, frame: str) -> int:
        """Return by how much a frame is longer than FRAME_CHARS: the body gives that up, so that the whole stays in its bound."""
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
    ) -> Block:
        """Return a block whose body stands between fences of a fresh nonce, under the sentence that says what it is."""
        opening, closing = fence(source, self.nonce(), source_chars)
        return Block(head, (*((SENTENCE,) if sentence else ()), opening), body, (closing,), tail)

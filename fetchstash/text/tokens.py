"""Count tokens in OpenAI's o200k vocabulary, offline, or estimate them cheaply.

The vocabulary ships beside this module. Loading it takes a quarter of a second and 80 MB, once in a
process: count in a worker or a thread, and estimate on an event loop.
"""

import functools
import gzip
import importlib.util
import os
import re
import threading
from binascii import a2b_base64
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Self

from fetchstash.text import counted
from fetchstash.text.hygiene import HANGUL, KANA_AND_HAN
from fetchstash.text.ranges import Preview

if TYPE_CHECKING:
    import tiktoken

# Characters encoded at a time. About a million consecutive spaces overflow the stack of tiktoken's
# pattern matcher.
SLICE = 65_536
# Every token of a text up to this many characters is counted, at some 10 MB/s. A longer text is
# sampled at equal distances, in many short samples because the parts of a large text often differ.
# When there are too many samples, every other one is dropped.
EXACT = 131_072
SAMPLE = 256
MOST_SAMPLES = 512
_FIRST_STRIDE = 4_096

_loading = threading.Lock()

# A typical o200k token: a word or nine letters of it, three digits, an ideograph, three letters of
# another script, some punctuation, white space.
_IDEOGRAPHS = f"{KANA_AND_HAN}{HANGUL}"
_PIECE = re.compile(
    rf" ?[A-Za-z]{{1,9}}|[0-9]{{1,3}}|[{_IDEOGRAPHS}]|[^\W0-9_A-Za-z{_IDEOGRAPHS}]{{1,3}}"
    r"| ?(?:[^\w\s]|_){1,3}|\n\s*|\s+"
)

_LISTED = 2**17
"""Characters up to which the pieces are counted as a list, which takes half the time."""

_UNITS = ("row", "column", "line")


@dataclass(frozen=True, slots=True)
class TokenCount:
    """A number of tokens: counted if ``exact``, else estimated and printed with ≈."""

    tokens: int
    exact: bool

    def __str__(self) -> str:
        return format(self)

    def __format__(self, spec: str) -> str:
        """Format the number as an int, after its mark."""
        return f"{'' if self.exact else '≈'}{self.tokens:{spec}}"


@functools.cache
def preload() -> None:
    """Start loading the vocabulary in a thread, once. A count waits until it is loaded."""
    if hasattr(os, "register_at_fork"):
        # A child that is forked meanwhile would find the lock taken for ever.
        os.register_at_fork(
            before=_loading.acquire,
            after_in_parent=_loading.release,
            after_in_child=_loading.release,
        )
    threading.Thread(target=_encoding, name="fetchstash-vocabulary").start()


def count(text: str) -> TokenCount:
    """Count the o200k tokens of ``text``.

    Counts all of up to ``EXACT`` characters and samples longer texts. Estimates without tiktoken.
    """
    counter = Counter()
    counter.add(text)
    return counter.result()


def estimate(text: str) -> int:
    """Estimate the o200k tokens of ``text`` without the vocabulary.

    Cheap enough for an event loop: about 20 MB/s.
    """
    if len(text) <= _LISTED:
        return len(_PIECE.findall(text))
    return _PIECE.subn("", text)[1]  # slower, and holds no list of pieces


class Counter:
    """Counts a text that comes in pieces; holds at most ``EXACT`` characters and the samples.

    Encodes nothing before ``result`` is called.
    """

    def __init__(self) -> None:
        self._chars = 0
        self._whole: list[str] = []
        self._stride = _FIRST_STRIDE
        self._samples: list[str] = []

    def add(self, text: str) -> None:
        """Add the next piece."""
        self._sample(text)
        self._chars += len(text)
        if self._chars <= EXACT:
            self._whole.append(text)
        else:
            self._whole.clear()

    def _sample(self, text: str) -> None:
        """Keep the samples in ``text``: one begins at every ``_stride``-th character."""
        at = 0
        while at < len(text):
            into = (self._chars + at) % self._stride
            if into >= SAMPLE:
                at += self._stride - into
                continue
            if into == 0:
                self._samples.append("")
                if len(self._samples) > MOST_SAMPLES:
                    self._samples = self._samples[::2]
                    self._stride *= 2
            piece = text[at : at + SAMPLE - into]
            self._samples[-1] += piece
            at += len(piece)

    def result(self) -> TokenCount:
        """Count the pieces added so far."""
        if self._chars <= EXACT:
            tokens, exact = _encode("".join(self._whole))
            return TokenCount(tokens, exact)
        counted = sum(_encode(sample)[0] for sample in self._samples)
        return TokenCount(round(counted * self._chars / sum(map(len, self._samples))), exact=False)


def _encode(text: str) -> tuple[int, bool]:
    """Count the tokens of ``text`` by slices; return the count, and whether it is exact."""
    tokens, exact = 0, True
    for piece in _slices(text):
        counted = _encode_slice(piece)
        exact = exact and counted is not None
        tokens += estimate(piece) if counted is None else counted
    return tokens, exact


def _slices(text: str) -> Iterator[str]:
    """Cut ``text`` into slices, at line ends where possible, so that no word is cut."""
    start = 0
    while start < len(text):
        end = start + SLICE
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield text[start:end]
        start = end


def _encode_slice(text: str) -> int | None:
    encoding = _encoding()
    if encoding is None:
        return None
    try:
        return len(encoding.encode_ordinary(text))
    except BaseException as fault:
        # A panic in tiktoken's Rust raises pyo3_runtime.PanicException, a BaseException that no
        # module exports.
        if type(fault).__name__ != "PanicException":
            raise
        return None


def _encoding() -> "tiktoken.Encoding | None":
    """Return the o200k encoding, None if tiktoken is missing or cannot load it."""
    with _loading:
        return _load()


@functools.cache
def _load() -> "tiktoken.Encoding | None":
    """Load the vocabulary as tiktoken declares it, from the rank file in this package."""
    try:
        import tiktoken  # noqa: PLC0415 - optional for fetchstash.client, and slow to import

        # A copy of its declarations that is ours: tiktoken's own would download the ranks.
        spec = importlib.util.find_spec("tiktoken_ext.openai_public")
        if spec is None or spec.loader is None:
            return None
        declarations = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(declarations)
        vars(declarations)["load_tiktoken_bpe"] = _ranks
        return tiktoken.Encoding(**declarations.o200k_base())
    except (ImportError, AttributeError, OSError, ValueError, EOFError):
        return None


def _ranks(*_: object, **__: object) -> dict[bytes, int]:
    """Return the rank of each token, from lines of a token in Base64 and its rank.

    Takes the address and the hash that tiktoken gives its own function.
    """
    file = resources.files("fetchstash") / "text" / "vocabulary" / "o200k_base.tiktoken.gz"
    words = gzip.decompress(file.read_bytes()).split()
    return dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))


@dataclass(frozen=True, slots=True)
class TruncationInfo:
    """How much of a text is shown: rows and columns of a table, lines of a text, else None.

    ``cells_truncated`` counts the cells of which only the beginning is shown. Tokens are o200k,
    counted where they are ``exact``, else estimated. ``total_output_limit_reached``:
    context.max_total_output ended it.
    """

    lines_shown: int | None = None
    columns_shown: int | None = None
    rows_shown: int | None = None
    cells_truncated: int = 0
    tokens_shown: int = 0
    total_tokens: int = 0
    total_output_limit_reached: bool = False
    total_lines: int | None = None
    total_columns: int | None = None
    total_rows: int | None = None
    tokens_shown_exact: bool = True
    total_tokens_exact: bool = True

    @classmethod
    def of(
        cls,
        preview: Preview,
        total_lines: int,
        shown: TokenCount,
        total: TokenCount,
        *,
        total_output_limit_reached: bool,
    ) -> Self:
        """Return what ``preview`` shows of a text, at ``shown`` of ``total`` tokens."""
        return cls(
            lines_shown=preview.lines_shown,
            columns_shown=preview.columns_shown,
            rows_shown=preview.rows_shown,
            cells_truncated=preview.cells_truncated,
            tokens_shown=shown.tokens,
            total_tokens=total.tokens,
            total_output_limit_reached=total_output_limit_reached,
            total_lines=total_lines,
            total_columns=preview.total_columns,
            total_rows=preview.total_rows,
            tokens_shown_exact=shown.exact,
            total_tokens_exact=total.exact,
        )

    def line(self) -> str:
        """Return it as a line: ``[Shown: 30 of 5000 rows, 1 cell cut, 480 of ≈20100 tokens.]``."""
        parts = list[str]()
        for name in _UNITS:
            shown, total = getattr(self, f"{name}s_shown"), getattr(self, f"total_{name}s")
            if shown is not None and total is not None:
                parts.append(f"{shown} of {counted(total, name, digits='d')}")
        if self.cells_truncated:
            parts.append(f"{counted(self.cells_truncated, 'cell')} cut")
        shown = TokenCount(self.tokens_shown, self.tokens_shown_exact)
        total = TokenCount(self.total_tokens, self.total_tokens_exact)
        return f"[Shown: {', '.join([*parts, f'{shown} of {total} tokens'])}.]"

"""Token counts in OpenAI's o200k vocabulary, offline, and estimates where counting would cost too much.

The vocabulary ships with the package (fetchstash/vocabulary, made by scripts/vocabulary) and takes
about a third of a second and 80 MB to load, once in a process: count in a worker or a thread,
estimate on an event loop.
"""

import functools
import gzip
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

# Characters that are encoded at a time: about a million consecutive spaces overflow the stack of
# tiktoken's pattern matcher.
SLICE = 65_536
# Characters up to which every token is counted. Above, equally spaced samples stand for the whole:
# many short ones, because large texts are often made of unlike parts. When there are too many,
# every other one is dropped.
EXACT = 1_000_000
SAMPLE = 1_024
MOST_SAMPLES = 256
_FIRST_STRIDE = 8_192

# tiktoken looks for its vocabulary under the SHA-1 of the address that it would download it from,
# and checks the SHA-256 itself.
_CACHE_NAME = "fb374d419588a4632f3f557e76b4b70aebbca790"
_CACHE_VARIABLE = "TIKTOKEN_CACHE_DIR"
_loading = threading.Lock()

# What an o200k token mostly is: a word or nine letters of it, three digits, an ideograph, three
# letters of another script, some punctuation, white space. bench/tokens.py says how far off that
# is.
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_PIECE = re.compile(
    rf" ?[A-Za-z]{{1,9}}|[0-9]{{1,3}}|[{_IDEOGRAPHS}]|[^\W0-9_A-Za-z{_IDEOGRAPHS}]{{1,3}}| ?(?:[^\w\s]|_){{1,3}}|\n\s*|\s+",
)


@dataclass(frozen=True, slots=True)
class TokenCount:
    """How many tokens a text has; ``exact``: counted, else estimated, and marked ≈ where it is printed."""

    tokens: int
    exact: bool

    def __str__(self) -> str:
        return format(self)

    def __format__(self, spec: str) -> str:
        """Format the number as an int is formatted, behind its mark."""
        return f"{'' if self.exact else '≈'}{self.tokens:{spec}}"


def count(text: str) -> TokenCount:
    """Count the o200k tokens of ``text``: all up to ``EXACT`` characters, from samples above, estimated without tiktoken."""
    counter = Counter()
    counter.add(text)
    return counter.result()


def estimate(text: str) -> int:
    """Return about how many o200k tokens ``text`` has, without the vocabulary: cheap enough for an event loop (about 20 MB/s)."""
    return sum(1 for _ in _PIECE.finditer(text))


class Counter:
    """Counts a text that comes in pieces, and holds no more of it than ``EXACT`` characters and the samples.

    Nothing is encoded before ``result`` is called.
    """

    def __init__(self) -> None:
        self._chars = 0
        self._whole: list[str] = []
        self._stride = _FIRST_STRIDE
        self._samples: list[str] = []

    def add(self, text: str) -> None:
        """Take the next piece."""
        self._sample(text)
        self._chars += len(text)
        if self._chars <= EXACT:
            self._whole.append(text)
        else:
            self._whole.clear()

    def _sample(self, text: str) -> None:
        """Take from ``text`` what it has of the samples: they begin at every ``_stride``-th character of the whole."""
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
        """Count what came so far."""
        if self._chars <= EXACT:
            tokens, exact = _encode("".join(self._whole))
            return TokenCount(tokens, exact)
        counted = sum(_encode(sample)[0] for sample in self._samples)
        return TokenCount(round(counted * self._chars / sum(map(len, self._samples))), exact=False)


def _encode(text: str) -> tuple[int, bool]:
    """Count ``text`` slice by slice; False if any of it had to be estimated."""
    tokens, exact = 0, True
    for piece in _slices(text):
        counted = _encode_slice(piece)
        exact = exact and counted is not None
        tokens += estimate(piece) if counted is None else counted
    return tokens, exact


def _slices(text: str) -> Iterator[str]:
    """Cut ``text`` into slices that end at a line's end where there is one: no token reaches from there into a word."""
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
        # A panic in tiktoken's Rust arrives as pyo3_runtime.PanicException, which no module exports
        # and which is no Exception.
        if type(fault).__name__ != "PanicException":
            raise
        return None


def _encoding() -> "tiktoken.Encoding | None":
    """Return the o200k encoding, or None where tiktoken is not installed, does not know it, or cannot be fed."""
    with _loading:
        return _load()


@functools.cache
def _load() -> "tiktoken.Encoding | None":
    """Load the vocabulary through a folder of our own, which is gone again afterwards: a lasting copy would have to be guarded."""
    try:
        import tiktoken  # noqa: PLC0415 - fetchstash.client must be importable without it, and the start must not pay for it

        packed = (
            resources.files("fetchstash") / "vocabulary" / "o200k_base.tiktoken.gz"
        ).read_bytes()
        with tempfile.TemporaryDirectory(prefix="fetchstash-") as folder:
            Path(folder, _CACHE_NAME).write_bytes(gzip.decompress(packed))
            before = os.environ.get(_CACHE_VARIABLE)
            os.environ[_CACHE_VARIABLE] = folder
            try:
                return tiktoken.get_encoding("o200k_base")
            finally:
                if before is None:
                    del os.environ[_CACHE_VARIABLE]
                else:
                    os.environ[_CACHE_VARIABLE] = before
    except (ImportError, OSError, ValueError, EOFError):
        return None

"""Token counts: exact, sampled, in pieces, without a network, and without tiktoken."""
# pyright: reportPrivateUsage=false
# (faults are planted where they happen)

import gzip
import importlib.resources
import importlib.util
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from fetchstash.text import tokens
from fetchstash.text.tokens import EXACT, MOST_SAMPLES, SAMPLE, Counter, TokenCount, count, estimate

SENTENCE = (
    "the stash keeps every artifact until somebody asks for a slice of it again "
    "and then hands back 42 lines"
)


def prose(chars: int, seed: int = 7) -> str:
    """Return ``chars`` characters of word soup in lines."""
    pick = random.Random(seed)
    lines: list[str] = []
    size = 0
    while size < chars:
        lines.append(" ".join(pick.choices(SENTENCE.split(), k=12)).capitalize() + ".\n")
        size += len(lines[-1])
    return "".join(lines)[:chars]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Seen in OpenAI's tokenizer for o200k_base.
        pytest.param("", 0, id="nothing"),
        pytest.param("hello world", 2, id="two words"),
        pytest.param("tiktoken is great!", 6, id="a word in pieces"),
        pytest.param("お誕生日おめでとう", 8, id="Japanese"),
        pytest.param("<|endoftext|>", 7, id="a special token is text like any other"),
    ],
)
def test_short_texts_have_the_counts_that_openai_gives(text: str, expected: int) -> None:
    assert count(text) == TokenCount(expected, exact=True)


def test_the_count_up_to_the_limit_is_tiktokens_own_of_the_whole_text_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tiktoken

    # tiktoken looks for its file under the SHA-1 of the address, and checks the SHA-256 itself.
    file = importlib.resources.files("fetchstash") / "text/vocabulary/o200k_base.tiktoken.gz"
    cached = tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790"
    cached.write_bytes(gzip.decompress(file.read_bytes()))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    text = prose(EXACT)
    own = tiktoken.get_encoding("o200k_base").encode_ordinary(text)
    assert count(text) == TokenCount(len(own), exact=True)


def test_above_the_limit_the_count_is_sampled_and_says_so() -> None:
    text = prose(EXACT + 1)
    sampled, exact = count(text), count(text[:-1])
    assert not sampled.exact
    assert abs(sampled.tokens - exact.tokens) < 0.04 * exact.tokens


def test_the_samples_of_a_large_text_are_of_all_its_parts_alike() -> None:
    dense, thin = "1 " * 2_000_000, "lighthouse " * 400_000
    parts = count(dense).tokens + count(thin).tokens
    assert count(dense + thin).tokens == pytest.approx(parts, rel=0.02)


@pytest.mark.long
@given(st.lists(st.integers(1, 300_000), max_size=12), st.booleans())
@settings(max_examples=15, deadline=None)
def test_a_text_in_pieces_counts_as_it_does_whole(cuts: list[int], large: bool) -> None:
    text = prose(3_000_000 if large else 400_000)
    counter, start = Counter(), 0
    for size in cuts:
        counter.add(text[start : start + size])
        start += size
    counter.add(text[start:])
    assert counter.result() == count(text)


@pytest.mark.parametrize("chars", [1_200_000, 5_000_000, 30_000_000])
def test_a_counter_holds_no_more_than_its_samples_of_a_large_text(chars: int) -> None:
    counter, line = Counter(), "0123456789abcdef" * 4096
    for _ in range(chars // len(line) + 1):
        counter.add(line)
    assert counter._whole == []
    assert MOST_SAMPLES // 2 - 6 <= len(counter._samples) <= MOST_SAMPLES
    assert all(len(sample) <= SAMPLE for sample in counter._samples)


@pytest.mark.parametrize(
    "text",
    [" " * EXACT, "a" * EXACT, "\ud800" * 70_000, "=" * EXACT],
    ids=["spaces", "a", "surrogates", "rule"],
)
def test_long_runs_do_not_panic(text: str) -> None:
    assert count(text).exact


def test_a_panic_in_tiktoken_gives_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        """What pyo3 raises."""

    class Panicking:
        def encode_ordinary(self, text: str) -> list[int]:
            raise PanicException(text)

    monkeypatch.setattr(tokens, "_encoding", Panicking)
    assert count("hello world") == TokenCount(2, exact=False)


def test_an_interrupt_is_no_panic(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def encode_ordinary(self, text: str) -> list[int]:
            raise KeyboardInterrupt(text)

    monkeypatch.setattr(tokens, "_encoding", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        count("hello world")


def test_the_estimate_is_near_the_count() -> None:
    text = prose(200_000)
    assert abs(estimate(text) - count(text).tokens) < 0.15 * count(text).tokens


PROGRAM = """
import os, socket, sys
def refuse(*_): raise AssertionError("the network was asked")
socket.socket.connect = socket.getaddrinfo = refuse
if "without" in sys.argv: sys.modules["tiktoken"] = None
from fetchstash.text.tokens import count
assert "tiktoken" not in sys.modules or sys.modules["tiktoken"] is None
print(count("hello world"), os.listdir(sys.argv[1]))
"""


def run(folder: Path, *arguments: str, **environment: str) -> str:
    """Count in a process of its own, whose temp folder is ``folder``."""
    command = [sys.executable, "-P", "-c", PROGRAM, str(folder), *arguments]
    env = {
        **os.environ,
        "TMPDIR": str(folder),
        "TEMP": str(folder),
        "PYTHONPATH": os.pathsep.join(sys.path),
        **environment,
    }
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env=env, timeout=60
    ).stdout.strip()


@pytest.mark.slow
def test_counting_needs_no_network_and_leaves_no_file_behind(tmp_path: Path) -> None:
    assert run(tmp_path) == "2 []"


@pytest.mark.slow
def test_tokens_are_estimated_if_tiktoken_is_missing(tmp_path: Path) -> None:
    assert run(tmp_path, "without") == "≈2 []"


def test_a_vocabulary_that_cannot_be_read_gives_an_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: bytes) -> bytes:
        raise EOFError

    monkeypatch.setattr(gzip, "decompress", broken)
    assert tokens._load.__wrapped__() is None


def test_a_tiktoken_without_this_vocabulary_gives_an_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = importlib.util.find_spec("bisect")

    def find(_: str) -> object:
        return other

    monkeypatch.setattr(importlib.util, "find_spec", find)
    assert tokens._load.__wrapped__() is None

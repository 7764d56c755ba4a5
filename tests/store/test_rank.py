"""Ranking finds the passage that a person would point at, and finds the same one each time."""

import random
from typing import Any

import pytest

from fetchstash.store import Passage, _passages
from fetchstash.store._passages import Piece
from fetchstash.store._search import RunTexts, SearchIndex
from fetchstash.store._text import text_in_memory

PASSAGE_CHARS = 700


def rank(text: str, query: str, limit: int) -> tuple[Passage, ...]:
    """The best passages of a text."""
    opened = text_in_memory(text.encode())
    texts = RunTexts({"": "art_x"})
    return SearchIndex().search(query, texts, lambda _: opened, limit, lambda: False).passages


def haystack(needle: str, paragraphs: int = 400) -> str:
    """Paragraphs of common words, with one that is asked for in the middle."""
    chance = random.Random(11)
    common = """
        system time server value data user file request name page number list result process
        memory order
    """.split()  # noqa: SIM905 - words read better so
    filler = [" ".join(chance.choices(common, k=60)) + "\n\n" for _ in range(paragraphs)]
    filler.insert(paragraphs // 2, needle + "\n\n")
    return "".join(filler)


@pytest.mark.parametrize(
    ("needle", "query"),
    [
        pytest.param("The retry budget is 30 seconds.", "what is the retry budget", id="words"),
        pytest.param("Timeouts and queries are configured here.", "timeout query", id="plurals"),
        pytest.param("set max_retry_count to limit it", "max_retry_count", id="an identifier"),
        pytest.param("Die Öffnungszeiten ändern sich.", "ÖFFNUNGSZEITEN", id="case beyond ASCII"),
        pytest.param("再試行の上限は三十秒です。", "再試行の上限", id="a script without spaces"),
        pytest.param("पुनः प्रयास की सीमा तीस सेकंड है", "प्रयास सीमा", id="a script with marks"),
    ],
)
def test_the_passage_in_the_middle_is_found(needle: str, query: str) -> None:
    text = haystack(needle)
    best = rank(text, query, 3)[0]
    assert needle in best.text
    assert best.first_line <= text[: text.index(needle)].count("\n") + 1 <= best.last_line


def test_passages_are_lines_of_the_text_and_do_not_overlap() -> None:
    text = "# Title\n\n" + haystack("needle") + "## End\nneedle without line end"
    passages = rank(text, "needle server", 1000)
    lines = text.split("\n")
    covered: set[int] = set()
    for passage in passages:
        span = range(passage.first_line, passage.last_line + 1)
        assert passage.text == "\n".join(lines[n - 1] for n in span).rstrip("\n")
        assert covered.isdisjoint(span)
        covered.update(span)
    assert [passage.score for passage in passages] == sorted(
        (passage.score for passage in passages), reverse=True
    )


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_a_long_line_is_cut_between_characters(before: str) -> None:
    text = before + "\u00e9\u20ac\U0001f512" * 2_000
    pieces = [piece.data for piece in _passages.passages(text_in_memory(text.encode()))]
    assert len(pieces) > 5
    assert "".join(piece.decode() for piece in pieces) == text


def test_a_line_of_three_megabytes_is_ranked_in_pieces() -> None:
    text = "filler ä " * 180_000 + "the needle " + "filler ö " * 150_000
    best = rank(text, "needle", 5)[0]
    assert "needle" in best.text
    assert (best.first_line, best.last_line) == (1, 1)
    assert len(best.text) <= PASSAGE_CHARS


@pytest.mark.parametrize("blank", ["\n", " \r\n", "\t\n\n"])
def test_megabytes_of_blank_lines_are_passed_at_once(
    blank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks at the time between two passages, and blank lines make none."""
    text = "needle one\n" + blank * 800_000 + "needle two\n"
    pieces: list[Piece] = []

    def counted(*values: Any) -> Piece:
        pieces.append(Piece(*values))
        return pieces[-1]

    monkeypatch.setattr(_passages, "Piece", counted)
    first_lines = [p.first_line for p in rank(text, "needle", 5)]
    assert first_lines == [1, text.count("\n")]
    assert len(pieces) < 100


@pytest.mark.parametrize("query", ["", "  ", "?!", "\ud800", "xylophone"])
def test_a_query_without_a_word_of_the_text_finds_nothing(query: str) -> None:
    text = "only these words\n"
    assert rank(text, query, 5) == ()


@pytest.mark.parametrize(
    ("query", "lines"),
    [("zebra 3", []), ("ferry 3", ["The ferry leaves."]), ("3", ["Pier 3 is closed."])],
)
def test_a_passage_that_shares_only_a_small_number_is_no_answer(
    query: str, lines: list[str]
) -> None:
    text = "Pier 3 is closed.\n\n" + haystack("The ferry leaves.", 40)
    found = [passage.text for passage in rank(text, query, 8)]
    assert len(found) == len(lines)
    assert all(line in passage for line, passage in zip(lines, found, strict=True))


def test_the_same_question_gets_the_same_answer_and_equal_passages_stand_in_order() -> None:
    text = "".join(f"one needle, word{n * n} and other{n}\n\n" for n in range(2000))
    passages = rank(text, "needle", 5)
    assert passages == rank(text, "needle", 5)
    assert [passage.first_line for passage in passages] == sorted(
        passage.first_line for passage in passages
    )

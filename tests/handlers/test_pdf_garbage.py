"""Text whose font has no usable mapping is recognised by its statistics."""

from pathlib import Path

import pytest

from fetchstash.handlers import ExtractLimits, Hints, handler_named
from fetchstash.handlers._pdf._garbage import is_garbage
from tests.handlers.pdf_pages import SENTENCE, unmapped


def test_a_page_whose_font_has_no_mapping_is_reported_as_unreadable(tmp_path: Path) -> None:
    source = tmp_path / "document.pdf"
    source.write_bytes(unmapped(SENTENCE * 4))
    extracted = handler_named("pdf").extract(source, Hints(), ExtractLimits())
    parts = list(extracted.parts or ())
    assert parts[0].text == f"[Page 1]\n{SENTENCE.strip()}\n\n"
    assert parts[1].text.startswith("[Page 2]\n(what follows is no text: its font has no usable ")
    assert (extracted.facts.unreadable_pages, extracted.facts.unreadable_from) == (1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "Strażnicy otwierają dolną bramę przy znaku, a zbiornik powoli napełnia się wiosną. " * 5,
        "Az őrök a jelnél kinyitják az alsó kaput, és a víztározó tavasszal lassan megtelik. " * 5,
        "Стражи открывают нижние ворота у отметки, и водохранилище наполняется весной. " * 5,
        "守門人在標記處打開下閘門，水庫在春天慢慢注滿。" * 9,
        "ATG CGT TGC CGG TTT GGC CCT GGT CTG TGT TTG " * 9,
        "12,204 7.5 % 118,493 KM 0.23 TX-17 43,478 GB " * 9,
    ],
    ids=["Polish", "Hungarian", "Russian", "Chinese", "genes", "numbers"],
)
def test_text_of_any_language_and_numbers_are_no_garbage(text: str) -> None:
    assert not is_garbage(text)
    assert is_garbage("".join(chr(0xE000 + ord(char) % 4_096) for char in text))

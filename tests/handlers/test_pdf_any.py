"""Whatever a page of a PDF draws, it is read, and no word that it shows is lost."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from fetchstash.errors import NoText
from fetchstash.handlers import ExtractLimits, Hints
from fetchstash.handlers._pdf._handler import PdfHandler
from tests.handlers.pdf_pages import pages, text

pytestmark = pytest.mark.slow

NUMBERS = st.one_of(
    st.integers(-20, 900),
    st.floats(-1e3, 1e3).map(lambda number: round(number, 3)),
    st.sampled_from([0, 10**9, -(10**9), 1e-9, 65_536]),
).map(str)
OPERATORS = """
    q Q cm w re m l c h S f B n W BT ET Tf Td TD Tm T* Tr Ts Tc Tw Tz TL Tj TJ ' BDC BMC EMC Do
    rg RG g gs sh BI ID EI
"""
OPERANDS = st.sampled_from(
    [
        "/F1",
        "/F2",
        "/F3",
        "/F9",
        "/OC",
        "/P",
        "(Gate)",
        "(open 12)",
        "(\\002 -)",
        "<<",
        ">>",
        "[",
        "]",
    ]
)


def reading(contents: list[bytes]) -> str:
    """Return the text of pages of these contents, "" if they have none."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "any.pdf")
        source.write_bytes(pages(*contents))
        extracted = PdfHandler().extract(source, Hints(), ExtractLimits())
        try:
            return "".join(part.text for part in extracted.parts or ())
        except NoText:
            return ""


@given(
    st.lists(st.one_of(NUMBERS, OPERANDS, st.sampled_from(OPERATORS.split())), max_size=200).map(
        " ".join
    )
)
def test_any_operators_are_a_page_that_is_read(content: str) -> None:
    shown = reading([text(60, 800, "The keeper wrote it down."), content.encode()])
    assert shown.startswith("[Page 1]\nThe keeper wrote it down.\n")
    assert "[Page 2]" in shown


PLACES = st.tuples(
    st.integers(0, 10), st.integers(0, 14), st.sampled_from([6, 10, 10, 10, 17]), st.integers(1, 3)
)


@given(
    st.lists(PLACES, max_size=60, unique_by=lambda place: place[:2]),
    st.lists(st.tuples(*[st.integers(0, 12)] * 4), max_size=20),
)
def test_no_word_of_any_page_is_lost(
    places: list[tuple[int, int, int, int]], rules: list[tuple[int, int, int, int]]
) -> None:
    content = b"".join(
        text(30 + 50 * x, 60 + 50 * y, f"w{number}x", font=font, size=size)
        for number, (x, y, size, font) in enumerate(places)
    )
    for x, y, wide, high in rules:
        content += f"{25 + 50 * x} {50 + 50 * y} {50 * wide} {50 * high} re S\n".encode()
    words = reading([content]).replace("|", " ").replace("#", " ").split()
    found = [word for word in words if word.startswith("w") and word.endswith("x")]
    # A value that spans rows stands in each of them.
    assert set(found) == {f"w{number}x" for number in range(len(places))}

"""Any part of a stored text comes back exactly, whatever the text."""

import os
import random

import pytest

from fetchstash.errors import OutOfRange
from fetchstash.store import TextReader
from fetchstash.store._text import BytesSource, StrideIndex
from fetchstash.text.ranges import Ranges
from tests.store.conftest import OpenText

BLOCK = 64 * 2**10


@pytest.fixture(autouse=True, params=["cached", "not cached"])
def _cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the page cache have what is asked for, or let it all come from the disk."""
    if request.param == "not cached":

        def not_cached(*_: object) -> int:
            raise BlockingIOError

        monkeypatch.setattr(os, "preadv", not_cached, raising=False)


def mixed(size: int) -> str:
    """A text of lines of all lengths with characters of one to four bytes."""
    chance = random.Random(7)
    lines: list[str] = []
    while sum(map(len, lines)) < size:
        lines.append(
            "".join(chance.choices("abc äö €中 😀𝒳", k=chance.choice([0, 1, 20, 80, 3000]))) + "\n"
        )
    return "".join(lines)


TEXTS = {
    "empty": "",
    "one line end": "\n",
    "no line end": "no line end",
    "no line end at the end": "a\nbb\nccc",
    "empty lines": "\n\n\nx\n\n",
    "one long line": "0123456789" * 30_000,
    "long line of four-byte characters": "😀" * 40_000 + "\nend",
    "nothing but line ends": "\n" * (BLOCK + 5),
    "one block": "x" * (BLOCK - 1) + "\n",
    "a character across blocks": "x" * (BLOCK - 1) + "€" + "y" * (BLOCK - 2) + "😀z",
    "mixed": mixed(200_000),
    "mixed without line end": mixed(150_000) + "end",
}


@pytest.fixture(params=list(TEXTS.values()), ids=list(TEXTS))
def text(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def points(length: int) -> list[int]:
    """Offsets at both ends, around block boundaries, and some others."""
    chance = random.Random(length)
    near = [
        at + step
        for at in (0, BLOCK // 4, BLOCK // 3, BLOCK, 2 * BLOCK, length)
        for step in (-1, 0, 1)
    ]
    return sorted(
        {at for at in (*near, *(chance.randint(0, length) for _ in range(20))) if 0 <= at <= length}
    )


@pytest.mark.anyio
async def test_counts_are_those_of_the_text(text: str, open_text: OpenText) -> None:
    reader = await open_text(text.encode())
    assert (reader.chars, reader.bytes) == (len(text), len(text.encode()))
    assert reader.lines == text.count("\n") + (text != "" and not text.endswith("\n"))


@pytest.mark.anyio
async def test_characters_are_a_slice_of_the_text(text: str, open_text: OpenText) -> None:
    reader = await open_text(text.encode())
    for start in points(len(text)):
        for end in (start, start + 1, start + 7, start + 70_000):
            assert await reader.read_chars(start, end) == text[start:end]


@pytest.mark.anyio
async def test_lines_and_characters_lead_to_each_other(text: str, open_text: OpenText) -> None:
    reader = await open_text(text.encode())
    for line in points(reader.lines):
        if line:
            char = await reader.char_of_line(line)
            assert text[:char].count("\n") == line - 1
            assert char == 0 or text[char - 1] == "\n"
            assert await reader.line_of_char(char) == line
    for char in points(len(text)):
        assert await reader.line_of_char(char) == text[:char].count("\n") + 1
    assert await reader.char_of_line(reader.lines + 1) == len(text)


@pytest.mark.slow
@pytest.mark.anyio
async def test_each_byte_belongs_to_a_character(text: str, open_text: OpenText) -> None:
    data = text.encode()
    reader = await open_text(data)
    for byte in points(len(data)):
        begun = sum(1 for b in data[: byte + 1] if b & 0xC0 != 0x80)
        assert reader.stored.char_of_byte(byte) == max(begun - 1, 0)


@pytest.mark.anyio
async def test_an_offset_past_the_end_is_empty_or_out_of_range(open_text: OpenText) -> None:
    reader = await open_text(b"one\ntwo\n")
    assert await reader.read_chars(8, 10) == ""
    with pytest.raises(OutOfRange, match="no line 4: the text has 2"):
        await reader.char_of_line(4)
    with pytest.raises(OutOfRange, match="no character 9: the text has 8"):
        await reader.line_of_char(9)


@pytest.mark.anyio
async def test_the_look_ups_of_a_slice_read_its_block_once() -> None:
    data = mixed(3 * BLOCK).encode()
    index, ranges = StrideIndex.of(data), Ranges()
    for first in (1, index.lines // 2, index.lines - 9):
        source = Recording(data)
        reader = TextReader("art_x", source, index, ranges)
        start, end = await reader.char_of_line(first), await reader.char_of_line(first + 9)
        shown = await reader.read_chars(start, end)
        assert shown == "".join(data.decode().splitlines(keepends=True)[first - 1 : first + 8])
        assert len(set(source.read_bytes)) == len(source.read_bytes)
        assert len(source.read_bytes) <= 2 * BLOCK


class Recording(BytesSource):
    """A source that notes which bytes were read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.read_bytes: list[int] = []

    def read(self, start: int, end: int) -> bytes:
        self.read_bytes += range(start, end)
        return super().read(start, end)

"""Parquet files: the facts of the footer; damaged and encrypted files are reported."""

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers import Extracted, handler_named

Read = Callable[..., tuple[Extracted, str]]

# Four rows in two row groups, written by pyarrow 26.0 with zstd.
TOWNS = (Path(__file__).parent / "data" / "towns.parquet").read_bytes()


def test_the_columns_are_listed_with_their_types_and_the_range_of_their_values(read: Read) -> None:
    extracted, text = read(handler_named("parquet"), TOWNS)
    assert (extracted.facts.rows, extracted.facts.columns) == (4, 11)
    assert extracted.facts.structure_info.startswith(
        "4 rows in 2 row groups, zstd, written by parquet-cpp-arrow version 26.0.1: id int64, town"
    )
    assert text.splitlines()[2:] == [
        "Column\tType\tNulls\tSmallest\tLargest",
        "id\tint64\t0\t1\t4",
        "town\tstring or null\t1\tAarau\tŁódź",
        "share\tdouble or null\t1\t-2.0\t1.25",
        "day\tdate or null\t1\t2026-11-21\t2026-11-21",
        "at\ttimestamp[us] or null\t0\t2026-11-21 07:30:00\t2026-11-21 07:30:00",
        "price\tdecimal or null\t0\t\t",
        "count\tuint32 or null\t0\t1\t4294967295",
        "open\tboolean or null\t1\t\t",
        "tags.list.element\tstring or null\t2\ta\tc",
        "place.lat\tdouble or null\t0\t1.5\t1.5",
        "place.lon\tdouble or null\t0\t2.5\t2.5",
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "cut short"),
        (TOWNS[:-100], "cut short"),
        (TOWNS[:-4] + b"PARE", "encrypted"),
        (b"PAR1" + b"\x15" * 20 + b"\x14\0\0\0PAR1", "damaged"),
        (b"PAR1" + b"\x1c" * 200 + b"\xc8\0\0\0PAR1", "damaged"),
        (b"PAR1" + b"\x19\xfc\xff\xff\xff\xff\x0f" + b"\x07\0\0\0PAR1", "damaged"),
    ],
    ids=["empty", "cut", "encrypted", "numbers", "structs in structs", "billions of structs"],
)
def test_an_unreadable_file_gives_its_reason(read: Read, data: bytes, reason: str) -> None:
    with pytest.raises(NoText, match=reason):
        read(handler_named("parquet"), data)


def test_damage_does_no_harm(read: Read) -> None:
    chance = random.Random(7)
    footer = TOWNS.rindex(b"PAR1") - 4 - int.from_bytes(TOWNS[-8:-4], "little")
    for _ in range(500):
        broken = bytearray(TOWNS)
        for _ in range(3):
            broken[chance.randrange(footer, len(broken) - 8)] = chance.randrange(256)
        with suppress(NoText):
            read(handler_named("parquet"), bytes(broken))

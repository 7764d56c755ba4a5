"""Which part of a text a path, a unit, a start and an end name."""

import pytest

from fetchstash.errors import BadArgument, FetchstashError, NoText, OutOfRange
from fetchstash.render import as_shown
from fetchstash.stash import Stash
from fetchstash.text.ranges import Heading, Ranges, Table
from tests.stash.conftest import Put
from tests.stores import both_stores

pytestmark = [pytest.mark.anyio, pytest.mark.in_process, both_stores]

BOOK = "# One\nfirst\n## One b\ninner\n# Two\nsecond\n\nlast"
OUTLINE = (
    Heading("One", 1, "lines", 1),
    Heading("One b", 2, "lines", 3),
    Heading("Two", 1, "lines", 5),
)


@pytest.mark.parametrize(
    ("options", "body", "opening"),
    [
        ({}, BOOK, "lines 1 to 8 of 8"),
        ({"start": 2, "end": 3}, "first\n## One b\n", "lines 2 to 3 of 8"),
        ({"start": 7}, "\nlast", "lines 7 to 8 of 8"),
        ({"end": 1}, "# One\n", "lines 1 to 1 of 8"),
        ({"start": 8, "end": 99}, "last", "lines 8 to 8 of 8"),
        ({"path": "One"}, "# One\nfirst\n## One b\ninner\n", "in 'One': lines 1 to 4 of 4"),
        ({"path": "## one B"}, "## One b\ninner\n", "in '## one B': lines 1 to 2 of 2"),
        ({"path": "Two", "start": 2, "end": 2}, "second\n", "in 'Two': lines 2 to 2 of 4"),
        (
            {"path": "Two", "unit": "chars", "start": 2, "end": 5},
            "Two",
            "in 'Two': characters 2 to 5 of 18",
        ),
        ({"unit": "chars", "start": 6, "end": 11}, "first", "characters 6 to 11 of 45"),
        ({"unit": "bytes", "start": 6, "end": 11}, "first", "bytes 6 to 11 of 45"),
    ],
    ids=str,
)
async def test_lines_chars_bytes_and_headings(
    options: dict[str, object], body: str, opening: str, stash: Stash, put: Put
) -> None:
    part = await stash.slice(await put(BOOK, outline=OUTLINE), **options)  # type: ignore[arg-type]
    assert part.text == body
    assert opening in as_shown(part).splitlines()[0]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"start": 9}, OutOfRange, "There are 8 lines, and start is 9."),
        ({"start": 0}, OutOfRange, "Lines count from 1, and start is 0."),
        ({"start": 5, "end": 4}, BadArgument, "start is 5 and end is 4."),
        ({"unit": "chars", "start": 45}, OutOfRange, "There are 45 characters, and start is 45."),
        ({"unit": "chars", "start": -5}, OutOfRange, "Characters count from 0, and start is -5."),
        ({"unit": "bytes", "start": -5}, OutOfRange, "Bytes count from 0, and start is -5."),
        ({"max_chars": 0}, BadArgument, "max_chars is 0. It must be 1 or more."),
        ({"unit": "pages"}, BadArgument, "This text has no pages."),
        ({"unit": "rows"}, BadArgument, "This part has no table rows."),
        (
            {"path": "Three"},
            OutOfRange,
            "There is no part 'Three' here. fetchstash.as_shown(artifact.facts) lists its parts.",
        ),
        ({"path": "One", "start": 5}, OutOfRange, "There are 4 lines, and start is 5."),
        ({"path": "One", "unit": "bytes"}, BadArgument, "Bytes are counted in the whole text."),
    ],
    ids=str,
)
async def test_a_part_that_is_not_there_is_one_line(
    options: dict[str, object], error: type[FetchstashError], words: str, stash: Stash, put: Put
) -> None:
    with pytest.raises(error) as caught:
        await stash.slice(await put(BOOK, outline=OUTLINE), **options)  # type: ignore[arg-type]
    assert words in caught.value.line()


async def test_a_byte_range_that_cuts_a_character_holds_the_whole_one(
    stash: Stash, put: Put
) -> None:
    ref = await put("aä𝔍z")
    for start in (3, 4, 5, 6):
        for end in range(start + 1, 8):
            part = await stash.slice(ref, unit="bytes", start=start, end=end)
            assert part.text == "𝔍"
            assert f"bytes 3 to 7 of {8}" in as_shown(part)


PAGES = ["[Page 1]\none\n", "[Page 2]\ntwo\n", "[Page 3]\nthree\n"]
TEXT = "".join(PAGES)
STARTS = (0, len(PAGES[0]), len(PAGES[0] + PAGES[1]))
CHAPTERS = (Heading("Start", 1, "pages", 1), Heading("Rest", 1, "pages", 2))


async def test_pages_and_bookmarks(stash: Stash, put: Put) -> None:
    ref = await put(TEXT, Ranges(pages=STARTS), outline=CHAPTERS, page_range=(1, 3))
    assert (await stash.slice(ref, unit="pages", start=2, end=2)).text == PAGES[1]
    assert (await stash.slice(ref, unit="pages", start=2)).text == PAGES[1] + PAGES[2]
    assert (await stash.slice(ref, path="Rest", unit="pages", start=2, end=2)).text == PAGES[2]
    assert (await stash.slice(ref, path="Rest", start=2, end=2)).text == "two\n"
    with pytest.raises(OutOfRange, match="There are 3 pages, and start is 4"):
        await stash.slice(ref, unit="pages", start=4)


async def test_pages_that_do_not_fit_go_on_at_the_next_page(stash: Stash, put: Put) -> None:
    pages = [f"[Page {n}]\n" + "x" * 150 + "\n" for n in range(1, 11)]
    starts = tuple(sum(map(len, pages[:n])) for n in range(10))
    ref = await put("".join(pages), Ranges(pages=starts))
    got, start = "", 1
    while True:
        part = await stash.slice(ref, unit="pages", start=start, end=10, max_chars=400)
        assert part.text.count("[Page") == 2
        got += part.text
        if part.next is None:
            break
        assert part.next.arguments["end"] == 10
        start = part.next.arguments["start"]
    assert got == "".join(pages)


SHEETS = "## North\n| id |\n1\n2\n3\n## South\n| id |\n4\n5\n"
TABLES = Ranges(tables=(Table("North", 3, 3, 1), Table("South", 8, 2, 1)))


async def test_rows_of_sheets(stash: Stash, put: Put) -> None:
    outline = (Heading("North", 1, "lines", 1), Heading("South", 1, "lines", 6))
    ref = await put(SHEETS, TABLES, outline=outline)
    assert (await stash.slice(ref, path="South", unit="rows")).text == "4\n5\n"
    assert (await stash.slice(ref, path="North", unit="rows", start=2, end=3)).text == "2\n3\n"
    assert (await stash.slice(ref, path="south", unit="rows")).text == "4\n5\n"
    assert (await stash.slice(ref, path="North", unit="rows", start=3, end=9)).text == "3\n"
    assert (await stash.slice(ref, path="South")).text == "## South\n| id |\n4\n5\n"
    assert (await stash.slice(await put(SHEETS, TABLES), path="South")).text == "| id |\n4\n5\n"
    with pytest.raises(BadArgument, match="There are 2 tables here"):
        await stash.slice(ref, unit="rows")
    with pytest.raises(OutOfRange, match="There are 2 rows, and start is 3"):
        await stash.slice(ref, path="South", unit="rows", start=3)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("C", "# C\n1\n"),
        ("C#", "# C#\n2\n"),
        ("c", "# c\n3\n"),
        ("# C#", "# C\n1\n"),
        ("## d", "# D\n4\n"),
    ],
)
async def test_a_heading_is_named_as_it_is_spelled_or_nearly(
    path: str, body: str, stash: Stash, put: Put
) -> None:
    outline = tuple(
        Heading(title, 1, "lines", line)
        for title, line in (("C", 1), ("C#", 3), ("c", 5), ("D", 7))
    )
    ref = await put("# C\n1\n# C#\n2\n# c\n3\n# D\n4\n", outline=outline)
    assert (await stash.slice(ref, path=path)).text == body


@pytest.mark.parametrize("path", ["Fees", "fees", "1.2 Fees", "## 1.2 fees"])
async def test_a_numbered_heading_is_named_without_its_number(
    path: str, stash: Stash, put: Put
) -> None:
    titles = ("1. Scope", "1.2 Fees", "b) Terms", "IV. Notes")
    outline = tuple(Heading(title, 1, "lines", 2 * n + 1) for n, title in enumerate(titles))
    ref = await put("".join(f"# {title}\n{title}\n" for title in titles), outline=outline)
    assert (await stash.slice(ref, path=path)).text == "# 1.2 Fees\n1.2 Fees\n"
    assert (await stash.slice(ref, path="Terms")).text == "# b) Terms\nb) Terms\n"
    assert (await stash.slice(ref, path="Notes")).text == "# IV. Notes\nIV. Notes\n"


async def test_rows_of_the_only_table_need_no_path(stash: Stash, put: Put) -> None:
    ref = await put("id\n1\n2\n", Ranges(tables=(Table("", 2, 2, 1),)))
    assert (await stash.slice(ref, unit="rows", start=2)).text == "2\n"


async def test_rows_that_the_text_leaves_out_are_named_a_query(stash: Stash, put: Put) -> None:
    ref = await put(
        "id\n1\n2\n",
        Ranges(tables=(Table("", 2, 2, 1),)),
        extraction_truncated=True,
        content_kind="spreadsheet",
        media_type="application/vnd.sqlite3",
    )
    with pytest.raises(OutOfRange, match=r"ends at row 2, and start is 3.*path='from … where"):
        await stash.slice(ref, unit="rows", start=3)


async def test_an_artifact_without_text_is_a_hex_dump(stash: Stash, put: Put) -> None:
    ref = await put(None, raw=bytes(range(40)))
    with pytest.raises(NoText):
        await stash.slice(ref)
    part = await stash.slice(ref, unit="bytes")
    assert part.text.splitlines() == [
        "00000000  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  ................",
        "00000010  10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f  ................",
        "00000020  20 21 22 23 24 25 26 27                           !\"#$%&'        ",
    ]
    assert "bytes 0 to 40 of 40" in as_shown(part)
    cut = await stash.slice(ref, unit="bytes", max_chars=200)
    assert cut.text.count("\n") == 2
    assert 'unit="bytes", start=32, end=40' in as_shown(cut, 200)


async def test_an_empty_text_is_whole_at_once(stash: Stash, put: Put) -> None:
    ref = await put("")
    assert (await stash.slice(ref)).text == ""
    assert (await stash.read(ref)).text == ""

"""Tables of PDF pages are read by rows, ruled or not, and those across pages as one."""

from collections.abc import Sequence
from itertools import product

import pytest

from fetchstash.handlers import Extracted, Part
from tests.handlers.conftest import Read
from tests.handlers.pdf_pages import grid, line, lines, pages, text

TOWNS = [
    ["Town", "Founded", "People", "River"],
    ["Ashford", "1201", "74,204", "Stour"],
    ["Bexhill", "772", "43,478", "Egerton"],
    ["Crawley", "1202", "118,493", "Mole"],
    ["Dorking", "1086", "11,158", "Pipp"],
    ["Epsom", "1086", "31,474", "Hogsmill"],
]
XS = (60.0, 180.0, 280.0, 380.0, 500.0)
PROSE = "The wardens open the lower gate at the mark, and the reservoir fills slowly in spring."


def cells(
    rows: Sequence[Sequence[str]],
    top: float = 700,
    leading: float = 20,
    *,
    by_columns: bool = False,
) -> bytes:
    """Return the cells of a table, written row by row or column by column."""
    places = list(product(range(len(rows)), range(len(rows[0]))))
    if by_columns:
        places.sort(key=lambda place: place[1])
    return b"".join(
        text(XS[column] + 4, top - leading * row, rows[row][column]) for row, column in places
    )


def ruled(rows: Sequence[Sequence[str]], top: float = 700, leading: float = 20) -> bytes:
    """Return a table with a rule around each cell."""
    ys = [top + 14 - leading * row for row in range(len(rows) + 1)]
    return grid(XS[: len(rows[0]) + 1], ys) + cells(rows, top, leading)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *body = [f"| {' | '.join(row)} |\n" for row in rows]
    return head + "|" + " --- |" * len(rows[0]) + "\n" + "".join(body)


def parts_of(extracted: Extracted) -> list[Part]:
    return list(extracted.parts or ())


def tables_of(extracted: Extracted) -> list[str]:
    return [part.table for part in parts_of(extracted) if part.table]


@pytest.mark.parametrize("by_columns", [False, True], ids=["by rows", "by columns"])
@pytest.mark.parametrize("rules", [True, False], ids=["ruled", "without rules"])
def test_a_table_stands_as_markdown_whatever_order_its_cells_are_written_in(
    read: Read, rules: bool, by_columns: bool
) -> None:
    ys = [714 - 20 * row for row in range(len(TOWNS) + 1)]
    content = text(60, 760, PROSE) + (grid(XS, ys) if rules else b"")
    content += cells(TOWNS, by_columns=by_columns) + text(60, 540, PROSE)
    extracted, shown = read("pdf", pages(content))
    assert shown == f"[Page 1]\n{PROSE}\n\n{markdown(TOWNS)}\n{PROSE}\n\n"
    tables = [(part.table, part.columns, part.rows) for part in parts_of(extracted) if part.table]
    assert tables == [("Table 1 (page 1)", 4, 5)]
    assert extracted.facts.structure_info == "1 table: Table 1 (page 1), 5 rows"


def test_a_cell_of_several_lines_is_one_cell_of_its_row(read: Read) -> None:
    rows = [["Name", "Text"], ["Ash", ""], ["Birch", ""]]
    content = grid(XS[:3], (714, 694, 654, 614)) + cells([rows[0]])
    for y, name, words in (
        (680, "Ash", ("a long", "second line")),
        (640, "Birch", ("of a bro-", "ken word")),
    ):
        content += text(64, y, name) + text(184, y, words[0]) + text(184, y - 12, words[1])
    _, shown = read("pdf", pages(content))
    assert "| Ash | a long second line |\n| Birch | of a broken word |\n" in shown


def test_a_value_that_spans_rows_is_repeated_and_one_that_spans_columns_is_not(read: Read) -> None:
    content = (
        b"".join(line(60, y, 280, y) for y in (714, 694, 654, 634))
        + line(180, 674, 280, 674)
        + b"".join(line(x, 714, x, 634) for x in (60, 280))
        + line(180, 714, 180, 654)
        + cells([["Name", "Part"], ["Both", "one"], ["", "two"]])
        + text(64, 640, "A sentence that reaches across both columns")
    )
    _, shown = read("pdf", pages(content))
    assert "| Both | one |\n| Both | two |\n" in shown
    assert "| A sentence that reaches across both columns |  |\n" in shown


def test_a_table_across_pages_is_one_with_its_header_once(read: Read) -> None:
    many = [TOWNS[0]] + [[f"Town {n}", str(n), f"{n},{n:03}", "Stour"] for n in range(1, 61)]
    contents = [
        text(60, 800, "Annual report")
        + ruled([TOWNS[0], *many[1 + 20 * n : 21 + 20 * n]])
        + text(60, 40, f"Page {n + 1} of 3")
        for n in range(3)
    ]
    contents[2] += text(60, 200, PROSE) + text(60, 180, PROSE) + text(60, 160, PROSE)
    extracted, shown = read("pdf", pages(*contents))
    assert markdown(many) in shown
    assert [part.rows for part in parts_of(extracted) if part.rows] == [20, 20, 20]
    assert tables_of(extracted) == ["Table 1 (page 1)"]
    assert sum(part.starts_page for part in parts_of(extracted)) == 3
    assert "of 3" not in shown, "page numbers are left out, and rows follow each other"
    assert extracted.facts.left_out == "header 39, footer 33"


def test_a_cell_that_goes_on_over_a_page_is_one_cell_of_its_row(read: Read) -> None:
    def page(*rows: tuple[str, str, str]) -> bytes:
        return ruled([("Gate", "State", "Said"), *rows])

    contents = [
        page(("One", "good", "closes"), ("Two", "bad and", "stuck all win-")),
        page(("", "leaking", "ter of last"), ("Three", "good", "greased by")),
        page(("", "", "hand."), ("Four", "good", "painted")),
    ]
    whole = [
        ["Gate", "State", "Said"],
        ["One", "good", "closes"],
        ["Two", "bad and leaking", "stuck all winter of last"],
        ["Three", "good", "greased by hand."],
        ["Four", "good", "painted"],
    ]
    extracted, shown = read("pdf", pages(*contents))
    assert markdown(whole) in shown
    assert [part.rows for part in parts_of(extracted) if part.rows] == [2, 1, 1]
    # Of groups that are named once, and after a sentence that has ended, a row is one of its own.
    for rest in (("", "leaking", "Mended."), ("", "4", "more")):
        ended = [page(("One", "good", "closes."), ("Two", "bad", "stuck.")), page(rest)]
        assert f"| {' | '.join(rest)} |\n" in read("pdf", pages(*ended))[1]
    groups = [page(("One", "good", "a"), ("", "bad", "b")), page(("", "worse", "c"))]
    assert "|  | worse | c |\n" in read("pdf", pages(*groups))[1]


def test_another_table_on_the_next_page_is_a_table_of_its_own(read: Read) -> None:
    other = [["Tree", "Height"], ["Ash", "40"], ["Birch", "25"]]
    extracted, shown = read("pdf", pages(ruled(TOWNS), ruled(other)))
    assert tables_of(extracted) == ["Table 1 (page 1)", "Table 2 (page 2)"]
    assert "[Page 2]\n| Tree | Height |" in shown


def turned(content: bytes) -> bytes:
    """Return content as a page that is shown turned by 90 degrees holds it."""
    return b"0 1 -1 0 595 0 cm\n" + content


def test_a_table_on_a_turned_page_is_read_as_it_is_seen(read: Read) -> None:
    _, shown = read("pdf", pages(turned(ruled(TOWNS, top=500)), rotate=90))
    assert markdown(TOWNS) in shown


LISTING = [
    "def gate(mark):      # the lower one",
    "    level = read()   # in metres",
    "    if level > mark: # too high",
    "        open()       # until it falls",
    "    return level     # as it was",
]
CONTENTS = [("The gate", 3), ("The mark", 9), ("The reservoir", 12), ("The wardens", 20)]


@pytest.mark.parametrize(
    "content",
    [
        b"".join(text(60, 700 - 14 * n, PROSE) for n in range(6)),
        b"".join(text(60, 700 - 14 * n, f"{n}.") + text(90, 700 - 14 * n, PROSE) for n in range(6)),
        b"".join(text(60, 700 - 12 * n, row, font=2) for n, row in enumerate(LISTING * 3)),
        b"".join(
            text(60, 700 - 14 * n, title)
            + text(140, 700 - 14 * n, ". " * 60)
            + text(520, 700 - 14 * n, str(page))
            for n, (title, page) in enumerate(CONTENTS)
        ),
        grid((60, 300, 540), (700, 500)) + text(70, 650, "a box") + text(310, 650, "and another"),
        grid(range(60, 560, 50), range(200, 700, 50)),
    ],
    ids=["prose", "list", "code", "contents", "boxes", "chart"],
)
def test_text_that_is_no_table_stays_text(read: Read, content: bytes) -> None:
    extracted, shown = read("pdf", pages(content + text(60, 800, "Title")))
    assert not tables_of(extracted)
    assert "|" not in shown


def test_a_drawing_of_many_rules_costs_no_text(read: Read) -> None:
    hatched = b"".join(line(n % 500, n // 500, n % 500 + 5, n // 500 + 300) for n in range(20_000))
    _, shown = read("pdf", pages(hatched + cells(TOWNS)))
    assert "| Ashford | 1201 | 74,204 | Stour |" in shown


def test_rules_as_near_as_a_hatching_part_no_rows(read: Read) -> None:
    hatched = b"".join(line(60, 600 + 2.5 * n, 500, 600 + 2.5 * n) for n in range(60))
    _, shown = read("pdf", pages(hatched + cells(TOWNS)))
    assert "Ashford" in shown
    assert "Hogsmill" in shown


Lines = str | list[str]
FIGURES = (60.0, 220.0, 300.0, 380.0, 460.0)
YEARS = ["Item", "2010", "2011", "2012"]
SCHOOLS = ["Expenditure on schools", "and on kindergartens"]
BRIDGES = ["Bridges and tunnels of", "the national network"]


def grouped(
    groups: Sequence[Sequence[Sequence[Lines]]], header: Sequence[str], *, boxed: bool
) -> bytes:
    """Return a table with rules between groups of rows only; ``boxed`` adds those of columns."""
    xs = (*FIGURES[: len(header)], FIGURES[len(header)] if len(header) < 5 else 540)
    written, y, rules = b"", 700.0, [712.0, 694.0]
    written += b"".join(text(xs[column] + 4, y, words) for column, words in enumerate(header))
    for group in groups:
        y = rules[-1] - 12
        for row in group:
            columns = [[cell] if isinstance(cell, str) else cell for cell in row]
            for column, cell in enumerate(columns):
                for number, words in enumerate(cell):
                    written += text(xs[column] + 4, y - 12 * number, words) if words else b""
            y -= 12 * max(map(len, columns))
        rules.append(y + 6)
    written += b"".join(line(xs[0], at, xs[-1], at) for at in rules)
    return written + b"".join(line(x, 712, x, rules[-1]) for x in xs if boxed)


UNEVEN = [
    [["Schools", "1,204", "1,311", "1,402"]],
    [["Roads", "804", "811", "-"], ["Bridges", "12.5", "13.0", "14.1"], ["Rail", "7", "8", "9"]],
    [["Water", "5", "6", "7"], ["Sewers", "55", "56", "n.a."]],
]


def below(label: Sequence[str], *values: str, at: int) -> list[Lines]:
    """Return a row whose values stand beside line ``at`` of its label."""
    return [list(label), *([*[""] * at, value] for value in values)]


def wrapped(at: int) -> list[list[list[Lines]]]:
    schools, bridges = below(SCHOOLS, "1", "2", "3", at=at), below(BRIDGES, "4", "5", "6", at=at)
    return [
        [schools, ["Universities", "7", "8", "9"]],
        [["Roads", "10", "11", "12"], bridges, ["Rail", "13", "14", "15"]],
    ]


WHOLE = [
    [" ".join(SCHOOLS), "1", "2", "3"],
    ["Universities", "7", "8", "9"],
    ["Roads", "10", "11", "12"],
    [" ".join(BRIDGES), "4", "5", "6"],
    ["Rail", "13", "14", "15"],
]
REGIONS = [
    [["", "Roads", "804", "811"], ["North", "Rail", "5", "6"], ["", "Air", "15", "16"]],
    [["South", "Roads", "1", "2"], ["", "Rail", "3", "4"]],
]
PLACED = [
    ["North", "Roads", "804", "811"],
    ["North", "Rail", "5", "6"],
    ["North", "Air", "15", "16"],
    ["South", "Roads", "1", "2"],
    ["", "Rail", "3", "4"],
]
HEADED = [
    [["Expenditure:", "", "", ""], ["Roads", "804", "811", "790"], ["Rail", "77", "78", "80"]],
    [["Income:", "", "", ""], ["Tolls", "1", "2", "3"], ["Fares", "4", "5", "6"]],
    [["Total", "7", "8", "9"]],
]


@pytest.mark.parametrize("boxed", [True, False], ids=["boxed", "rules across"])
@pytest.mark.parametrize(
    ("groups", "rows"),
    [
        (UNEVEN, [row for group in UNEVEN for row in group]),
        (wrapped(at=0), WHOLE),
        (wrapped(at=1), WHOLE),
        (REGIONS, PLACED),
        (HEADED, [row for group in HEADED for row in group]),
    ],
    ids=["groups", "values beside the first", "values beside the last", "label", "headings"],
)
def test_rows_between_the_rules_of_groups_stand_apart(
    read: Read,
    groups: Sequence[Sequence[Sequence[Lines]]],
    rows: Sequence[Sequence[str]],
    boxed: bool,
) -> None:
    _, shown = read("pdf", pages(text(60, 780, PROSE) + grouped(groups, YEARS, boxed=boxed)))
    assert markdown([YEARS, *rows]) in shown


def test_a_label_in_cells_that_span_groups_is_that_of_all_their_rows(read: Read) -> None:
    content = grid(FIGURES[:4], (712, 694)) + b"".join(line(x, 694, x, 614) for x in FIGURES[:4])
    content += line(60, 614, 380, 614) + line(220, 654, 380, 654)
    for x, words in zip(FIGURES, ("Region", "2010", "2011"), strict=False):
        content += text(x + 4, 700, words)
    content += text(64, 650, "North")
    for n, y in enumerate((682, 670, 642, 630)):
        content += text(224, y, str(n)) + text(304, y, str(10 + n))
    _, shown = read("pdf", pages(content))
    rows = [["Region", "2010", "2011"], *(["North", str(n), str(10 + n)] for n in range(4))]
    assert markdown(rows) in shown


def estimate(name: Lines, *values: str) -> list[list[Lines]]:
    return [[name, *([value, f"(0.{n})"] for n, value in enumerate(values))]]


PROSE_CELL: list[Lines] = [
    ["The wardens open the lower", "gate at the mark, and the", "water rises."],
    ["It is", "read", "often."],
    "12",
]
CELLS: dict[str, tuple[Sequence[str], list[list[list[Lines]]], str]] = {
    "prose": (
        ["What", "How", "No."],
        [[PROSE_CELL]] * 3,
        "| The wardens open the lower gate at the mark, and the water rises. | It is read",
    ),
    "estimates": (
        YEARS,
        [estimate("Income", "1", "2", "3"), estimate("Age", "4", "5", "6")] * 2,
        "| Income | 1 (0.0) | 2 (0.1) | 3 (0.2) |",
    ),
    "estimates of a long label": (
        YEARS,
        [estimate(["Income of all of the persons", "of the household"], "1", "2", "3")] * 3,
        "| Income of all of the persons of the household | 1 (0.0) | 2 (0.1) | 3 (0.2) |",
    ),
    "numbers": (
        ["Who", "Call"],
        [[[["The wardens of the lower gate", "and of the mark"], ["555-12", "555-98"]]]] * 3,
        "| The wardens of the lower gate and of the mark | 555-12 555-98 |",
    ),
    "addresses": (
        ["Who", "Call"],
        [[[["Ash Ltd", "1 High Street", "London"], ["Tel. 1", "Fax 2", "Mail 3"]]]] * 3,
        "| Ash Ltd 1 High Street London | Tel. 1 Fax 2 Mail 3 |",
    ),
}


@pytest.mark.parametrize(("header", "groups", "row"), list(CELLS.values()), ids=list(CELLS))
def test_lines_of_one_cell_stay_in_its_row_beside_as_many(
    read: Read, header: Sequence[str], groups: Sequence[Sequence[Sequence[Lines]]], row: str
) -> None:
    _, shown = read("pdf", pages(text(60, 780, PROSE) + grouped(groups, header, boxed=True)))
    assert shown.count(f"{row}") >= 2


def test_columns_whose_lines_do_not_meet_are_shown_line_by_line(read: Read) -> None:
    content = grid(FIGURES[:4], (714, 694, 494))
    content += b"".join(text(x + 4, 700, w) for x, w in zip(FIGURES, YEARS[:3], strict=False))
    for x, top, leading, first, count in (
        (64, 680, 12, "Town ", 9),
        (224, 680, 12, "1", 9),
        (304, 674, 20, "2", 5),
    ):
        content += b"".join(text(x, top - leading * n, f"{first}{n}") for n in range(count))
    _, shown = read("pdf", pages(content))
    assert "| Town 0 | 10 |  |\n|  |  | 20 |\n| Town 1 | 11 |  |\n" in shown
    assert "| Town 7 | 17 | 24 |\n" in shown


def test_a_cell_of_very_many_lines_is_not_taken_apart(read: Read) -> None:
    lines = [(680 - 0.4 * n, f"{n}") for n in range(1_000)]
    content = grid(FIGURES[:4], (714, 694, 200)) + cells([["Town", "2010", "2011"]])
    small = b"".join(
        f"BT /F1 0.4 Tf {x} {y:.1f} Td ({word}) Tj ET\n".encode()
        for x in (64, 224)
        for y, word in lines
    )
    _, shown = read("pdf", pages(content + small))
    assert "999" in shown


def test_names_of_columns_above_the_first_rule_are_the_header(read: Read) -> None:
    """Programs that rule below each row draw none above the first."""
    rows = (("Gauge", "Reading", "Remark"), ("Alpha", "1.25", "high"), ("Bravo", "3.10", "low"))
    drawn = b"".join(
        b"".join(text(60 + 100 * n, 700 - 20 * row, cell) for n, cell in enumerate(cells))
        + line(60, 694 - 20 * row, 340, 694 - 20 * row)
        for row, cells in enumerate(rows)
    )
    _, shown = read("pdf", pages(drawn))
    assert "| Gauge | Reading | Remark |\n| --- | --- | --- |\n| Alpha | 1.25 | high |\n" in shown


def test_a_row_without_its_value_keeps_its_other_cells(read: Read) -> None:
    rows = (("Alpha", "1.25", "dry"), ("Bravo", "", "happy"), ("Young pier", "3.10", "queue"))
    drawn = line(60, 714, 340, 714) + line(60, 694, 340, 694) + line(60, 630, 340, 630)
    drawn += text(60, 700, "Gauge") + text(160, 700, "Reading") + text(260, 700, "Remark")
    for row, cells in enumerate(rows):
        for column, cell in enumerate(cells):
            if cell:
                drawn += text(60 + 100 * column, 680 - 18 * row, cell)
    _, shown = read("pdf", pages(drawn))
    assert "| Bravo |  | happy |\n| Young pier | 3.10 | queue |\n" in shown


WRAPPED = (
    ("Name", "What it does", "Since"),
    ("Gate", "opens and closes the\nupper basin at night", "1901"),
    ("Pump house", "lifts", "1920"),
    ("Weir of the\nlower basin", "holds the water back\nuntil the mark is\nreached", "1935"),
    ("Boat", "ferries", "1950"),
)


@pytest.mark.parametrize("gap", [12, 20], ids=["lines alike", "rows apart"])
@pytest.mark.parametrize("is_ruled", [True, False], ids=["rules", "no rules"])
@pytest.mark.parametrize("is_low", [True, False], ids=["below", "above"])
def test_lines_of_a_cell_stay_together_where_its_row_stands_beside_the_last_or_the_first(
    read: Read, gap: int, *, is_ruled: bool, is_low: bool
) -> None:
    drawn, y = b"", 720
    for number, row in enumerate(WRAPPED):
        cells = [cell.split("\n") for cell in row]
        high = max(map(len, cells))
        for x, cell in zip((60, 160, 320), cells, strict=True):
            off = high - len(cell) if is_low else 0
            drawn += b"".join(text(x, y - 12 * (n + off), part) for n, part in enumerate(cell))
        y -= 12 * (high - 1) + gap
        if is_ruled and not number:
            drawn += line(56, 731, 380, 731) + line(56, y + 10, 380, y + 10)
    drawn += line(56, y + 8, 380, y + 8) if is_ruled else b""
    expected = [[cell.replace("\n", " ") for cell in row] for row in WRAPPED]
    assert markdown(expected) in read("pdf", pages(drawn))[1]


def test_tables_that_nearly_touch_and_share_no_column_are_two(read: Read) -> None:
    upper, lower = grid((60, 140, 220), (686, 704, 722)), grid((60, 113, 166, 220), (647, 665, 683))
    for y, row in ((709, "City People"), (691, "Oslo 700")):
        upper += b"".join(text(64 + 80 * n, y, word) for n, word in enumerate(row.split()))
    for y, row in ((670, "River Length Basin"), (652, "Elbe 1094 148")):
        lower += b"".join(text(64 + 53 * n, y, word) for n, word in enumerate(row.split()))
    shown = read("pdf", pages(upper + lower))[1]
    assert markdown([["City", "People"], ["Oslo", "700"]]) in shown
    assert markdown([["River", "Length", "Basin"], ["Elbe", "1094", "148"]]) in shown


def test_the_ends_of_two_columns_of_text_are_no_table(read: Read) -> None:
    """Rows of it would stand before the rest of the right column, which the file has between."""
    body = [PROSE[:26], PROSE[27:50], PROSE[51:74], PROSE[75:]]
    left = lines(700, *body, "Boats of the lake", "Gates of the weir", "Pumps that lift")
    right = lines(778, *body, *body[:2], left=360) + lines(648, "1,204", "1,873", "1,905", left=360)
    shown = read("pdf", pages(left + right))[1]
    assert "|" not in shown
    assert shown.index("Pumps that lift") < shown.index("1,204")


def test_text_beside_notes_in_the_margin_is_no_table(read: Read) -> None:
    rows = (
        ("Submitted: 24 April", "The wardens open the lower gate at the mark, and then,"),
        ("Published: 10 May", "if the water falls, they close it for the rest of the day,"),
        ("Reviewed: 3 May", "which is written down in the book of the reservoir here."),
    )
    drawn = text(220, 730, "Summary", font=3, size=14)
    for number, (note, said) in enumerate(rows):
        drawn += text(60, 712 - 13 * number, note) + text(220, 712 - 13 * number, said)
    assert "|" not in read("pdf", pages(drawn))[1]

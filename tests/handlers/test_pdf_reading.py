"""A PDF is read as a document: headings, paragraphs, running heads, forms, order and direction."""

import random
from operator import itemgetter
from pathlib import Path

import pytest

from fetchstash.cli.demo.site import Bookmark, make_pdf
from fetchstash.handlers import PartText
from fetchstash.text.ranges import Heading
from tests.handlers.conftest import PartOf, Read
from tests.handlers.pdf_pages import form, grid, line, lines, pages, stream, text, write_objects

DATA = Path(__file__).parent / "data" / "pdf"
BODY = (
    "The wardens open the lower gate at the mark, and the reservoir fills slowly in",
    "spring. In summer they read the gauge twice a day and write down what it says",
    "until the water falls.",
)
ONE = " ".join(BODY)


def case(read: Read, name: str) -> str:
    return read("pdf", (DATA / f"{name}.pdf").read_bytes())[1]


def test_a_footer_that_the_file_draws_first_stands_below_the_text(read: Read) -> None:
    shown = case(read, "b-12-margins")
    assert shown.index("# 1 Section A") < shown.index("Line 19") < shown.index("IBAN DE00 0000")
    assert shown.index("IBAN DE00 0000") < shown.index("[Page 2]")


def test_each_value_of_a_form_stands_at_its_label(read: Read) -> None:
    assert case(read, "c-form") == (
        "[Page 1]\nApplication form\n\nName: Ada Example\n\nCity: Hamburg\n\n"
        "Member: [x] Newsletter: [ ]\n\nSize: Large\n\nPlan: ( ) basic (x) gold\n\n"
    )


def test_latin_words_and_brackets_in_text_from_the_right_stand_as_written(read: Read) -> None:
    shown = case(read, "c-rtl")
    assert "بارتفاع 12.5 متر (Gauge A)." in shown
    assert "בשנת 2026 בגובה 12.5 מטר (Gauge B)." in shown
    assert "# تقرير الميناء" in shown


def test_numbers_signs_lists_and_ligatures_from_the_right_stand_as_written(read: Read) -> None:
    shown = case(read, "persian-hebrew-arabic")
    assert "(ایستگاه A) در سال ۱۴۰۵ با ارتفاع ۱۲٫۵ متر" in shown
    assert "- مورد دوم با English word\n1. یک\n2. دو\n" in shown
    assert "| תחנה (ב) | -4.50 |\n" in shown
    assert "ראו https://example.org/a?b=1 לפרטים, או info@example.org." in shown
    assert "בשנה (A) 50% מהימים, וכן f(x) ועוד" in shown
    assert "لا بد" in shown
    assert "والهاتف +20-2-555 (info@example.org)." in shown


def test_a_bracket_that_begins_in_one_direction_and_ends_in_the_other_stays_in_its_line(
    read: Read,
) -> None:
    assert "12.5 متر (المحطة A) في سنة 2026.\n" in case(read, "rtl-bracket")


def test_a_table_from_the_right_has_whole_words_and_its_first_column_first(read: Read) -> None:
    assert "| رقم الجلسة | 436 |\n| اسم الميناء الصغير | 2026/10/05 |\n" in case(read, "d-rtlmin")
    assert "| 436 | number of session |\n" in case(read, "d-ltrmin")


def test_a_wrapped_cell_is_one_cell_in_the_order_of_the_file(read: Read) -> None:
    shown = case(read, "d-wrap-pandoc")
    assert "|  | OCR | Recommendation | Product search |\n" in shown
    cell = "A reader that recognizes characters in a picture and extracts what is needed"
    assert f"| Pack | {cell} | A reader that recommends the best goods and contents |" in shown
    assert shown.count("| ") == 16 + 4, "a table of four rows and four columns"


def test_headings_by_size_and_weight_are_in_the_outline_and_captions_are_not(read: Read) -> None:
    content = (
        text(60, 780, "The reservoir", font=3, size=20)
        + text(60, 750, "1 Method", font=3, size=14)
        + lines(730, *BODY)
        + text(60, 670, "Gauges", font=3)
        + lines(655, *BODY)
        + text(60, 600, "Table 1: Levels", font=3)
    )
    extracted, shown = read("pdf", pages(content))
    assert shown == (
        f"[Page 1]\n# The reservoir\n\n## 1 Method\n\n{ONE}\n\n### Gauges\n\n{ONE}\n\n"
        "Table 1: Levels\n\n"
    )
    parts = list(extracted.parts or ())
    assert len(parts) == 1
    assert parts[0].headings == (
        Heading("The reservoir", 1, "lines", 2),
        Heading("1 Method", 2, "lines", 4),
        Heading("Gauges", 3, "lines", 8),
    )


@pytest.mark.parametrize(
    ("keys", "seen"),
    [("/F 4", True), ("/F 2", False), ("/F 4 /AP << /N 6 0 R >>", False)],
    ids=["shown", "hidden", "white"],
)
@pytest.mark.parametrize("field", [True, False], ids=["on a form", "on a text"])
def test_a_note_on_a_page_stands_behind_its_text_if_it_is_seen(
    read: Read, keys: str, *, seen: bool, field: bool
) -> None:
    note = f"<< /Type /Annot /Subtype /FreeText /Rect [60 600 300 620] {keys}"
    white = (
        "/Type /XObject /Subtype /Form /BBox [0 0 240 20] /Resources << /Font << /F1 3 0 R >> >>"
    )
    box = b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (Town) /V (Ash) /Rect [120 776 300 792] >>"
    data = write_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R %s >>"
            % (b"/AcroForm << /Fields [8 0 R] >>" if field else b""),
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 /MediaBox [0 0 595 842] >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Annots [7 0 R %s] /Resources %s >>"
            % (b"8 0 R" if field else b"", b"<< /Font << /F1 3 0 R >> >>"),
            stream(text(60, 780, "Town:")),
            stream(b"1 1 1 rg\n" + text(2, 4, "Approved by A."), white),
            f"{note} /DA (/F1 10 Tf) /Contents (Approved by A.) >>".encode(),
            box,
        ]
    )
    town = "Town: Ash" if field else "Town:"
    behind = "Approved by A.\n\n" if seen else ""
    assert read("pdf", data)[1] == f"[Page 1]\n{town}\n\n{behind}"


def mapped(first: str, content: bytes) -> bytes:
    """Return a page whose capitals, from A on, are the characters from ``first`` on."""
    ranges = f"1 beginbfrange <41> <5A> <{ord(first):04X}> endbfrange"
    space = "1 begincodespacerange <00> <FF> endcodespacerange"
    cmap = f"/CIDInit /ProcSet findresource begin 12 dict begin begincmap {space} {ranges} endcmap"
    font = "/Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding"
    return write_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 /MediaBox [0 0 595 842] >>",
            f"<< {font} /ToUnicode 6 0 R >>".encode(),
            b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources %s >>"
            % b"<< /Font << /F1 3 0 R >> >>",
            stream(content),
            stream(cmap.encode()),
        ]
    )


def test_lines_of_chinese_are_joined_without_a_space(read: Read) -> None:
    shown = read("pdf", mapped("\u4e00", lines(780, "ABCDEFGHIJ" * 5, "KLMNOPQRST" * 5, "UVW")))[1]
    characters = "".join(chr(0x4E00 + n) for n in (*[*range(10)] * 5, *[*range(10, 20)] * 5))
    assert shown == f"[Page 1]\n{characters}{chr(0x4E14)}{chr(0x4E15)}{chr(0x4E16)}\n\n"


HEBREW = [["ABCD", "EFG"], ["HIJK LMN", "1,204"], ["OPQ RST", "811"], ["UVW", "36.5"]]


@pytest.mark.parametrize("by_columns", [True, False], ids=["by columns", "by rows"])
@pytest.mark.parametrize("rules", ["grid", "three", "none"])
def test_a_table_from_the_right_keeps_its_words_and_the_order_of_its_columns(
    read: Read, rules: str, *, by_columns: bool
) -> None:
    tops = [712 - 20 * n for n in range(len(HEBREW) + 1)]
    content = text(60, 760, "The gauges.")
    if rules == "grid":
        content += grid([100, 250, 400], tops)
    elif rules == "three":
        content += b"".join(line(100, y, 400, y) for y in (tops[0], tops[1], tops[-1]))
    drawn: list[tuple[tuple[int, int], float, float, str]] = []
    for row, cells in enumerate(HEBREW):
        for column, cell in enumerate(cells):
            seen = cell if cell[0].isdigit() else cell[::-1]  # letters as they stand on the page
            x: float = (394 if not column else 244) - 6 * len(seen)
            drawn.append(((column, row) if by_columns else (row, column), x, tops[row] - 14, seen))
    for _, x, y, seen in sorted(drawn):
        content += text(x, y, seen)
    shown = read("pdf", mapped("\u05d0", content))[1]
    written = shown.translate({0x5D0 + n: 0x41 + n for n in range(26)})
    assert [
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in written.splitlines()
        if row.startswith("|") and "---" not in row
    ] == HEBREW


WIDE = "and this is a line as wide as the column, which says where its lines have to"


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("of the lower gates that were o-", "pened at the mark", "that were opened at the mark"),
        ("of what was said there by Jean-", "Paul at the mark", "by Jean-Paul at the mark"),
        ("that was a state-of-the-", "art lamp at the mark", "a state-of-the-art lamp"),
        ("of what was written in pages 12-", "14 of the report", "in pages 12-14 of the report"),
    ],
)
def test_lines_of_a_paragraph_are_joined_and_words_that_they_break(
    read: Read, before: str, after: str, joined: str
) -> None:
    content = lines(780, WIDE, f"{WIDE[:44]} {before}", f"{after} {WIDE[:40]}")
    shown = read("pdf", pages(content))[1]
    assert joined in shown
    assert shown.count("\n\n") == 1


def test_headings_that_tags_name_need_no_larger_font(read: Read) -> None:
    marked = b"/H2 << /MCID 0 >> BDC\n" + text(60, 780, "Method of reading") + b"EMC\n"
    body = b"/P << /MCID 1 >> BDC\n" + lines(750, *BODY) + b"EMC\n"
    data = write_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R /MarkInfo << /Marked true >> /StructTreeRoot 6 0 R >>",
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 /MediaBox [0 0 595 842] >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /StructParents 0 /Resources %s >>"
            % b"<< /Font << /F1 3 0 R >> >>",
            stream(marked + body),
            b"<< /Type /StructTreeRoot /K [7 0 R 8 0 R] /RoleMap << /Head /H2 >> /ParentTree %s >>"
            % b"<< /Nums [0 [7 0 R 8 0 R]] >>",
            b"<< /Type /StructElem /S /Head /P 6 0 R /Pg 4 0 R /K 0 >>",
            b"<< /Type /StructElem /S /P /P 6 0 R /Pg 4 0 R /K 1 >>",
        ]
    )
    assert read("pdf", data)[1] == f"[Page 1]\n## Method of reading\n\n{ONE}\n\n"


def test_bookmarks_lead_to_lines_and_name_sections(read: Read) -> None:
    data = make_pdf(["1 Method\nWe read.", "Other words."], "T", [Bookmark("Method", 1)])
    extracted, shown = read("pdf", data)
    assert "# 1 Method\n" in shown
    headings = [heading for part in extracted.parts or () for heading in part.headings]
    assert headings == [Heading("Method", 1, "lines", 2)]


def test_raised_numbers_make_no_table_of_names(read: Read) -> None:
    names = ("Ada North", "Ben Oakes", "Cleo Pond", "Dan Quay")
    content = b""
    for row in range(3):
        for n, name in enumerate(names):
            at = 60 + 100 * n
            content += text(at, 780 - 13 * row, name)
            content += text(at + 46, 784 - 13 * row, str(n), size=6)
            content += text(at + 51, 780 - 13 * row, ", and also")
    shown = read("pdf", pages(content))[1]
    assert "|" not in shown
    assert shown.count("Ada North0 , and also Ben Oakes1 , and also") == 3


def test_items_with_two_marks_are_no_table(read: Read) -> None:
    content = b"".join(
        text(x, 780 - 13 * n, words)
        for n, row in enumerate(
            (("•", "3.", "Mix it."), ("•", "4.", "Wait an hour."), ("•", "5.", "Go."))
        )
        for x, words in zip((60, 90, 120), row, strict=True)
    )
    assert "|" not in read("pdf", pages(content))[1]


def test_a_paragraph_ends_at_a_short_line_and_at_an_indent(read: Read) -> None:
    content = lines(780, *BODY) + lines(741, *BODY)
    content += text(75, 702, BODY[0][:-8]) + text(60, 689, BODY[1])
    shown = read("pdf", pages(content))[1]
    assert shown == f"[Page 1]\n{ONE}\n\n{ONE}\n\n{BODY[0][:-8]} {BODY[1]}\n\n"


def test_a_list_keeps_its_marks_and_levels(read: Read) -> None:
    content = lines(780, *BODY)
    for number, (left, words) in enumerate(
        [(70, "• open the gate"), (70, "• read the gauge"), (90, "1. twice a day")]
    ):
        mark, _, rest = words.partition(" ")
        content += text(left, 735 - 13 * number, mark) + text(left + 12, 735 - 13 * number, rest)
    shown = read("pdf", pages(content))[1]
    assert shown.endswith("- open the gate\n- read the gauge\n  1. twice a day\n\n")


@pytest.mark.parametrize(
    "encoding", [b"/Encoding /WinAnsiEncoding", b"/ToUnicode 7 0 R"], ids=["letters", "codes"]
)
def test_signs_of_symbol_fonts_are_characters_and_a_bullet_that_tells_stays(
    read: Read, encoding: bytes
) -> None:
    gates = [(b"\xfc", "Gate one closes"), (b"\xfb", "Gate two is stuck"), (b"\xa7", "Gate three")]
    content = text(60, 780, "What the inspection of the gates found in spring is told here:")
    for y, (sign, gate) in zip((760, 746, 732), gates, strict=True):
        content += b"BT /F2 10 Tf 60 %d Td (%s) Tj ET\n" % (y, sign) + text(80, y, gate)
    content += text(60, 700, "Boat") + b"BT /F2 10 Tf 90 700 Td (\xfe) Tj ET\n"
    content += text(110, 700, "owned") + b"BT /F2 10 Tf 150 700 Td (\xa8) Tj ET\n"
    content += text(170, 700, "rented in \xfc")
    private = b"".join(b"<%02x> <f0%02x>\n" % (code, code) for code in b"\xfc\xfb\xa7\xfe\xa8")
    mapping = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap"
        b" 1 begincodespacerange <00> <ff>"
        b" endcodespacerange 5 beginbfchar\n%sendbfchar endcmap end end"
    )
    resources = b"/Resources << /Font << /F1 3 0 R /F2 6 0 R >> >>"
    wingdings = (
        b"/BaseFont /ABCDEF+Wingdings-Regular /FirstChar 32 /LastChar 255 /FontDescriptor 8 0 R"
    )
    document = write_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 /MediaBox [0 0 595 842] >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R %s >>" % resources,
            stream(content),
            b"<< /Type /Font /Subtype /TrueType %s /Widths [%s] %s >>"
            % (wingdings, b"800 " * 224, encoding),
            stream(mapping % private),
            b"<< /Type /FontDescriptor /FontName /ABCDEF+Wingdings-Regular /Flags 4 >>",
        ]
    )
    assert read("pdf", document)[1] == (
        "[Page 1]\nWhat the inspection of the gates found in spring is told here:\n\n"
        "- ✓ Gate one closes\n- ✗ Gate two is stuck\n- Gate three\n\n"
        "Boat ☑ owned □ rented in ü\n\n"
    )


def test_code_keeps_its_lines_and_indents(read: Read) -> None:
    code = lines(730, "def gate(mark):", "    if level > mark:", "        open()", font=2)
    shown = read("pdf", pages(lines(780, *BODY) + code))[1]
    assert "```\ndef gate(mark):\n    if level > mark:\n        open()\n```\n" in shown


def running(number: int, count: int) -> bytes:
    return (
        text(60, 810, "The harbour wall")
        + lines(780, *(f"{row} {number}" for row in BODY))
        + text(60, 42, "Harbour office")
        + text(290, 30, f"Page {number} of {count}")
    )


def test_running_heads_and_page_numbers_are_left_out_and_kept_by_their_path(
    read: Read, part: PartOf
) -> None:
    data = pages(*(running(number, 4) for number in range(1, 5)))
    extracted, shown = read("pdf", data)
    assert "harbour" not in shown
    assert " of 4" not in shown
    assert shown.count("until the water falls.") == 4
    assert extracted.facts.left_out == "header 64, footer 100"
    kept = part("pdf", data, "left_out")
    assert isinstance(kept, PartText)
    assert kept.text.count("The harbour wall\n") == 4
    assert "Harbour office\nPage 3 of 4\n" in kept.text


def test_lines_that_repeat_within_the_text_stay(read: Read) -> None:
    contents = [
        lines(780, *(f"Page {number} line {n}" for n in range(6))) for number in range(1, 6)
    ]
    shown = read("pdf", pages(*contents))[1]
    for number in range(1, 6):
        for n in range(6):
            assert f"Page {number} line {n}" in shown


def test_a_number_in_a_head_that_is_no_page_number_stays(read: Read) -> None:
    contents = [text(60, 810, f"Invoice 2026-00{n}7") + lines(780, *BODY) for n in range(1, 5)]
    shown = read("pdf", pages(*contents))[1]
    assert [f"Invoice 2026-00{n}7" in shown for n in range(1, 5)] == [True] * 4


def test_a_column_of_a_page_on_its_side_stays_apart(read: Read) -> None:
    aside = b"q 0 1 -1 0 30 300 cm\n" + text(0, 0, "stamped on the margin") + b"Q\n"
    shown = read("pdf", pages(lines(780, *BODY) + aside))[1]
    assert shown == f"[Page 1]\n{ONE}\n\nstamped on the margin\n\n"


def table(seed: int) -> tuple[bytes, list[list[str]]]:
    """Return a page with a table of random size, wrapping, rules and order; and its cells."""
    chance = random.Random(seed)
    width, height = chance.randint(2, 5), chance.randint(2, 6)
    left, wide = 60, 470 // width
    rules, drawn = chance.choice(["grid", "three", "rows", "none"]), chance.randrange(3)
    leading, room = 12, chance.choice([0, 4, 10])
    cells: list[list[str]] = []
    placed: list[tuple[int, int, int, float, float, str]] = []
    number, y = 0, 760.0
    tops = [y + 12]
    for row in range(height):
        cells.append([])
        most = 1
        for column in range(width):
            rows = chance.choice([0, 1, 1, 1, 2, 3]) if column else chance.choice([1, 1, 2])
            said: list[str] = []
            for n in range(rows):
                numbers = range(number, number + max(1, (wide - 12) // 42))
                number = numbers.stop
                said.append(" ".join(f"qyw{k:03}gp" for k in numbers))
                placed.append((row, column, n, left + wide * column, y - leading * n, said[-1]))
            most = max(most, rows)
            cells[-1].append(" ".join(said))
        y -= leading * most + room
        tops.append(y + 12 - room / 2)
    orders = (0, 1, 2), (1, 0, 2), (0, 2, 1)
    content = lines(800, "Before the table.")
    xs = [left - 4 + wide * n for n in range(width + 1)]
    if rules == "grid":
        content += grid(xs, tops)
    elif rules != "none":
        for at in tops if rules == "rows" else (tops[0], tops[1], tops[-1]):
            content += line(xs[0], at, xs[-1], at)
    for _, _, _, x, at, words in sorted(placed, key=itemgetter(*orders[drawn])):
        content += text(x, at, words, size=8)
    return content + lines(tops[-1] - 30, "Behind the table."), cells


@pytest.mark.parametrize("seed", range(120))
def test_no_word_of_a_table_is_lost_and_none_changes_its_place_in_its_cell(
    read: Read, seed: int
) -> None:
    content, cells = table(seed)
    shown = read("pdf", pages(content))[1]
    words = shown.replace("|", " ").split()
    for cell in (cell for row in cells for cell in row):
        places = [words.index(word) for word in cell.split()]
        assert places == sorted(places)
    expected = [word for row in cells for cell in row for word in cell.split()]
    assert sorted(word for word in words if word.startswith("qyw")) == sorted(expected)


def test_labels_and_their_values_stand_line_by_line(read: Read) -> None:
    rows = (("Name:", "Ada North"), ("Street:", "Quay road 5"), ("City:", "Hamburg"))
    drawn = b"".join(
        text(60, 700 - 13 * n, label) + text(160, 700 - 13 * n, value)
        for n, (label, value) in enumerate(rows)
    )
    _, shown = read("pdf", pages(drawn))
    assert "Name: Ada North\n\nStreet: Quay road 5\n\nCity: Hamburg\n" in shown


def test_the_title_of_a_page_that_holds_a_table_alone_is_a_heading(read: Read) -> None:
    rows = (("Pos", "Article"), ("1", "Rope"), ("2", "Anchor"))
    drawn = text(60, 760, "Invoice", size=18) + grid((60, 160, 260), (640, 660, 680, 700))
    for row, cells in enumerate(rows):
        drawn += b"".join(text(64 + 100 * n, 686 - 20 * row, c) for n, c in enumerate(cells))
    _, shown = read("pdf", pages(drawn))
    assert "# Invoice\n\n| Pos | Article |\n" in shown


def test_what_a_password_field_hides_is_not_shown(read: Read) -> None:
    field = "Key", "/FT /Tx /V (TWILIGHT) /Ff 8192", (120, 776, 300, 792)
    data = form(text(60, 780, "Key:"), field)
    assert read("pdf", data)[1] == "[Page 1]\nKey:\n\n"


def bitmap_font(content: bytes) -> bytes:
    """Return a page of two fonts like TeX's bitmaps, which do not say what their codes mean."""
    names = " ".join(f"{code} /a{code}" for code in range(256))
    procs = " ".join(f"/a{code} {6 + code % 2} 0 R" for code in range(256))
    widths = " ".join(str(400 + 60 * (code % 7)) for code in range(256))
    font = (
        "<< /Type /Font /Subtype /Type3 /FontMatrix [.001 0 0 .001 0 0] /FontBBox [0 0 900 900]"
        f" /FirstChar 0 /LastChar 255 /Widths [{widths}] /Resources << >>"
        f" /Encoding << /Differences [{names}] >> /CharProcs << {procs} >> >>"
    )
    return write_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 /MediaBox [0 0 595 842] >>",
            font.encode(),
            b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources %s >>"
            % b"<< /Font << /F1 3 0 R /F2 8 0 R >> >>",
            stream(content),
            stream(b"500 0 0 0 400 700 d1 0 0 400 700 re f"),
            stream(b"450 0 0 0 380 700 d1 0 0 380 700 re f"),
            font.encode(),
        ]
    )


@pytest.mark.parametrize(
    ("codes", "dash"),
    [
        (rb"The o\016ce \014nds a\017uent wa\017es \173 \134\014ne\042", "–"),
        (rb"The o\036ce \034nds a\037uent wa\037es \026 \020\034ne\021", "—"),
    ],
    ids=["OT1", "T1"],
)
def test_bitmap_fonts_of_tex_keep_their_ligatures(read: Read, codes: bytes, dash: str) -> None:
    shown = read("pdf", bitmap_font(b"BT /F1 10 Tf 60 780 Td (%s) Tj ET" % codes))[1]
    assert f"The office finds affluent waffles {dash} “fine”" in shown


def test_a_bullet_of_a_bitmap_font_of_tex_marks_an_item(read: Read) -> None:
    drawn = b"".join(
        b"BT /F2 10 Tf 60 %d Td (\\210) Tj /F1 10 Tf 14 0 Td (%s) Tj ET\n" % (780 - 20 * n, item)
        for n, item in enumerate((b"First item", b"Second item"))
    )
    assert "- First item\n- Second item\n" in read("pdf", bitmap_font(drawn))[1]


def test_accents_are_joined_with_the_letters_that_they_are_drawn_over(read: Read) -> None:
    drawn = (
        text(60, 780, "The caf")
        + text(92.3, 780, "´")
        + text(91.2, 780, "e of ")
        + text(114.5, 782.2, "´")
        + text(112.8, 780, "Etude and `quoted words stay.")
    )
    assert "The café of Étude and `quoted words stay." in read("pdf", pages(drawn))[1]


def tick(
    name: str, left: int, bottom: int, *, on: bool
) -> tuple[str, str, tuple[int, int, int, int]]:
    state = "/Yes" if on else "/Off"
    entries = f"/FT /Btn /V {state} /AS {state} /AP << /N << /Yes 5 0 R /Off 5 0 R >> >>"
    return name, entries, (left, bottom, left + 10, bottom + 10)


@pytest.mark.parametrize(("bottom", "top"), [(725, 745), (762, 780)], ids=["above", "below"])
def test_values_belong_to_the_labels_above_or_below_them(read: Read, bottom: int, top: int) -> None:
    fields = [
        ("a", "/FT /Tx /V (Ada)", (60, bottom, 280, top)),
        ("b", "/FT /Tx /V (Lovelace)", (300, bottom, 520, top)),
    ]
    labels = text(60, 750, "First name", size=8) + text(300, 750, "Last name", size=8)
    assert "First name: Ada Last name: Lovelace\n" in read("pdf", form(labels, *fields))[1]
    assert "First name Last name: Lovelace\n" in read("pdf", form(labels, fields[1]))[1]


def test_a_value_in_a_cell_belongs_to_the_label_in_its_corner(read: Read) -> None:
    drawn = grid((56, 200, 344), (690, 720, 750))
    drawn += text(60, 742, "1 Name", size=6) + text(204, 742, "2 Birth date", size=6)
    drawn += text(60, 712, "3 Street", size=6) + text(204, 712, "4 City", size=6)
    fields = [
        ("n", "/FT /Tx /V (Ada Example)", (58, 722, 198, 740)),
        ("c", "/FT /Tx /V (Oslo)", (202, 692, 342, 710)),
    ]
    shown = read("pdf", form(drawn, *fields))[1]
    assert "| 1 Name: Ada Example | 2 Birth date |\n" in shown
    assert "| 3 Street | 4 City: Oslo |\n" in shown


def test_ticks_belong_to_the_labels_beside_them(read: Read) -> None:
    drawn = text(60, 776, "Delivery") + text(80, 760, "by post") + text(180, 760, "by mail")
    drawn += text(60, 730, "I agree")
    fields = (
        tick("p", 62, 758, on=True),
        tick("m", 162, 758, on=False),
        tick("a", 180, 728, on=True),
    )
    shown = read("pdf", form(drawn, *fields))[1]
    assert "Delivery\n\n[x] by post [ ] by mail\n\nI agree [x]\n" in shown


def test_a_bold_line_of_contents_is_no_heading(read: Read) -> None:
    entries = text(60, 740, "1 Method", font=3) + text(400, 740, "7", font=3)
    drawn = text(60, 780, "Contents", font=3, size=16) + entries + lines(700, *BODY)
    _, shown = read("pdf", pages(drawn))
    assert "# Contents\n\n1 Method 7\n" in shown


def test_a_formula_a_caption_and_a_footnote_stand_in_reading_order(read: Read) -> None:
    note = text(60, 90, "1", size=5) + text(64, 86, "The mark is a line on the wall.", size=7)
    formula = text(200, 640, "E = m v") + text(238, 644, "2", size=6) + text(246, 640, "+ a")
    figure = grid((60, 200), (560, 610)) + text(60, 545, "Figure 1: A basin.")
    shown = read("pdf", pages(note + lines(700, *BODY) + formula + figure))[1]
    order = [ONE, "E = m v 2 + a", "Figure 1: A basin.", "The mark is a line on the wall."]
    places = [shown.index(part) for part in order]
    assert places == sorted(places)


def columns(last: str, next_one: str, below: bytes = b"") -> bytes:
    """Draw a page in two columns, whose left one ends with ``last``."""
    prose = "The crews check each line of rope on deck"
    left = lines(700, *[prose] * 14, last, left=50)
    right = lines(700, next_one, *[prose] * 14, left=320)
    return left + below + right


@pytest.mark.parametrize("mark", ["1", "2 ", "* ", "† "])
def test_a_footnote_of_a_column_stands_behind_the_text_of_the_page(read: Read, mark: str) -> None:
    note = text(50, 480, f"{mark}Tides were read from the old gauge that stands out", size=8)
    note += text(50, 470, "at the pier.", size=8)
    shown = read("pdf", pages(columns("The water was high when", "we arrived.", note)))[1]
    assert "The water was high when we arrived." in shown
    assert shown.rstrip().endswith(
        "Tides were read from the old gauge that stands out at the pier."
    )


def test_small_print_amid_the_text_of_a_column_stays_there(read: Read) -> None:
    small = text(50, 496, "1 Read at the pier.", size=8) + lines(480, "It rose later.", left=50)
    shown = read("pdf", pages(columns("The water was high.", "We arrived.", small)))[1]
    assert shown.index("Read at the pier.") < shown.index("It rose") < shown.index("We arrived.")


def test_a_column_in_small_print_is_not_taken_apart(read: Read) -> None:
    small = [
        text(50, 700 - 13 * n, "Ropes, lines and all their knots on deck", size=8)
        for n in range(15)
    ]
    left = b"".join(small) + text(50, 485, "2 years as a warden of the gate", size=8)
    right = lines(700, *["The crews check each line of rope on deck"] * 16, left=320)
    shown = read("pdf", pages(left + right))[1]
    assert shown.index("2 years") < shown.index("The crews")


def test_entries_of_an_index_in_columns_stay_apart(read: Read) -> None:
    entries = [f"{'long ' * (n % 20 == 3) * 6}rope{'abcdefghij'[n // 4]}, {n}" for n in range(40)]
    content = lines(700, *entries[:20], left=50) + lines(693, *entries[20:], left=320)
    shown = read("pdf", pages(content))[1]
    assert f"{entries[19]}\n" in shown
    assert f"\n{entries[20]}" in shown


@pytest.mark.parametrize(
    ("last", "next_one", "whole"),
    [
        ("The water was high when", "we arrived.", "high when we arrived."),
        ("They had a pro-", "gramme of tides.", "a programme of tides."),
        ("The water was high.", "we arrived.", ""),
        ("The water was high when", "We arrived.", ""),
        ("The water was high when", "- we arrived.", ""),
    ],
)
def test_a_sentence_goes_on_at_the_top_of_the_next_column(
    read: Read, last: str, next_one: str, whole: str
) -> None:
    shown = read("pdf", pages(columns(last, next_one)))[1]
    assert whole in shown if whole else f"{last}\n\n{next_one}" in shown

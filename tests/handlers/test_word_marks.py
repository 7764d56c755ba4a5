"""Word: characters by font, form fields, fields and comments, read as a person sees them."""

# ruff: noqa: E501 - a document on one line reads better than in pieces; signs of fonts

import lzma

import pytest

from fetchstash.handlers._symbols import seen, seen_lone, telling_bullet
from tests.handlers.conftest import Read, check_facts, reads
from tests.handlers.parts import data_file
from tests.handlers.test_docx import NUMBERING, STYLES, W, docx, item, paragraph, run, table


@pytest.mark.parametrize(
    ("text", "font", "shown"),
    [
        ("\uf0fc \uf0fb \uf0fe \uf0a8", "Wingdings", "✓ ✗ ☑ □"),
        ("P O R \u00a3", "Wingdings 2", "✓ ✗ ☑ □"),
        ("\uf0b3 \uf0a3 \uf0b1 \uf0b4 \uf06d", "Symbol", "≥ ≤ ± × μ"),
        ("a\u00ae b", "SymbolMT", "α→ β"),
        ("f g p q", "Wingdings 3", "← → ▲ ▼"),
        ("\uf061 \uf072", "Webdings", "✔ ✗"),
        ("J L", '"wingdings-regular"', "☺ ☹"),
        ("≥ 5 \u03b1", "Symbol", "≥ 5 \u03b1"),  # was Unicode already
        ("\uf0f0", "Symbol", "[symbol F0F0]"),  # Apple's mark
        ("\uf0a7\u00a0x", "", "[symbol F0A7]\u00a0x"),
        ("\uf041", "Cloister Black", "[symbol F041]"),
        ("\ue012 \uf8ff", "", "[symbol E012] [symbol F8FF]"),  # of OpenSymbol, and Apple's mark
    ],
)
def test_a_character_of_a_symbol_font_is_what_that_font_draws(
    text: str, font: str, shown: str
) -> None:
    assert seen(text, font) == shown


def test_an_arrow_of_powerpoint_is_told_from_a_letter() -> None:
    assert seen_lone("A à B, déjà vu", "Wingdings") == "A → B, déjà vu"


def test_a_bullet_that_says_nothing_is_left_out() -> None:
    assert [telling_bullet(sign, "Wingdings") for sign in "\uf0fc\uf0a7üv"] == ["✓", "", "✓", ""]


def sym(font: str, code: str) -> str:
    return f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>'


def in_font(text: str, font: str) -> str:
    return run(text, f'<w:rFonts w:ascii="{font}" w:hAnsi="{font}"/>')


def begin(form: str = "") -> str:
    data = f"<w:ffData>{form}</w:ffData>" if form else ""
    return f'<w:r><w:fldChar w:fldCharType="begin">{data}</w:fldChar></w:r>'


def code(words: str) -> str:
    return f"<w:r><w:instrText> {words} </w:instrText></w:r>"


SEPARATE, END = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("separate", "end"))


def field(words: str, result: str = "", form: str = "") -> str:
    middle = SEPARATE + result if result else ""
    return f"{begin(form)}{code(words)}{middle}{END}"


def p(*runs: str) -> str:
    return f"<w:p>{''.join(runs)}</w:p>"


def box(*values: str) -> str:
    return f"<w:checkBox>{''.join(values)}</w:checkBox>"


def chosen(*values: str) -> str:
    entries = "".join(f'<w:listEntry w:val="{name}"/>' for name in ("Low", "High"))
    return f"<w:ddList>{''.join(values)}{entries}</w:ddList>"


DEFAULT, UNSET = '<w:default w:val="1"/>', '<w:checked w:val="0"/>'
FORMS = {
    "ticked": (box("<w:checked/>"), "FORMCHECKBOX", "[x] a"),
    "not ticked": (box(UNSET), "FORMCHECKBOX", "[ ] a"),
    "nothing chosen": (box(), "FORMCHECKBOX", "[ ] a"),
    "ticked by default": (box(DEFAULT), "FORMCHECKBOX", "[x] a"),
    "cleared by a person": (box(DEFAULT, UNSET), "FORMCHECKBOX", "[ ] a"),
    "ticked by a person": (box('<w:default w:val="0"/><w:checked w:val="1"/>'), "X", "[x] a"),
    "an entry": (chosen('<w:result w:val="1"/>'), "FORMDROPDOWN", "High a"),
    "the first entry": (chosen(), "FORMDROPDOWN", "Low a"),
    "the entry by default": (chosen(DEFAULT), "FORMDROPDOWN", "High a"),
    "no such entry": (chosen('<w:result w:val="7"/>'), "FORMDROPDOWN", "a"),
}
test_a_form_field_shows_what_was_chosen = reads(
    "docx",
    {
        name: (docx(p(field(words, "", form), run(" a"))), f"{text}\n\n")
        for name, (form, words, text) in FORMS.items()
    },
)

LINK = 'HYPERLINK "https://example.org/a b" \\l "part" \\o "tip"'
ONE = run("one")
FIELDS = {
    "link": (p(field(LINK, ONE)), "[one](https://example.org/a%20b#part)"),
    "link by fldSimple": (
        p(f'<w:fldSimple w:instr="HYPERLINK https://example.org/">{ONE}</w:fldSimple>'),
        "[one](https://example.org/)",
    ),
    "link within the document": (p(field('HYPERLINK \\l "_Toc1"', ONE)), "one"),
    "link that shows nothing": (p(field(LINK, run(" ")), run("x")), "x"),
    "link over paragraphs": (
        p(begin(), code(LINK), SEPARATE, ONE) + p(run("two"), END),
        "one\n\ntwo",
    ),
    "reference": (p(run("see "), field("REF _Ref1 \\h", run("Table 2"))), "see Table 2"),
    "date": (p(field('DATE \\@ "d"', run("7 May"))), "7 May"),
    "entry of a table of contents": (
        p(
            begin(),
            code("TOC"),
            SEPARATE,
            field('HYPERLINK \\l "_T"', run("One") + field("PAGEREF", run("3"))),
        )
        + p(END),
        "One3",
    ),
    "field in the code of another": (
        p(
            begin(),
            code("IF "),
            field("MERGEFIELD sex", run("m")),
            code("= m"),
            SEPARATE,
            run("Sir"),
            END,
        ),
        "Sir",
    ),
    "symbol": (p(field('SYMBOL 252 \\f "Wingdings" \\s 12'), run(" done")), "✓ done"),
    "symbol with its result": (p(field("SYMBOL 163 \\f Symbol", in_font("\uf0a3", "Symbol"))), "≤"),
    "equation": (p(run("x = "), field("EQ \\f(1,2)")), "x = \\f(1,2)"),
    "no end": (p(begin(), code("PAGEREF x"), SEPARATE, ONE) + p(run("two")), "one\n\ntwo"),
    "no beginning": (p(SEPARATE, ONE, END) + p(END, run("two")), "one\n\ntwo"),
    "form without an end": (p(begin(box("<w:checked/>")), code("FORMCHECKBOX"), ONE), "[x]one"),
    "deleted code": (p("<w:r><w:delInstrText>PAGE</w:delInstrText></w:r>", ONE), "one"),
}
test_a_field_shows_its_result_and_a_link_its_target = reads(
    "docx", {name: (docx(body), f"{text}\n\n") for name, (body, text) in FIELDS.items()}
)

TICKED = NUMBERING.replace(
    '<w:numFmt w:val="bullet"/>',
    '<w:numFmt w:val="bullet"/><w:lvlText w:val="\uf0fc"/><w:rPr><w:rFonts w:ascii="Wingdings"/></w:rPr>',
).replace('<w:numFmt w:val="decimal"/>', '<w:start w:val="5"/><w:numFmt w:val="decimal"/>')
SIGNED = STYLES.replace(
    "</w:styles>",
    '<w:style w:styleId="Sign"><w:rPr><w:rFonts w:ascii="Wingdings"/></w:rPr></w:style></w:styles>',
)


def levels(abstract: int, *formats: tuple[str, str, str]) -> str:
    """Return a list whose levels have these formats, labels and further properties."""
    inner = "".join(
        f'<w:lvl w:ilvl="{n}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{label}"/>{more}</w:lvl>'
        for n, (form, label, more) in enumerate(formats)
    )
    return f'<w:abstractNum w:abstractNumId="{abstract}">{inner}</w:abstractNum>'


def numbered(list_id: int, abstract: int, first: str = "") -> str:
    start = f'<w:lvlOverride w:ilvl="0"><w:startOverride w:val="{first}"/></w:lvlOverride>'
    return f'<w:num w:numId="{list_id}"><w:abstractNumId w:val="{abstract}"/>{start if first else ""}</w:num>'


LABELS = f"""<w:numbering {W}>
{levels(20, ("decimal", "%1.", ""), ("lowerLetter", "%2)", ""), ("lowerRoman", "(%3)", ""))}
{levels(21, ("decimal", "§ %1", ""), ("decimal", "%1.%2", ""), ("decimal", "%1.%2.%3", ""))}
{levels(22, ("upperRoman", "Article %1", ""), ("decimalZero", "%1.%2", "<w:isLgl/>"))}
{levels(23, ("upperLetter", "%1", ""), ("decimal", "%2.", '<w:lvlRestart w:val="0"/>'))}
{numbered(20, 20)}{numbered(24, 20, "1")}{numbered(25, 20, "7")}{numbered(21, 21)}{numbered(22, 22)}
{numbered(23, 23)}</w:numbering>"""


def labelled(*items: tuple[str, int, int], style: str = "") -> str:
    return "".join(
        paragraph(
            text,
            style,
            f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>',
        )
        for text, list_id, level in items
    )


NUMBERS = {
    "letters and Roman numerals": (
        labelled(("one", 20, 0), ("x", 20, 1), ("y", 20, 1), ("deep", 20, 2), ("two", 20, 0)),
        "1. one\n  a) x\n  b) y\n    (i) deep\n2. two",
    ),
    "list that starts anew": (
        labelled(("a", 20, 0), ("b", 20, 0), ("c", 24, 0), ("d", 24, 0), ("e", 25, 0)),
        "1. a\n2. b\n1. c\n2. d\n7. e",
    ),
    "list that goes on": (
        labelled(("a", 20, 0)) + paragraph("Between.") + labelled(("b", 20, 0)),
        "1. a\n\nBetween.\n\n2. b",
    ),
    "clauses": (
        labelled(("Scope", 21, 0), ("Terms", 21, 1), ("Fees", 21, 1), ("Late", 21, 2)),
        "§ 1 Scope\n  1.1 Terms\n  1.2 Fees\n    1.2.1 Late",
    ),
    "clause without one above it": (labelled(("Terms", 21, 1)), "  1.1 Terms"),
    "headings": (
        labelled(("Scope", 21, 0), ("Fees", 21, 1), style="H1"),
        "# § 1 Scope\n\n# 1.1 Fees",
    ),
    "legal numbers": (
        labelled(("Duties", 22, 0), ("Care", 22, 1), ("Skill", 22, 1)),
        "Article I Duties\n  1.01 Care\n  1.02 Skill",
    ),
    "level that counts through": (
        labelled(("x", 23, 0), ("a", 23, 1), ("y", 23, 0), ("b", 23, 1)),
        "A. x\n  1. a\nB. y\n  2. b",
    ),
    "after z": (
        labelled(*(("n", 23, 0) for _ in range(28))),
        "\n".join(f"{chr(65 + n)}. n" for n in range(26)) + "\nAA. n\nBB. n",
    ),
    "numbers in a table": (
        table(["No.", "Item"], [labelled(("", 20, 0)), "bolt"], [labelled(("", 20, 0)), "nut"]),
        "| No. | Item |\n| --- | --- |\n| 1. | bolt |\n| 2. | nut |",
    ),
}
test_an_item_has_the_label_that_word_shows = reads(
    "docx",
    {name: (docx(body, numbering=LABELS), f"{text}\n\n") for name, (body, text) in NUMBERS.items()},
)

CONTROL = "<w:sdt><w:sdtPr>{}</w:sdtPr><w:sdtContent><w:r><w:t>Click here.</w:t></w:r></w:sdtContent></w:sdt>"
MARKS = {
    "symbols": (
        docx(p(sym("Wingdings", "F0FC"), run(" 2 "), sym("Symbol", "B3"), run(" 1"))),
        "✓ 2 ≥ 1",
    ),
    "symbol without an equivalent": (docx(p(run("x"), sym("Mine", "F041"))), "x[symbol F041]"),
    "code that is none": (docx(p(run("x"), sym("Symbol", "zz"))), "x"),
    "run in a symbol font": (docx(p(in_font("ü", "Wingdings"), run(" ü"))), "✓ ü"),
    "font of the character's style": (
        docx(p(run("ü", '<w:rStyle w:val="Sign"/>')), styles=SIGNED),
        "✓",
    ),
    "font of the paragraph's style": (docx(paragraph("ü", "Sign"), styles=SIGNED), "✓"),
    "ticks as bullets": (docx(item("a", 1), numbering=TICKED), "- ✓ a"),
    "numbers from five on": (docx(item("a", 2) + item("b", 2), numbering=TICKED), "5. a\n6. b"),
    "placeholder": (
        docx(p(run("Name:"), CONTROL.format("<w:showingPlcHdr/>"), run(" x"))),
        "Name: x",
    ),
    "control that was filled in": (docx(p(CONTROL.format("<w:text/>"))), "Click here."),
    "WordArt": (
        docx('<w:p><w:pict xmlns:v="v"><v:textpath string="Sale"/></w:pict></w:p>'),
        "Sale",
    ),
    "embedded sheet": (
        docx(
            '<w:p><w:r><w:object xmlns:o="o"><o:OLEObject ProgID="Excel.Sheet.12" r:id="rstyles"/></w:object></w:r></w:p>'
        ),
        "[embedded: Excel.Sheet.12 (styles.xml)]",
    ),
}
test_what_a_font_or_a_control_shows_is_read = reads(
    "docx", {name: (data, f"{text}\n\n") for name, (data, text) in MARKS.items()}
)


def commented(number: int, words: str, *, ends: bool = True) -> str:
    mark = f'<w:commentRangeEnd w:id="{number}"/>' if ends else ""
    reference = f'<w:r><w:commentReference w:id="{number}"/></w:r>'
    return f'<w:commentRangeStart w:id="{number}"/>{run(words)}{mark}{reference}'


def test_a_comment_stands_behind_its_paragraph_with_the_words_that_it_is_about(read: Read) -> None:
    hidden = run("ignore all", "<w:vanish/>")
    comments = "".join(
        f'<w:comment w:id="{number}" w:author="Bob">{p(run(f"Why {number}?"), hidden)}</w:comment>'
        for number in range(5)
    )
    body = (
        p(run("The fee is "), commented(0, "120 euros"), run(" a day."))
        + p(commented(1, "All of it."))
        + item("a", 1)
        + table(["A", "B"], [p(commented(2, "c")), "d"])
        + p('<w:commentRangeStart w:id="3"/>', run("Over"))
        + p(run("two"), '<w:commentRangeEnd w:id="3"/>')
    )
    extracted, text = read("docx", docx(body, comments=f"<w:comments {W}>{comments}</w:comments>"))
    assert text.split("\n\n") == [
        "The fee is 120 euros a day.",
        'Comment by Bob on "120 euros": Why 0?',
        "All of it.",
        "Comment by Bob: Why 1?",
        "- a",
        "| A | B |\n| --- | --- |\n| c Comment by Bob: Why 2? | d |",
        "Over",
        "two",
        "Comment by Bob: Why 3?",
        "Comment by Bob: Why 4?",
        "",
    ]
    check_facts(extracted, hidden_removed=5)


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "b-01-checkbox.doc.xz": ["[x] Inherited", "[ ] Not applicable", "Priority: Urgent\n"],
        "b-09-sym.doc.xz": ["✓ passed; ✗ failed; A → B; ≥5 µm;α≤0.05"],
        "lists.doc.xz": [
            "I. one\n  a) two\n  b) three\nII. four\n",
            "Part 1 one\n  1.1 two\n  1.2 three\nPart 2 four\n",
            "- one\n  - two\n",
            "| A | 1. one |\n",
            '| B | c 41 Comment by Ann Łódź on "41": 😀 why |\n',
            "# III. A heading\n",
            'day.\n\nComment by Bob on "120 euros": Really so?\n\nAll',
            "All of it.\n\nComment by Bob: Yes.\n",
        ],
    }.items(),
)
def test_a_document_of_word_97_has_its_signs_forms_labels_and_comments(
    read: Read, name: str, words: list[str]
) -> None:
    """LibreOffice made them of the DOCX."""
    _, text = read("old_office", lzma.decompress(data_file(name)))
    assert [word for word in words if word not in text] == []


def test_signs_of_rtf_are_what_their_font_draws(read: Read) -> None:
    fonts = rb"{\fonttbl{\f0 Arial;}{\f1\fcharset2 Wingdings;}}"
    body = rb"{\f1\'fc}{\f0 \'fc }{\f1\u-3845?} {\f1\u61692 ?}"
    assert read("rtf", rb"{\rtf1" + fonts + body + rb"\par}")[1] == "✓ü ✗ ✓\n\n"


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "b-01-checkbox.docx": [
            "☒ Approved",
            "☐ Rejected",
            "[x] Inherited",
            "[ ] Not",
            "Priority: Urgent\n",
        ],
        "b-09-sym.docx": ["✓ passed; ✗ failed; A → B; ≥ 5 µm"],
        "b-10-fields.docx": [
            "[the terms](https://example.org/terms)",
            "an unclosed field must stay.",
        ],
    }.items(),
)
def test_a_document_of_strangers_is_read_right(read: Read, name: str, words: list[str]) -> None:
    _, text = read("docx", data_file(name))
    assert [word for word in words if word not in text] == []

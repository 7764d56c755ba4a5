"""ODT and ODP: headings, lists, tables and notes as Markdown; slides as pages."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import pytest

from tests.handlers.conftest import Read, check_facts, reads, unreadable
from tests.handlers.hostile.documents import packed

NAMES = ("office", "text", "table", "draw", "presentation", "xlink", "style", "dc", "meta")
SPACES = " ".join(f'xmlns:{name}="{name}"' for name in NAMES)
NUMBERED = '<text:list-style style:name="N"><text:list-level-style-number text:level="1" style:num-format="1"/></text:list-style>'
LOOKS = "".join(
    f'<style:style style:name="{name}"><style:text-properties style:{look}/></style:style>'
    for name, look in (
        ("Up", 'text-position="super 58%"'),
        ("Down", 'text-position="-33% 58%"'),
        ("Gone", 'text-line-through-style="solid"'),
    )
)
CHANGES = """<text:tracked-changes><text:changed-region text:id="c1"><text:deletion><text:p>was</text:p></text:deletion></text:changed-region>
<text:changed-region text:id="c2"><text:insertion><dc:creator>Ada</dc:creator></text:insertion></text:changed-region></text:tracked-changes>"""
META = """<dc:title>A plan</dc:title><meta:initial-creator>Ada</meta:initial-creator>
<meta:creation-date>2026-05-01T10:00:00</meta:creation-date>"""
SOURCE = "<text:note-citation>1</text:note-citation><text:note-body><text:p>Source.</text:p></text:note-body>"
NOTE = f'<text:note text:id="ftn1">{SOURCE}</text:note>'


def items(*texts: str, style: str = "L", more: str = "") -> str:
    inner = "".join(f"<text:list-item><text:p>{text}</text:p></text:list-item>" for text in texts)
    return f'<text:list text:style-name="{style}">{inner}{more}</text:list>'


def table(*rows: list[str]) -> str:
    cells = [
        "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row)
        for row in rows
    ]
    return f"<table:table>{''.join(f'<table:table-row>{row}</table:table-row>' for row in cells)}</table:table>"


def odf(body: str, **members: str) -> bytes:
    content = f"<office:document-content {SPACES}><office:automatic-styles>{NUMBERED}{LOOKS}</office:automatic-styles>"
    return packed(
        {
            "content.xml": f"{content}<office:body>{body}</office:body></office:document-content>",
            "meta.xml": f"<office:document-meta {SPACES}>{META}</office:document-meta>",
            **members,
        }
    )


STRUCTURES = {
    "text": ("<text:p>One\n  line.</text:p>", "One line.\n\n"),
    "heading": ('<text:h text:outline-level="2">Part</text:h><text:p>Text.</text:p>', "## Part\n\nText.\n\n"),
    "list": (items("a", "b"), "- a\n- b\n\n"),
    "numbers": (items("a", "b", style="N"), "1. a\n2. b\n\n"),
    "nested list": (items("a", more=f"<text:list-item>{items('a1', 'a2')}</text:list-item>"), "- a\n  - a1\n  - a2\n\n"),
    "signs": ('<text:p>a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d</text:p>', "a   b\tc\nd\n\n"),
    "link": ('<text:p>See <text:a xlink:href="https://example.org/">this</text:a>.</text:p>', "See [this](https://example.org/).\n\n"),
    "note": (f"<text:p>Claim{NOTE} made.</text:p>", "Claim[^1] made.\n\n[^1]: Source.\n\n"),
    "table": (table(["N", "V"], ["a", "1"]), "| N | V |\n| --- | --- |\n| a | 1 |\n\n"),
    "tracked change": ("<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes><text:p>kept</text:p>", "kept\n\n"),
    "marked changes": (CHANGES + '<text:p>It <text:change text:change-id="c1"/>is <text:change-start text:change-id="c2"/>now</text:p><text:p>here<text:change-end text:change-id="c2"/>.</text:p>', "It ~~was~~is <ins>now</ins>\n\n<ins>here</ins>.\n\n"),
    "scripts": ('<text:p>10<text:span text:style-name="Up">-3</text:span> CO<text:span text:style-name="Down">2</text:span> <text:span text:style-name="Gone">x</text:span></text:p>', "10^{-3} CO_2 ~~x~~\n\n"),
}  # fmt: skip
test_structure_becomes_markdown = reads(
    "odf", {name: (odf(body), text) for name, (body, text) in STRUCTURES.items()}
)


def test_slides_are_pages_with_their_titles_and_notes(read: Read) -> None:
    title = '<draw:frame presentation:class="title"><draw:text-box><text:p>Plan</text:p></draw:text-box></draw:frame>'
    notes = "<presentation:notes><draw:frame><text:p>Say hello.</text:p></draw:frame></presentation:notes>"
    body = f"<draw:page>{title}{items('a')}{notes}</draw:page><draw:page><draw:frame/></draw:page>"
    extracted, _ = read("odf", odf(body))
    assert [(part.text, part.starts_page) for part in extracted.parts or ()] == [
        ("## Slide 1: Plan\n\n- a\n\nNotes: Say hello.\n\n", True),
        ("## Slide 2\n\n", True),
    ]
    check_facts(extracted, pages=2, title="A plan", author="Ada", published="2026-05-01")


def test_pictures_on_slides_are_counted_but_not_those_that_replace_a_table(read: Read) -> None:
    pictures = "<draw:frame><draw:image/><draw:image/></draw:frame><draw:frame><table:table/><draw:image/></draw:frame>"
    extracted, text = read(
        "odf", odf(f"<draw:page>{pictures}</draw:page><draw:page>{items('a')}</draw:page>")
    )
    assert text == "## Slide 1\n\n(1 picture)\n\n## Slide 2\n\n- a\n\n"
    assert extracted.facts.structure_info == "2 slides, 1 picture"


ENCRYPTED = "<manifest:manifest><manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>"


test_an_unreadable_document_gives_one_clear_line = unreadable("odf", {
    "nothing": (odf(""), "the document holds no text"),
    "open end": (odf("<text:p>"), "its XML is damaged"),
    "deep": (odf("<text:span>" * 1_100), "nested deeper than 1,000"),
    "encrypted": (odf("<text:p>x</text:p>", **{"META-INF/manifest.xml": ENCRYPTED}), "is encrypted"),
    "no content": (packed({"mimetype": "application/vnd.oasis.opendocument.text"}), "holds no document"),
})  # fmt: skip


def test_a_cell_that_repeats_a_billion_times_repeats_a_hundred_times(read: Read) -> None:
    cell = '<table:table-cell table:number-columns-repeated="1000000000"><text:p>x</text:p></table:table-cell>'
    _, text = read(
        "odf", odf(f"<table:table><table:table-row>{cell}</table:table-row></table:table>")
    )
    assert len(text) < 2_000


def test_a_title_field_in_a_box_is_text_and_no_description(read: Read) -> None:
    box = "<text:p>Host <draw:frame><draw:text-box><text:p>Box <text:title>of gates</text:title></text:p></draw:text-box></draw:frame></text:p>"
    assert read("odf", odf(box))[1] == "Box of gates\n\nHost\n\n"


MATH = "http://www.w3.org/1998/Math/MathML"
FRACTION = (
    "<{0}semantics><{0}mrow><{0}mi>x</{0}mi><{0}mo>=</{0}mo><{0}mfrac><{0}mn>1</{0}mn><{0}msup><{0}mi>a"
    "</{0}mi><{0}mn>2</{0}mn></{0}msup></{0}mfrac></{0}mrow><{0}annotation encoding='StarMath 5.0'>x = 1 over a^2"
    "</{0}annotation></{0}semantics>"
)


@pytest.mark.parametrize(
    "content",
    [
        f"<math xmlns='{MATH}'>{FRACTION.format('')}</math>",
        f"<math:math xmlns:math='{MATH}'>{FRACTION.format('math:')}</math:math>",
    ],
    ids=["of LibreOffice", "with prefixes"],
)
def test_a_formula_object_is_latex_where_it_stands(read: Read, content: str) -> None:
    drawn = '<draw:frame><draw:object xlink:href="./Object 1"/><draw:image xlink:href="./ObjectReplacements/Object 1"/></draw:frame>'
    members = {"Object 1/content.xml": content, "ObjectReplacements/Object 1": "x"}
    text = read("odf", odf(f"<text:p>So {drawn} holds.</text:p>{drawn}", **members))[1]
    assert text == "So $x = \\frac{1}{a^2}$ holds.\n\n$x = \\frac{1}{a^2}$\n\n"
    slide = f"<draw:page><draw:frame><draw:text-box><text:p>Text</text:p></draw:text-box></draw:frame>{drawn}</draw:page>"
    text = read("odf", odf(slide, **members))[1]
    assert text == "## Slide 1\n\nText\n\n$x = \\frac{1}{a^2}$\n\n"


def test_a_formula_nested_very_deep_costs_no_text(read: Read) -> None:
    drawn = '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>'
    math = f"<math xmlns='{MATH}'>{'<mrow>' * 900}<mi>x</mi>{'</mrow>' * 900}</math>"
    data = odf(f"<text:p>So {drawn} holds.</text:p>", **{"Object 1/content.xml": math})
    assert read("odf", data)[1] == "So  holds.\n\n"

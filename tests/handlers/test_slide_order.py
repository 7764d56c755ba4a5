"""Slides are read as a person reads them: by place, title first, columns one after the other."""

from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest

from tests.handlers.conftest import Read
from tests.handlers.parts import data_file
from tests.handlers.test_docx import odf, paragraphs, pptx, relations, shape

Place = tuple[float, float, float, float]
"""Left, top, width and height, in centimetres."""
Drawn = Mapping[str, Place]

# In the order in which they are drawn; the right order is that of the letters.
SLIDES: Mapping[str, Drawn] = {
    "drawn from the bottom": {"c": (2, 9, 10, 2), "b": (2, 5, 10, 2), "a": (2, 1, 10, 2)},
    "a row from the left": {"b": (9, 5, 4, 2), "c": (16, 5, 4, 2), "a": (2, 5, 4, 2)},
    "a row that is not quite even": {"b": (9, 4.8, 4, 2), "c": (16, 5.3, 4, 2), "a": (2, 5, 4, 2)},
    "headings with their bullets": {
        "b two": (2, 6, 10, 4),
        "d four": (14, 6, 10, 4),
        "c three": (14, 4, 10, 1.5),
        "a one": (2, 4, 10, 1.5),
    },
    "cards of three lines": {
        f"{'abcdefghi'[3 * column + line]}": (2 + 8 * column, 4 + 2 * line, 7, 1.5)
        for line in (2, 0, 1)
        for column in (1, 2, 0)
    },
    "columns below a line for both": {
        "d": (14, 8, 10, 2),
        "e": (14, 10, 10, 4),
        "b": (2, 8, 10, 2),
        "c": (2, 10, 10, 4),
        "a": (2, 3, 22, 3),
    },
    "a line for both below columns": {
        "e": (2, 15, 22, 2),
        "d": (14, 8, 10, 4),
        "b": (2, 8, 10, 4),
        "a": (2, 4, 10, 3),
        "c": (14, 4, 10, 3),
    },
    "columns of unlike length": {
        "c": (2, 8, 10, 1.5),
        "b": (2, 6, 10, 1.5),
        "f": (14, 6, 10, 8),
        "d": (2, 10, 10, 1.5),
        "e": (14, 4, 10, 1.5),
        "a": (2, 4, 10, 1.5),
    },
    "boxes that reach into each other": {"b": (2, 5.8, 10, 2), "a": (2, 4, 10, 2.1)},
    "labels and their values": {
        "b 40": (9, 4, 4, 1),
        "d $3.5m": (9, 6, 4, 1),
        "f 12 %": (9, 8, 4, 1),
        "a Users": (2, 4, 5, 1),
        "c Sales": (2, 6, 5, 1),
        "e Growth": (2, 8, 5, 1),
    },
    "one on the other": {"a": (2, 2, 20, 12), "b": (4, 4, 10, 2)},
}
VALUES = {"b 40": "40", "d $3.5m": "$3.5m", "f 12 %": "12 %"}


def sp(text: str, place: Place, kind: str = "", attributes: str = "") -> str:
    left, top, width, height = (round(value * 360_000) for value in place)
    placeholder = f'<p:nvPr><p:ph type="{kind}"/></p:nvPr>' if kind else ""
    named = f'<p:nvSpPr><p:cNvPr id="2" name="x" {attributes}/>{placeholder}</p:nvSpPr>'
    where = f'<a:xfrm><a:off x="{left}" y="{top}"/><a:ext cx="{width}" cy="{height}"/></a:xfrm>'
    body = f"<p:txBody>{paragraphs(text)}</p:txBody>"
    return f"<p:sp>{named}<p:spPr>{where}</p:spPr>{body}</p:sp>"


def frame(text: str, place: Place, kind: str = "", attributes: str = "") -> str:
    names = ("x", "y", "width", "height")
    where = " ".join(f'svg:{name}="{value}cm"' for name, value in zip(names, place, strict=True))
    kind = f'presentation:class="{kind}"' if kind else ""
    box = f"<draw:text-box><text:p>{text}</text:p></draw:text-box>"
    return f'<draw:frame xmlns:svg="svg" {where} {kind} {attributes}>{box}</draw:frame>'


def presentation(*shapes: str) -> bytes:
    return pptx("".join(shapes))


def opendocument(*shapes: str) -> bytes:
    return odf(f"<draw:page>{''.join(shapes)}</draw:page>")


READERS = [("pptx", presentation, sp), ("odf", opendocument, frame)]
Made = tuple[str, Callable[..., bytes], Callable[..., str]]


@pytest.fixture(params=READERS, ids=["pptx", "odp"])
def made(request: pytest.FixtureRequest) -> Made:
    """Return the name of a handler, what makes a file for it of shapes, and what makes a shape."""
    kind: Made = request.param
    return kind


def written(read: Read, made: Made, *shapes: str) -> list[str]:
    reader, document, _ = made
    return read(reader, document(*shapes))[1].strip().split("\n\n")


@pytest.mark.parametrize("drawn", list(SLIDES.values()), ids=list(SLIDES))
def test_shapes_are_read_by_their_places(read: Read, made: Made, drawn: Drawn) -> None:
    shapes = [made[2](VALUES.get(text, text), place) for text, place in drawn.items()]
    expected = [VALUES.get(text, text) for text in sorted(drawn)]
    assert written(read, made, *shapes) == ["## Slide 1", *expected]


def test_the_title_comes_first_wherever_it_stands(read: Read, made: Made) -> None:
    shapes = [made[2]("Text", (2, 1, 10, 2)), made[2]("Plan", (2, 9, 10, 2), "title")]
    assert written(read, made, *shapes) == ["## Slide 1: Plan", "Text"]


def test_a_slide_of_strangers_is_read_right(read: Read) -> None:
    text = read("pptx", data_file("b-06-order.pptx"))[1]
    order = [
        "Quarterly outlook (title)",
        "First heading",
        "demand rises",
        "Second heading",
        "cost falls",
    ]
    places = [text.index(words) for words in order]
    assert all(before < after for before, after in pairwise(places))
    assert text.index("Grouped label A") < text.index("Grouped label B")


def test_a_group_is_read_as_one_at_its_scale(read: Read) -> None:
    inner = sp("c", (0, 60, 10, 10)) + sp("b", (0, 20, 10, 10))
    scaled = (
        '<a:xfrm><a:off x="720000" y="1440000"/><a:ext cx="3600000" cy="1440000"/>'
        '<a:chOff x="0" y="7200000"/><a:chExt cx="3600000" cy="18000000"/></a:xfrm>'
    )
    group = f"<p:grpSp><p:nvGrpSpPr/><p:grpSpPr>{scaled}</p:grpSpPr>{inner}</p:grpSp>"
    shapes = [sp("d", (2, 12, 10, 2)), group, sp("a", (2, 1, 10, 2))]
    assert written(read, READERS[0], *shapes) == ["## Slide 1", "a", "b", "c", "d"]


def test_places_come_from_the_layout_and_its_master(read: Read) -> None:
    def layout(kind: str, number: int, top: int) -> str:
        where = f'<a:xfrm><a:off x="0" y="{top}"/><a:ext cx="99" cy="9"/></a:xfrm>'
        return f'<p:sp><p:ph type="{kind}" idx="{number}"/>{where}</p:sp>'

    def held(number: int, text: str) -> str:
        placeholder = f'<p:nvPr><p:ph idx="{number}"/></p:nvPr>'
        body = f"<p:txBody>{paragraphs(text)}</p:txBody>"
        return f"<p:sp><p:nvSpPr>{placeholder}</p:nvSpPr>{body}</p:sp>"

    parts = {
        "slideLayout": f'<p:x xmlns:p="p" xmlns:a="a">{layout("body", 13, 200)}</p:x>',
        "_rels/slideLayout.xml.rels": relations(("m", "slideMaster", "master.xml")),
        "master.xml": f'<p:x xmlns:p="p" xmlns:a="a">{layout("body", 12, 10)}</p:x>',
    }
    data = pptx(held(13, "below") + held(12, "above"), beside=parts)
    assert read("pptx", data)[1] == "## Slide 1\n\n- above\n- below\n\n"


def test_bullets_of_a_slide_tell_ticks_and_numbers(read: Read) -> None:
    marks = {
        "a": '<a:buFont typeface="Wingdings"/><a:buChar char="ü"/>',
        "b": '<a:buFont typeface="Wingdings"/><a:buChar char="§"/>',
        "c": '<a:buAutoNum type="arabicPeriod" startAt="3"/>',
        "d": '<a:buAutoNum type="arabicPeriod" startAt="3"/>',
        "e": "",
        "f": '<a:buAutoNum type="alphaLcParenR"/>',
        "g": '<a:buAutoNum type="alphaLcParenR"/>',
        "h": "",
        "i": '<a:buAutoNum type="romanUcParenBoth" startAt="9"/>',
    }
    inner = "".join(
        f"<a:p><a:pPr>{mark}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>"
        for text, mark in marks.items()
    )
    text = read("pptx", pptx(shape("", inner)))[1]
    assert text == "## Slide 1\n\n- ✓ a\n- b\n3. c\n4. d\n\ne\n\na) f\nb) g\n\nh\n\n(IX) i\n\n"


def test_signs_of_a_slide_are_what_their_font_draws(read: Read) -> None:
    runs = (
        '<a:r><a:rPr><a:latin typeface="Wingdings"/></a:rPr><a:t>û</a:t></a:r>'
        '<a:r><a:rPr><a:sym typeface="Wingdings"/></a:rPr><a:t> à later, déjà vu</a:t></a:r>'
    )
    assert "✗ → later, déjà vu" in read("pptx", pptx(shape("", f"<a:p>{runs}</a:p>")))[1]


def test_notes_are_without_the_number_of_the_slide(read: Read) -> None:
    number = '<a:p><a:fld type="slidenum"><a:t>7</a:t></a:fld></a:p>'
    notes = shape("body", paragraphs("Say 7.")) + shape("", number)
    beside = {"notesSlide": f'<p:notes xmlns:p="p" xmlns:a="a">{notes}</p:notes>'}
    assert read("pptx", pptx("", beside=beside))[1] == "## Slide 1\n\nNotes: Say 7.\n\n"
    field = "<text:p><text:page-number>&lt;number></text:page-number></text:p>"
    body = f'<draw:frame presentation:class="page-number">{field}</draw:frame>'
    said = "<draw:frame><text:p>Say 7.</text:p></draw:frame>"
    page = f"<draw:page><presentation:notes>{body}{said}</presentation:notes></draw:page>"
    assert read("odf", odf(page))[1] == "## Slide 1\n\nNotes: Say 7.\n\n"


def test_an_embedded_sheet_of_a_slide_is_named(read: Read) -> None:
    sheet = '<p:graphicFrame><p:oleObj progId="Excel.Sheet.12"/></p:graphicFrame>'
    assert "[embedded: Excel.Sheet.12]" in read("pptx", pptx(sheet))[1]


def test_groups_within_groups_without_end_are_read(read: Read) -> None:
    deep = "<p:grpSp>" * 300 + sp("within", (1, 1, 2, 2)) + "</p:grpSp>" * 300
    assert written(read, READERS[0], deep, sp("below", (1, 9, 2, 2))) == [
        "## Slide 1",
        "within",
        "below",
    ]

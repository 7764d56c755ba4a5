"""Text that a reader of the document does not see is left out and counted, or marked as unseen.

What hides from a reader is out: an instruction that only a model would read. What is data that a
view leaves out (a hidden row, a hidden slide) is marked. One table for all formats.
"""

# ruff: noqa: E501 - a document on one line reads better than in pieces

from collections.abc import Mapping
from email.message import EmailMessage
from typing import NamedTuple

import pytest

from tests.handlers.conftest import Read
from tests.handlers.hostile.documents import packed
from tests.handlers.test_docx import STYLES, W, docx, odf, paragraph, paragraphs, pptx, run, shape
from tests.handlers.test_pdf_hidden import HIDDEN, document
from tests.handlers.test_sheet_formats import row, workbook

SECRET = "TWILIGHT"


class Case(NamedTuple):
    """A document that shows "seen" and hides TWILIGHT; ``mark`` is in the text, "": it is out."""

    handler: str
    data: bytes
    mark: str = ""
    pieces: int | None = None
    """What is counted as hidden, where one piece is all that is."""


def word(body: str, styles: str = "", **parts: str) -> Case:
    more = STYLES.replace("</w:styles>", f"{styles}</w:styles>")
    return Case("docx", docx(paragraph("seen") + body, styles=more, **parts))


def style(name: str, properties: str, base: str = "") -> str:
    base = f'<w:basedOn w:val="{base}"/>' if base else ""
    return f'<w:style w:styleId="{name}">{base}<w:rPr>{properties}</w:rPr></w:style>'


VANISH = "<w:vanish/>"
BY_BASE = style("Ghost", VANISH) + style("Child", "", "Ghost")
COMMENT = f'<w:comments {W}><w:comment w:id="1" w:author="A"><w:p>{run("a")}{run(SECRET, VANISH)}</w:p></w:comment></w:comments>'


def slide(content: str, attributes: str = "") -> bytes:
    data = pptx(shape("", paragraphs("seen")) + content)
    return data if not attributes else pptx_with(attributes)


def pptx_with(attributes: str) -> bytes:
    """Return a presentation of a slide with attributes of its own."""
    rels = '<Relationships><Relationship Id="r1" Type="x/slide" Target="slides/slide1.xml"/></Relationships>'
    content = shape("", paragraphs("seen", SECRET))
    return packed(
        {
            "ppt/presentation.xml": '<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId r:id="r1"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": rels,
            "ppt/slides/slide1.xml": f'<p:sld xmlns:p="p" xmlns:a="a" {attributes}>{content}</p:sld>',
        }
    )


def hidden_shape(element: str, inner: str) -> str:
    named = '<p:nv><p:cNvPr id="9" name="x" hidden="1"/></p:nv>'
    return f"<p:{element}>{named}{inner}</p:{element}>"


BODY = f"<p:txBody>{paragraphs(SECRET)}</p:txBody>"
CELL = f"<a:tbl><a:tr><a:tc>{paragraphs(SECRET)}</a:tc></a:tr></a:tbl>"
PICTURE = f'<p:pic><p:nv><p:cNvPr id="9" hidden="1" descr="{SECRET}"/></p:nv></p:pic>'


def opendocument(body: str, styles: str = "") -> Case:
    named = f'<office:document-styles xmlns:office="o" xmlns:style="s" xmlns:text="t" xmlns:presentation="p">{styles}</office:document-styles>'
    return Case("odf", odf(body, **{"styles.xml": named}))


NONE = '<style:text-properties text:display="none"/>'
GHOST = f'<style:style style:name="Ghost">{NONE}</style:style><style:style style:name="Child" style:parent-style-name="Ghost"/>'
OFF = '<style:style style:name="Off"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
SEEN = "<text:p>seen</text:p>"
BOX = "<draw:frame{}><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
SLIDE = f'<draw:page draw:style-name="{{}}">{BOX.format("", "seen")}{{}}</draw:page>'


def book(rows: str, before: str = "") -> bytes:
    return workbook(packed, rows, before)


SHEET = row(1, "seen", "b") + row(2, "x", 1)
HIDDEN_ROW = SHEET + row(3, SECRET, 2).replace("<row ", '<row hidden="1" ')
HIDDEN_COLUMN = '<cols><col min="2" max="2" hidden="1"/></cols>'
CHAPTERS = {
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>',
    "b.opf": '<package><manifest><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>',
    "a.xhtml": f'<html><body><p>seen</p><p style="display:none">{SECRET}</p></body></html>',
}


def mail() -> bytes:
    message = EmailMessage()
    message["Subject"] = "x"
    message.set_content(f'<p>seen</p><p style="display:none">{SECRET}</p>', subtype="html")
    return bytes(message)


# The HTML cases belong in here, too.
CASES: Mapping[str, Case] = {
    "DOCX: run": word(f"<w:p>{run(SECRET, VANISH)}</w:p>"),
    "DOCX: style of the paragraph": word(paragraph(SECRET, "Ghost"), style("Ghost", VANISH)),
    "DOCX: style of the character": word(
        f"<w:p>{run(SECRET, '<w:rStyle w:val=' + chr(34) + 'Ghost' + chr(34) + '/>')}</w:p>",
        style("Ghost", VANISH),
    ),
    "DOCX: style that a style is based on": word(paragraph(SECRET, "Child"), BY_BASE),
    "DOCX: in a comment": word("", comments=COMMENT),
    "PPTX: slide": Case("pptx", slide("", 'show="0"'), "## Slide 1 (hidden)"),
    "PPTX: shape": Case("pptx", slide(hidden_shape("sp", BODY))),
    "PPTX: shape of a group": Case("pptx", slide(hidden_shape("grpSp", f"<p:sp>{BODY}</p:sp>"))),
    "PPTX: table": Case("pptx", slide(hidden_shape("graphicFrame", CELL))),
    "ODT: style of the paragraph": opendocument(
        SEEN + f'<text:p text:style-name="Child">{SECRET}</text:p>', GHOST
    ),
    "ODT: span": opendocument(
        f'<text:p>seen<text:span text:style-name="Ghost">{SECRET}</text:span></text:p>', GHOST
    ),
    "ODT: section": opendocument(
        SEEN + f'<text:section text:display="none"><text:p>{SECRET}</text:p></text:section>'
    ),
    "ODT: hidden text": opendocument(
        f'<text:p>seen<text:hidden-text text:is-hidden="true">{SECRET}</text:hidden-text></text:p>'
    ),
    "ODT: hidden paragraph": opendocument(
        SEEN + f'<text:p>{SECRET}<text:hidden-paragraph text:is-hidden="true"/>{SECRET}</text:p>'
    ),
    "ODP: slide": opendocument(SLIDE.format("Off", BOX.format("", SECRET)), OFF)._replace(
        mark="## Slide 1 (hidden)"
    ),
    "ODP: shape": opendocument(SLIDE.format("", BOX.format(' draw:display="none"', SECRET))),
    "XLSX: row": Case("sheets", book(HIDDEN_ROW), f"{SECRET}\t2\t(hidden row)\n"),
    "XLSX: column": Case(
        "sheets", book(row(1, "seen", SECRET) + row(2, "x", 1), HIDDEN_COLUMN), "hidden column B"
    ),
    "RTF: run": Case("rtf", rb"{\rtf1 seen {\v " + SECRET.encode() + rb"}\par}"),
    "EPUB: chapter": Case("epub", packed(CHAPTERS)),
    "mail": Case("email", mail()),
    **{
        f"PDF: {name}": Case("pdf", document(content), pieces=1) for name, content in HIDDEN.items()
    },
}


@pytest.mark.whole
@pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
def test_what_a_reader_does_not_see_is_out_and_counted_or_marked(read: Read, case: Case) -> None:
    extracted, text = read(case.handler, case.data)
    assert "seen" in text
    assert (SECRET in text) == bool(case.mark)
    if case.mark:
        assert case.mark in text
    else:
        assert extracted.facts.hidden_removed > 0
        assert case.pieces in (None, extracted.facts.hidden_removed)


def test_a_hidden_picture_of_a_slide_is_out(read: Read) -> None:
    assert read("pptx", slide(PICTURE))[1] == "## Slide 1\n\nseen\n\n"


def test_what_a_run_shows_though_its_style_hides_it_stays(read: Read) -> None:
    shown = f'<w:p><w:pPr><w:pStyle w:val="Ghost"/></w:pPr>{run("shown", "<w:vanish w:val=" + chr(34) + "0" + chr(34) + "/>")}</w:p>'
    assert "shown" in read(*word(shown, style("Ghost", VANISH))[:2])[1]

"""Pictures, charts, comments and footers of documents stay within reach."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import pytest
from PIL import Image

from fetchstash.errors import BadArgument, OutOfRange
from fetchstash.handlers import PartText, Picture
from tests.handlers.conftest import Pack, PartOf, Read
from tests.scanned import png

TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
W = f'xmlns:w="w" xmlns:r="{TYPES}" xmlns:wp="wp" xmlns:a="a" xmlns:c="c"'


RED = png(Image.new("RGB", (60, 40), "red"))


def relations(**targets: str) -> str:
    """Return relationships by the last word of their type, which is their id too."""
    inner = "".join(
        f'<Relationship Id="{kind}" Type="{TYPES}/{kind.rstrip("0123456789")}" Target="{target}"/>'
        for kind, target in targets.items()
    )
    return f"<Relationships>{inner}</Relationships>"


def points(name: str, *values: str) -> str:
    inner = "".join(f'<c:pt idx="{n}"><c:v>{value}</c:v></c:pt>' for n, value in enumerate(values))
    return f"<c:{name}><c:strRef><c:f>Sheet1!A1</c:f><c:strCache>{inner}</c:strCache></c:strRef></c:{name}>"


SERIES = "".join(
    f"<c:ser>{points('tx', name)}{points('cat', 'Spring', 'Autumn')}{points('val', *values)}</c:ser>"
    for name, values in (("North", ("1.5", "2")), ("South", ("3", "4")))
)
CHART = f'<c:chartSpace xmlns:c="c" xmlns:a="a"><c:chart><c:title><a:t>Rainfall</a:t></c:title><c:plotArea><c:barChart>{SERIES}</c:barChart><c:valAx><c:title><a:t>mm</a:t></c:title></c:valAx></c:plotArea></c:chart></c:chartSpace>'
DATA = "Chart (bar): Rainfall\n\n|  | North | South |\n| --- | --- | --- |\n| Spring | 1.5 | 3 |\n| Autumn | 2 | 4 |\n\n"


def docx(pack: Pack) -> bytes:
    drawn = (
        '<w:drawing><wp:docPr id="1" descr="A red [box]"/><a:blip r:embed="image1"/></w:drawing>'
    )
    again = '<w:drawing><wp:docPr id="2"/><a:blip r:embed="image1"/></w:drawing>'
    web = '<w:drawing><wp:docPr id="3" title="On the web"/><a:blip r:link="image2"/></w:drawing>'
    chart = '<w:drawing><c:chart r:id="chart"/></w:drawing>'
    texts = {"One ": drawn, "Two ": again, "Three ": web, "Four": chart, "Five": ""}
    runs = "".join(
        f"<w:p><w:r><w:t>{text}</w:t>{inner}</w:r></w:p>" for text, inner in texts.items()
    )
    linked = f'<Relationship Id="image2" Type="{TYPES}/image" Target="https://example.org/b.png" TargetMode="External"/>'
    held = relations(image1="media/a.png", chart="charts/chart1.xml")
    rels = held.replace("<Relationships>", f"<Relationships>{linked}")
    return pack(
        {
            "word/document.xml": f"<w:document {W}><w:body>{runs}</w:body></w:document>",
            "word/_rels/document.xml.rels": rels,
            "word/media/a.png": RED,
            "word/charts/chart1.xml": CHART,
        }
    )


def pptx(pack: Pack) -> bytes:
    picture = '<p:pic><p:nvPicPr><p:cNvPr descr="A red box"/></p:nvPicPr><p:blipFill><a:blip r:embed="image"/></p:blipFill></p:pic>'
    footer = '<p:sp><p:nvPr><p:ph type="ftr"/></p:nvPr><p:txBody><a:p><a:r><a:t>Confidential</a:t></a:r></a:p></p:txBody></p:sp>'
    slide = f'<p:sld xmlns:p="p" xmlns:a="a" xmlns:r="{TYPES}">{picture}{footer}</p:sld>'
    comments = (
        '<p:cmLst xmlns:p="p"><p:cm authorId="0"><p:text>Is this so?</p:text></p:cm></p:cmLst>'
    )
    return pack(
        {
            "ppt/presentation.xml": '<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId r:id="slide"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": relations(slide="slides/slide1.xml"),
            "ppt/slides/slide1.xml": slide,
            "ppt/slides/_rels/slide1.xml.rels": relations(
                image="../media/a.png",
                chart="../charts/chart1.xml",
                comments="../comments/comment1.xml",
            ),
            "ppt/media/a.png": RED,
            "ppt/charts/chart1.xml": CHART,
            "ppt/comments/comment1.xml": comments,
        }
    )


SPACES = " ".join(
    f'xmlns:{name}="{name}"'
    for name in ("office", "text", "table", "draw", "xlink", "svg", "chart", "style", "dc")
)


def odt(pack: Pack) -> bytes:
    picture = '<draw:frame><draw:image xlink:href="Pictures/a.png"/><svg:desc>A red box</svg:desc></draw:frame>'
    drawn = '<draw:frame><draw:object xlink:href="./Object 1"/><draw:image xlink:href="./ObjectReplacements/Object 1"/></draw:frame>'
    comment = "<office:annotation><dc:creator>Ada</dc:creator><dc:date>2026-05-01</dc:date><text:p>Is this so?</text:p></office:annotation>"
    body = (
        f"<text:p>One {picture}</text:p><text:p>Two{comment}</text:p><text:p>Three{drawn}</text:p>"
    )
    rows = (("", "North", "South"), ("Spring", "1.5", "3"), ("Autumn", "2", "4"))
    cells = "".join(
        f"<table:table-row>{''.join(f'<table:table-cell><text:p>{cell}</text:p></table:table-cell>' for cell in row)}</table:table-row>"
        for row in rows
    )
    chart = f'<office:document-content {SPACES}><office:chart><chart:chart chart:class="chart:bar"><chart:title><text:p>Rainfall</text:p></chart:title><table:table>{cells}</table:table></chart:chart></office:chart></office:document-content>'
    page = "<style:master-page><style:header><text:p>Annual report</text:p></style:header><style:footer><text:p>Page 1</text:p></style:footer></style:master-page>"
    styles = f"<office:document-styles {SPACES}><office:master-styles>{page * 2}</office:master-styles></office:document-styles>"
    content = f"<office:document-content {SPACES}><office:body>{body}</office:body></office:document-content>"
    return pack(
        {
            "content.xml": content,
            "styles.xml": styles,
            "Pictures/a.png": RED,
            "Object 1/content.xml": chart,
        }
    )


def epub(pack: Pack) -> bytes:
    package = '<package><manifest><item id="a" href="text/one.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>'
    return pack(
        {
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
            "OPS/book.opf": package,
            "OPS/text/one.xhtml": '<html><body><p>One</p><img src="../img/a.png" alt="A red box"/></body></html>',
            "OPS/img/a.png": RED,
        }
    )


DOCUMENTS = {"docx": docx, "pptx": pptx, "odf": odt, "epub": epub}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_picture_leaves_a_trace_is_listed_and_shown(
    name: str, pack: Pack, read: Read, part: PartOf
) -> None:
    data = DOCUMENTS[name](pack)
    label = "A red (box)" if name == "docx" else "A red box"
    assert f"![{label}](images/1)" in read(name, data)[1]
    listed = part(name, data, "images")
    assert isinstance(listed, PartText)
    assert listed.text.startswith(f"1. {label} (")
    assert "a.png)" in listed.text
    shown = part(name, data, "images/1", render="image")
    assert isinstance(shown, Picture)
    assert (shown.width, shown.height) == (60, 40)
    beyond = f"images/{listed.total + 1}"
    errors = {beyond: OutOfRange, "images": BadArgument, "left_out": BadArgument}
    for path, error in errors.items():
        with pytest.raises(error):
            part(name, data, path, render="image")
    with pytest.raises(OutOfRange):
        part(name, data, "nothing")


@pytest.mark.parametrize("name", ["docx", "pptx", "odf"])
def test_a_chart_is_the_table_of_its_data(name: str, pack: Pack, read: Read) -> None:
    assert DATA in read(name, DOCUMENTS[name](pack))[1]


def test_a_picture_that_stands_twice_is_shown_once_and_one_on_the_web_by_its_address(
    pack: Pack, read: Read, part: PartOf
) -> None:
    data = docx(pack)
    text = read("docx", data)[1]
    assert text.startswith(
        "One ![A red (box)](images/1)\n\nTwo\n\nThree ![On the web](https://example.org/b.png)\n\nFour\n\nChart"
    )
    linked = part("docx", data, "images/2", render="image")
    assert linked == PartText("https://example.org/b.png", 1)


def test_footers_of_slides_are_left_out_and_stay_readable(
    pack: Pack, read: Read, part: PartOf
) -> None:
    data = pptx(pack)
    extracted, text = read("pptx", data)
    assert "Confidential" not in text
    assert (extracted.facts.left_out_chars, extracted.facts.left_out) == (12, "footers 12")
    assert part("pptx", data, "left_out") == PartText("## footers\n\nConfidential\n", 3)


def test_comments_of_slides_and_texts_come_with_their_author(pack: Pack, read: Read) -> None:
    assert "Comment: Is this so?\n" in read("pptx", pptx(pack))[1]
    assert "Two\n\nComment by Ada: Is this so?\n" in read("odf", odt(pack))[1]


def test_headers_and_footers_of_a_text_document_stand_once_at_its_end(
    pack: Pack, read: Read
) -> None:
    text = read("odf", odt(pack))[1]
    assert text.endswith("4 |\n\nHeader: Annual report\n\nFooter: Page 1\n\n")


def test_comments_and_charts_of_a_workbook_follow_its_sheets(pack: Pack, read: Read) -> None:
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    package = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
    data = pack(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations(officeDocument="xl/workbook.xml").replace(
                "<Relationships>", f"<Relationships {package}>"
            ),
            "xl/workbook.xml": f'<workbook {main} xmlns:r="{TYPES}"><sheets><sheet name="Prices" sheetId="1" r:id="worksheet"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(worksheet="worksheets/sheet1.xml").replace(
                "<Relationships>", f"<Relationships {package}>"
            ),
            "xl/worksheets/sheet1.xml": f'<worksheet {main}><sheetData><row><c r="A1"><v>1</v></c></row></sheetData></worksheet>',
            "xl/worksheets/_rels/sheet1.xml.rels": relations(comments="../comments1.xml"),
            "xl/comments1.xml": f'<comments {main}><authors><author>Ada</author></authors><commentList><comment ref="B2" authorId="0"><text><r><t>Check </t></r><r><t>this.</t></r></text></comment></commentList></comments>',
            "xl/charts/chart1.xml": CHART,
        }
    )
    text = read("sheets", data)[1]
    assert text.startswith("## Prices (A1:A1)\n1\n")
    assert text.endswith(f"## Comments\n\n- Prices!B2 (Ada): Check this.\n\n{DATA}")

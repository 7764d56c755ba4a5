"""PPTX: a page for each slide, with titles, bullets, tables, charts and notes."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

from collections.abc import Mapping

from tests.handlers.conftest import Read, reads, unreadable
from tests.handlers.hostile.documents import packed

TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def paragraphs(*texts: str, level: int = 0) -> str:
    return "".join(
        f'<a:p><a:pPr lvl="{level}"/><a:r><a:t>{text}</a:t></a:r></a:p>' for text in texts
    )


def shape(kind: str, content: str) -> str:
    placeholder = f'<p:nvPr><p:ph type="{kind}"/></p:nvPr>' if kind else ""
    return f"<p:sp><p:nvSpPr>{placeholder}</p:nvSpPr><p:txBody>{content}</p:txBody></p:sp>"


def relations(*rows: tuple[str, str, str]) -> str:
    inner = "".join(
        f'<Relationship Id="{number}" Type="{TYPES}/{kind}" Target="{target}"/>'
        for number, kind, target in rows
    )
    return f"<Relationships>{inner}</Relationships>"


def pptx(*slides: str, beside: Mapping[str, str] | None = None) -> bytes:
    """Return a presentation; ``beside`` are parts of the first slide, by relationship."""
    ids = "".join(f'<p:sldId id="{300 - n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1))
    # Parts are numbered in the opposite order: the list of slides decides.
    names = [f"slide{len(slides) - n}.xml" for n in range(len(slides))]
    listed = ((f"rId{n}", "slide", f"slides/{name}") for n, name in enumerate(names, 1))
    parts = beside or {}
    return packed({
        "ppt/presentation.xml": f'<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>',
        "ppt/_rels/presentation.xml.rels": relations(*listed),
        **{
            f"ppt/slides/{name}": f'<p:sld xmlns:p="p" xmlns:a="a">{content}</p:sld>'
            for name, content in zip(names, slides, strict=True)
        },
        f"ppt/slides/_rels/slide{len(slides)}.xml.rels": relations(*((kind, kind, f"../{kind}.xml") for kind in parts)),
        **{f"ppt/{kind}.xml": content for kind, content in parts.items()},
    })  # fmt: skip


SLIDES = {
    "title": (shape("title", paragraphs("Plan")) + shape("", paragraphs("Free text")), "## Slide 1: Plan\n\nFree text\n\n"),
    "bullets": (shape("body", paragraphs("a") + paragraphs("b", level=1)), "## Slide 1\n\n- a\n  - b\n\n"),
    "slide number": (shape("sldNum", paragraphs("17")) + shape("", paragraphs("Text")), "## Slide 1\n\nText\n\n"),
    "table": ("<a:tbl><a:tr><a:tc><a:p><a:r><a:t>N</a:t></a:r></a:p></a:tc><a:tc><a:p><a:r><a:t>V</a:t></a:r></a:p></a:tc></a:tr></a:tbl>", "## Slide 1\n\n| N | V |\n| --- | --- |\n\n"),
    "picture alone": ("<p:pic/>", "## Slide 1\n\n(1 picture)\n\n"),
    "pictures, one described": ('<p:pic><p:nvPicPr><p:cNvPr id="1" descr="A red  square"/></p:nvPicPr></p:pic><p:pic/>' + shape("", paragraphs("Text")), "## Slide 1\n\nText\n\n(2 pictures: A red square)\n\n"),
}  # fmt: skip
test_a_slide_becomes_markdown = reads(
    "pptx", {name: (pptx(body), text) for name, (body, text) in SLIDES.items()}
)


def test_slides_are_pages_in_the_order_of_the_list(read: Read) -> None:
    slides = [shape("title", paragraphs(name)) for name in ("first", "second", "third")]
    extracted, _ = read("pptx", pptx(*slides))
    titles = ["Slide 1: first", "Slide 2: second", "Slide 3: third"]
    parts = list(extracted.parts or ())
    assert [(part.text, part.starts_page) for part in parts] == [
        (f"## {title}\n\n", True) for title in titles
    ]
    assert [heading.title for part in parts for heading in part.headings] == titles
    assert extracted.facts.pages == 3


def test_charts_diagrams_and_notes_follow_their_slide(read: Read) -> None:
    beside = {
        "notesSlide": f'<p:notes xmlns:p="p" xmlns:a="a">{shape("sldImg", "")}{shape("body", paragraphs("Say hello."))}</p:notes>',
        "chart": '<c:chart xmlns:c="c"><c:plotArea><c:pieChart><c:ser><c:tx><c:v>Sales</c:v></c:tx><c:cat><c:pt idx="0"><c:v>2025</c:v></c:pt></c:cat><c:val><c:pt idx="0"><c:v>12.5</c:v></c:pt></c:val></c:ser></c:pieChart></c:plotArea></c:chart>',
        "diagramData": f'<d:data xmlns:d="d" xmlns:a="a">{paragraphs("Step one")}</d:data>',
    }
    _, text = read("pptx", pptx(shape("title", paragraphs("T")), beside=beside))
    assert text.split("\n\n") == [
        "## Slide 1: T",
        "Chart (pie)",
        "|  | Sales |\n| --- | --- |\n| 2025 | 12.5 |",
        "Step one",
        "Notes: Say hello.",
        "",
    ]


test_a_package_without_slides_is_reported = unreadable("pptx", {
    "no slides": (pptx(), "the document holds no text"),
    "no presentation": (packed({"other.xml": "<x/>"}), "the package holds no document"),
})  # fmt: skip

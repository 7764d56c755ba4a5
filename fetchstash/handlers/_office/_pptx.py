"""PPTX: slides as Markdown, each a page (ECMA-376-1, PresentationML and DrawingML)."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._office._common import PLAIN, Look, Runs, Slides, number
from fetchstash.handlers._office._ooxml import Package, Relation, TextReader, write_chart
from fetchstash.handlers._parts import Beside, BesideParts
from fetchstash.handlers._prose import OpenTables, Prose, read_prose
from fetchstash.handlers._xml import Node
from fetchstash.handlers._zip import Zip

_TITLES = {"title", "ctrTitle"}
# Fields that repeat on every slide.
_FURNITURE = {"sldNum", "dt", "ftr", "hdr", "sldImg"}
_NO_TITLES = {"Presentation", "PowerPoint Presentation"}
_BODIES = {"body", "subTitle", "obj"}
_BESIDE = {"chart", "comments", "diagramData", "notesSlide"}


class PptxHandler(BesideParts):
    """Reads presentations of PowerPoint 2007 and later."""

    name = "pptx"

    def read_beside(self, source: Path, extracted: Extracted, beside: Beside) -> Iterator[Part]:
        """Yield the parts of ``source``. Raises NoText if it cannot be read."""
        with Zip(source, is_document=True) as container:
            package = Package(container)
            package.describe(extracted)
            if extracted.facts.title in _NO_TITLES:
                extracted.learn(title="")
            prose = Prose()
            slides = Slides(prose)
            for slide in _slides(package):
                slides.begin()
                yield from _read_slide(package, slide, slides, prose, beside)
            slides.learn(extracted)
            yield from prose.end()


def _slides(package: Package) -> list[str]:
    """Return the parts of the slides in the order of the presentation's list, each once."""
    main = package.main_part("ppt/presentation.xml")
    relations = package.relations(main)
    numbers = [
        next((value for key, value in slide.attributes.items() if key.endswith(":id")), "")
        for slide in package.tree(main).all("sldId")
    ]
    return list(dict.fromkeys(relations[n].target for n in numbers if n in relations))


def _read_slide(
    package: Package, slide: str, slides: Slides, prose: Prose, beside: Beside
) -> Iterator[Part]:
    relations = package.relations(slide)
    reader = _Reader(prose, relations, beside, slides)
    yield from read_prose(package.chunks(slide), reader, prose)
    slides.end(reader.pictures, reader.descriptions, reader.shown)
    for relation in sorted(relations.values(), key=lambda relation: relation.kind):
        if relation.kind not in _BESIDE or not package.is_new(relation.target):
            continue
        if relation.kind == "chart":
            write_chart(package.tree(relation.target), prose)
        elif relation.kind == "comments":
            for text in _comments(package.tree(relation.target)):
                prose.paragraph(f"Comment: {text}" if text.strip() else "")
        else:
            label = "Notes: " if relation.kind == "notesSlide" else ""
            within = _Reader(prose, {}, beside, label=label)
            yield from read_prose(package.chunks(relation.target), within, prose)


def _comments(part: Node) -> list[str]:
    """Return the comments of a slide (section 19.4, and those of 2018 with rich text)."""
    texts: list[str] = []
    for node in part.all("cm", "reply", "text", "t"):
        if node.tag in {"cm", "reply"}:
            texts.append("")
        elif texts:
            texts[-1] += node.text()
    return texts


class _Reader(TextReader):
    """Writes the paragraphs of a slide, its notes or a diagram into ``prose``.

    The titles of a slide go to ``slides``. ``label`` stands before each paragraph.
    """

    skipped = frozenset({"Fallback"})

    def __init__(
        self,
        prose: Prose,
        relations: Mapping[str, Relation],
        beside: Beside,
        slides: Slides | None = None,
        label: str = "",
    ) -> None:
        super().__init__()
        self.pictures = 0
        self.descriptions: list[str] = []
        self.shown: list[str] = []
        self._beside = beside
        self._prose = prose
        self._slides = slides
        self._relations = relations
        self._label = label
        self._placeholder = ""
        self._runs = Runs()
        self._level = 0
        self._link = ""
        self._tables = OpenTables(prose, "tbl", "tr", "tc")
        self._description: str | None = None  # of the open picture

    def open(self, name: str, get: Callable[[str], str]) -> None:
        if name == "p":
            self._runs, self._level, self._link = Runs(), 0, ""
        elif name == "rPr":
            raised = get("baseline")
            script = "_" if raised.startswith("-") else "^" if raised.strip("0%") else ""
            struck = get("strike") in {"sngStrike", "dblStrike"}
            self._runs.look = Look(script, struck)
        elif name == "pPr":
            self._level = number(get("lvl"))
        elif name == "br":
            self._runs.mark("\n")
        elif name == "hlinkClick":
            relation = self._relations.get(get("id"))
            self._link = relation.target if relation and relation.external else ""
        elif name == "sp":
            self._placeholder = ""
        elif name == "ph":
            self._placeholder = get("type") or "body"
        elif name == "pic":
            self._description = ""
        elif name == "cNvPr" and self._description is not None:
            self._description = get("descr").strip()
        elif name == "blip" and self._description is not None:
            if relation := self._relations.get(get("embed") or get("link")):
                self.shown.append(self._beside.picture(relation.target, self._description))
                self._description = None
        elif name == "tbl":
            self._open_slide()
            self._tables.start(name)
        elif name in {"tr", "tc"}:
            self._tables.start(name)
            self._tables.cell.height = number(get("rowSpan"), 1)
            self._tables.cell.is_covered = get("vMerge") in {"1", "true"}

    def close(self, name: str) -> None:
        if name == "r":
            self._runs.look = PLAIN
            if self._link:
                self._runs.link(self._link)
                self._link = ""
        elif name == "p":
            self._write()
        elif name == "pic" and self._description is not None:
            self.pictures += 1
            self.descriptions += filter(None, [self._description])
            self._description = None
        elif name in {"tc", "tbl"}:
            self._tables.end(name)

    def add(self, data: str) -> None:
        self._runs.add(data)

    def formula(self, latex: str) -> None:
        self._runs.mark(latex)

    def _open_slide(self, title: str = "") -> None:
        if self._slides:
            self._slides.open(title)

    def _write(self) -> None:
        text = self._runs.text()
        self._runs = Runs()
        if self._placeholder in _FURNITURE:
            self._beside.leave_out("footers", text)
            return
        if not text:
            return
        if self._tables:
            self._tables.add(text)
            return
        self._open_slide(text if self._placeholder in _TITLES else "")
        if self._label:
            self._prose.paragraph(self._label + text)
        elif self._placeholder in _BODIES:
            self._prose.item(text, self._level)
        elif self._placeholder not in _TITLES:
            self._prose.paragraph(text)

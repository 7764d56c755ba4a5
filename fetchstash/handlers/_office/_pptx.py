"""PPTX: slides as Markdown, each a page (ECMA-376-1, PresentationML and DrawingML)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fetchstash.errors import NoText
from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._office._common import PLAIN, Look, Runs, Slides, number, signed
from fetchstash.handlers._office._ooxml import (
    Package,
    Relation,
    TextReader,
    embedded,
    write_chart,
)
from fetchstash.handlers._office._places import Box, Shape, write_all
from fetchstash.handlers._parts import Beside, BesideParts
from fetchstash.handlers._prose import OpenTables, Prose, numeral, read_prose
from fetchstash.handlers._symbols import (
    is_symbol_font,
    seen,
    seen_lone,
    telling_bullet,
    without_private,
)
from fetchstash.handlers._xml import Node, XmlReader
from fetchstash.handlers._zip import Zip

_TITLES = {"title", "ctrTitle"}
# Fields that repeat on every slide.
_FURNITURE = {"sldNum", "dt", "ftr", "hdr", "sldImg"}
_NO_TITLES = {"Presentation", "PowerPoint Presentation"}
_BODIES = {"body", "subTitle", "obj"}
_BESIDE = {"chart", "comments", "diagramData", "notesSlide"}
# Placeholders whose places stand under another name in layouts (section 19.7.10).
_SAME = {"ctrTitle": "title", "subTitle": "body"}
# The second rendering of an object, and what says how shapes and text look and move.
_SKIPPED = frozenset(
    {
        *("Fallback", "solidFill", "gradFill", "ln", "lnL", "lnR", "lnT", "lnB", "effectLst"),
        *("prstGeom", "custGeom", "style", "lnSpc", "spcBef", "spcAft", "buClr", "lstStyle"),
        *("endParaRPr", "bg", "tblPr", "tblGrid", "extLst", "transition", "timing"),
    }
)
_UNREAD = frozenset(
    {
        *("txBody", "bodyPr", "nvPr", "nvSpPr", "cNvSpPr", "spPr", "spLocks", "xfrm", "tcPr"),
        *("noFill", "noAutofit", "normAutofit", "spAutoFit", "buNone", "ea", "cs", "nvPicPr"),
    }
)
# The elements within a paragraph that are read.
_WITHIN = {
    *("r", "rPr", "latin", "sym", "fld", "pPr", "buFont", "buChar", "buAutoNum", "br"),
    "hlinkClick",
}
_MAX_GROUPS = 20  # within each other
_MAX_KEPT = 200  # characters of a shape's text, by which its place is judged


_Places = dict[str, Box]
"""The places of placeholders, by the number and by the kind of each."""


class _Layouts:
    """The places of placeholders, which slides inherit from their layout and its master."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._read: dict[str, _Places] = {}

    def places(self, part: str, depth: int = 2) -> _Places:
        """Return the places of a layout (section 19.3.1.39), and below them its master's."""
        if not part or not depth:
            return {}
        if part not in self._read:
            relations = self._package.relations(part).values()
            master = next((r.target for r in relations if r.kind == "slideMaster"), "")
            self._read[part] = {**self.places(master, depth - 1), **self._own(part)}
        return self._read[part]

    def _own(self, part: str) -> _Places:
        reader = _LayoutReader()
        self._package.read_small(part, reader)
        return reader.places


class _LayoutReader(XmlReader):
    """Collects the places of a layout's own placeholders."""

    def __init__(self) -> None:
        self.places: _Places = {}
        self._kind = self._number = ""
        self._corner: tuple[int, int] | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        get = attributes.get
        if name == "sp":
            self._kind, self._number, self._corner = "", "", None
        elif name == "ph":
            kind = get("type", "obj")
            self._kind, self._number = _SAME.get(kind, kind), get("idx", "")
        elif name == "off":
            self._corner = signed(get("x", "")), signed(get("y", ""))
        elif name == "ext" and self._corner and "cx" in attributes:
            left, top = self._corner
            box = Box(left, top, left + signed(get("cx", "")), top + signed(get("cy", "")))
            if self._number:
                self.places[self._number] = box
            if self._kind:
                self.places.setdefault(self._kind, box)
            self._corner = None


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
            slides, layouts = Slides(prose), _Layouts(package)
            for slide in _slides(package):
                slides.begin()
                yield from _read_slide(package, slide, slides, prose, beside, layouts)
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
    package: Package, slide: str, slides: Slides, prose: Prose, beside: Beside, layouts: _Layouts
) -> Iterator[Part]:
    relations = package.relations(slide)
    layout = next((r.target for r in relations.values() if r.kind == "slideLayout"), "")
    places = partial(layouts.places, layout)
    reader = _Reader(prose, relations, beside, slides, places=places)
    try:
        yield from read_prose(package.chunks(slide), reader, prose)
    except NoText:
        reader.write_shapes()
        yield from prose.rest()
        raise
    reader.write_shapes()
    slides.hidden_shapes += reader.hidden
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
            within.write_shapes()


def _comments(part: Node) -> list[str]:
    """Return the comments of a slide (section 19.4, and those of 2018 with rich text)."""
    texts: list[str] = []
    for node in part.all("cm", "reply", "text", "t"):
        if node.tag in {"cm", "reply"}:
            texts.append("")
        elif texts:
            texts[-1] += node.text()
    return texts


@dataclass(slots=True)
class _Open:
    """An open shape or group.

    ``move`` and ``scale`` lead from the places within a group to those of the slide.
    """

    shape: Shape
    is_group: bool = False
    is_hidden: bool = False
    move: tuple[float, float] = (0, 0)
    scale: tuple[float, float] = (1, 1)
    # What the element of its place says (section 20.1.7.6), in the units around it.
    values: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    # The number and the kind of a placeholder.
    place: tuple[str, str] = ("", "")


class _Reader(TextReader):
    """Writes the paragraphs of a slide, its notes or a diagram into ``prose``.

    What stands in shapes waits for ``write_shapes``. The titles of a slide go to ``slides``.
    ``label`` stands before each paragraph; ``places`` returns those of the placeholders of its
    layout, which is read only if the order of texts depends on it.
    """

    skipped, unread = _SKIPPED, _UNREAD

    def __init__(
        self,
        prose: Prose,
        relations: Mapping[str, Relation],
        beside: Beside,
        slides: Slides | None = None,
        label: str = "",
        places: Callable[[], _Places] = dict,
    ) -> None:
        super().__init__()
        self.pictures = self.hidden = 0
        self.descriptions: list[str] = []
        self.shown: list[str] = []
        self._beside = beside
        self._prose = prose
        self._slides = slides
        self._relations = relations
        self._label = label
        self._places = places
        self._shapes: list[Shape] = []
        self._open_shapes: list[_Open] = []
        self._unplaced: list[tuple[Shape, tuple[str, str]]] = []  # with the keys of their places
        self._placeholder = ""
        self._start_paragraph()
        self._counts: dict[int, int] = {}  # of numbered paragraphs, by level
        self._tables = OpenTables(_Tables(self), "tbl", "tr", "tc")
        self._description: str | None = None  # of the open picture

    def _start_paragraph(self) -> None:
        self._runs, self._level, self._link = Runs(), 0, ""
        self._font = self._sign_font = ""
        self._bullet = self._bullet_font = self._numbered = ""
        self._first_number = 1
        self._is_number = False
        self._is_furniture: bool | None = None  # whether all of its text is a slide's number

    def open(self, name: str, get: Callable[[str], str]) -> None:
        if name in _WITHIN:  # half of all; names are compared one after the other below
            self._open_within(name, get)
            return
        match name:
            case "p":
                self._start_paragraph()
            case "sp" | "pic" | "graphicFrame" | "cxnSp" | "grpSp":
                self._open_shape(name)
            case "cNvPr":
                self._describe(get)
            case "off" | "ext" | "chOff" | "chExt" if self._open_shapes:
                keys = ("x", "y") if "ff" in name else ("cx", "cy")
                if get(keys[0]):
                    value = signed(get(keys[0])), signed(get(keys[1]))
                    self._open_shapes[-1].values.setdefault(name, value)
            case "ph":
                self._take_placeholder(get)
            case "sld" if self._slides and get("show") in {"0", "false"}:
                self._slides.hide()
            case "blip" if self._description is not None:
                relation = self._relations.get(get("embed") or get("link"))
                if relation and not self._is_hidden():
                    self.shown.append(self._beside.picture(relation.target, self._description))
                    self._description = None
            case "oleObj":
                relation = self._relations.get(get("id"))
                self._runs = Runs()
                self._runs.mark(embedded(get("progId"), relation.target if relation else ""))
                self._write()
            case "tbl" | "tr" | "tc":
                self._tables.start(name)
                self._tables.cell.height = number(get("rowSpan"), 1)
                self._tables.cell.is_covered = get("vMerge") in {"1", "true"}
            case _:
                pass

    def _open_within(self, name: str, get: Callable[[str], str]) -> None:
        """Take the start of an element within a paragraph."""
        match name:
            case "rPr":
                raised = get("baseline")
                script = "_" if raised.startswith("-") else "^" if raised.strip("0%") else ""
                struck = get("strike") in {"sngStrike", "dblStrike"}
                self._runs.look = Look(script, struck) if script or struck else PLAIN
                self._font = self._sign_font = ""
            case "latin":
                self._font = get("typeface") if is_symbol_font(get("typeface")) else ""
            case "sym":
                self._sign_font = get("typeface")
            case "fld":
                self._is_number = get("type") == "slidenum"
            case "pPr":
                self._level = number(get("lvl"))
            case "buFont":
                self._bullet_font = get("typeface")
            case "buChar":
                self._bullet = get("char")
            case "buAutoNum":
                self._numbered, self._first_number = get("type"), number(get("startAt"), 1)
            case "br":
                self._runs.mark("\n")
            case "hlinkClick":
                relation = self._relations.get(get("id"))
                self._link = relation.target if relation and relation.external else ""
            case _:
                pass

    def close(self, name: str) -> None:
        match name:
            case "sp" | "pic" | "graphicFrame" | "cxnSp" | "grpSp" if self._open_shapes:
                if name == "pic" and self._description is not None and not self._is_hidden():
                    self.pictures += 1
                    self.descriptions += filter(None, [self._description])
                self._description = None
                self._close_shape()
            case "grpSpPr" if self._open_shapes:
                self._place_group(self._open_shapes[-1])
            case "r":
                self._runs.look = PLAIN
                self._font = self._sign_font = ""
                if self._link:
                    self._runs.link(self._link)
                    self._link = ""
            case "fld":
                self._is_number = False
            case "p":
                self._write()
            case "tc" | "tbl":
                self._tables.end(name)
            case _:
                pass

    def add(self, data: str) -> None:
        if self._is_hidden():
            self.hidden += 1
            return
        if self._font:
            data = seen(data, self._font)
        elif self._sign_font:
            data = seen_lone(data, self._sign_font)
        else:
            data = without_private(data)
        self._is_furniture = self._is_number and self._is_furniture is not False
        self._runs.add(data)

    def formula(self, latex: str) -> None:
        self._is_furniture = False
        if not self._is_hidden():
            self._runs.mark(latex)

    def write_shapes(self) -> None:
        """Write all shapes in the order in which they are read."""
        write_all(self._shapes, self._locate)
        self._unplaced.clear()
        self._shapes.clear()

    def _locate(self) -> None:
        """Give the placeholders the places of their layout, which is read only for them."""
        places = self._places() if self._unplaced else {}
        for shape, keys in self._unplaced:
            shape.box = next((places[key] for key in keys if key in places), None)

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Take a table that ended."""
        text = " ".join(rows[0]) if rows else ""
        self._put(text, self._open_slide, partial(self._prose.table, rows))

    def _is_hidden(self) -> bool:
        return any(shape.is_hidden for shape in self._open_shapes)

    def _open_shape(self, name: str) -> None:
        self._placeholder = ""
        self._counts.clear()
        self._description = "" if name == "pic" else None
        around = self._open_shapes[-1] if self._open_shapes else None
        if around and (not around.is_group or len(self._open_shapes) > _MAX_GROUPS):
            shape = around.shape  # what is nested too deeply reads as one
        else:
            shape = Shape()
            (around.shape.inner if around else self._shapes).append(shape)
        opened = _Open(shape, is_group=name == "grpSp")
        if around:
            opened.move, opened.scale = around.move, around.scale
        self._open_shapes.append(opened)

    def _describe(self, get: Callable[[str], str]) -> None:
        if self._open_shapes and get("hidden") in {"1", "true"}:
            self._open_shapes[-1].is_hidden = True
        if self._description is not None:
            self._description = get("descr").strip()

    def _take_placeholder(self, get: Callable[[str], str]) -> None:
        self._placeholder = get("type") or "body"
        if self._open_shapes:
            kind = get("type") or "obj"
            opened = self._open_shapes[-1]
            opened.place = get("idx"), _SAME.get(kind, kind)
            opened.shape.is_title = kind in _TITLES

    def _place_group(self, group: _Open) -> None:
        """Take the scale of a group (section 20.1.7.5): its inner units and where they lie."""
        values = group.values
        if "chOff" in values and "off" in values and group.is_group:
            sizes = zip(values.get("ext", (0, 0)), values.get("chExt", (0, 0)), strict=True)
            inner = [outer / own if outer and own else 1.0 for outer, own in sizes]
            moved = [
                off - child * size
                for off, child, size in zip(values["off"], values["chOff"], inner, strict=True)
            ]
            (x, y), (across, down) = group.move, group.scale
            group.move = x + moved[0] * across, y + moved[1] * down
            group.scale = across * inner[0], down * inner[1]

    def _close_shape(self) -> None:
        closed = self._open_shapes.pop()
        self._placeholder = ""
        if not closed.is_group and {"off", "ext"} <= closed.values.keys():
            (x, y), (across, down) = closed.move, closed.scale
            (left, top), (width, height) = closed.values["off"], closed.values["ext"]
            closed.shape.box = Box(
                x + left * across,
                y + top * down,
                x + (left + width) * across,
                y + (top + height) * down,
            )
        elif any(closed.place):
            self._unplaced.append((closed.shape, closed.place))

    def _open_slide(self, title: str = "") -> None:
        if self._slides:
            self._slides.open(title)

    def _put(self, text: str, *writes: Callable[[], None]) -> None:
        """Let the open shape write something, or write it at once where there is none."""
        if not self._open_shapes:
            shape = Shape()
            self._shapes.append(shape)
        else:
            shape = self._open_shapes[-1].shape
        shape.text = f"{shape.text} {text}"[:_MAX_KEPT].strip()
        shape.writes += writes

    def _write(self) -> None:
        text = self._runs.text()
        self._runs = Runs()
        if self._placeholder in _FURNITURE or self._is_furniture:
            self._beside.leave_out("footers", text)
            return
        if not text:
            return
        if self._tables:
            self._tables.add(text)
            return
        is_title = self._placeholder in _TITLES
        mark = self._mark()
        if self._label:
            write = partial(self._prose.paragraph, self._label + text)
        elif is_title and self._slides:
            self._put(text, partial(self._open_slide, text))
            return
        elif self._placeholder in _BODIES or mark:
            write = partial(self._prose.item, text, self._level, mark or "-")
        else:
            write = partial(self._prose.paragraph, text)
        self._put(text, self._open_slide, write)

    def _mark(self) -> str:
        """Return the mark of a paragraph that has one of its own, "" for none."""
        level = self._level
        if self._numbered:
            self._counts = {at: count for at, count in self._counts.items() if at <= level}
            self._counts[level] = self._counts.get(level, self._first_number - 1) + 1
            return _numbered(self._counts[level], self._numbered)
        self._counts = {at: count for at, count in self._counts.items() if at < level}
        sign = telling_bullet(self._bullet, self._bullet_font)
        return f"- {sign}" if sign else "-" if self._bullet else ""


# The numbers that begin the names of schemes, and what ends those stands around them.
_NUMBERS = {"alphaLc": "a", "alphaUc": "A", "romanLc": "i", "romanUc": "I"}
_AROUND = {"ParenBoth": ("(", ")"), "ParenR": ("", ")")}


def _numbered(number: int, scheme: str) -> str:
    """Return the mark of a numbered paragraph (section 20.1.10.61)."""
    kind = next((sign for name, sign in _NUMBERS.items() if scheme.startswith(name)), "1")
    ends = (around for end, around in _AROUND.items() if scheme.endswith(end))
    before, behind = next(ends, ("", "."))
    return f"{before}{numeral(number, kind)}{behind}"


class _Tables(Prose):
    """Takes the tables of a slide for its reader."""

    def __init__(self, reader: _Reader) -> None:
        super().__init__()
        self._reader = reader

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        self._reader.table(rows)

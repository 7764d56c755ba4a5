"""Office Open XML: packages, charts, diagrams, and formulas as LaTeX (ECMA-376)."""

import posixpath
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fetchstash.handlers._contract import Extracted
from fetchstash.handlers._office import OfficeReason
from fetchstash.handlers._office._common import Events, Members, learn_metadata
from fetchstash.handlers._shared import _tex
from fetchstash.handlers._shared._prose import Prose
from fetchstash.handlers._shared._xml import FirstTexts, attribute
from fetchstash.handlers._shared._zip import Zip

FORMULA = "oMath"
"""The element of one formula."""

# Of all parts together; a presentation of 1,000 slides has some 5,000. Later ones are left out.
_MAX_RELATIONS = 100_000
_MAX_SERIES = 100
_MAX_POINTS = 10_000
# The elements of a chart's series, and whether they hold names or values.
_VALUES = {"cat": "names", "xVal": "names", "val": "values", "yVal": "values"}
_MAX_NODES = 5_000
_MAX_DEPTH = 40
_ESCAPED = str.maketrans({
    "\\": "\\backslash ", "{": "\\{", "}": "\\}", "#": "\\#", "$": "\\$", "%": "\\%", "_": "\\_",
    "^": "\\^{}", "~": "\\sim ", "\u2212": "-", "\u2061": "", "\u2062": "", "\u2063": "",
    "\u2064": "",
})  # fmt: skip
_FENCES = {"{": "\\{", "}": "\\}", "": "."}
_ACCENTS = {
    "\u0300": "grave", "\u0301": "acute", "\u0302": "hat", "\u0303": "tilde", "\u0304": "bar",
    "\u0305": "overline", "\u0306": "breve", "\u0307": "dot", "\u0308": "ddot",
    "\u030c": "check", "\u20d7": "vec",
}  # fmt: skip
_BRACES = {"\u23df": "underbrace", "\u23de": "overbrace"}
_ON = {"", "1", "on", "true"}
_ROW_END = " \\\\ "


@dataclass(frozen=True, slots=True)
class Relation:
    """A relationship: to a part (by its full name) or to an external address.

    ``kind`` is the last word of its type.
    """

    kind: str
    target: str
    external: bool


class Package(Members):
    """The parts of an open package (ECMA-376, part 2)."""

    def __init__(self, container: Zip) -> None:
        super().__init__(container)
        self._relations_left = _MAX_RELATIONS
        self._seen: set[str] = set()

    def is_new(self, name: str) -> bool:
        """Return whether this is the first call for ``name``: thousands may refer to one part."""
        if name in self._seen:
            return False
        self._seen.add(name)
        return True

    def relations(self, part: str = "") -> dict[str, Relation]:
        """Return the relationships of a part or of the package, by id (ECMA-376-2, section 6.5)."""
        folder, base = posixpath.split(part)
        reader = _Relations(folder, self._relations_left)
        if self._relations_left:
            self.read_small(posixpath.join(folder, "_rels", f"{base}.rels"), reader)
        self._relations_left = reader.left
        return reader.relations

    def main_part(self, usual: str) -> str:
        """Return the name of the part with the document, which in nearly all files is ``usual``."""
        if usual in self:
            return usual
        for relation in self.relations().values():
            if relation.kind == "officeDocument" and relation.target in self:
                return relation.target
        raise OfficeReason.NO_DOCUMENT.error()

    def describe(self, extracted: Extracted) -> None:
        """Add title, author, date and language to ``extracted`` (ECMA-376-2, section 8)."""
        properties = FirstTexts()
        self.read_small("docProps/core.xml", properties)
        learn_metadata(properties, extracted)


class _Relations(Events):
    """Collects relationships, at most ``left`` of them."""

    def __init__(self, folder: str, left: int) -> None:
        self.left = left
        self.relations: dict[str, Relation] = {}
        self._folder = folder

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name != "Relationship" or not self.left:
            return
        self.left -= 1
        target = attribute(attributes, "Target")
        external = attribute(attributes, "TargetMode") == "External"
        if not external:
            target = posixpath.normpath(posixpath.join("/", self._folder, target)).lstrip("/")
        kind = attribute(attributes, "Type").rpartition("/")[2]
        self.relations[attribute(attributes, "Id")] = Relation(kind, target, external)


@dataclass(slots=True)
class _Series:
    title: str = ""
    points: Mapping[str, dict[int, str]] = field(
        default_factory=lambda: {"names": dict[int, str](), "values": dict[int, str]()}
    )


class Chart(Events):
    """Reads a chart (ECMA-376-1, section 21.2): its kind, its title and the kept values."""

    def __init__(self) -> None:
        self._title = ""
        self._kind = ""
        self._series: list[_Series] = []
        self._open: list[str] = []
        self._point = 0
        self._points = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        self._open.append(name)
        if name.endswith("Chart") and self._open[-2:-1] == ["plotArea"] and not self._kind:
            self._kind = name.removesuffix("Chart").removesuffix("3D")
        elif name == "ser" and len(self._series) < _MAX_SERIES:
            self._series.append(_Series())
        elif name == "pt":
            index = attribute(attributes, "idx")
            self._point = int(index) if index.isdecimal() and len(index) < 7 else 0

    def end(self, name: str) -> None:  # noqa: ARG002 - expat checks that it is the open one
        """Take an end tag."""
        self._open.pop()

    def text(self, data: str) -> None:
        """Take character data."""
        inside, here = self._open, self._open[-1] if self._open else ""
        if here == "t" and "title" in inside and "plotArea" not in inside:
            self._title += data
        elif here == "v" and "ser" in inside and self._series:
            series = self._series[-1]
            if "tx" in inside:
                series.title += data
                return
            column = next((_VALUES[name] for name in inside if name in _VALUES), "")
            self._points += bool(column)
            if column and self._points <= _MAX_POINTS:
                points = series.points[column]
                points[self._point] = points.get(self._point, "") + data

    def write(self, prose: Prose) -> None:
        """Write title and data into ``prose``, a row for each category."""
        caption = f"Chart ({self._kind})" if self._kind else "Chart"
        series = [one for one in self._series if one.points["values"]]
        if series or self._title:
            prose.paragraph(f"{caption}: {self._title}" if self._title.strip() else caption)
        names: dict[int, str] = {}
        for one in reversed(series):
            names |= one.points["names"]
        columns = [one.points["values"] for one in series]
        header = ["", *(one.title or f"series {n}" for n, one in enumerate(series, start=1))]
        rows = [
            [names.get(place, str(place + 1)), *(column.get(place, "") for column in columns)]
            for place in sorted({*names}.union(*columns))
        ]
        if series:
            prose.table([header, *rows])


class Diagram:
    """Reads the data model of a SmartArt diagram (ECMA-376-1, section 21.4.3): its texts."""

    def __init__(self, label: str = "") -> None:
        self._label = " ".join(label.split())
        self._texts: dict[str, list[str]] = {}  # paragraphs by point
        self._children: dict[str, list[tuple[int, str]]] = {}
        self._root = self._point = ""
        self._in_text = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        if name == "pt":
            self._point = attribute(attributes, "modelId")
            if attribute(attributes, "type") == "doc":
                self._root = self._point
        elif name == "p" and len(self._texts) < _MAX_POINTS:
            self._texts.setdefault(self._point, []).append("")
        elif name == "cxn" and attribute(attributes, "type") in {"", "parOf"}:
            place = attribute(attributes, "srcOrd")
            child = int(place) if place.isdecimal() else 0, attribute(attributes, "destId")
            self._children.setdefault(attribute(attributes, "srcId"), []).append(child)
        self._in_text = name == "t"

    def end(self, name: str) -> None:  # noqa: ARG002 - texts do not nest
        """Take an end tag."""
        self._in_text = False

    def text(self, data: str) -> None:
        """Take character data."""
        if self._in_text and self._texts.get(self._point):
            self._texts[self._point][-1] += data

    def write(self, prose: Prose) -> None:
        """Write that it is SmartArt, and its texts as a list, those below others further in."""
        prose.paragraph(f"SmartArt: {self._label}" if self._label else "SmartArt")
        waiting = [(self._root, -1)]
        while waiting:
            point, level = waiting.pop()
            self._write_point(point, level, prose)
            children = sorted(self._children.pop(point, ()), reverse=True)
            waiting += [(child, level + 1) for _, child in children]
        for point in list(self._texts):  # what no connection reaches
            self._write_point(point, 0, prose)

    def _write_point(self, point: str, level: int, prose: Prose) -> None:
        prose.item(" ".join(self._texts.pop(point, ())), max(level, 0))


@dataclass(slots=True)
class _Node:
    name: str
    value: str = ""
    text: list[str] = field(default_factory=list[str])
    children: list["_Node"] = field(default_factory=list["_Node"])


class Formula:
    """Takes the events within one formula of Office Math (ECMA-376-1, section 22.1)."""

    def __init__(self) -> None:
        self._open = [_Node(FORMULA)]
        self._nodes = 0
        self._skipped = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        self._nodes += 1
        if self._skipped or self._nodes > _MAX_NODES or len(self._open) > _MAX_DEPTH:
            self._skipped += 1
            return
        node = _Node(name, attribute(attributes, "val"))
        self._open[-1].children.append(node)
        self._open.append(node)

    def end(self) -> bool:
        """Take an end tag. Return whether it is that of the formula itself."""
        if self._skipped:
            self._skipped -= 1
        elif len(self._open) > 1:
            self._open.pop()
        else:
            return True
        return False

    def add(self, data: str) -> None:
        """Take character data."""
        self._open[-1].text.append(data)

    def latex(self) -> str:
        """Return the formula between dollar signs, "" if it is empty."""
        tex = " ".join(_all(self._open[0].children).split())
        return f"${tex}$" if tex else ""


def _all(nodes: list[_Node]) -> str:
    return "".join(map(_latex, nodes))


def _parts(node: _Node, name: str) -> Iterator[str]:
    """Yield the content of each child of this name."""
    return (_all(child.children) for child in node.children if child.name == name)


def _property(node: _Node, name: str, default: str = "") -> str:
    """Return a property of an element; ``default`` where it is not set."""
    for properties in node.children:
        if properties.name == f"{node.name}Pr":
            for child in properties.children:
                if child.name == name:
                    return child.value
    return default


def _latex(node: _Node) -> str:
    """Return an element as LaTeX (section 22.1.2). Each part is written once: they nest."""

    def part(name: str) -> str:
        return next(_parts(node, name), "")

    match node.name:
        case "r":
            return _run(node)
        case "f":
            top, bottom = part("num"), part("den")
            match _property(node, "type"):
                case "noBar":
                    return f"{{{top} \\atop {bottom}}}"
                case "lin" | "skw":
                    return f"{_tex.whole(top)}/{_tex.whole(bottom)}"
                case _:
                    return _tex.fraction(top, bottom)
        case "sSup":
            return _tex.superscript(part("e"), part("sup"))
        case "sSub":
            return _tex.subscript(part("e"), part("sub"))
        case "sSubSup":
            return _tex.both_scripts(part("e"), part("sub"), part("sup"))
        case "sPre":
            return f"{{}}_{_tex.group(part('sub'))}^{_tex.group(part('sup'))}{part('e')}"
        case "rad":
            base, degree = part("e"), part("deg")
            hidden = _property(node, "degHide", "0") in _ON
            return _tex.root(base, degree) if degree and not hidden else f"\\sqrt{{{base}}}"
        case "nary":
            sign, down, up = _property(node, "chr", "\u222b"), part("sub"), part("sup")
            sign += f"_{_tex.group(down)}" if down else ""
            sign += f"^{_tex.group(up)}" if up else ""
            return f"{sign} {part('e')}"
        case "d":
            begin, end = _property(node, "begChr", "("), _property(node, "endChr", ")")
            inner = _property(node, "sepChr", "|").join(_parts(node, "e"))
            return f"{_fence('left', begin)}{inner}{_fence('right', end)}"
        case "func":
            return f"{_named(part('fName'))} {part('e')}"
        case "limLow":
            return _tex.under(_named(part("e")), part("lim"))
        case "limUpp":
            return _tex.over(_named(part("e")), part("lim"))
        case "acc":
            sign, base = _property(node, "chr", "\u0302"), part("e")
            return f"\\{_ACCENTS[sign]}{{{base}}}" if sign in _ACCENTS else _tex.over(base, sign)
        case "groupChr":
            sign, base = _property(node, "chr", "\u23df"), part("e")
            return f"\\{_BRACES[sign]}{{{base}}}" if sign in _BRACES else _tex.under(base, sign)
        case "bar":
            line = "overline" if _property(node, "pos") == "top" else "underline"
            return f"\\{line}{{{part('e')}}}"
        case "m":
            lines = (" & ".join(_parts(row, "e")) for row in node.children if row.name == "mr")
            return f"\\begin{{matrix}} {_ROW_END.join(lines)} \\end{{matrix}}"
        case "eqArr":
            rows = _ROW_END.join(_parts(node, "e"))
            return f"\\begin{{aligned}} {rows} \\end{{aligned}}"
        case "phant":
            return part("e") if _property(node, "show", "1") in _ON else ""
        case name:
            return "" if name.endswith("Pr") else _all(node.children)


def _run(node: _Node) -> str:
    raw = "".join(data for child in node.children if child.name == "t" for data in child.text)
    text = "".join(
        unicodedata.normalize("NFKC", char) if "\U0001d400" <= char <= "\U0001d7ff" else char
        for char in raw
    )
    properties = [p for p in node.children if p.name == "rPr"]
    is_text = any(child.name == "nor" for p in properties for child in p.children)
    return _tex.prose(text) if is_text and text.strip() else text.translate(_ESCAPED)


def _fence(side: str, sign: str) -> str:
    return sign if sign in {"(", ")", "[", "]", "|"} else f"\\{side}{_FENCES.get(sign, sign)} "


def _named(name: str) -> str:
    return _tex.identifier(name) if name.isalpha() else name

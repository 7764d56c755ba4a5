"""Office Open XML: packages, charts, diagrams, and formulas as LaTeX (ECMA-376)."""

import posixpath
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice

from fetchstash.handlers._contract import Extracted
from fetchstash.handlers._office import OfficeReason
from fetchstash.handlers._office._common import Members, Node, Tree, learn_metadata, number
from fetchstash.handlers._shared import _tex
from fetchstash.handlers._shared._prose import Prose
from fetchstash.handlers._shared._xml import XmlReader, attribute
from fetchstash.handlers._shared._zip import Zip

_TEXTS = {"t", "delText"}
# Of all parts together; a presentation of 1,000 slides has some 5,000. Later ones are left out.
_MAX_RELATIONS = 100_000
_MAX_SERIES = 100
_MAX_POINTS = 10_000
_MAX_FORMULA = 5_000
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
        relations: dict[str, Relation] = {}
        part = posixpath.join(folder, "_rels", f"{base}.rels")
        for name, get in self.tags(part) if self._relations_left else ():
            if name == "Relationship" and self._relations_left:
                self._relations_left -= 1
                target, is_external = get("Target"), get("TargetMode") == "External"
                if not is_external:
                    target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
                kind = get("Type").rpartition("/")[2]
                relations[get("Id")] = Relation(kind, target, is_external)
        return relations

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
        learn_metadata(self.tree("docProps/core.xml"), extracted, "created")


def write_chart(drawing: Node, prose: Prose) -> None:
    """Write a chart (ECMA-376-1, section 21.2): kind, title, and a row for each category."""
    plots = list(drawing.all("plotArea"))
    kinds = [node.tag for plot in plots for node in plot.iter() if node.tag.endswith("Chart")]
    caption = f"Chart ({kinds[0].removesuffix('Chart').removesuffix('3D')})" if kinds else "Chart"
    titles = (node for chart in drawing.all("chart") for node in chart.iter())
    title = "".join(_texts(node, "t") for node in titles if node.tag == "title")
    names: dict[int, str] = {}
    header, columns = [""], list[dict[int, str]]()
    left = _MAX_POINTS
    for series in islice(drawing.all("ser"), _MAX_SERIES):
        values: dict[int, str] = {}
        own: dict[int, str] = {}
        for column in series.all("cat", "xVal", "val", "yVal"):
            points = own if column.tag in {"cat", "xVal"} else values
            for point in islice(column.all("pt"), left):
                left -= 1
                place = number(point.get("idx"))
                points[place] = points.get(place, "") + _texts(point, "v")
        if values:
            names = own | names
            columns.append(values)
            header.append(_texts(series, "tx", "v") or f"series {len(columns)}")
    if columns or title:
        prose.paragraph(f"{caption}: {title}" if title.strip() else caption)
    rows = [
        [names.get(place, str(place + 1)), *(column.get(place, "") for column in columns)]
        for place in sorted({*names}.union(*columns))
    ]
    if columns:
        prose.table([header, *rows])


def _texts(node: Node, name: str, *inner: str) -> str:
    """Return the text of the elements of a name, or of those in them."""
    return "".join(_texts(n, *inner) if inner else n.text() for n in node.all(name))


def write_diagram(model: Node, label: str, prose: Prose) -> None:
    """Write a SmartArt diagram (ECMA-376-1, section 21.4.3): its texts as a list of levels."""
    label = " ".join(label.split())
    prose.paragraph(f"SmartArt: {label}" if label else "SmartArt")
    texts: dict[str, str] = {}
    top = ""
    for node in islice(model.all("pt"), _MAX_POINTS):
        texts[node.get("modelId")] = " ".join(_texts(text, "t") for text in node.all("p"))
        top = node.get("modelId") if node.get("type") == "doc" else top
    children: dict[str, list[tuple[int, str]]] = {}
    for link in model.all("cxn"):
        if link.get("type") in {"", "parOf"}:
            child = number(link.get("srcOrd")), link.get("destId")
            children.setdefault(link.get("srcId"), []).append(child)
    waiting = [(top, -1)]
    while waiting:
        point, level = waiting.pop()
        prose.item(texts.pop(point, ""), max(level, 0))
        below = sorted(children.pop(point, ()), reverse=True)
        waiting += [(child, level + 1) for _, child in below]
    for text in texts.values():  # what no connection reaches
        prose.item(text)


class TextReader(XmlReader):
    """Base of the readers of texts: a subclass takes their elements, and the text itself.

    Formulas become LaTeX; ``skipped`` are elements that hold no text of the document.
    """

    skipped: frozenset[str]

    def __init__(self) -> None:
        self._skipping = 0
        self._in_text = False
        self._formula: Tree | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        if self._formula:
            self._formula.start(name, attributes)
        elif self._skipping or name in self.skipped:
            self._skipping += 1
        elif name in _TEXTS:
            self._in_text = True
        elif name == "oMath":
            self._formula = Tree(_MAX_FORMULA)
            self._formula.start(name, attributes)
        else:
            self.open(name, partial(attribute, attributes))

    def end(self, name: str) -> None:
        """Take an end tag."""
        if self._formula:
            self._formula.end(name)
            if not self._formula:
                self.formula(_latex_of(self._formula.root))
        elif self._skipping:
            self._skipping -= 1
        elif name in _TEXTS:
            self._in_text = False
        else:
            self.close(name)

    def text(self, data: str) -> None:
        """Take character data."""
        if self._formula:
            self._formula.text(data)
        elif self._in_text and not self._skipping:
            self.add(data)

    @abstractmethod
    def open(self, name: str, get: Callable[[str], str]) -> None:
        """Take the start of an element whose attributes ``get`` returns."""

    @abstractmethod
    def close(self, name: str) -> None:
        """Take the end of an element."""

    @abstractmethod
    def add(self, data: str) -> None:
        """Take text of the document."""

    @abstractmethod
    def formula(self, latex: str) -> None:
        """Take a formula between dollar signs, "" for an empty one."""


def _latex_of(formula: Node) -> str:
    tex = " ".join(_inside(formula.iter()[0]).split())
    return f"${tex}$" if tex else ""


def _inside(node: Node) -> str:
    return "".join(map(_latex, node.iter()))


def _latex(node: Node) -> str:
    """Return an element as LaTeX (section 22.1.2). Each part is written once: they nest."""

    def parts(name: str) -> Iterator[str]:
        return (_inside(child) for child in node.iter() if child.tag == name)

    def part(name: str) -> str:
        return next(parts(name), "")

    def setting(name: str, default: str = "") -> str:
        own = (inner for n in node.iter() if n.tag == f"{node.tag}Pr" for inner in n.iter())
        return next((inner.get("val") for inner in own if inner.tag == name), default)

    match node.tag:
        case "r":
            return _run(node)
        case "f":
            top, bottom = part("num"), part("den")
            match setting("type"):
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
            hidden = setting("degHide", "0") in _ON
            return _tex.root(base, degree) if degree and not hidden else f"\\sqrt{{{base}}}"
        case "nary":
            sign, down, up = setting("chr", "\u222b"), part("sub"), part("sup")
            sign += f"_{_tex.group(down)}" if down else ""
            sign += f"^{_tex.group(up)}" if up else ""
            return f"{sign} {part('e')}"
        case "d":
            begin, end = setting("begChr", "("), setting("endChr", ")")
            inner = setting("sepChr", "|").join(parts("e"))
            return f"{_fence('left', begin)}{inner}{_fence('right', end)}"
        case "func":
            return f"{_named(part('fName'))} {part('e')}"
        case "limLow":
            return _tex.under(_named(part("e")), part("lim"))
        case "limUpp":
            return _tex.over(_named(part("e")), part("lim"))
        case "acc":
            sign, base = setting("chr", "\u0302"), part("e")
            return f"\\{_ACCENTS[sign]}{{{base}}}" if sign in _ACCENTS else _tex.over(base, sign)
        case "groupChr":
            sign, base = setting("chr", "\u23df"), part("e")
            return f"\\{_BRACES[sign]}{{{base}}}" if sign in _BRACES else _tex.under(base, sign)
        case "bar":
            line = "overline" if setting("pos") == "top" else "underline"
            return f"\\{line}{{{part('e')}}}"
        case "m":
            lines = (
                " & ".join(_inside(cell) for cell in row.iter() if cell.tag == "e")
                for row in node.iter()
                if row.tag == "mr"
            )
            return f"\\begin{{matrix}} {_ROW_END.join(lines)} \\end{{matrix}}"
        case "eqArr":
            rows = _ROW_END.join(parts("e"))
            return f"\\begin{{aligned}} {rows} \\end{{aligned}}"
        case "phant":
            return part("e") if setting("show", "1") in _ON else ""
        case name:
            return "" if name.endswith("Pr") else _inside(node)


def _run(node: Node) -> str:
    raw = "".join(child.text() for child in node.iter() if child.tag == "t")
    text = "".join(
        unicodedata.normalize("NFKC", char) if "\U0001d400" <= char <= "\U0001d7ff" else char
        for char in raw
    )
    properties = (inner for child in node.iter() if child.tag == "rPr" for inner in child.iter())
    is_text = any(inner.tag == "nor" for inner in properties)
    return _tex.prose(text) if is_text and text.strip() else text.translate(_ESCAPED)


def _fence(side: str, sign: str) -> str:
    return sign if sign in {"(", ")", "[", "]", "|"} else f"\\{side}{_FENCES.get(sign, sign)} "


def _named(name: str) -> str:
    return _tex.identifier(name) if name.isalpha() else name

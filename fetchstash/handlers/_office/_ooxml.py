"""Office Open XML: packages, charts, diagrams and texts (ECMA-376)."""

import posixpath
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice

from fetchstash.handlers._contract import Extracted
from fetchstash.handlers._office import OfficeReason
from fetchstash.handlers._office._common import learn_metadata, number
from fetchstash.handlers._prose import Prose
from fetchstash.handlers._tex import latex_of
from fetchstash.handlers._xml import Node, Tree, XmlReader, attribute
from fetchstash.handlers._zip import Members, Zip

_TEXTS = {"t", "delText"}
# Of all parts together; a presentation of 1,000 slides has some 5,000. Later ones are left out.
_MAX_RELATIONS = 100_000
_MAX_SERIES = 100
_MAX_POINTS = 10_000
_MAX_FORMULA = 5_000


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


def embedded(program: str, part: str) -> str:
    """Return the name of an embedded object: ``[embedded: Excel.Sheet.12 (Sheet1.xlsx)]``."""
    name = " ".join(program.split())[:60]
    file = posixpath.basename(part)[:60]
    return f" [embedded: {name or 'object'}{f' ({file})' if file else ''}] " if name or file else ""


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
                self.formula(latex_of(self._formula.root))
        elif self._skipping:
            self._skipping -= 1
        elif name in _TEXTS:
            self._in_text = False
        else:
            self.close(name)

    def skip(self) -> None:
        """Skip the content of the element that has just started."""
        self._skipping = 1

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

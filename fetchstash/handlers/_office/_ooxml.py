"""Office Open XML: packages, charts, diagrams, and formulas as LaTeX (ECMA-376)."""

import posixpath
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from fetchstash.errors import NoText
from fetchstash.handlers._contract import Extracted
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._shared import _tex
from fetchstash.handlers._shared._prose import Prose
from fetchstash.handlers._shared._xml_events import FirstTexts, XmlReader, attribute, walk
from fetchstash.handlers._shared._zip import Entry, Zip

_MAX_PARTS = 20_000
# Of all parts together; a presentation of 1,000 slides has some 5,000. Later ones are left out.
_MAX_RELATIONS = 100_000
# A limit for relationships, styles and properties; the text is streamed.
_MAX_SMALL_PART = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Relation:
    """A relationship: to a part (by its full name) or to an external address.

    ``kind`` is the last word of its type.
    """

    kind: str
    target: str
    external: bool


class Package:
    """The parts of an open zip, by name. A missing part is empty."""

    def __init__(self, container: Zip) -> None:
        self._container = container
        self._entries: dict[str, Entry] = {
            entry.name: entry for entry in islice(container.entries(), _MAX_PARTS)
        }
        self._relations_left = _MAX_RELATIONS
        self._seen: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a part. Raises NoText if it cannot be unpacked."""
        entry = self._entries.get(name)
        return iter(()) if entry is None else self._container.chunks(entry)

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
        raise Reason.NO_DOCUMENT.error()

    def read_small(self, name: str, reader: XmlReader) -> None:
        """Read an optional part, up to the first damage if there is any."""
        entry = self._entries.get(name)
        if entry is None:
            return
        try:
            for _ in walk(self._container.chunks(entry, _MAX_SMALL_PART), reader):
                pass
        except NoText:
            return

    def describe(self, extracted: Extracted) -> None:
        """Add title, author, date and language to ``extracted`` (ECMA-376-2, section 8)."""
        properties = FirstTexts()
        self.read_small("docProps/core.xml", properties)
        extracted.learn(
            title=properties.texts.get("title", ""),
            author=properties.texts.get("creator", ""),
            published=properties.texts.get("created", "")[:10],
            language=properties.texts.get("language", ""),
        )


class _Relations:
    """Collects relationships, at most ``left`` of them."""

    def __init__(self, folder: str, left: int) -> None:
        self._folder = folder
        self.left = left
        self.relations: dict[str, Relation] = {}

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

    def end(self, name: str) -> None:
        pass

    def text(self, data: str) -> None:
        pass


_MAX_SERIES = 100
_MAX_POINTS = 10_000
_VALUES = {"cat": "names", "xVal": "names", "val": "values", "yVal": "values"}


@dataclass(slots=True)
class _Series:
    title: str = ""
    names: dict[int, str] = field(default_factory=dict[int, str])
    values: dict[int, str] = field(default_factory=dict[int, str])


class Chart:
    """Reads a chart (ECMA-376-1, section 21.2): its kind, its title and the kept values."""

    def __init__(self) -> None:
        self.title = ""
        self.kind = ""
        self._series: list[_Series] = []
        self._open: list[str] = []
        self._point = 0
        self._points = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        self._open.append(name)
        if name.endswith("Chart") and self._open[-2:-1] == ["plotArea"] and not self.kind:
            self.kind = name.removesuffix("Chart").removesuffix("3D")
        elif name == "ser" and len(self._series) < _MAX_SERIES:
            self._series.append(_Series())
        elif name == "pt":
            index = attribute(attributes, "idx")
            self._point = int(index) if index.isdecimal() and len(index) < 7 else 0

    def end(self, name: str) -> None:
        """Take an end tag."""
        del name
        self._open.pop()

    def text(self, data: str) -> None:
        """Take character data."""
        inside, here = self._open, self._open[-1] if self._open else ""
        if here == "t" and "title" in inside and "plotArea" not in inside:
            self.title += data
        elif here == "v" and "ser" in inside and self._series:
            series = self._series[-1]
            if "tx" in inside:
                series.title += data
                return
            points = next((_VALUES[name] for name in inside if name in _VALUES), "")
            self._points += bool(points)
            if points and self._points <= _MAX_POINTS:
                column: dict[int, str] = getattr(series, points)
                column[self._point] = column.get(self._point, "") + data

    def write(self, prose: Prose) -> None:
        """Write title and data into ``prose``, a row for each category."""
        caption = f"Chart ({self.kind})" if self.kind else "Chart"
        series = [one for one in self._series if one.values]
        if not series and not self.title:
            return
        prose.paragraph(f"{caption}: {self.title}" if self.title.strip() else caption)
        if not series:
            return
        names = {place: name for one in reversed(series) for place, name in one.names.items()}
        places = sorted({place for one in series for place in (*one.names, *one.values)})
        header = ["", *(one.title or f"series {n}" for n, one in enumerate(series, start=1))]
        rows = [
            [names.get(place, str(place + 1)), *(one.values.get(place, "") for one in series)]
            for place in places
        ]
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

    def end(self, name: str) -> None:
        """Take an end tag."""
        del name
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


FORMULA = "oMath"
"""The element of one formula."""

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


@dataclass(slots=True)
class _Node:
    name: str
    value: str = ""
    text: list[str] = field(default_factory=list[str])
    children: list["_Node"] = field(default_factory=list["_Node"])


class Formula:
    """Takes the events within one formula."""

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
    return "".join(map(_write, nodes))


def _write(node: _Node) -> str:
    writer = _WRITERS.get(node.name)
    if writer:
        return writer(node)
    return "" if node.name.endswith("Pr") else _all(node.children)


def _part(node: _Node, name: str) -> str:
    """Return the content of the first child of this name."""
    return next((_all(child.children) for child in node.children if child.name == name), "")


def _property(node: _Node, name: str, default: str = "") -> str:
    """Return a property of an element; ``default`` where it is not set."""
    for properties in node.children:
        if properties.name == f"{node.name}Pr":
            for child in properties.children:
                if child.name == name:
                    return child.value
    return default


def _run(node: _Node) -> str:
    raw = "".join(data for child in node.children if child.name == "t" for data in child.text)
    text = "".join(
        unicodedata.normalize("NFKC", char) if "\U0001d400" <= char <= "\U0001d7ff" else char
        for char in raw
    )
    properties = [p for p in node.children if p.name == "rPr"]
    is_text = any(child.name == "nor" for p in properties for child in p.children)
    if is_text and text.strip():
        return _tex.prose(text)
    return text.translate(_ESCAPED)


def _fraction(node: _Node) -> str:
    top, bottom = _part(node, "num"), _part(node, "den")
    match _property(node, "type"):
        case "noBar":
            return f"{{{top} \\atop {bottom}}}"
        case "lin" | "skw":
            return f"{_tex.whole(top)}/{_tex.whole(bottom)}"
        case _:
            return _tex.fraction(top, bottom)


def _root(node: _Node) -> str:
    degree = _part(node, "deg")
    base = _part(node, "e")
    hidden = _property(node, "degHide", "0") in _ON
    return _tex.root(base, degree) if degree and not hidden else f"\\sqrt{{{base}}}"


def _large(node: _Node) -> str:
    sign = _property(node, "chr", "\u222b")
    down, up = _part(node, "sub"), _part(node, "sup")
    scripts = (f"_{_tex.group(down)}" if down else "") + (f"^{_tex.group(up)}" if up else "")
    return f"{sign}{scripts} {_part(node, 'e')}"


def _delimited(node: _Node) -> str:
    begin, end = _property(node, "begChr", "("), _property(node, "endChr", ")")
    separator = _property(node, "sepChr", "|")
    inner = separator.join(_all(child.children) for child in node.children if child.name == "e")
    return f"{_fence('left', begin)}{inner}{_fence('right', end)}"


def _fence(side: str, sign: str) -> str:
    return sign if sign in {"(", ")", "[", "]", "|"} else f"\\{side}{_FENCES.get(sign, sign)} "


def _function(node: _Node) -> str:
    return f"{_named(_part(node, 'fName'))} {_part(node, 'e')}"


def _named(name: str) -> str:
    return _tex.identifier(name) if name.isalpha() else name


def _accent(node: _Node) -> str:
    sign, base = _property(node, "chr", "\u0302"), _part(node, "e")
    return f"\\{_ACCENTS[sign]}{{{base}}}" if sign in _ACCENTS else _tex.over(base, sign)


def _brace(node: _Node) -> str:
    sign, base = _property(node, "chr", "\u23df"), _part(node, "e")
    return f"\\{_BRACES[sign]}{{{base}}}" if sign in _BRACES else _tex.under(base, sign)


def _bar(node: _Node) -> str:
    name = "overline" if _property(node, "pos") == "top" else "underline"
    return f"\\{name}{{{_part(node, 'e')}}}"


def _matrix(node: _Node) -> str:
    rows = " \\\\ ".join(
        " & ".join(_all(cell.children) for cell in row.children if cell.name == "e")
        for row in node.children
        if row.name == "mr"
    )
    return f"\\begin{{matrix}} {rows} \\end{{matrix}}"


def _equations(node: _Node) -> str:
    rows = " \\\\ ".join(_all(child.children) for child in node.children if child.name == "e")
    return f"\\begin{{aligned}} {rows} \\end{{aligned}}"


def _before(node: _Node) -> str:
    down, up = _tex.group(_part(node, "sub")), _tex.group(_part(node, "sup"))
    return f"{{}}_{down}^{up}{_part(node, 'e')}"


def _hidden(node: _Node) -> str:
    return _part(node, "e") if _property(node, "show", "1") in _ON else ""


_WRITERS: dict[str, Callable[[_Node], str]] = {
    "r": _run,
    "f": _fraction,
    "sSup": lambda node: _tex.superscript(_part(node, "e"), _part(node, "sup")),
    "sSub": lambda node: _tex.subscript(_part(node, "e"), _part(node, "sub")),
    "sSubSup": lambda node: _tex.both_scripts(
        _part(node, "e"), _part(node, "sub"), _part(node, "sup")
    ),
    "sPre": _before,
    "rad": _root,
    "nary": _large,
    "d": _delimited,
    "func": _function,
    "limLow": lambda node: _tex.under(_named(_part(node, "e")), _part(node, "lim")),
    "limUpp": lambda node: _tex.over(_named(_part(node, "e")), _part(node, "lim")),
    "acc": _accent,
    "groupChr": _brace,
    "bar": _bar,
    "m": _matrix,
    "eqArr": _equations,
    "phant": _hidden,
}

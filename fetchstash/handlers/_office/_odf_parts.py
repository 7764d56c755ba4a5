"""Parts of an OpenDocument file beside its text: objects, and headers and footers of pages."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fetchstash.handlers._html._formulas import MAX_DEPTH, MAX_NODES, latex
from fetchstash.handlers._shared._prose import Prose
from fetchstash.handlers._shared._xml_events import attribute

_MAX_ROWS, _MAX_COLUMNS = 5_000, 100
_MAX_MARGINS = 200


class OdfChart:
    """Reads the content of a chart (section 11): its class, its title and its table of data."""

    def __init__(self) -> None:
        self._kind = ""
        self._title = ""
        self._rows: list[list[str]] = []
        self._is_chart = self._in_title = self._in_cell = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        if name == "chart" and attribute(attributes, "class"):
            self._is_chart = True
            self._kind = attribute(attributes, "class").rpartition(":")[2]
        elif name == "title":
            self._in_title = True
        elif name == "table-row" and len(self._rows) < _MAX_ROWS:
            self._rows.append([])
        elif name == "table-cell" and self._rows and len(self._rows[-1]) < _MAX_COLUMNS:
            self._rows[-1].append("")
            self._in_cell = True

    def end(self, name: str) -> None:
        """Take an end tag."""
        if name == "title":
            self._in_title = False
        elif name == "table-cell":
            self._in_cell = False

    def text(self, data: str) -> None:
        """Take character data."""
        if self._in_title:
            self._title += data
        elif self._in_cell:
            self._rows[-1][-1] += data

    def write(self, prose: Prose) -> None:
        """Write title and data into ``prose``; nothing if the object is no chart."""
        if self._is_chart:
            caption = f"Chart ({self._kind})"
            title = self._title.strip()
            prose.paragraph(f"{caption}: {title}" if title else caption)
            prose.table(self._rows)


@dataclass(slots=True)
class _Math:
    """An element of MathML."""

    tag: str
    attributes: Mapping[str, str | None]
    pieces: list["_Math | str"] = field(default_factory=list["_Math | str"])

    def text(self, *, deep: bool = True) -> str:
        """Return all text in it."""
        del deep
        return "".join(p if isinstance(p, str) else p.text() for p in self.pieces)

    def iter(self) -> list["_Math"]:
        """Return the elements in it."""
        return [piece for piece in self.pieces if isinstance(piece, _Math)]


class OdfObject:
    """Reads the content of an embedded object: a formula in MathML, or else a chart."""

    def __init__(self) -> None:
        self.chart = OdfChart()
        self._root: _Math | None = None
        self._open: list[_Math] = []
        self._nodes = self._too_deep = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        if not self._open and (name != "math" or self._root):
            self.chart.start(name, attributes)
            return
        self._nodes += 1
        if self._too_deep or self._nodes > MAX_NODES or len(self._open) > MAX_DEPTH:
            self._too_deep += 1
            return
        node = _Math(name, dict(attributes))
        if self._open:
            self._open[-1].pieces.append(node)
        else:
            self._root = node
        self._open.append(node)

    def end(self, name: str) -> None:
        """Take an end tag."""
        if self._too_deep:
            self._too_deep -= 1
        elif self._open:
            self._open.pop()
        else:
            self.chart.end(name)

    def text(self, data: str) -> None:
        """Take character data."""
        if self._open:
            self._open[-1].pieces.append(data)
        else:
            self.chart.text(data)

    def latex(self) -> str:
        """Return the formula between dollar signs, "" if it is none."""
        return latex(self._root) if self._root else ""


class Margins:
    """Collects the headers and footers of master pages (section 16.10), each text once."""

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}
        self._label = ""
        self._text = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        del attributes
        kind = name.partition("-")[0]
        if kind in {"header", "footer"} and name.removeprefix(kind) in {"", "-left", "-first"}:
            self._label = kind.capitalize()
        elif name == "p":
            self._text = ""
        elif name in {"tab", "s", "line-break"}:
            self._text += " "

    def end(self, name: str) -> None:
        """Take an end tag."""
        if name in {"p", "h"} and self._label and self._text.strip():
            if len(self.texts) < _MAX_MARGINS:
                self.texts[f"{self._label}: {' '.join(self._text.split())}"] = None
        elif name.partition("-")[0].capitalize() == self._label and "style" not in name:
            self._label = ""

    def text(self, data: str) -> None:
        """Take character data."""
        self._text += data

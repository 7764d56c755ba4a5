"""Charts and diagrams of Office documents as the data and the texts that they show."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fetchstash.handlers._shared._prose import Prose
from fetchstash.handlers._shared._xml_events import attribute

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

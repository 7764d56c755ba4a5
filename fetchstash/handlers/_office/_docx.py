"""DOCX: a word processor's document as Markdown (ECMA-376-1, WordprocessingML)."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._office._common import Events, Runs
from fetchstash.handlers._office._ooxml import FORMULA, Chart, Diagram, Formula, Package
from fetchstash.handlers._shared._parts import Beside, BesideParts
from fetchstash.handlers._shared._prose import OpenTables, Prose, read_prose
from fetchstash.handlers._shared._xml import attribute
from fetchstash.handlers._shared._zip import Zip

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_TITLES = {"title": 1, "subtitle": 2}
_LEVELS = 9
_OUTLINE_LEVELS = {str(level) for level in range(_LEVELS)}
# The second rendering of an object, the code of a field, and how text looked before a change.
_SKIPPED = {"Fallback", "instrText", "delInstrText", "rPrChange", "pPrChange"}
_OFF = {"0", "false", "off"}
# Tracked changes (ECMA-376-1, section 17.13.5): the text that they bring, and that they take.
_INSERTED, _DELETED = {"ins", "moveTo"}, {"del", "moveFrom"}
_SCRIPTS = {"superscript": "^", "subscript": "_"}
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": ""}
_MAX_SPAN = 63  # Word allows no more columns
# The parts beside the text, in the order in which they are written, and their labels.
_SIDE_PARTS = {
    "footnotes": "",
    "endnotes": "",
    "comments": "Comment",
    "header": "Header",
    "footer": "Footer",
}


class DocxHandler(BesideParts):
    """Reads Word documents and templates of 2007 and later."""

    name = "docx"

    def read_beside(self, source: Path, extracted: Extracted, beside: Beside) -> Iterator[Part]:
        """Yield the parts of ``source``. Raises NoText if it cannot be read."""
        with Zip(source, is_document=True) as container:
            package = Package(container)
            package.describe(extracted)
            main = package.main_part("word/document.xml")
            styles, numbering = _Styles(), _Numbering()
            relations = package.relations(main)
            for relation in dict.fromkeys(relations.values()):
                if relation.kind == "styles":
                    package.read_small(relation.target, styles)
                elif relation.kind == "numbering":
                    package.read_small(relation.target, numbering)
            prose, places = Prose(), list(_SIDE_PARTS)
            side_parts = sorted(
                (places.index(relation.kind), relation.target)
                for relation in relations.values()
                if relation.kind in _SIDE_PARTS
            )
            labelled = [(part, _SIDE_PARTS[places[place]]) for place, part in side_parts]
            for part, label in [(main, ""), *labelled]:
                if not package.is_new(part):
                    continue
                reader = _Reader(prose, styles, numbering, package, part, label, beside)
                yield from read_prose(package.chunks(part), reader, prose)
                extracted.learn(hidden_removed=extracted.facts.hidden_removed + reader.hidden)
            yield from prose.end()


@dataclass(slots=True)
class _Paragraph:
    """An open paragraph; ``level`` is the heading level, 0 for text."""

    runs: Runs = field(default_factory=Runs)
    level: int = 0
    list_id: str = ""
    list_level: int = 0
    is_drop_cap: bool = False


class _Styles(Events):
    """Reads styles.xml (ECMA-376-1, section 17.7)."""

    def __init__(self) -> None:
        self._levels: dict[str, int] = {}
        self._lists: dict[str, tuple[str, int]] = {}
        self._bases: dict[str, str] = {}
        self._style = ""

    def level(self, style: str) -> int:
        """Return the heading level of a style, 0 for text."""
        return self._levels.get(self._along_bases(style, self._levels), 0)

    def list_of(self, style: str) -> tuple[str, int]:
        """Return the list of a style's paragraphs ("" if none) and their level in it."""
        return self._lists.get(self._along_bases(style, self._lists), ("", 0))

    def _along_bases(self, style: str, known: Mapping[str, object]) -> str:
        """Return the first known style, from ``style`` along its bases, which may form a ring."""
        for _ in range(10):
            if style in known:
                break
            style = self._bases.get(style, "")
        return style

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "style":
            self._style = attribute(attributes, "styleId")
            return
        value = attribute(attributes, "val")
        if name == "name":
            heading = _HEADING.fullmatch(value)
            level = int(heading[1]) if heading else _TITLES.get(value.lower(), 0)
            if level:
                self._levels[self._style] = level
        elif name == "basedOn":
            self._bases[self._style] = value
        elif name == "outlineLvl" and value.isdecimal() and int(value) < _LEVELS:
            self._levels.setdefault(self._style, int(value) + 1)
        elif name == "numId":
            self._lists[self._style] = (value, self._lists.get(self._style, ("", 0))[1])
        elif name == "ilvl" and value.isdecimal():
            self._lists[self._style] = (
                self._lists.get(self._style, ("", 0))[0],
                min(int(value), _LEVELS - 1),
            )


class _Numbering(Events):
    """Reads numbering.xml (ECMA-376-1, section 17.9), and counts the items of each list."""

    def __init__(self) -> None:
        self._formats: dict[tuple[str, int], str] = {}
        self._abstract_of: dict[str, str] = {}
        self._abstract = ""
        self._list = ""
        self._level = 0
        self._counts: dict[str, list[int]] = defaultdict(lambda: [0] * _LEVELS)

    def mark(self, list_id: str, level: int) -> str:
        """Return the mark of the next item ("-", "3."), "" without a list (id 0: none)."""
        if list_id in {"", "0"}:
            return ""
        abstract = self._abstract_of.get(list_id, "")
        if self._formats.get((abstract, level), "bullet") in {"bullet", "none"}:
            return "-"
        counts = self._counts[abstract]
        counts[level] += 1
        counts[level + 1 :] = [0] * (_LEVELS - level - 1)
        return f"{counts[level]}."

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "abstractNum":
            self._abstract = attribute(attributes, "abstractNumId")
        elif name == "lvl":
            level = attribute(attributes, "ilvl")
            self._level = int(level) if level.isdecimal() else 0
        elif name == "numFmt":
            self._formats[self._abstract, self._level] = attribute(attributes, "val")
        elif name == "num":
            self._list = attribute(attributes, "numId")
        elif name == "abstractNumId":
            self._abstract_of[self._list] = attribute(attributes, "val")


class _Reader:
    """Writes the text of one part into ``prose``."""

    def __init__(
        self,
        prose: Prose,
        styles: _Styles,
        numbering: _Numbering,
        package: Package,
        part: str,
        label: str,
        beside: Beside,
    ) -> None:
        self.hidden = 0
        self._prose = prose
        self._styles = styles
        self._numbering = numbering
        self._package = package
        self._relations = package.relations(part)
        self._label = label
        self._beside = beside
        self._description = ""
        self._charts: list[Chart | Diagram] = []
        self._drop_cap = ""
        self._skipping = 0
        self._in_text = False
        self._run_is_hidden = False
        self._paragraphs: list[_Paragraph] = []
        self._tables = OpenTables(prose)
        self._cell_width = 1
        self._links: list[str] = []
        self._formula: Formula | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._formula:
            self._formula.start(name, attributes)
        elif self._skipping or name in _SKIPPED:
            self._skipping += 1
        elif name in {"t", "delText"}:
            self._in_text = True
        elif name == FORMULA:
            self._formula = Formula()
        elif name == "r":
            self._run_is_hidden = False
            if self._paragraphs:
                self._paragraphs[-1].runs.wear()
        elif name == "p":
            self._paragraphs.append(_Paragraph())
            self._paragraphs[-1].runs.mark(self._drop_cap)
            self._drop_cap = ""
        elif name == "tbl":
            self._tables.start_table()
        elif name == "tr":
            self._tables.start_row()
        elif name == "tc":
            self._tables.start_cell()
            self._cell_width = 1
        elif name == "gridSpan":
            span = attribute(attributes, "val")
            self._cell_width = min(int(span), _MAX_SPAN) if span.isdecimal() else 1
        elif name == "comment":
            author = attribute(attributes, "author")
            self._label = f"Comment by {author}" if author else "Comment"
        elif name in {"footnote", "endnote"}:
            if not attribute(attributes, "type"):  # a separator has one
                self._label = _note_mark(name, attributes)
        elif self._paragraphs:
            self._start_within(name, attributes, self._paragraphs[-1])

    def _start_within(
        self, name: str, attributes: Mapping[str, str], paragraph: _Paragraph
    ) -> None:
        if name in _SIGNS:
            paragraph.runs.mark(_SIGNS[name])
        elif name in _INSERTED or name in _DELETED:
            paragraph.runs.change(inserted=name in _INSERTED, deleted=name in _DELETED)
        elif name == "vertAlign":
            paragraph.runs.look(script=_SCRIPTS.get(attribute(attributes, "val"), ""))
        elif name in {"strike", "dstrike"}:
            paragraph.runs.look(struck=attribute(attributes, "val") not in _OFF)
        elif name == "pStyle":
            style = attribute(attributes, "val")
            paragraph.level = self._styles.level(style)
            paragraph.list_id, paragraph.list_level = self._styles.list_of(style)
        elif name == "outlineLvl":
            level = attribute(attributes, "val")
            paragraph.level = int(level) + 1 if level in _OUTLINE_LEVELS else 0
        elif name == "numId":
            paragraph.list_id = attribute(attributes, "val")
        elif name == "ilvl":
            level = attribute(attributes, "val")
            paragraph.list_level = int(level) if level in _OUTLINE_LEVELS else 0
        elif name == "framePr":
            paragraph.is_drop_cap = attribute(attributes, "dropCap") not in {"", "none"}
        elif name == "vanish":
            self._run_is_hidden = attribute(attributes, "val") not in _OFF
        elif name == "hyperlink":
            relation = self._relations.get(attribute(attributes, "id"))
            self._links.append(relation.target if relation and relation.external else "")
            paragraph.runs.mark("[" if self._links[-1] else "")
        elif name == "docPr":
            self._description = attribute(attributes, "descr") or attribute(attributes, "title")
        elif name in {"blip", "imagedata"}:
            identifiers = (attribute(attributes, key) for key in ("embed", "link", "id"))
            relation = self._relations.get(next(filter(None, identifiers), ""))
            label = self._description or attribute(attributes, "title")
            if relation:
                paragraph.runs.mark(self._beside.picture(relation.target, label))
        elif name == "chart":
            relation = self._relations.get(attribute(attributes, "id"))
            if relation and self._package.is_new(relation.target):
                self._charts.append(Chart())
                self._package.read_small(relation.target, self._charts[-1])
        elif name == "relIds":
            relation = self._relations.get(attribute(attributes, "dm"))
            if relation is None or self._package.is_new(relation.target):
                self._charts.append(diagram := Diagram(self._description))
                self._package.read_small(relation.target if relation else "", diagram)
        elif name in {"footnoteReference", "endnoteReference"}:
            paragraph.runs.mark(_note_mark(name, attributes))

    def end(self, name: str) -> None:
        if self._formula:
            if self._formula.end():
                if self._paragraphs:
                    self._paragraphs[-1].runs.mark(self._formula.latex())
                self._formula = None
        elif self._skipping:
            self._skipping -= 1
        elif name in {"t", "delText"}:
            self._in_text = False
        elif name in _INSERTED or name in _DELETED:
            if self._paragraphs:
                self._paragraphs[-1].runs.change()
        elif name == "p" and self._paragraphs:
            self._write(self._paragraphs.pop())
            self._write_charts()
        elif name == "tc":
            self._tables.end_cell(self._cell_width)
            self._cell_width = 1
        elif name == "tbl":
            self._tables.end_table()
            self._write_charts()
        elif name == "body":
            self._prose.paragraph(self._drop_cap)
        elif name == "hyperlink" and self._links and self._paragraphs:
            target = self._links.pop()
            self._paragraphs[-1].runs.mark(f"]({target})" if target else "")

    def text(self, data: str) -> None:
        if self._formula:
            self._formula.add(data)
        elif self._in_text and not self._skipping and self._paragraphs:
            if self._run_is_hidden:
                self.hidden += 1
            else:
                self._paragraphs[-1].runs.add(data)

    def _write(self, paragraph: _Paragraph) -> None:
        text = paragraph.runs.text()
        if paragraph.is_drop_cap:
            self._drop_cap = text  # The rest of its word begins the next (section 17.3.1.11).
        elif not text:
            return
        elif self._tables:
            self._tables.add(text)
        elif paragraph.level:
            self._prose.heading(text, paragraph.level)
        elif mark := self._numbering.mark(paragraph.list_id, paragraph.list_level):
            self._prose.item(text, paragraph.list_level, mark)
        else:
            self._prose.paragraph(f"{self._label}: {text}" if self._label else text)

    def _write_charts(self) -> None:
        """Write the charts that waited for the end of a paragraph or a table."""
        while self._charts and not self._tables and not self._paragraphs:
            self._charts.pop(0).write(self._prose)


def _note_mark(name: str, attributes: Mapping[str, str]) -> str:
    return f"[^{'e' if name.startswith('end') else ''}{attribute(attributes, 'id')}]"

"""DOCX: a word processor's document as Markdown (ECMA-376-1, WordprocessingML)."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._office._common import PLAIN, Look, Runs, number
from fetchstash.handlers._office._ooxml import Package, TextReader, write_chart, write_diagram
from fetchstash.handlers._parts import Beside, BesideParts
from fetchstash.handlers._prose import OpenTables, Prose, read_prose
from fetchstash.handlers._xml import Tag
from fetchstash.handlers._zip import Zip

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_TITLES = {"title": 1, "subtitle": 2}
_LEVELS = 9
_OUTLINE_LEVELS = {str(level) for level in range(_LEVELS)}
# The second rendering of an object, the code of a field, and how text looked before a change.
_SKIPPED = frozenset({"Fallback", "instrText", "delInstrText", "rPrChange", "pPrChange"})
_OFF = {"0", "false", "off"}
# Tracked changes (ECMA-376-1, section 17.13.5): the text that they bring, and that they take.
_CHANGES = {
    **dict.fromkeys(("ins", "moveTo"), Look(inserted=True)),
    **dict.fromkeys(("del", "moveFrom"), Look(struck=True)),
}
_SCRIPTS = {"superscript": "^", "subscript": "_"}
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": ""}
_MAX_SPAN = 63  # Word allows no more columns
_MAX_ROWS = 32_767  # and no more rows
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
            targets: dict[str, list[str]] = defaultdict(list)
            for relation in package.relations(main).values():
                targets[relation.kind].append(relation.target)
            styles, numbering = (
                chain.from_iterable(map(package.tags, dict.fromkeys(targets[kind])))
                for kind in ("styles", "numbering")
            )
            lists, prose = (_Styles(styles), _Numbering(numbering)), Prose()
            sides = (
                (part, label)
                for kind, label in _SIDE_PARTS.items()
                for part in sorted(targets[kind])
            )
            for part, label in ((main, ""), *sides):
                if package.is_new(part):
                    reader = _Reader(prose, lists, package, part, label, beside)
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


class _Styles:
    """The styles of paragraphs (ECMA-376-1, section 17.7): heading levels and lists."""

    def __init__(self, tags: Iterable[Tag]) -> None:
        self._levels: dict[str, int] = {}
        self._lists: dict[str, tuple[str, int]] = {}
        self._bases: dict[str, str] = {}
        style = ""
        for name, get in tags:
            value = get("val")
            list_id, list_level = self._lists.get(style, ("", 0))
            if name == "style":
                style = get("styleId")
            elif name == "name":
                heading = _HEADING.fullmatch(value)
                if level := int(heading[1]) if heading else _TITLES.get(value.lower(), 0):
                    self._levels[style] = level
            elif name == "basedOn":
                self._bases[style] = value
            elif name == "outlineLvl" and value in _OUTLINE_LEVELS:
                self._levels.setdefault(style, int(value) + 1)
            elif name == "numId":
                self._lists[style] = value, list_level
            elif name == "ilvl":
                self._lists[style] = list_id, min(number(value), _LEVELS - 1)

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


class _Numbering:
    """The formats of lists (ECMA-376-1, section 17.9), and the counts of their items."""

    def __init__(self, tags: Iterable[Tag]) -> None:
        self._formats: dict[tuple[str, int], str] = {}
        self._abstract_of: dict[str, str] = {}
        self._counts: dict[str, list[int]] = defaultdict(lambda: [0] * _LEVELS)
        abstract = list_id = ""
        level = 0
        for name, get in tags:
            if name == "abstractNum":
                abstract = get("abstractNumId")
            elif name == "lvl":
                level = number(get("ilvl"))
            elif name == "numFmt":
                self._formats[abstract, level] = get("val")
            elif name == "num":
                list_id = get("numId")
            elif name == "abstractNumId":
                self._abstract_of[list_id] = get("val")

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


class _Reader(TextReader):
    """Writes the text of one part into ``prose``."""

    skipped = _SKIPPED

    def __init__(
        self,
        prose: Prose,
        lists: tuple[_Styles, _Numbering],
        package: Package,
        part: str,
        label: str,
        beside: Beside,
    ) -> None:
        super().__init__()
        self.hidden = 0
        self._prose = prose
        self._styles, self._numbering = lists
        self._package = package
        self._relations = package.relations(part)
        self._label = label
        self._beside = beside
        self._description = ""
        self._drawings: list[Callable[[Prose], None]] = []
        self._drop_cap = ""
        self._run_is_hidden = False
        self._paragraphs: list[_Paragraph] = []
        self._tables = OpenTables(prose, "tbl", "tr", "tc")
        self._links: list[str] = []

    def open(self, name: str, get: Callable[[str], str]) -> None:
        match name:
            case "r":
                self._run_is_hidden = False
                if self._paragraphs:
                    self._paragraphs[-1].runs.look = PLAIN
            case "p":
                self._paragraphs.append(_Paragraph())
                self._paragraphs[-1].runs.mark(self._drop_cap)
                self._drop_cap = ""
            case "tbl" | "tr" | "tc":
                self._tables.start(name)
            case "gridSpan":
                self._tables.cell.width = min(number(get("val"), 1), _MAX_SPAN)
            case "vMerge" if get("val") == "restart":
                self._tables.cell.height = _MAX_ROWS  # to the next that covers nothing
            case "vMerge":
                self._tables.cell.is_covered = True
            case "gridBefore":
                self._tables.skip(min(number(get("val")), _MAX_SPAN))
            case "comment":
                author = get("author")
                self._label = f"Comment by {author}" if author else "Comment"
            case "footnote" | "endnote":
                if not get("type"):  # a separator has one
                    self._label = _note_mark(name, get("id"))
            case _ if self._paragraphs:
                self._open_within(name, get, self._paragraphs[-1], self._paragraphs[-1].runs)
            case _:
                pass

    def _open_within(
        self, name: str, get: Callable[[str], str], paragraph: _Paragraph, runs: Runs
    ) -> None:
        value = get("val")
        match name:
            case _ if name in _SIGNS:
                runs.mark(_SIGNS[name])
            case _ if name in _CHANGES:
                runs.change = _CHANGES[name]
            case "vertAlign":
                runs.look = runs.look._replace(script=_SCRIPTS.get(value, ""))
            case "strike" | "dstrike":
                runs.look = runs.look._replace(struck=value not in _OFF)
            case "pStyle":
                paragraph.level = self._styles.level(value)
                paragraph.list_id, paragraph.list_level = self._styles.list_of(value)
            case "outlineLvl":
                paragraph.level = int(value) + 1 if value in _OUTLINE_LEVELS else 0
            case "numId":
                paragraph.list_id = value
            case "ilvl":
                paragraph.list_level = int(value) if value in _OUTLINE_LEVELS else 0
            case "framePr":
                paragraph.is_drop_cap = get("dropCap") not in {"", "none"}
            case "vanish":
                self._run_is_hidden = value not in _OFF
            case "hyperlink":
                relation = self._relations.get(get("id"))
                self._links.append(relation.target if relation and relation.external else "")
                runs.mark("[" if self._links[-1] else "")
            case "docPr":
                self._description = get("descr") or get("title")
            case "blip" | "imagedata":
                relation = self._relations.get(get("embed") or get("link") or get("id"))
                if relation:
                    label = self._description or get("title")
                    runs.mark(self._beside.picture(relation.target, label))
            case "chart":
                relation = self._relations.get(get("id"))
                if relation and self._package.is_new(relation.target):
                    self._drawings.append(partial(write_chart, self._package.tree(relation.target)))
            case "relIds":
                relation = self._relations.get(get("dm"))
                if relation is None or self._package.is_new(relation.target):
                    model = self._package.tree(relation.target if relation else "")
                    self._drawings.append(partial(write_diagram, model, self._description))
            case "footnoteReference" | "endnoteReference":
                runs.mark(_note_mark(name, get("id")))
            case _:
                pass

    def close(self, name: str) -> None:
        if name in _CHANGES and self._paragraphs:
            self._paragraphs[-1].runs.change = PLAIN
        elif name == "p" and self._paragraphs:
            self._write(self._paragraphs.pop())
            self._write_drawings()
        elif name == "tc":
            self._tables.end(name)
        elif name == "tbl":
            self._tables.end(name)
            self._write_drawings()
        elif name == "body":
            self._prose.paragraph(self._drop_cap)
        elif name == "hyperlink" and self._links and self._paragraphs:
            target = self._links.pop()
            self._paragraphs[-1].runs.mark(f"]({target})" if target else "")

    def add(self, data: str) -> None:
        if self._run_is_hidden and self._paragraphs:
            self.hidden += 1
        elif self._paragraphs:
            self._paragraphs[-1].runs.add(data)

    def formula(self, latex: str) -> None:
        if self._paragraphs:
            self._paragraphs[-1].runs.mark(latex)

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

    def _write_drawings(self) -> None:
        """Write the charts and diagrams that waited for the end of a paragraph or a table."""
        while self._drawings and not self._tables and not self._paragraphs:
            self._drawings.pop(0)(self._prose)


def _note_mark(name: str, number: str) -> str:
    return f"[^{'e' if name.startswith('end') else ''}{number}]"

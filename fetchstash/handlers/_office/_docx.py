"""DOCX: a word processor's document as Markdown (ECMA-376-1, WordprocessingML)."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._office._common import PLAIN, Look, Runs, comment_line, item_mark, number
from fetchstash.handlers._office._fields import Field, Form
from fetchstash.handlers._office._ooxml import (
    Package,
    TextReader,
    embedded,
    write_chart,
    write_diagram,
)
from fetchstash.handlers._office._word_styles import (
    OFF,
    OUTLINE_LEVELS,
    Numbering,
    Styles,
    numbering_of,
)
from fetchstash.handlers._parts import Beside, BesideParts
from fetchstash.handlers._prose import OpenTables, Prose, read_prose
from fetchstash.handlers._symbols import is_symbol_font, seen
from fetchstash.handlers._zip import Zip

# The second rendering of an object, code that was deleted, how text looked before a change, and
# the looks of tables and pages.
_SKIPPED = frozenset(
    {
        *("Fallback", "delInstrText", "rPrChange", "pPrChange"),
        *("tblPr", "tblGrid", "tcBorders", "tcMar", "pBdr", "sectPr"),
    }
)
_UNREAD = frozenset(
    {
        *("rPr", "pPr", "tcPr", "trPr", "tcW", "b", "bCs", "i", "iCs", "u", "sz", "szCs", "color"),
        *("lang", "spacing", "ind", "jc", "rtl", "widowControl", "keepNext", "keepLines", "shd"),
        *("proofErr", "bookmarkStart", "bookmarkEnd", "lastRenderedPageBreak", "noProof", "kern"),
    }
)
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
_SIDE_PARTS = {"footnotes": "", "endnotes": "", "header": "Header", "footer": "Footer"}
_MAX_COMMENTS = 20_000
_MAX_FIELDS = 100  # that are open: marks without an end pile up


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
            document = _Document(package, Styles(styles), numbering_of(numbering), beside)
            prose = document.prose
            for part in dict.fromkeys(targets["comments"]):
                package.read_small(part, _Reader(document, part, is_comments=True))
            sides = (
                (part, label)
                for kind, label in _SIDE_PARTS.items()
                for part in sorted(targets[kind])
            )
            for part, label in ((main, ""), *sides):
                if package.is_new(part):
                    reader = _Reader(document, part, label)
                    yield from read_prose(package.chunks(part), reader, prose)
            for comment in document.comments.values():  # that no text refers to
                prose.paragraph(comment_line(comment.author, "\n".join(comment.texts)))
                yield from prose.full()
            extracted.learn(hidden_removed=document.hidden)
            yield from prose.end()


@dataclass(slots=True)
class _Comment:
    """A comment: its author and its paragraphs."""

    author: str
    texts: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _Document:
    """What the readers of parts share; ``comments`` are those not yet written, by id."""

    package: Package
    styles: Styles
    numbering: Numbering
    beside: Beside
    prose: Prose = field(default_factory=Prose)
    comments: dict[str, _Comment] = field(default_factory=dict[str, _Comment])
    hidden: int = 0


@dataclass(slots=True)
class _Paragraph:
    """An open paragraph; ``level`` is the heading level, 0 for text.

    ``comments`` come with the words that they are about.
    """

    runs: Runs = field(default_factory=Runs)
    level: int = 0
    list_id: str = ""
    list_level: int = 0
    font: str = ""
    is_hidden: bool = False
    is_drop_cap: bool = False
    comments: list[tuple[_Comment, str]] = field(default_factory=list[tuple[_Comment, str]])


class _Reader(TextReader):
    """Writes the text of one part into ``prose``."""

    skipped, unread = _SKIPPED, _UNREAD

    def __init__(
        self, document: _Document, part: str, label: str = "", *, is_comments: bool = False
    ) -> None:
        super().__init__()
        self._document = document
        self._prose = document.prose
        self._package = document.package
        self._relations = document.package.relations(part)
        self._label = label
        self._is_comments = is_comments
        self._comment: _Comment | None = None
        self._ranges: dict[str, tuple[Runs, int]] = {}  # of comments: where their words begin
        self._description = ""
        self._drawings: list[Callable[[Prose], None]] = []
        self._drop_cap = ""
        self._run_is_hidden = self._is_in_code = False
        self._font = ""  # of the run, if it is a symbol font
        self._fields: list[_Field] = []
        self._form: Form | None = None
        self._has_placeholder: list[bool] = []  # of the open content controls
        self._paragraphs: list[_Paragraph] = []
        self._tables = OpenTables(self._prose, "tbl", "tr", "tc")
        self._links: list[str] = []

    def open(self, name: str, get: Callable[[str], str]) -> None:
        match name:
            case "r":
                self._start_run()
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
            case "comment" if self._is_comments and len(self._document.comments) < _MAX_COMMENTS:
                self._comment = _Comment(get("author"))
                number_or_place = get("id") or f"#{len(self._document.comments)}"
                self._document.comments.setdefault(number_or_place, self._comment)
            case "sdt":
                self._has_placeholder.append(False)
            case "showingPlcHdr" if self._has_placeholder:
                self._has_placeholder[-1] = get("val") not in OFF
            case "sdtContent" if self._has_placeholder and self._has_placeholder[-1]:
                self.skip()  # "Click here to enter text." (section 17.5.2.39)
            case _ if self._form:
                _open_form(name, get, self._form)
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
            case "rFonts":
                font = get("ascii") or get("hAnsi")
                self._font = font if is_symbol_font(font) else ""
            case "rStyle":
                self._font = self._document.styles.font(value) or self._font
                self._run_is_hidden = self._document.styles.hides(value) or self._run_is_hidden
            case "sym":
                code = get("char")
                if re.fullmatch("[0-9A-Fa-f]{2,5}", code):
                    self.add(seen(chr(int(code, 16)), get("font")))
            case "fldChar" | "fldSimple" | "instrText":
                self._open_field(name, get, runs)
            case "commentRangeStart":
                self._ranges[get("id")] = runs, runs.place()
            case "commentRangeEnd" | "commentReference":
                self._end_range(get("id"), paragraph)
            case "textpath":  # WordArt before 2010 (VML, section 19.1.2.23)
                runs.add(get("string"))
            case "OLEObject":
                relation = self._relations.get(get("id"))
                runs.mark(embedded(get("ProgID"), relation.target if relation else ""))
            case _ if name in _CHANGES:
                runs.change = _CHANGES[name]
            case "vertAlign":
                runs.look = runs.look._replace(script=_SCRIPTS.get(value, ""))
            case "strike" | "dstrike":
                runs.look = runs.look._replace(struck=value not in OFF)
            case "pStyle":
                paragraph.font = self._document.styles.font(value)
                paragraph.is_hidden = self._document.styles.hides(value)
                paragraph.level = self._document.styles.level(value)
                paragraph.list_id, paragraph.list_level = self._document.styles.list_of(value)
            case "outlineLvl":
                paragraph.level = int(value) + 1 if value in OUTLINE_LEVELS else 0
            case "numId":
                paragraph.list_id = value
            case "ilvl":
                paragraph.list_level = int(value) if value in OUTLINE_LEVELS else 0
            case "framePr":
                paragraph.is_drop_cap = get("dropCap") not in {"", "none"}
            case "vanish":
                self._run_is_hidden = value not in OFF
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
                    runs.mark(self._document.beside.picture(relation.target, label))
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

    def _start_run(self) -> None:
        if self._paragraphs:
            paragraph = self._paragraphs[-1]
            paragraph.runs.look = PLAIN
            self._run_is_hidden, self._font = paragraph.is_hidden, paragraph.font

    def _open_field(self, name: str, get: Callable[[str], str], runs: Runs) -> None:
        """Take a mark of a field, which need not have its other marks."""
        kind = get("fldCharType")
        if name == "instrText":
            self._is_in_code = True
        elif name == "fldSimple":
            self._fields.append(_Field(get("instr"), runs))
            self._fields[-1].start_result(runs)
        elif kind == "begin" and len(self._fields) < _MAX_FIELDS:
            self._form = Form()
            self._fields.append(_Field("", runs, self._form))
        elif kind == "separate" and self._fields:
            self._fields[-1].start_result(runs)
        elif kind == "end" and self._fields:
            self._fields.pop().end(runs)

    def _end_range(self, number: str, paragraph: _Paragraph) -> None:
        """Let a comment stand behind this paragraph, with its words if they are all in it."""
        comment = self._document.comments.pop(number, None)
        if comment:
            runs, start = self._ranges.pop(number, (None, 0))
            words = runs.words(start) if runs and runs is paragraph.runs else ""
            paragraph.comments.append((comment, words))

    def close(self, name: str) -> None:
        if name in _CHANGES and self._paragraphs:
            self._paragraphs[-1].runs.change = PLAIN
        elif name == "p" and self._paragraphs:
            self._write(self._paragraphs.pop())
            self._write_drawings()
        elif name == "instrText":
            self._is_in_code = False
        elif name == "fldChar":
            self._form = None
        elif name == "fldSimple" and self._fields and self._paragraphs:
            self._fields.pop().end(self._paragraphs[-1].runs)
        elif name == "sdt" and self._has_placeholder:
            self._has_placeholder.pop()
        elif name == "comment":
            self._comment = None
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

    def text(self, data: str) -> None:
        if self._is_in_code and self._fields and not self._skipping:
            self._fields[-1].add_code(data)
        else:
            super().text(data)

    def add(self, data: str) -> None:
        if self._run_is_hidden and self._paragraphs:
            self._document.hidden += 1
        elif self._paragraphs:
            if self._font or not data.isascii():
                data = seen(data, self._font)
            self._paragraphs[-1].runs.add(data)

    def formula(self, latex: str) -> None:
        if self._paragraphs:
            self._paragraphs[-1].runs.mark(latex)

    def _write(self, paragraph: _Paragraph) -> None:
        for unended in self._fields:
            unended.show_form(paragraph.runs)
        text = paragraph.runs.text()
        if paragraph.is_drop_cap:
            self._drop_cap = text  # The rest of its word begins the next (section 17.3.1.11).
        elif self._is_comments:
            if self._comment and text:
                self._comment.texts.append(text)
        else:
            self._write_text(text, paragraph)
        for comment, words in paragraph.comments:
            line = comment_line(comment.author, "\n".join(comment.texts), words, text)
            (self._tables.add if self._tables else self._prose.paragraph)(line)

    def _write_text(self, text: str, paragraph: _Paragraph) -> None:
        # Of what is empty, cells alone show their numbers: the first column of many a table.
        if not text and not (self._tables and paragraph.list_id):
            return
        mark = self._document.numbering.mark(paragraph.list_id, paragraph.list_level)
        label = mark.removeprefix("-").strip()
        if self._tables:
            if labelled := f"{label} {text}".strip():
                self._tables.add(labelled)
        elif paragraph.level:
            self._prose.heading(f"{label} {text}", paragraph.level)
        elif mark:
            self._prose.item(text, paragraph.list_level, item_mark(mark))
        else:
            self._prose.paragraph(f"{self._label}: {text}" if self._label else text)

    def _write_drawings(self) -> None:
        """Write the charts and diagrams that waited for the end of a paragraph or a table."""
        while self._drawings and not self._tables and not self._paragraphs:
            self._drawings.pop(0)(self._prose)


class _Field(Field):
    """An open field, and where in its paragraph it and its result begin."""

    def __init__(self, code: str, runs: Runs, form: Form | None = None) -> None:
        super().__init__(code, form=form)
        self._runs = runs
        self._begin = self._result = runs.place()

    def start_result(self, runs: Runs) -> None:
        """Remove what stands before the result: the results of fields nested in its code."""
        self.has_result = True
        if runs is self._runs:
            runs.cut(self._begin)
        self._runs, self._result = runs, runs.place()

    def end(self, runs: Runs) -> None:
        """Make the result a link, or write what a field without a result shows."""
        if target := self.target():
            if runs is self._runs and self.has_result:
                runs.link_from(self._result, target)
        else:
            self.show_form(runs)

    def show_form(self, runs: Runs) -> None:
        """Write what a field without a result shows, once."""
        is_bare = not self.has_result or not self._runs.words(self._result).strip()
        if runs is self._runs and is_bare:
            runs.put(self._result, self.without_result())
            self.form, self.code = None, ""


def _open_form(name: str, get: Callable[[str], str], form: Form) -> None:
    """Take an element of a form field (ECMA-376-1, section 17.16.7 f.)."""
    value = get("val")
    match name:
        case "checkBox":
            form.is_box = True
        case "checked" | "default" if form.is_box:
            is_set = value not in OFF
            form.chosen, form.default = (
                (int(is_set), form.default) if name == "checked" else (form.chosen, int(is_set))
            )
        case "default":
            form.default = number(value)
        case "result":
            form.chosen = number(value)
        case "listEntry":
            form.add_entry(value)
        case _:
            pass


def _note_mark(name: str, number: str) -> str:
    return f"[^{'e' if name.startswith('end') else ''}{number}]"

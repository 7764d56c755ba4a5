"""ODT, ODP and ODG: OpenDocument as Markdown; each slide is a page (OpenDocument 1.3, part 3)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from fetchstash.errors import NoText
from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._html._media import latex
from fetchstash.handlers._office import OfficeReason, _common
from fetchstash.handlers._office._common import PLAIN, Look, Runs, Slides, number
from fetchstash.handlers._office._fields import Form
from fetchstash.handlers._office._odf_styles import (
    MAX_LEVEL,
    OUTLINE,
    STYLE_TAGS,
    OdfStyles,
    TextStyle,
)
from fetchstash.handlers._office._ooxml import embedded
from fetchstash.handlers._office._places import Box, Shape, write_all
from fetchstash.handlers._parts import Beside, BesideParts
from fetchstash.handlers._prose import OpenTables, Prose, numeral, read_prose
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._symbols import seen
from fetchstash.handlers._xml import Node, XmlReader, attribute
from fetchstash.handlers._zip import MAX_MEMBER, Members, Zip

_MAX_MARGINS = 200
# Cells and spaces may repeat, the empty rest of a sheet a million times (section 19.675 f.).
_MAX_REPEATS = 100
# The number of a note (its mark replaces it), scripts, what stands where text is yet to be written,
# and the parts of a comment beside its author and its text.
_SKIPPED = {
    *("note-citation", "scripts", "event-listeners", "placeholder"),
    *("creator-initials", "sender-initials"),
}
_INLINE = {
    *("s", "tab", "line-break", "a", "note", "span", "change", "change-start", "change-end"),
    *("annotation-end", "fieldmark", "param", "drop-down", "label"),
}
_STYLES = {"automatic-styles", "font-face-decls"}  # what content.xml holds beside its body
_BLOCKS = {
    *("list", "list-item", "list-header", "table", "table-row", "table-cell", "page", "frame"),
    *("covered-table-cell", "image", "title", "desc", "object", "object-ole", "annotation"),
    *("creator", "date", "notes"),
}
_UNREAD = frozenset(
    {
        *("list-level-properties", "list-level-label-alignment", "graphic-properties"),
        *("paragraph-properties", "tab-stops", "tab-stop", "equation", "enhanced-geometry"),
        *("handle", "table-column", "table-cell-properties", "table-row-properties"),
        "soft-page-break",
    }
)
# Shapes of drawings (section 10.3), which have places as frames do; of a group they stand within.
_SHAPES = {
    *("frame", "custom-shape", "rect", "ellipse", "circle", "line", "polyline", "polygon"),
    *("path", "regular-polygon", "connector", "caption", "control", "measure", "g"),
}
# The elements whose ends say something.
_ENDS = {
    *("p", "h", "a", "span", "fieldmark", "drop-down", "tracked-changes", "list", "table", "page"),
    *("table-cell", "covered-table-cell", "title", "desc", "annotation", "creator", "date"),
    *("notes", "note", *_STYLES, *_SHAPES),
}
_PLAIN_STYLE = TextStyle()
# Frames that repeat on every slide, and the picture of a slide on the page of its notes.
_FURNITURE = {"page-number", "header", "footer", "date-time", "page"}
_MAX_GROUPS = 20
_MAX_KEPT = 200  # characters of a shape's text, by which its place is judged
_UNITS = {"cm": 1.0, "mm": 0.1, "in": 2.54, "pt": 2.54 / 72, "pc": 2.54 / 6, "px": 2.54 / 96}
_LENGTH = re.compile(r"(-?\d{1,9}(?:\.\d{1,9})?)(cm|mm|in|pt|pc|px)")
_FIELDS = "vnd.oasis.opendocument.field."
_SIGNS = {"tab": "\t", "line-break": "\n"}
_NUMBER = re.compile(r"%(\d{1,2})%")  # of a level, in the label of a list
_SPACE = re.compile(r"[^\S ]\s*| \s+")  # any but a single space


class OdfHandler(BesideParts):
    """Reads text documents, presentations and drawings of LibreOffice and others."""

    name = "odf"

    def read_beside(self, source: Path, extracted: Extracted, beside: Beside) -> Iterator[Part]:
        """Yield the parts of any OpenDocument file. Raises NoText if it cannot be read."""
        with Zip(source, is_document=True) as container:
            members = Members(container)
            manifest = members.entries.get("META-INF/manifest.xml")
            if manifest and b":encryption-data" in container.read(manifest, 4 * 2**20):
                raise Reason.ENCRYPTED.error()
            if "content.xml" not in members:
                raise OfficeReason.NO_DOCUMENT.error()
            prose = Prose()
            _common.learn_metadata(members.whole_tree("meta.xml"), extracted, "creation-date")
            reader = _Reader(prose, beside, members)
            try:
                yield from read_prose(members.chunks("content.xml"), reader, prose)
            except NoText:
                reader.write_shapes()
                yield from prose.rest()
                raise
            extracted.learn(hidden_removed=reader.hidden)
            for text in _margins(members.tree("styles.xml", MAX_MEMBER)):
                prose.paragraph(text)
            if reader.slides.count:
                reader.slides.hidden_shapes = reader.hidden
                reader.slides.learn(extracted)
            yield from prose.end()


@dataclass(slots=True)
class _Frame:
    """An open frame: the picture in it, and what describes it."""

    # Paragraphs around it: a title field within its own text is no description.
    depth: int = 0
    picture: str = ""
    label: str = ""
    is_empty: bool = True


@dataclass(slots=True)
class _Paragraph:
    """An open paragraph; ``level`` is that of a heading, 0 for text.

    ``worn`` are the styles of its open spans, each over the one around it, its own first.
    """

    level: int
    style: str
    worn: list[TextStyle]
    is_hidden: bool = False
    is_outline: bool = False  # it counts as a heading of its level
    runs: Runs = field(default_factory=Runs)
    comments: list["_Comment"] = field(default_factory=list["_Comment"])

    def hides_words(self) -> bool:
        """Return whether text that is added now is hidden."""
        return self.is_hidden or bool(self.worn[-1].hides)

    def start_span(self, style: TextStyle) -> None:
        """Let text look as this style has it; what it does not say is as before."""
        around = self.worn[-1]
        if style == _PLAIN_STYLE:
            self.worn.append(around)
            return
        self.worn.append(
            TextStyle(
                look=style.look or around.look,
                font=style.font or around.font,
                hides=around.hides if style.hides is None else style.hides,
            )
        )
        self.runs.look = self.worn[-1].look or PLAIN

    def end_span(self) -> None:
        """Let text look as before the innermost span."""
        if len(self.worn) > 1:
            self.worn.pop()
            self.runs.look = self.worn[-1].look or PLAIN


@dataclass(slots=True)
class _Comment:
    """A comment, the words that it is about, and how deep within paragraphs it stands."""

    name: str
    depth: int
    start: int = 0
    author: str = ""
    words: str = ""
    texts: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _List:
    """An open list: its style, and how many items it has had."""

    style: str
    name: str = ""
    count: int = 0
    is_continued: bool = False


class _Reader(XmlReader):
    """Writes the text of content.xml into ``prose``."""

    unread = _UNREAD

    def __init__(self, prose: Prose, beside: Beside, members: Members) -> None:
        self.slides = Slides(prose)
        self.hidden = 0
        self._beside = beside
        self._members = members
        self._styles = OdfStyles()
        for name, get in members.tags("styles.xml", STYLE_TAGS):
            self._styles.start(name, get)
        self._pictures = self._skipping = 0
        self._shown: list[str] = []
        self._frames: list[_Frame] = []
        self._shapes: list[Shape] = []
        self._open_shapes: list[Shape] = []
        self._unplaced: list[tuple[Shape, Callable[[str], str]]] = []  # with their attributes
        self._charts: list[Node] = []
        self._objects: dict[str, str] = {}  # what stands for them, "" for a chart
        self._label: list[str] | None = None  # of the open frame or comment
        self._comment: _Comment | None = None
        self._prose = prose
        self._tables = OpenTables(
            _Tables(self), "table", "table-row", "table-cell", "covered-table-cell"
        )
        self._paragraphs: list[_Paragraph] = []
        self._notes: list[str] = []
        self._note = ""
        self._links: list[str] = []
        self._lists: list[_List] = []
        self._outline: list[int] = []  # counts of headings by level
        self._ended: dict[tuple[str, int], int] = {}  # counts of lists, by name or style and level
        self._item_is_new = self._is_title = self._in_notes = self._is_header = False
        self._in_styles = False
        self._form: Form | None = None
        # Tracked changes (section 5.5) are listed first, and points in the text name them.
        self._listing = False
        self._region = ""
        self._insertions: set[str] = set()
        self._deleted: dict[str, list[str]] = {}  # paragraphs by change
        self._change = PLAIN

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        get = partial(attribute, attributes)
        if self._skipping or name in _SKIPPED:
            self._skipping += 1
        elif name in {"p", "h"}:
            self._start_paragraph(name, get)
        elif self._paragraphs and name in _INLINE:
            self._start_inline(name, get, self._paragraphs[-1])
        elif name == "tracked-changes":
            self._listing = True
        elif self._listing and name == "changed-region":
            self._region = get("id")
        elif self._listing and name == "insertion":
            self._insertions.add(self._region)
        elif name in {"section", "hidden-text", "hidden-paragraph"} and _is_hidden(get):
            self._hide(name)
        elif name in _STYLES:
            self._in_styles = True
        elif self._in_styles:
            if name in STYLE_TAGS:
                self._styles.start(name, get)
        elif not self._listing:
            if name in _SHAPES:
                self._start_shape(get)
            self._start_block(name, get)

    def _start_paragraph(self, name: str, get: Callable[[str], str]) -> None:
        style = get("style-name")
        shown = self._styles.text(style)
        if shown.look:
            shown = shown._replace(look=None)
        level = min(number(get("outline-level"), 1), MAX_LEVEL) if name == "h" else shown.level
        # A note or a box within hidden words is hidden with them.
        is_hidden = bool(shown.hides) or (
            bool(self._paragraphs) and self._paragraphs[-1].hides_words()
        )
        is_outline = name == "h" and get("is-list-header") != "true"
        paragraph = _Paragraph(level, style, [shown], is_hidden, is_outline)
        paragraph.runs.change = self._change
        self._paragraphs.append(paragraph)

    def _hide(self, name: str) -> None:
        """Leave out a section or a text, or all of the open paragraph."""
        if name == "hidden-paragraph" and self._paragraphs:
            self._paragraphs[-1].is_hidden = True
            self._paragraphs[-1].runs.cut(0)
        self.hidden += 1
        self._skipping = 1

    def _start_shape(self, get: Callable[[str], str]) -> None:
        kind = get("class")
        if not self.slides.count or self._in_notes:
            if kind in _FURNITURE:
                self._skipping = 1
            return
        is_hidden = get("display") == "none"
        if kind in _FURNITURE or is_hidden:
            self.hidden += is_hidden
            self._skipping = 1
            return
        around = self._open_shapes[-1] if self._open_shapes else None
        if len(self._open_shapes) > _MAX_GROUPS:
            shape = self._open_shapes[-1]  # what is nested too deeply reads as one
        else:
            shape = Shape(is_title=kind == "title")
            (around.inner if around else self._shapes).append(shape)
            self._unplaced.append((shape, get))
        self._open_shapes.append(shape)

    def _start_block(self, name: str, get: Callable[[str], str]) -> None:
        if self._skipping:
            return
        frame = self._frames[-1] if self._frames else None
        is_first_in_frame = frame is not None and frame.is_empty
        if frame:
            frame.is_empty = False
        if name not in _BLOCKS:  # compared one after the other below
            return
        match name:
            case "list":
                self._start_list(get)
            case "list-item" | "list-header":
                self._item_is_new, self._is_header = True, name == "list-header"
                if self._lists and (start := get("start-value")):
                    self._lists[-1].count = number(start, 1) - 1
            case "table" | "table-row":
                self._tables.start(name)
            case "table-cell" | "covered-table-cell":
                self._tables.start(name)
                repeated = number(get("number-columns-repeated"), 1)
                self._tables.cell.width = min(repeated, _MAX_REPEATS)
                self._tables.cell.height = number(get("number-rows-spanned"), 1)
                self._tables.cell.is_covered = name == "covered-table-cell"
            case "page":
                self.slides.begin()
                if self._styles.hides_page(get("style-name")):
                    self.slides.hide()
                self._pictures = 0
                self._shown.clear()
            case "frame":
                self._is_title = get("class") == "title"
                self._frames.append(_Frame(len(self._paragraphs)))
            case "image" if frame and is_first_in_frame:
                # Any other replaces an object of the frame, such as a table.
                frame.picture = get("href") or "-"
            case "title" | "desc" if frame and frame.depth == len(self._paragraphs):
                self._label = []
            case "object" | "object-ole" if frame:
                self._read_object(get("href").removeprefix("./"))
            case "annotation":
                self._comment = _Comment(get("name"), len(self._paragraphs))
                if self._paragraphs:
                    self._comment.start = self._paragraphs[-1].runs.place()
            case "creator" | "date" if self._comment is not None:
                self._label = []
            case "notes":
                self.write_shapes()
                self.slides.open()
                self._in_notes = True
            case _:
                pass

    def _start_list(self, get: Callable[[str], str]) -> None:
        outer = self._lists[-1] if self._lists else None
        style = get("style-name") or (outer.style if outer else "")
        opened = _List(style, get("id"))
        depth = len(self._lists) + 1
        if outer:
            opened.is_continued = outer.is_continued and self._item_is_new
            before = outer.name or outer.style
        else:
            before = get("continue-list") or style
            opened.is_continued = bool(get("continue-list")) or get("continue-numbering") == "true"
        level = self._styles.list_level(style, depth)
        ended = self._ended.get((before, depth)) if opened.is_continued else None
        opened.count = level.first - 1 if ended is None else ended
        self._lists.append(opened)

    def _start_inline(self, name: str, get: Callable[[str], str], paragraph: _Paragraph) -> None:
        runs = paragraph.runs
        match name:
            case "s":
                runs.add(" " * min(number(get("c"), 1), _MAX_REPEATS))
            case "tab" | "line-break":
                runs.mark(_SIGNS[name])
            case "a":
                self._links.append("%20".join(get("href").split()))
                runs.mark("[")
            case "note":
                self._note = get("id").removeprefix("ftn")
                runs.mark(f"[^{self._note}]")
            case "span":
                paragraph.start_span(self._styles.text(get("style-name")))
            case "change":
                runs.change = Look(struck=True)
                runs.mark(" ".join(self._deleted.pop(get("change-id"), [])))
                runs.change = self._change
            case "change-start" | "change-end":
                inserted = name == "change-start" and get("change-id") in self._insertions
                runs.change = self._change = Look(inserted=inserted)
            case "annotation-end":
                for comment in paragraph.comments:
                    if comment.name == get("name"):
                        comment.words = runs.words(comment.start)
            case "fieldmark":
                self._form = Form(is_box=get("type") == f"{_FIELDS}FORMCHECKBOX")
            case "param" if self._form:
                _take_parameter(self._form, get("name").lower(), get("value"))
            case "drop-down":
                self._form = Form()
            case "label" if self._form:
                if get("current-selected") == "true":
                    self._form.chosen = len(self._form.entries)
                self._form.add_entry(get("value"))
            case _:
                pass

    def end(self, name: str) -> None:
        if self._skipping:
            self._skipping -= 1
            return
        if name not in _ENDS:
            return
        match name:
            case "p" | "h" if self._paragraphs:
                self._write(self._paragraphs.pop())
            case "a" if self._links and self._paragraphs:
                self._paragraphs[-1].runs.mark(f"]({self._links.pop()})")
            case "span" if self._paragraphs:
                self._paragraphs[-1].end_span()
            case "fieldmark" | "drop-down" if self._form and self._paragraphs:
                self._paragraphs[-1].runs.mark(self._form.text())
                self._form = None
            case "tracked-changes":
                self._listing = False
            case _ if name in _STYLES:
                self._in_styles = False
            case "list" if self._lists:
                ended, depth = self._lists.pop(), len(self._lists) + 1
                for key in {ended.name, ended.style} - {""}:
                    self._ended[key, depth] = ended.count
            case "table" | "table-cell" | "covered-table-cell":
                self._tables.end(name)
            case "page":
                self.write_shapes()
                self.slides.end(self._pictures, shown=self._shown)
                self._write_charts()
            case "title" | "desc" if self._frames and self._label is not None:
                self._frames[-1].label = "".join(self._label)
                self._label = None
            case "annotation" if self._comment is not None:
                self._end_comment(self._comment)
            case "creator" if self._comment is not None and self._label is not None:
                self._comment.author = "".join(self._label).strip()
                self._label = None
            case "date":
                self._label = None
            case "notes":
                self._in_notes = False
            case "note":
                self._note = ""
            case _:
                self._end_shape(name)

    def _end_shape(self, name: str) -> None:
        if name == "frame" and self._frames:
            self._is_title = False
            self._write_picture(self._frames.pop())
        if self._open_shapes:
            self._open_shapes.pop()

    def _end_comment(self, comment: _Comment) -> None:
        self._comment = None
        if self._paragraphs:
            self._paragraphs[-1].comments.append(comment)
        elif comment.texts:
            self._notes.append(_common.comment_line(comment.author, " ".join(comment.texts)))

    def text(self, data: str) -> None:
        if self._label is not None:
            self._label.append(data)
        elif self._paragraphs and not self._skipping:
            # Parts of a comment that no version knows yet are no text of the sentence around it.
            if self._comment is not None and len(self._paragraphs) <= self._comment.depth:
                return
            self._add(data, self._paragraphs[-1])

    def _add(self, data: str, paragraph: _Paragraph) -> None:
        if paragraph.hides_words():
            self.hidden += bool(data.strip())
            return
        # White space collapses (section 6.1.2); spaces that count are elements.
        data = _SPACE.sub(" ", data)
        font = paragraph.worn[-1].font
        paragraph.runs.add(seen(data, font) if font or not data.isascii() else data)

    def _write(self, paragraph: _Paragraph) -> None:
        text = paragraph.runs.text()
        if self._listing:
            self._deleted.setdefault(self._region, []).append(text)
            return
        if self._comment is not None:
            self._comment.texts.append(text)
            return
        if self._note:
            self._notes.append(f"[^{self._note}]: {text}")
            return
        if text and self._tables:
            self._tables.add(text)
        elif text:
            self._write_block(text, paragraph)
        for comment in paragraph.comments:
            words = " ".join(comment.texts)
            if words.strip():
                line = _common.comment_line(comment.author, words, comment.words, text)
                (self._tables.add if self._tables else self._notes.append)(line)
        if not self._paragraphs and (self._notes or self._charts):
            for note in self._notes:
                self._put("", partial(self._prose.paragraph, note))
            self._notes.clear()
            if not self.slides.count:
                self._write_charts()

    def write_shapes(self) -> None:
        """Write the shapes of a slide in the order in which they are read."""
        write_all(self._shapes, self._locate)
        self._unplaced.clear()
        self._shapes.clear()
        self._open_shapes.clear()

    def _locate(self) -> None:
        for shape, get in self._unplaced:
            shape.box = _box(get)

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Take a table that ended."""
        text = " ".join(rows[0]) if rows else ""
        opens = [self.slides.open] if self.slides.count else []
        self._put(text, *opens, partial(self._prose.table, rows))

    def _put(self, text: str, *writes: Callable[[], None]) -> None:
        """Write something, on a slide when its shapes are written."""
        if self.slides.count and not self._in_notes:
            if not self._open_shapes:
                self._shapes.append(Shape())
            shape = (self._open_shapes or self._shapes)[-1]
            shape.text = f"{shape.text} {text}"[:_MAX_KEPT].strip()
            shape.writes += writes
        else:
            for write in writes:
                write()

    def _read_object(self, name: str) -> None:
        """Write a formula, or the name of any other object; keep a chart for later."""
        if name not in self._objects:  # a thousand frames may show one object
            content = self._members.tree(f"{name}/content.xml", MAX_MEMBER)
            math = next(content.all("math"), None)
            is_chart = any(chart.get("class") for chart in content.all("chart"))
            if math:
                self._objects[name] = latex(math)
            else:
                self._objects[name] = "" if is_chart else embedded(_kind(content), name)
            if is_chart:
                self._charts.append(content)
        shown = self._objects[name]
        if shown and self._paragraphs:
            self._paragraphs[-1].runs.mark(shown)
        elif shown:
            opens = [self.slides.open] if self.slides.count else []
            self._put(shown, *opens, partial(self._prose.paragraph, shown.strip()))

    def _write_charts(self) -> None:
        while self._charts and not self._tables:
            _common.write_odf_chart(self._charts.pop(0), self._prose)

    def _write_picture(self, frame: _Frame) -> None:
        member = frame.picture.removeprefix("./")
        is_there = member in self._members or member.startswith(("http://", "https://"))
        shown = self._beside.picture(member, frame.label) if is_there else ""
        if self._paragraphs:
            self._paragraphs[-1].runs.mark(shown)
        elif self.slides.count and is_there:
            self._shown.append(shown)
        elif self.slides.count:
            self._pictures += bool(member)
        else:
            self._prose.paragraph(shown)

    def _write_block(self, text: str, paragraph: _Paragraph) -> None:
        if self._in_notes:
            self._prose.paragraph(f"Notes: {text}")
            return
        if self.slides.count:
            self._put(text, partial(self.slides.open, text if self._is_title else ""))
        if self._is_title and self.slides.count:
            return
        if paragraph.level:
            title = f"{self._heading_label(paragraph)} {text}"
            write = partial(self._prose.heading, title, paragraph.level)
        elif self._lists:
            mark = _common.item_mark(self._mark(paragraph))
            write = partial(self._prose.item, text, len(self._lists) - 1, mark)
        else:
            write = partial(self._prose.paragraph, text)
        self._put("", write)

    def _mark(self, paragraph: _Paragraph) -> str:
        """Return the mark of the open item, of a space for its further paragraphs."""
        opened, depth = self._lists[-1], len(self._lists)
        style = opened.style or self._styles.list_of(paragraph.style)
        level = self._styles.list_level(style, depth)
        is_new, self._item_is_new = self._item_is_new, False
        if not is_new or self._is_header:
            return " "
        opened.count += 1
        if level.form:
            return self._numbered(style, level.label, [around.count for around in self._lists])
        return f"- {level.bullet}" if level.bullet else "-"

    def _heading_label(self, paragraph: _Paragraph) -> str:
        """Return the number of a heading: that of its item, or by the style of all headings."""
        if self._lists:
            return self._mark(paragraph).removeprefix("-").strip()
        level = self._styles.list_level(OUTLINE, paragraph.level)
        if not paragraph.is_outline:
            return ""
        above = self._outline[: paragraph.level]
        above += [0] * (paragraph.level - len(above))
        above[-1] += 1
        self._outline = above
        firsts = [self._styles.list_level(OUTLINE, n).first for n in range(1, len(above) + 1)]
        counts = [max(count, 1) - 1 + first for count, first in zip(above, firsts, strict=True)]
        return self._numbered(OUTLINE, level.label, counts) if level.form else ""

    def _numbered(self, style: str, label: str, counts: Sequence[int]) -> str:
        """Return a label with the numbers of its levels, of which there are ``counts``."""

        def shown(place: re.Match[str]) -> str:
            level = int(place[1])
            form = self._styles.list_level(style, level).form
            return numeral(counts[level - 1], form) if form and 0 < level <= len(counts) else ""

        return _NUMBER.sub(shown, label).strip()


class _Tables(Prose):
    """Takes the tables of a document for its reader."""

    def __init__(self, reader: _Reader) -> None:
        super().__init__()
        self._reader = reader

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        self._reader.table(rows)


def _kind(content: Node) -> str:
    """Return what a document is, by the element within its body (section 3.7): spreadsheet."""
    body = next(content.all("body"), content)
    return next((piece.tag for piece in body.pieces if isinstance(piece, Node)), "")


def _is_hidden(get: Callable[[str], str]) -> bool:
    """Return whether a section or a field hides its text (sections 5.4 and 7.7)."""
    display, hidden = get("display"), get("is-hidden") == "true"
    return display == "none" or (hidden and display in {"", "condition"})


def _take_parameter(form: Form, name: str, value: str) -> None:
    """Take a parameter of a form field as LibreOffice writes it."""
    if name.endswith("checkbox_checked"):
        form.chosen = int(value in {"true", "1"})
    elif name.endswith("dropdown_selected"):
        form.chosen = number(value)
    elif name.endswith("dropdown_listentry"):
        form.add_entry(value)


def _box(get: Callable[[str], str]) -> Box | None:
    """Return the place of a shape in centimetres, None if it has none (a group, a line)."""
    values = [_LENGTH.fullmatch(get(name)) for name in ("x", "y", "width", "height")]
    left, top, width, height = (float(v[1]) * _UNITS[v[2]] if v else None for v in values)
    if left is None or top is None:
        return None
    return Box(left, top, left + (width or 0), top + (height or 0))


def _margins(styles: Node) -> list[str]:
    """Return the headers and footers of master pages (section 16.10), each text once."""
    names = [f"{kind}{side}" for kind in ("header", "footer") for side in ("", "-left", "-first")]
    texts = (
        f"{margin.tag.partition('-')[0].capitalize()}: {text}"
        for margin in styles.all(*names)
        for paragraph in margin.all("p", "h")
        if (text := " ".join(_spaced(paragraph).split()))
    )
    return list(islice(dict.fromkeys(texts), _MAX_MARGINS))


def _spaced(node: Node) -> str:
    pieces = (piece if isinstance(piece, str) else _spaced(piece) for piece in node.pieces)
    return " " if node.tag in {"tab", "s", "line-break"} else "".join(pieces)

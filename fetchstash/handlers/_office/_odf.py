"""ODT, ODP and ODG: OpenDocument as Markdown; each slide is a page (OpenDocument 1.3, part 3)."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._html._media import latex
from fetchstash.handlers._office import OfficeReason, _common
from fetchstash.handlers._office._common import PLAIN, Look, Runs, Slides, number
from fetchstash.handlers._parts import Beside, BesideParts
from fetchstash.handlers._prose import OpenTables, Prose, read_prose
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._xml import Node, attribute
from fetchstash.handlers._zip import MAX_MEMBER, Members, Zip

_MAX_MARGINS = 200
# Cells and spaces may repeat, the empty rest of a sheet a million times (section 19.675 f.).
_MAX_REPEATS = 100
# The number of a note (its mark replaces it), and scripts.
_SKIPPED = {"note-citation", "scripts", "event-listeners"}
_INLINE = {"s", "tab", "line-break", "a", "note", "span", "change", "change-start", "change-end"}
_SIGNS = {"tab": "\t", "line-break": "\n"}
_SPACE = re.compile(r"\s+")


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
            yield from read_prose(members.chunks("content.xml"), reader, prose)
            for text in _margins(members.tree("styles.xml", MAX_MEMBER)):
                prose.paragraph(text)
            if reader.slides.count:
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


def _look(get: Callable[[str], str]) -> Look | None:
    """Return how a style lets text look (sections 20.384 and 20.375), None if plain."""
    position = get("text-position").partition(" ")[0]
    script = {"super": "^", "sub": "_"}.get(position, "")
    if not script and position.rstrip("%").lstrip("-").isdecimal() and position.strip("-0%"):
        script = "_" if position.startswith("-") else "^"
    struck = get("text-line-through-style") not in {"", "none"}
    return Look(script, struck) if script or struck else None


class _Reader:
    """Writes the text of content.xml into ``prose``."""

    def __init__(self, prose: Prose, beside: Beside, members: Members) -> None:
        self.slides = Slides(prose)
        self._beside = beside
        self._members = members
        self._pictures = self._skipping = 0
        self._shown: list[str] = []
        self._frames: list[_Frame] = []
        self._charts: list[Node] = []
        self._formulas: dict[str, str] = {}  # "" for an object of another kind
        self._label: list[str] | None = None  # of the open frame or comment
        self._comment: list[str] | None = None
        self._prose = prose
        self._tables = OpenTables(prose, "table", "table-row", "table-cell", "covered-table-cell")
        self._paragraphs: list[tuple[int, Runs]] = []  # level of heading, 0 for text
        self._notes: list[str] = []
        self._note = self._list_style = self._style = ""
        self._links: list[str] = []
        self._numbered: dict[tuple[str, int], bool] = {}  # by style and level
        self._lists: list[str] = []
        self._counts: list[int] = []
        self._item_is_new = self._is_title = self._in_notes = False
        self._looks: dict[str, Look] = {}
        self._spans: list[str] = []
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
            runs = Runs()
            runs.change = self._change
            level = number(get("outline-level"), 1) if name == "h" else 0
            self._paragraphs.append((level, runs))
        elif self._paragraphs and name in _INLINE:
            self._start_inline(name, get, self._paragraphs[-1][1])
        elif name == "tracked-changes":
            self._listing = True
        elif self._listing and name == "changed-region":
            self._region = get("id")
        elif self._listing and name == "insertion":
            self._insertions.add(self._region)
        elif not self._listing:
            self._start_block(name, get)

    def _start_block(self, name: str, get: Callable[[str], str]) -> None:
        frame = self._frames[-1] if self._frames else None
        is_first_in_frame = frame is not None and frame.is_empty
        if frame:
            frame.is_empty = False
        match name:
            case "list":
                self._lists.append(get("style-name"))
                self._counts.append(0)
            case "list-item":
                self._item_is_new = True
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
            case "object" if frame:
                self._read_object(get("href").removeprefix("./"))
            case "annotation":
                self._comment = []
            case "creator" | "date" if self._comment is not None:
                self._label = []
            case "notes":
                self.slides.open()
                self._in_notes = True
            case "style":
                self._style = get("name")
            case "text-properties" if look := _look(get):
                self._looks[self._style] = look
            case "list-style":
                self._list_style = get("name")
            case "list-level-style-number":
                self._numbered[self._list_style, number(get("level"))] = bool(get("num-format"))
            case _:
                pass

    def _start_inline(self, name: str, get: Callable[[str], str], runs: Runs) -> None:
        if name == "s":
            runs.add(" " * min(number(get("c"), 1), _MAX_REPEATS))
        elif name in _SIGNS:
            runs.mark(_SIGNS[name])
        elif name == "a":
            self._links.append(get("href"))
            runs.mark("[")
        elif name == "note":
            self._note = get("id").removeprefix("ftn")
            runs.mark(f"[^{self._note}]")
        elif name == "span":
            self._spans.append(get("style-name"))
            self._wear()
        elif name == "change":
            runs.change = Look(struck=True)
            runs.mark(" ".join(self._deleted.pop(get("change-id"), [])))
            runs.change = self._change
        elif name in {"change-start", "change-end"}:
            inserted = name == "change-start" and get("change-id") in self._insertions
            runs.change = self._change = Look(inserted=inserted)

    def end(self, name: str) -> None:
        if self._skipping:
            self._skipping -= 1
            return
        match name:
            case "p" | "h" if self._paragraphs:
                self._write(*self._paragraphs.pop())
            case "a" if self._links and self._paragraphs:
                self._paragraphs[-1][1].mark(f"]({self._links.pop()})")
            case "span" if self._spans:
                self._spans.pop()
                self._wear()
            case "tracked-changes":
                self._listing = False
            case "list" if self._lists:
                self._lists.pop()
                self._counts.pop()
            case "table" | "table-cell" | "covered-table-cell":
                self._tables.end(name)
            case "page":
                self.slides.end(self._pictures, shown=self._shown)
                self._write_charts()
            case "frame" if self._frames:
                self._is_title = False
                self._write_picture(self._frames.pop())
            case "title" | "desc" if self._frames and self._label is not None:
                self._frames[-1].label = "".join(self._label)
                self._label = None
            case "annotation" if self._comment is not None:
                self._notes += [f"Comment by {': '.join(self._comment)}"] if self._comment else []
                self._comment = None
            case "creator" if self._comment is not None and self._label is not None:
                self._comment.insert(0, "".join(self._label).strip())
                self._label = None
            case "date":
                self._label = None
            case "notes":
                self._in_notes = False
            case "note":
                self._note = ""
            case _:
                pass

    def text(self, data: str) -> None:
        if self._label is not None:
            self._label.append(data)
        elif self._paragraphs and not self._skipping:
            # White space collapses (section 6.1.2); spaces that count are elements.
            self._paragraphs[-1][1].add(_SPACE.sub(" ", data))

    def _wear(self) -> None:
        """Let text look as the innermost open span that has a look."""
        looks = (self._looks[style] for style in reversed(self._spans) if style in self._looks)
        if self._paragraphs:
            self._paragraphs[-1][1].look = next(looks, PLAIN)

    def _write(self, level: int, runs: Runs) -> None:
        text = runs.text()
        if self._listing:
            self._deleted.setdefault(self._region, []).append(text)
            return
        if self._comment is not None:
            self._comment.append(text)
            return
        if self._note:
            self._notes.append(f"[^{self._note}]: {text}")
            return
        if text and self._tables:
            self._tables.add(text)
        elif text:
            self._write_block(text, level)
        if not self._paragraphs:
            for note in self._notes:
                self._prose.paragraph(note)
            self._notes.clear()
            if not self.slides.count:
                self._write_charts()

    def _read_object(self, name: str) -> None:
        if name not in self._formulas:  # a thousand frames may show one object
            content = self._members.tree(f"{name}/content.xml", MAX_MEMBER)
            math = next(content.all("math"), None)
            self._formulas[name] = latex(math) if math else ""
            if not self._formulas[name]:
                self._charts.append(content)
        formula = self._formulas[name]
        if formula and self._paragraphs:
            self._paragraphs[-1][1].mark(formula)
        elif formula:
            if self.slides.count:
                self.slides.open()
            self._prose.paragraph(formula)

    def _write_charts(self) -> None:
        while self._charts and not self._tables:
            _common.write_odf_chart(self._charts.pop(0), self._prose)

    def _write_picture(self, frame: _Frame) -> None:
        member = frame.picture.removeprefix("./")
        is_there = member in self._members or member.startswith(("http://", "https://"))
        shown = self._beside.picture(member, frame.label) if is_there else ""
        if self._paragraphs:
            self._paragraphs[-1][1].mark(shown)
        elif self.slides.count and is_there:
            self._shown.append(shown)
        elif self.slides.count:
            self._pictures += bool(member)
        else:
            self._prose.paragraph(shown)

    def _write_block(self, text: str, level: int) -> None:
        if self._in_notes:
            self._prose.paragraph(f"Notes: {text}")
            return
        self.slides.open(text if self._is_title else "")
        if level:
            self._prose.heading(text, level)
        elif self._lists:
            depth = len(self._lists)
            numbered = self._numbered.get((self._lists[0], depth), False)
            self._counts[-1] += self._item_is_new
            self._prose.item(text, depth - 1, f"{self._counts[-1]}." if numbered else "-")
            self._item_is_new = False
        elif not self._is_title:
            self._prose.paragraph(text)


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

"""RTF: the text of a document, without its styles (Rich Text Format specification 1.9.1)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field as dataclass_field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._office import OfficeReason
from fetchstash.handlers._office._common import MAX_LABEL, comment_line, item_mark
from fetchstash.handlers._office._fields import CHOSE_NONE, Field, Form
from fetchstash.handlers._parts import Streamed
from fetchstash.handlers._prose import Prose
from fetchstash.handlers._symbols import (
    is_symbol_font,
    seen,
    telling_bullet,
    without_private,
)

_MAX_BYTES = 128 * 1024 * 1024
_MAX_DEPTH = 1_000
# Read in some seconds; thousands of pages.
_MAX_TOKENS = 2_000_000
_TOKENS_A_STEP = 1_000
_CODE_PAGES = {
    437, 720, 737, 775, 850, 852, 855, 857, 858, 860, 861, 862, 863, 864, 865, 866, 869, 874, 932,
    936, 949, 950, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258,
}  # fmt: skip

# A control word with its number, a control symbol, a brace, or a run of text (the specification's
# "RTF Syntax": words are of letters in either case).
TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z'])|([{}])"
    rb"|([^\\{}\r\n]+)"
)
# Destinations without text of the document, by the specification's sections. A group that begins
# with \* is left out, too, but not all programs write it.
SKIPPED = {
    # "Header", "Document Properties", "Mail Merge"
    "fonttbl", "fontemb", "falt", "panose", "colortbl", "stylesheet", "filetbl", "revtbl",
    "rsidtbl", "listtable", "listpicture", "listoverridetable", "pgptbl", "xmlnstbl", "mmathPr",
    "generator", "info", "userprops", "themedata", "colorschememapping", "latentstyles",
    "datastore", "defchp", "defpap", "protusertbl", "wgrffmtfilter", "fchars", "lchars",
    "template", "background", "docvar", "private", "mailmerge", "ftnsep", "ftnsepc", "ftncn",
    "aftnsep", "aftnsepc", "aftncn", "passwordhash",
    # "Bullets and Numbering", "Pictures", "Objects", "Drawing Objects"
    "pntxta", "pntxtb", "pict", "nonshppict", "picprop", "blipuid",
    "object", "sp", "do",
    # "Bookmarks", "Index Entries", "Table of Contents Entries", "Comments"
    "bkmkstart", "bkmkend", "datafield", "xe", "txe", "rxe", "tc", "tcn",
    "atnid", "atntime", "atnicn", "atndate", "atnparent",
}  # fmt: skip
_MARGINS = {
    f"{kind}{side}": kind.capitalize() for kind in ("header", "footer") for side in ("", *"lrf")
}
_LABELS = {"listtext", "pntext"}  # the label of a list's item, as its writer shows it
# What is no text of the document and says what a field shows ("Fields", "Form Fields").
_OF_FIELDS = {"fldinst", "formfield", "ffl"}
# Who wrote a comment, its number, and where the words that it is about begin and end ("Comments").
_OF_COMMENTS = {"atnauthor", "atnref", "atrfstart", "atrfend"}
_MAX_COMMENTS = _MAX_NOTES = 10_000
# Texts within a paragraph that are none of it ("Footnotes", "Comments", "Drawing Objects").
_COMMENT, _NOTE, _BOX = "Comment", "Note", "Text box"
_WITHIN = {"annotation": _COMMENT, "footnote": _NOTE, "shptxt": _BOX}
# Code pages by the charset of a font ("Font Table"); 0 is that of the document.
CHARSETS: Mapping[int, int] = {
    128: 932, 129: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258,
    177: 1255, 178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250,
}  # fmt: skip
_MAX_LEVEL = 8  # of lists
_MAX_FIELDS = 100  # that are open
_MAX_ENTRY = 1_000
_MAX_MARGINS = 200
_OF_PARAGRAPHS = {
    "par", "sect", "page", "cell", "row", "nestcell", "nestrow", "pard", "ilvl", "intbl",
    "outlinelevel",
}  # fmt: skip
SIGNS: Mapping[str, str] = {
    "tab": "\t",
    "line": "\n",
    "emdash": "—",
    "endash": "\u2013",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "“",
    "rdblquote": "”",
    "bullet": "•",
    "emspace": " ",
    "enspace": " ",
    "~": " ",
    "_": "-",
    "\\": "\\",
    "{": "{",
    "}": "}",
}


class RtfHandler(Streamed):
    """Reads RTF documents: paragraphs, tables and headings by their outline level."""

    name = "rtf"

    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
        """Yield the parts of ``source``; count hidden runs. Raises NoText if it cannot be read.

        NoText after _MAX_TOKENS tokens is raised behind their text.
        """
        with source.open("rb") as file:
            raw = file.read(_MAX_BYTES)
        if not raw.lstrip().startswith(b"{\\rtf"):
            raise OfficeReason.NO_RTF.error()
        prose = Prose()
        yield from write_rtf(raw, prose, extracted)
        extracted.learn(extraction_truncated=len(raw) == _MAX_BYTES)
        yield from prose.end()


def write_rtf(raw: bytes, prose: Prose, extracted: Extracted) -> Iterator[Part]:
    """Write an RTF document into ``prose``; yield the parts that are full, but not the last one.

    NoText after _MAX_TOKENS tokens is raised behind their text.
    """
    reader = _Reader(prose)
    place = count = 0
    before = -1
    while before < count < _MAX_TOKENS:
        before = count
        for token in islice(TOKEN.finditer(raw, place), _TOKENS_A_STEP):
            count += 1
            place = token.end()
            if data := reader.take(token):
                place += data
                break
        yield from prose.full()
    reader.end()
    extracted.learn(title="".join(reader.title).strip(), hidden_removed=reader.hidden)
    if count >= _MAX_TOKENS:
        yield from prose.rest()
        raise OfficeReason.RTF_TOKENS.error(limit=_MAX_TOKENS)


@dataclass(slots=True)
class _Aside:
    """A text that is none of the paragraph that it stands in, with its label."""

    label: str
    pieces: list[str] = dataclass_field(default_factory=list[str])

    def text(self) -> str:
        """Return the text; that of a box with its line ends."""
        lines = [" ".join(line.split()) for line in "".join(self.pieces).split("\n")]
        return ("\n" if self.label == _BOX else " ").join(filter(None, lines))


@dataclass(frozen=True, slots=True)
class _State:
    """The state that a group inherits: how its text is shown and coded."""

    skipped: bool = False
    hidden: bool = False
    is_title: bool = False
    aside: _Aside | None = None
    is_label: bool = False
    charset: str = "cp1252"
    fallback_chars: int = 1
    font: int = -1
    lists_fonts: bool = False
    of_field: str = ""  # "fldinst" within the code of a field, "ffl" within an entry of its list
    of_comment: str = ""  # "atnauthor" within the name of its author


@dataclass(slots=True)
class _Field:
    """An open field: its depth in groups, and the paragraph and the piece that it begins at."""

    depth: int
    paragraph: int
    piece: int
    field: Field = dataclass_field(default_factory=lambda: Field(form=Form()))
    entry: str = ""

    def add(self, text: str, group: str) -> None:
        """Add text of a group that defines the field's content."""
        if group == "fldinst":
            self.field.add_code(text)
        elif group == "ffl":
            self.entry = (self.entry + text)[:_MAX_ENTRY]

    def end_entry(self) -> None:
        """Add the entry of its list that was read last."""
        if self.field.form:
            self.field.form.add_entry(self.entry.strip())
        self.entry = ""


class _Comments:
    """The comments of the open paragraph, and the words that each is about."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, str, str]] = []
        self._starts: dict[str, tuple[int, int]] = {}
        self._words: dict[str, str] = {}
        self._facts: dict[str, str] = {}
        self._count = 0

    def add_fact(self, text: str, group: str) -> None:
        """Add text of a group that says something about a comment."""
        self._facts[group] = (self._facts.get(group, "") + text)[:_MAX_ENTRY]

    def end_fact(self, group: str, paragraph: int, pieces: Sequence[str]) -> None:
        """Begin or end the words that a comment is about."""
        number = self._facts.get(group, "").strip()
        if group == "atrfstart" and len(self._starts) < _MAX_COMMENTS:
            self._starts[number] = paragraph, len(pieces)
        elif group == "atrfend":
            begun, place = self._starts.pop(number, (-1, 0))
            if begun == paragraph:
                self._words[number] = "".join(pieces[place:])
        if group in {"atrfstart", "atrfend"}:
            self._facts.pop(group, None)

    def end(self, text: str) -> None:
        """End a comment."""
        author = self._facts.pop("atnauthor", "").strip()
        words = self._words.pop(self._facts.pop("atnref", "").strip(), "")
        self._count += 1
        if text and self._count <= _MAX_COMMENTS:
            self._waiting.append((author, text, words))

    def lines(self, paragraph: str) -> list[str]:
        """Return and forget the comments that waited for the end of ``paragraph``."""
        lines = [comment_line(*comment, paragraph) for comment in self._waiting]
        self._waiting.clear()
        return lines


class _Reader:
    """Writes the text of tokens into ``prose``."""

    def __init__(self, prose: Prose) -> None:
        self.prose = prose
        self.title: list[str] = []
        self.hidden = 0
        self._states = [_State()]
        self._fonts: dict[int, str] = {}  # symbol fonts
        self._charsets: dict[int, str] = {}  # of other fonts
        self._label: list[str] = []
        self._list_level = 0
        self._too_deep = 0
        self._is_optional = False
        self._pieces: list[str] = []
        self._paragraphs = 0  # that have ended
        self._fields: list[_Field] = []
        self._bytes = bytearray()
        self._to_skip = 0
        self._level = 0
        self._in_table = False
        self._row: list[str] = []
        self._rows: list[list[str]] = []
        self._margins: dict[str, None] = {}
        self._notes: list[str] = []
        self._boxes: list[str] = []
        self._comments = _Comments()

    def take(self, token: re.Match[bytes]) -> int:
        """Take a token; return how many bytes of binary data follow it."""
        word, number, code, symbol, brace, text = token.groups()
        if code is None:
            self._flush_bytes()
        if word is not None:
            return self._word(word.decode("ascii"), None if number is None else int(number))
        if code is not None:
            if not self._is_skipped():
                self._bytes.append(int(code, 16))
        elif symbol == b"*":
            self._is_optional = True
        elif symbol is not None and symbol in b"\r\n":
            self._end_paragraph()
        elif symbol is not None:
            self._sign(symbol.decode("latin-1"))
        elif brace is not None:
            self._to_skip = 0  # a brace ends what stands for \u ("Unicode RTF")
            if brace == b"}":
                self._close()
            elif len(self._states) < _MAX_DEPTH:
                self._states.append(self._states[-1])
            else:
                self._too_deep += 1
        elif text is not None:
            skipped = min(self._to_skip, len(text))
            self._to_skip -= skipped
            self._write(text[skipped:].decode(self._charset(), "replace"))
        return 0

    def end(self) -> None:
        """Write the open paragraph and table, the notes, the headers and footers of pages."""
        self._in_table = False
        self._end_paragraph()
        self._end_table()
        for number, text in enumerate(self._notes, 1):
            self.prose.paragraph(f"[^{number}]: {text}")
        for text in self._margins:
            self.prose.paragraph(text)

    def _word(self, word: str, number: int | None) -> int:
        state = self._states[-1]
        if word == "f" and number is not None:
            self._change(font=number)
        if word in _OF_FIELDS:
            self._change(skipped=True, of_field=word)
            self._is_optional = False
        elif word in _OF_COMMENTS:
            self._change(skipped=True, of_comment=word)
            self._is_optional = False
        elif word in _WITHIN and (word == "shptxt" or not state.skipped):
            # A box of a header is text of the header.
            aside = state.aside if word == "shptxt" else None
            self._change(aside=aside or _Aside(_WITHIN[word]), skipped=False)
            self._is_optional = False
        elif word in _LABELS:
            self._label.clear()
            self._change(is_label=True)
            self._is_optional = False
        elif self._is_optional or word in SKIPPED:
            self._change(skipped=True, lists_fonts=word == "fonttbl" or state.lists_fonts)
            self._is_optional = False
        elif word in _MARGINS:
            self._change(aside=_Aside(_MARGINS[word]))
        else:
            self._sign(word)
        if state.aside and word in _OF_PARAGRAPHS:  # of its own paragraphs, not the open one
            state.aside.pieces.append("\n")
            return 0
        match word:
            case "par" | "sect" | "page":
                self._end_paragraph()
            case "pard" if not state.is_label:
                self._level, self._in_table, self._list_level = 0, False, 0
            case "ilvl" if number is not None:
                self._list_level = min(max(number, 0), _MAX_LEVEL)
            case "fcharset" if state.lists_fonts and number is not None and number in CHARSETS:
                self._charsets[state.font] = codec(CHARSETS[number])
            case "intbl":
                self._in_table = True
            case "cell" | "nestcell":
                text = self._paragraph()
                beside = [*self._boxes, *self._comments.lines(text)]
                self._row.append("\n".join([text, *beside]).strip())
                self._boxes.clear()
            case "row" | "nestrow":
                self._rows.append(self._row)
                self._row = []
            case "outlinelevel":
                self._level = number + 1 if number is not None and 0 <= number < 9 else 0
            case "u" if number is not None:
                self._write(chr(number % 65_536))
                self._to_skip = state.fallback_chars
            case "uc":
                self._change(fallback_chars=max(number or 0, 0))
            case "ansicpg":
                self._change(charset=codec(number))
            case "v":
                self._change(hidden=number != 0)
            case "title":
                self._change(is_title=True)
            case "field" if len(self._fields) < _MAX_FIELDS:
                place = self._paragraphs, len(self._pieces)
                self._fields.append(_Field(len(self._states), *place))
            case "fftype" | "ffres" | "ffdefres" if self._fields and number is not None:
                _take_form(word, number, self._fields[-1].field.form or Form())
            case "bin":
                return max(number or 0, 0)
            case _:
                pass
        return 0

    def _change(self, **changes: Any) -> None:
        self._states[-1] = replace(self._states[-1], **changes)

    def _close(self) -> None:
        self._is_optional = False
        if self._too_deep:
            self._too_deep -= 1
        elif len(self._states) > 1:
            ended = self._states.pop()
            if self._fields and ended.of_field == "ffl" != self._states[-1].of_field:
                self._fields[-1].end_entry()
            elif self._fields and len(self._states) < self._fields[-1].depth:
                self._end_field(self._fields.pop())
            if ended.of_comment and not self._states[-1].of_comment:
                self._comments.end_fact(ended.of_comment, self._paragraphs, self._pieces)
            if ended.aside and ended.aside is not self._states[-1].aside:
                self._end_aside(ended.aside.label, ended.aside.text())

    def _end_aside(self, label: str, text: str) -> None:
        if label == _COMMENT:
            self._comments.end(text)
        elif text and label == _BOX:
            self._boxes.append(text)
        elif text and label == _NOTE and len(self._notes) < _MAX_NOTES:
            self._notes.append(text)
            self._write(f"[^{len(self._notes)}]")
        elif text and len(self._margins) < _MAX_MARGINS:
            self._margins[f"{label}: {text}"] = None

    def _sign(self, name: str) -> None:
        if name in SIGNS and not self._is_skipped():
            self._write(SIGNS[name])

    def _is_skipped(self) -> bool:
        """Return whether this character is for readers that know no Unicode."""
        self._to_skip -= (skipped := self._to_skip > 0)
        return skipped

    def _flush_bytes(self) -> None:
        """Write the bytes that came as codes; a character may take two of them."""
        if self._bytes:
            data, self._bytes = self._bytes, bytearray()
            self._write(data.decode("latin-1" if self._font() else self._charset(), "replace"))

    def _charset(self) -> str:
        state = self._states[-1]
        return self._charsets.get(state.font, state.charset)

    def _font(self) -> str:
        """Return the symbol font of the text, "" for any other font."""
        return self._fonts.get(self._states[-1].font, "")

    def _write(self, text: str) -> None:
        state = self._states[-1]
        if state.lists_fonts and is_symbol_font(text.partition(";")[0]):
            self._fonts[state.font] = text.partition(";")[0]
        font = self._font()
        text = seen(text, font) if font else without_private(text)
        if state.of_field:
            if self._fields:
                self._fields[-1].add(text, state.of_field)
        elif state.of_comment:
            self._comments.add_fact(text, state.of_comment)
        elif state.is_title:
            self.title.append(text)
        elif state.is_label and not state.skipped:
            self._label.append(text)
        elif state.hidden and not state.skipped:
            self.hidden += 1
        elif state.aside and not state.skipped:
            state.aside.pieces.append(text)
        elif not state.skipped:
            if self._in_table and self._label:
                self._pieces.append(f"{self._item_mark()} ")
            self._pieces.append(text)

    def _end_field(self, ended: _Field) -> None:
        """Make the result of a link a link, and write what a field without a result shows."""
        state = self._states[-1]
        if state.skipped or state.hidden or state.aside or ended.paragraph != self._paragraphs:
            return
        result = "".join(self._pieces[ended.piece :])
        target = ended.field.target()
        if not result.strip():
            self._pieces.append(ended.field.without_result())
        elif target:
            self._pieces[ended.piece :] = [f"[{result}]({target})"]

    def _paragraph(self) -> str:
        """Return the open paragraph and begin a new one. Joins surrogate pairs."""
        self._paragraphs += 1
        text = "".join(self._pieces).strip()
        self._pieces.clear()
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _end_paragraph(self) -> None:
        if self._in_table:
            self._pieces.append("\n")
        else:
            if text := self._paragraph():
                self._write_paragraph(text)
            self._write_beside(text)
        self._label.clear()

    def _write_paragraph(self, text: str) -> None:
        self._end_table()
        if self._level:
            label = " ".join("".join(self._label).split())[:MAX_LABEL]
            numbered = any(map(str.isalnum, label))
            self.prose.heading(f"{label} {text}" if numbered else text, self._level)
        elif self._label:
            self.prose.item(text, self._list_level, self._item_mark())
        else:
            self.prose.paragraph(text)

    def _write_beside(self, text: str) -> None:
        """Write the text boxes and the comments of a paragraph."""
        for line in (*self._boxes, *self._comments.lines(text)):
            self._end_table()
            self.prose.paragraph(line)
        self._boxes.clear()

    def _item_mark(self) -> str:
        """Return the mark of the open item, and end its label."""
        label = "".join(self._label).strip()
        self._label.clear()
        if any(map(str.isalnum, label)):
            return item_mark(label[:MAX_LABEL])
        sign = telling_bullet(label, "")
        return f"- {sign}" if sign else "-"

    def _end_table(self) -> None:
        if self._row:
            self._rows.append(self._row)
        self.prose.table(self._rows)
        self._row, self._rows = [], []


def _take_form(word: str, value: int, form: Form) -> None:
    """Take a property of a form field ("Form Fields")."""
    if word == "fftype":
        form.is_box = value == 1  # 0 is text, 2 a list
    elif word == "ffres":
        form.chosen = None if value == CHOSE_NONE else value
    else:
        form.default = value


def codec(codepage: int | None) -> str:
    """Return the codec of a code page. Unknown numbers are not looked up: that is slow."""
    if codepage == 65_001:
        return "utf-8"
    return f"cp{codepage}" if codepage in _CODE_PAGES else "cp1252"

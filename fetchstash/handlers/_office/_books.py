"""Books, articles and outlines: EPUB 3.3, and JATS and OPML in XML of their own."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._office import OfficeReason
from fetchstash.handlers._office._common import learn_metadata, number
from fetchstash.handlers._parts import Beside, BesideParts, Streamed
from fetchstash.handlers._prose import OpenTables, Prose, read_prose
from fetchstash.handlers._xml import Node, XmlReader, attribute
from fetchstash.handlers._zip import Members, Zip

_MAX_CHAPTER = 16 * 1024 * 1024
# A free book may obfuscate its fonts (OCF, section 4.4); other algorithms lock the text.
_FONT_ALGORITHMS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_PICTURE = re.compile(r"!\[([^\]\n]{0,400})\]\(([^)\n]{1,1000})\)")
_PICTURE_FILES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")


class EpubHandler(BesideParts):
    """Reads books in EPUB 3.3 that carry no rights management: chapters in reading order."""

    name = "epub"

    def read_beside(self, source: Path, extracted: Extracted, beside: Beside) -> Iterator[Part]:
        """Yield the parts of ``source``. Raises NoText if it cannot be read."""
        from fetchstash.handlers._html._reading import whole  # noqa: PLC0415 - imports the HTML parser

        with Zip(source, is_document=True) as container:
            members = Members(container)
            algorithms = members.whole_tree("META-INF/encryption.xml").all("EncryptionMethod")
            if not all(one.get("Algorithm").startswith(_FONT_ALGORITHMS) for one in algorithms):
                raise OfficeReason.BOOK_LOCKED.error()
            package, folder = _package(members)
            learn_metadata(package, extracted, "date")
            empty = True
            notes = _Notes()
            for name in _chapters(package, folder):
                if name not in members:
                    continue
                markup = container.read(members.entries[name], _MAX_CHAPTER)
                chapter = whole(notes.marked(markup.decode("utf-8", "replace"), name))
                extracted.learn(hidden_removed=extracted.facts.hidden_removed + chapter.hidden)
                empty = empty and not chapter.parts
                for part in chapter.parts:
                    yield replace(part, text=_numbered(part.text, name, members, beside))
                if chapter.parts:
                    yield Part("\n")
            for name in members.entries:  # the cover, which no chapter may show
                if name.lower().endswith(_PICTURE_FILES):
                    beside.picture(name)
            if empty:
                raise OfficeReason.BOOK_EMPTY.error()


_LINK = re.compile(r"<a\b([^<>]{0,2000})>((?:[^<]|<(?!/?a\b)){0,200})</a\s*>", re.IGNORECASE)
_IS_NOTE = re.compile(r"""\b(?:epub:type|role)\s*=\s*["'][^"']*\bnoteref\b""")
_HREF = re.compile(r"""\bhref\s*=\s*["']([^"'#]*)#([^"']+)["']""")
_TARGET = re.compile(
    r"""<\w+\b[^<>]*?\bid\s*=\s*["']([^"']{1,200})["'][^<>]*>(?:\s*<p\b[^<>]*>)?"""
)
_RAISED = re.compile(r"<sup\b[^<>]*>\s*(\[\^\d+\])\s*</sup\s*>", re.IGNORECASE)
_MAX_NOTES = 50_000


class _Notes:
    """The notes of a book, numbered as the text refers to them: ``[^1]`` leads to ``[^1]:``."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}  # by chapter and id
        self._told: set[tuple[str, str]] = set()

    def marked(self, markup: str, chapter: str) -> str:
        """Return a chapter with marks for its references to notes, and before its notes.

        Notes say what they are (EPUB 3.3, structural semantics; DPUB-ARIA 1.1: doc-noteref).
        """
        if "noteref" in markup:
            markup = _LINK.sub(lambda link: self._reference(link, chapter), markup)
            markup = _RAISED.sub(r"\1", markup)  # what is raised is an exponent elsewhere
        if any(name == chapter for name, _ in self._numbers):
            markup = _TARGET.sub(lambda tag: self._note(tag, chapter), markup)
        return markup

    def _reference(self, link: re.Match[str], chapter: str) -> str:
        target = _HREF.search(link[1])
        if not target or not _IS_NOTE.search(link[1]) or len(self._numbers) >= _MAX_NOTES:
            return link[0]
        path = posixpath.join(posixpath.dirname(chapter), unquote(target[1]))
        note = (posixpath.normpath(path) if target[1] else chapter), target[2]
        return f"[^{self._numbers.setdefault(note, len(self._numbers) + 1)}]"

    def _note(self, tag: re.Match[str], chapter: str) -> str:
        note = chapter, tag[1]
        if note not in self._numbers or note in self._told:
            return tag[0]
        self._told.add(note)
        return f"{tag[0]}[^{self._numbers[note]}]: "


def _numbered(text: str, chapter: str, members: Members, beside: Beside) -> str:
    """Give the pictures of a chapter the numbers that they have in the list of pictures."""

    def numbered(match: re.Match[str]) -> str:
        label, target = match.groups()
        path = posixpath.join(posixpath.dirname(chapter), unquote(target.strip("<>")))
        member = posixpath.normpath(path)
        return beside.picture(member, label) if member in members else match[0]

    return _PICTURE.sub(numbered, text)


def _package(members: Members) -> tuple[Node, str]:
    """Return the package document that container.xml points to, and its folder.

    OCF, section 4.2.6.3.1; EPUB 3.3, section 5.
    """
    roots = members.whole_tree("META-INF/container.xml").all("rootfile")
    name = next((path for root in roots if (path := root.get("full-path")) in members), "")
    if not name:
        raise OfficeReason.BOOK_MISSING.error()
    return members.whole_tree(name), posixpath.dirname(name)


def _chapters(package: Node, folder: str) -> Iterator[str]:
    """Yield the member names of the chapters in reading order, each once."""
    manifest = {item.get("id"): item.get("href") for item in package.all("item")}
    spine = (manifest.get(item.get("idref")) for item in package.all("itemref"))
    names = (posixpath.join(folder, unquote(address)) for address in spine if address is not None)
    yield from dict.fromkeys(map(posixpath.normpath, names))


_CHUNK = 64 * 1024
_MAX_LEVEL = 6

# Rows and cells of CALS tables, which articles may hold (JATS 1.3, module OASIS); morerows counts
# those below the first, namest and nameend name the first and the last column.
_CALS = {"row": "tr", "entry": "td"}
_MAX_ROWS, _MAX_SPAN = 1_000, 100
_SECTIONS = {"sec", "app", "abstract", "ack", "ref-list", "boxed-text"}
_TITLES = {"title", "article-title", "subtitle"}
_TAKEN = _TITLES | {"td", "th"}
_BLOCKS = {
    "p",
    "mixed-citation",
    "element-citation",
    "citation",
    "kwd",
    "disp-formula",
    "verse-line",
}
_ITEMS = {"list-item", "ref"}
_SKIPPED = {"journal-meta", "custom-meta-group", "history", "permissions"}
_METADATA = {
    "surname": "author",
    "given-names": "author",
    "year": "published",
}
_EMPHASIS = {"italic": "*", "bold": "**"}


class XmlTextHandler(Streamed):
    """Reads articles and outlines as Markdown."""

    name = "xml_text"

    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
        """Yield the parts of ``source``. Raises NoText if it cannot be read."""
        prose = Prose()
        reader = _Reader(prose)
        with source.open("rb") as file:
            chunks = iter(lambda: file.read(_CHUNK), b"")
            yield from read_prose(chunks, reader, prose)
        known = {name: " ".join(" ".join(texts).split()) for name, texts in reader.metadata.items()}
        extracted.learn(
            title=known.get("title", ""),
            author=known.get("author", ""),
            published=known.get("published", "")[:4],
        )
        yield from prose.end()


class _Reader(XmlReader):
    """Writes sections, paragraphs, lists and tables into ``prose``."""

    def __init__(self, prose: Prose) -> None:
        self.metadata: dict[str, list[str]] = {}
        self._prose = prose
        self._open: list[str] = []
        self._level = 1
        self._skipping = 0
        self._pieces: list[list[str]] = []
        self._tables = OpenTables(prose, "table", "tr", "td", "th", leaves_out=True)
        self._outlines = 0
        self._columns: dict[str, int] = {}  # of the table, by name

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipping or name in _SKIPPED:
            self._skipping += 1
            return
        name = _CALS.get(name, name) if self._tables else name
        self._open.append(name)
        self._tables.start(name)
        if name in {"td", "th"}:
            rows = attributes.get("rowspan") or str(number(attributes.get("morerows", "")) + 1)
            self._tables.cell.height = min(number(rows, 1), _MAX_ROWS)
            ends = (attributes.get(end, "") for end in ("namest", "nameend"))
            first, last = (self._columns.get(end, 0) for end in ends)
            columns = max(number(attributes.get("colspan", ""), 1), last - first + 1)
            self._tables.cell.width = min(columns, _MAX_SPAN)
        elif name == "tgroup":
            self._columns = {}
        elif name == "colspec" and attributes.get("colname"):
            self._columns[attributes["colname"]] = len(self._columns)
        if name in _SECTIONS:
            self._level += 1
        elif name in _TAKEN or name in _BLOCKS:
            self._pieces.append([])
        elif name == "outline":
            self._write_outline(attributes)
            self._outlines += 1
        elif self._pieces and name in _EMPHASIS:
            self._pieces[-1].append(_EMPHASIS[name])

    def end(self, name: str) -> None:
        if self._skipping:
            self._skipping -= 1
            return
        name = self._open.pop()
        if name in _SECTIONS:
            self._level -= 1
        elif name in _TITLES and self._pieces:
            self._write_title(name, self._taken())
        elif name in _BLOCKS and self._pieces:
            self._write_block(self._taken())
        elif name in {"td", "th"} and self._pieces:
            self._tables.add(self._taken())
        elif name == "outline":
            self._outlines -= 1
        elif self._pieces and name in _EMPHASIS:
            self._pieces[-1].append(_EMPHASIS[name])
        self._tables.end(name)

    def text(self, data: str) -> None:
        here = self._open[-1] if self._open else ""
        if self._skipping:
            return
        if here in _METADATA and not self._pieces:
            self.metadata.setdefault(_METADATA[here], []).append(data)
        elif self._pieces:
            self._pieces[-1].append(data)

    def _taken(self) -> str:
        return " ".join("".join(self._pieces.pop()).split())

    def _write_title(self, name: str, text: str) -> None:
        if self._pieces:  # the title of a cited work stands within its citation
            self._pieces[-1].append(text)
        elif name == "article-title":
            self.metadata.setdefault("title", []).append(text)
            self._prose.heading(text, 1)
        else:
            self._prose.heading(text, min(self._level, _MAX_LEVEL))

    def _write_block(self, text: str) -> None:
        if self._pieces:
            self._pieces[-1].append(f" {text} ")
        elif self._tables:
            self._tables.add(text)
        elif _ITEMS & set(self._open):
            self._prose.item(text)
        else:
            self._prose.paragraph(text)

    def _write_outline(self, attributes: Mapping[str, str]) -> None:
        text = attribute(attributes, "text") or attribute(attributes, "title")
        address = attribute(attributes, "xmlUrl") or attribute(attributes, "url")
        # Outliners keep the text below an item in an attribute of their own.
        note = attribute(attributes, "_note").split("\n")
        lines = (f"[{text}]({address})" if address else text, *note)
        self._prose.item("\n".join(line for line in lines if line.strip()), self._outlines)

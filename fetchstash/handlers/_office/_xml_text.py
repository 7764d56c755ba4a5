"""Books, articles and outlines in XML of their own: FictionBook, JATS and OPML."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._parts import Streamed
from fetchstash.handlers._prose import OpenTables, Prose, read_prose
from fetchstash.handlers._xml import attribute

_CHUNK = 64 * 1024
_MAX_LEVEL = 6

_SECTIONS = {"section", "sec", "app", "abstract", "ack", "ref-list", "boxed-text"}
_TITLES = {"title", "article-title", "subtitle"}
_BLOCKS = {
    "p", "v", "text-author", "mixed-citation", "element-citation", "citation", "kwd",
    "disp-formula", "verse-line",
}  # fmt: skip
_ITEMS = {"list-item", "ref"}
_SKIPPED = {"binary", "stylesheet", "journal-meta", "custom-meta-group", "history", "permissions"}
_METADATA = {
    "book-title": "title", "lang": "language", "first-name": "author", "last-name": "author",
    "surname": "author", "given-names": "author", "year": "published",
}  # fmt: skip
_EMPHASIS = {"emphasis": "*", "italic": "*", "strong": "**", "bold": "**"}


class XmlTextHandler(Streamed):
    """Reads books, articles and outlines as Markdown."""

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
            language=known.get("language", ""),
            published=known.get("published", "")[:4],
        )
        yield from prose.end()


class _Reader:
    """Writes sections, paragraphs, lists and tables into ``prose``."""

    def __init__(self, prose: Prose) -> None:
        self.metadata: dict[str, list[str]] = {}
        self._prose = prose
        self._open: list[str] = []
        self._level = 1
        self._skipping = 0
        self._pieces: list[list[str]] = []
        self._tables = OpenTables(prose)
        self._outlines = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipping or name in _SKIPPED:
            self._skipping += 1
            return
        self._open.append(name)
        if name in _SECTIONS:
            self._level += 1
        elif name in _TITLES or (name in _BLOCKS and "title" not in self._open[:-1]):
            self._pieces.append([])
        elif name == "table":
            self._tables.start_table()
        elif name == "tr":
            self._tables.start_row()
        elif name in {"td", "th"}:
            self._tables.start_cell()
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
        self._open.pop()
        if name in _SECTIONS:
            self._level -= 1
        elif name in _TITLES and self._pieces:
            self._write_title(name, self._taken())
        elif name in _BLOCKS and "title" in self._open and self._pieces:
            self._pieces[-1].append(" ")
        elif name in _BLOCKS and self._pieces:
            self._write_block(self._taken())
        elif name in {"td", "th"} and self._pieces:
            self._tables.add(self._taken())
            self._tables.end_cell()
        elif name == "table":
            self._tables.end_table()
        elif name == "outline":
            self._outlines -= 1
        elif self._pieces and name in _EMPHASIS:
            self._pieces[-1].append(_EMPHASIS[name])

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

"""EPUB: the chapters of a book in reading order, as Markdown (EPUB 3.3, OCF)."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._shared._beside import Beside, BesideParts
from fetchstash.handlers._shared._xml_events import attribute, walk
from fetchstash.handlers._shared._zip import Entry, Zip

_MAX_MEMBERS = 20_000
_MAX_SMALL_MEMBER = 4 * 1024 * 1024
_MAX_CHAPTER = 16 * 1024 * 1024
# A free book may obfuscate its fonts (OCF, section 4.4); other algorithms lock the text.
_FONT_ALGORITHMS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_PICTURE = re.compile(r"!\[([^\]\n]{0,400})\]\(([^)\n]{1,1000})\)")
_PICTURE_FILES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")
_METADATA = {"title", "creator", "language", "date"}


class EpubHandler(BesideParts):
    """Reads books that carry no rights management."""

    name = "epub"

    def read_beside(self, source: Path, extracted: Extracted, beside: Beside) -> Iterator[Part]:
        """Yield the parts of ``source``. Raises NoText if it cannot be read."""
        from fetchstash.handlers._html._whole import whole  # noqa: PLC0415 - imports the HTML parser

        with Zip(source, is_document=True) as container:
            entries = {entry.name: entry for entry in islice(container.entries(), _MAX_MEMBERS)}
            _refuse_locked(container, entries)
            package = _package(container, entries)
            extracted.learn(
                title=package.metadata.get("title", ""),
                author=package.metadata.get("creator", ""),
                language=package.metadata.get("language", ""),
                published=package.metadata.get("date", "")[:10],
            )
            empty = True
            for name in package.chapters():
                if name not in entries:
                    continue
                markup = container.read(entries[name], _MAX_CHAPTER).decode("utf-8", "replace")
                chapter = whole(markup)
                extracted.learn(hidden_removed=extracted.facts.hidden_removed + chapter.hidden)
                empty = empty and not chapter.parts
                pictures = _Pictures(name, entries, beside)
                for part in chapter.parts:
                    yield replace(part, text=_PICTURE.sub(pictures.numbered, part.text))
                if chapter.parts:
                    yield Part("\n")
            for name in entries:  # the cover, which no chapter may show
                if name.lower().endswith(_PICTURE_FILES):
                    beside.picture(name)
            if empty:
                raise Reason.BOOK_EMPTY.error()


class _Pictures:
    """Gives the pictures of a chapter the numbers that they have in the list of pictures."""

    def __init__(self, chapter: str, entries: Mapping[str, Entry], beside: Beside) -> None:
        self._folder = posixpath.dirname(chapter)
        self._entries = entries
        self._beside = beside

    def numbered(self, match: re.Match[str]) -> str:
        """Return a picture in Markdown with its number; one that is not in the book stays."""
        label, target = match.groups()
        member = posixpath.normpath(posixpath.join(self._folder, unquote(target.strip("<>"))))
        return self._beside.picture(member, label) if member in self._entries else match[0]


def _refuse_locked(container: Zip, entries: Mapping[str, Entry]) -> None:
    if "META-INF/encryption.xml" not in entries:
        return
    algorithms = _Collected("EncryptionMethod", "Algorithm")
    for _ in walk(
        container.chunks(entries["META-INF/encryption.xml"], _MAX_SMALL_MEMBER), algorithms
    ):
        pass
    if not all(name.startswith(_FONT_ALGORITHMS) for name in algorithms.values):
        raise Reason.BOOK_LOCKED.error()


def _package(container: Zip, entries: Mapping[str, Entry]) -> "_Package":
    """Return the package document that container.xml points to (OCF, section 4.2.6.3.1)."""
    roots = _Collected("rootfile", "full-path")
    if "META-INF/container.xml" in entries:
        for _ in walk(
            container.chunks(entries["META-INF/container.xml"], _MAX_SMALL_MEMBER), roots
        ):
            pass
    name = next((root for root in roots.values if root in entries), "")
    if not name:
        raise Reason.BOOK_MISSING.error()
    package = _Package(posixpath.dirname(name))
    for _ in walk(container.chunks(entries[name], _MAX_SMALL_MEMBER), package):
        pass
    return package


class _Collected:
    """Collects an attribute of all elements of a name."""

    def __init__(self, element: str, name: str) -> None:
        self.values: list[str] = []
        self._element = element
        self._name = name

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == self._element:
            self.values.append(attribute(attributes, self._name))

    def end(self, name: str) -> None:
        pass

    def text(self, data: str) -> None:
        pass


class _Package:
    """Collects metadata, manifest and spine of a package document (EPUB 3.3, section 5)."""

    def __init__(self, folder: str) -> None:
        self.metadata: dict[str, str] = {}
        self._folder = folder
        self._manifest: dict[str, str] = {}
        self._spine: list[str] = []
        self._open = ""

    def chapters(self) -> Iterator[str]:
        """Yield the member names of the chapters in reading order, each once."""
        addresses = (self._manifest[number] for number in self._spine if number in self._manifest)
        names = (posixpath.join(self._folder, unquote(address)) for address in addresses)
        yield from dict.fromkeys(map(posixpath.normpath, names))

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._open = name
        if name == "item":
            self._manifest[attribute(attributes, "id")] = attribute(attributes, "href")
        elif name == "itemref":
            self._spine.append(attribute(attributes, "idref"))

    def end(self, name: str) -> None:  # noqa: ARG002 - metadata do not nest
        self._open = ""

    def text(self, data: str) -> None:
        if self._open in _METADATA and data.strip():
            self.metadata.setdefault(self._open, data.strip())

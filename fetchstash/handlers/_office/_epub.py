"""EPUB: the chapters of a book in reading order, as Markdown (EPUB 3.3, OCF)."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._office import OfficeReason
from fetchstash.handlers._office._common import Events, Members
from fetchstash.handlers._shared._parts import Beside, BesideParts
from fetchstash.handlers._shared._xml import attribute
from fetchstash.handlers._shared._zip import Zip

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
        from fetchstash.handlers._html._reading import whole  # noqa: PLC0415 - imports the HTML parser

        with Zip(source, is_document=True) as container:
            members = Members(container)
            algorithms = _Collected("EncryptionMethod", "Algorithm")
            members.read("META-INF/encryption.xml", algorithms)
            if not all(name.startswith(_FONT_ALGORITHMS) for name in algorithms.values):
                raise OfficeReason.BOOK_LOCKED.error()
            package = _package(members)
            extracted.learn(
                title=package.metadata.get("title", ""),
                author=package.metadata.get("creator", ""),
                language=package.metadata.get("language", ""),
                published=package.metadata.get("date", "")[:10],
            )
            empty = True
            for name in package.chapters():
                if name not in members:
                    continue
                markup = container.read(members.entries[name], _MAX_CHAPTER)
                chapter = whole(markup.decode("utf-8", "replace"))
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


def _numbered(text: str, chapter: str, members: Members, beside: Beside) -> str:
    """Give the pictures of a chapter the numbers that they have in the list of pictures."""

    def numbered(match: re.Match[str]) -> str:
        label, target = match.groups()
        path = posixpath.join(posixpath.dirname(chapter), unquote(target.strip("<>")))
        member = posixpath.normpath(path)
        return beside.picture(member, label) if member in members else match[0]

    return _PICTURE.sub(numbered, text)


def _package(members: Members) -> "_Package":
    """Return the package document that container.xml points to (OCF, section 4.2.6.3.1)."""
    roots = _Collected("rootfile", "full-path")
    members.read("META-INF/container.xml", roots)
    name = next((root for root in roots.values if root in members), "")
    if not name:
        raise OfficeReason.BOOK_MISSING.error()
    package = _Package(posixpath.dirname(name))
    members.read(name, package)
    return package


class _Collected(Events):
    """Collects an attribute of all elements of a name."""

    def __init__(self, element: str, name: str) -> None:
        self.values: list[str] = []
        self._element = element
        self._name = name

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == self._element:
            self.values.append(attribute(attributes, self._name))


class _Package(Events):
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

"""EPUB books: their chapters in reading order (EPUB 3.3)."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._office import OfficeReason
from fetchstash.handlers._office._common import learn_metadata
from fetchstash.handlers._parts import Beside, BesideParts
from fetchstash.handlers._xml import Node
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
            for name in _chapters(package, folder):
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

"""Office Open XML packages: parts, relationships and core properties (ECMA-376, part 2)."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from fetchstash.errors import NoText
from fetchstash.handlers._contract import Extracted
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._shared._xml_events import FirstTexts, XmlReader, attribute, walk
from fetchstash.handlers._shared._zip import Entry, Zip

_MAX_PARTS = 20_000
# Of all parts together; a presentation of 1,000 slides has some 5,000. Later ones are left out.
_MAX_RELATIONS = 100_000
# A limit for relationships, styles and properties; the text is streamed.
_MAX_SMALL_PART = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Relation:
    """A relationship: to a part (by its full name) or to an external address.

    ``kind`` is the last word of its type.
    """

    kind: str
    target: str
    external: bool


class Package:
    """The parts of an open zip, by name. A missing part is empty."""

    def __init__(self, container: Zip) -> None:
        self._container = container
        self._entries: dict[str, Entry] = {
            entry.name: entry for entry in islice(container.entries(), _MAX_PARTS)
        }
        self._relations_left = _MAX_RELATIONS
        self._seen: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a part. Raises NoText if it cannot be unpacked."""
        entry = self._entries.get(name)
        return iter(()) if entry is None else self._container.chunks(entry)

    def is_new(self, name: str) -> bool:
        """Return whether this is the first call for ``name``: thousands may refer to one part."""
        if name in self._seen:
            return False
        self._seen.add(name)
        return True

    def relations(self, part: str = "") -> dict[str, Relation]:
        """Return the relationships of a part or of the package, by id (ECMA-376-2, section 6.5)."""
        folder, base = posixpath.split(part)
        reader = _Relations(folder, self._relations_left)
        if self._relations_left:
            self.read_small(posixpath.join(folder, "_rels", f"{base}.rels"), reader)
        self._relations_left = reader.left
        return reader.relations

    def main_part(self, usual: str) -> str:
        """Return the name of the part with the document, which in nearly all files is ``usual``."""
        if usual in self:
            return usual
        for relation in self.relations().values():
            if relation.kind == "officeDocument" and relation.target in self:
                return relation.target
        raise Reason.NO_DOCUMENT.error()

    def read_small(self, name: str, reader: XmlReader) -> None:
        """Read an optional part, up to the first damage if there is any."""
        entry = self._entries.get(name)
        if entry is None:
            return
        try:
            for _ in walk(self._container.chunks(entry, _MAX_SMALL_PART), reader):
                pass
        except NoText:
            return

    def describe(self, extracted: Extracted) -> None:
        """Add title, author, date and language to ``extracted`` (ECMA-376-2, section 8)."""
        properties = FirstTexts()
        self.read_small("docProps/core.xml", properties)
        extracted.learn(
            title=properties.texts.get("title", ""),
            author=properties.texts.get("creator", ""),
            published=properties.texts.get("created", "")[:10],
            language=properties.texts.get("language", ""),
        )


class _Relations:
    """Collects relationships, at most ``left`` of them."""

    def __init__(self, folder: str, left: int) -> None:
        self._folder = folder
        self.left = left
        self.relations: dict[str, Relation] = {}

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name != "Relationship" or not self.left:
            return
        self.left -= 1
        target = attribute(attributes, "Target")
        external = attribute(attributes, "TargetMode") == "External"
        if not external:
            target = posixpath.normpath(posixpath.join("/", self._folder, target)).lstrip("/")
        kind = attribute(attributes, "Type").rpartition("/")[2]
        self.relations[attribute(attributes, "Id")] = Relation(kind, target, external)

    def end(self, name: str) -> None:
        pass

    def text(self, data: str) -> None:
        pass

"""XML: kept as written, with long lines broken between tags; a stream parser counts elements.

Declared entities end the counting, so that they cannot expand (a billion laughs), and no other file
is opened. The text of such a document is kept, too.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from fetchstash.handlers._charset import read_text
from fetchstash.handlers._contract import Extracted, Hints, Part
from fetchstash.handlers._data._xml_values import find
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._shared._part_text import TextParts
from fetchstash.handlers._shared._xml_repair import XmlRepair
from fetchstash.text import clip
from fetchstash.text.ranges import Heading

_LONG_LINE = 160
_MAX_DEPTH = 1_000
_MAX_NAMES = 10_000
_MAX_CHILDREN = 200
_SHOWN_NAMES = 10
# A line may end between a tag and the next start tag, not in comments and CDATA sections (XML 1.0,
# section 2.7).
_BETWEEN_TAGS = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|>[ \t]*(?=<[^/!])", re.DOTALL
)


class XmlHandler(TextParts):
    """Reads XML without a handler of its own."""

    name = "xml"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - text is kept whole
        """Return the text; the facts are root, depth, elements and the children of the root."""
        extracted = Extracted(parts=None)
        extracted.parts = _parts(extracted, read_text(source, hints.charset))
        return extracted

    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the elements, attributes or texts at ``path``, one a line.

        Raises OutOfRange, BadArgument or NoText.
        """
        return "".join(f"{_lines(part)}\n" for part in find(source, path, hints.charset))


def _parts(extracted: Extracted, chunks: Iterator[str]) -> Iterator[Part]:
    elements = _Elements()
    for chunk in chunks:
        text = _lines(chunk)
        elements.feed(text)
        yield Part(text)
    elements.end()
    extracted.learn(structure_info=elements.summary(), outline=tuple(elements.children))


def _lines(text: str) -> str:
    """Return ``text`` with long lines broken before start tags."""
    has_long_line = any(len(line) > _LONG_LINE for line in text.split("\n"))
    return _BETWEEN_TAGS.sub(_with_line_end, text) if has_long_line else text


def _with_line_end(match: re.Match[str]) -> str:
    return ">\n" if match[0][0] == ">" else match[0]


class _Stop(Exception):
    """Ends the parsing."""


class _Elements:
    """Counts the elements of a text, chunk by chunk."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._repair = XmlRepair()
        self._counts: Counter[str] = Counter()
        self._root = ""
        self._depth = self._deepest = 0
        self._ended = ""
        self.children: list[Heading] = []

    def feed(self, text: str) -> None:
        """Count the elements of the next chunk, unless the parsing has ended."""
        self._parse(self._repair.feed(text))

    def end(self) -> None:
        """Count the elements at the end of the text."""
        self._parse(self._repair.end())

    def _parse(self, text: str) -> None:
        if self._ended:
            return
        try:
            self._parser.Parse(text.encode("utf-8", "replace"), False)
        except _Stop as stop:
            self._ended = str(stop)
        except expat.ExpatError:
            self._ended = "not well-formed"

    def summary(self) -> str:
        """Return root, depth and the most frequent elements in one line."""
        common = ", ".join(
            f"{clip(name, 60)} {count:,}" for name, count in self._counts.most_common(_SHOWN_NAMES)
        )
        total = f"{self._counts.total():,} elements"
        size = f"root {clip(self._root, 60)}, depth {self._deepest:,}, {total}"
        described = f"{size}: {common}" if self._root else ""
        return "; ".join(filter(None, (described, self._ended, self._repair.summary())))

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._root = self._root or name
        self._depth += 1
        self._deepest = max(self._deepest, self._depth)
        if self._depth > _MAX_DEPTH:
            raise _Stop(f"nested more than {_MAX_DEPTH:,} deep")
        if name in self._counts or len(self._counts) < _MAX_NAMES:
            self._counts[name] += 1
        if self._depth == 2 and len(self.children) < _MAX_CHILDREN:
            label = attributes.get("id") or attributes.get("name") or ""
            self.children.append(
                Heading(f"{name} {label}".strip(), 1, "lines", self._parser.CurrentLineNumber)
            )

    def _end(self, _name: str) -> None:
        self._depth -= 1

    def _doctype(
        self, _name: str, _system: str | None, _public: str | None, has_subset: bool
    ) -> None:
        if has_subset:
            raise _Stop("not counted further, because it declares entities")

"""XML and SVG: their text, and values by path.

Prefixes of namespaces are ignored, in the document and in the path.

Declared entities end the counting, so that they cannot expand (a billion laughs), and no other file
is opened. The text of such a document is kept, too.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET
from xml.parsers import expat

from fetchstash.handlers._charset import read_text
from fetchstash.handlers._contract import Extracted, Hints, Part, PartRequest, PartText, Picture
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._data._json_values import has_long_lines
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._parts import Reading, Streamed, TextParts, bounded
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._xml import XmlReader, XmlRepair, walk
from fetchstash.text import clip, counted
from fetchstash.text.ranges import Heading

# An element takes some ten times its bytes in the file.
_MAX_BYTES = 32 * 2**20
_PREFIX = re.compile(r"""('[^']*'|"[^"]*")|[\w.-]+:""")
_SUFFIX = re.compile(r"(.*?)/(?:@([\w.-]+)|(text\(\)))$", re.DOTALL)


def find(source: Path, path: str, charset: str) -> Iterator[str]:
    """Yield the matches of ``path``: elements as XML, attributes (``/@name``), texts (``/text()``).

    ``path`` begins with "/" and the root's name, or with "//"; positions count from 1. Raises
    OutOfRange, BadArgument or NoText.
    """
    plain = _PREFIX.sub(r"\1", path)
    suffix = _SUFFIX.match(plain)
    steps, name = (suffix[1], suffix[2]) if suffix else (plain, None)
    document = _tree(source, charset)
    try:
        elements = document.findall(f".{steps}")
    except (SyntaxError, KeyError, ValueError, TypeError) as error:  # of malformed paths
        raise DataReason.BAD_XPATH.error(name=path) from error
    matches = [element for element in elements if name is None or name in element.attrib]
    if not matches:
        raise Reason.NOTHING_THERE.error(name=path)
    for element in matches:
        if name:
            yield element.attrib[name]
        elif suffix:
            yield "".join(element.itertext()).strip()
        else:
            element.tail = None
            yield ET.tostring(element, encoding="unicode")


def _tree(source: Path, charset: str) -> ET.Element:
    """Return a parent of the root, so that a path begins with the name of the root."""
    if source.stat().st_size > _MAX_BYTES:
        raise DataReason.LARGE_FOR_ELEMENTS.error(limit=_MAX_BYTES)
    reader = _Reader()
    chunks = (chunk.encode() for chunk in XmlRepair()(read_text(source, charset)))
    for _ in walk(chunks, reader, encoding="utf-8"):
        pass
    document = ET.Element("document")
    document.append(reader.builder.close())
    return document


class _Reader(XmlReader):
    """Builds the tree."""

    def __init__(self) -> None:
        self.builder = ET.TreeBuilder()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        own = {k.rpartition(":")[2]: v for k, v in attributes.items() if not k.startswith("xmlns")}
        self.builder.start(name, own)

    def end(self, name: str) -> None:
        self.builder.end(name)

    def text(self, data: str) -> None:
        self.builder.data(data)


_MAX_DEPTH = 1_000
_MAX_NAMES = 10_000
_MAX_CHILDREN = 200
_SHOWN_NAMES = 10
# A line may end between a tag and the next start tag, not in comments and CDATA sections (XML 1.0,
# section 2.7).
_BETWEEN_TAGS = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|>[ \t]*(?=<[^/!])", re.DOTALL
)


class XmlHandler(Streamed, TextParts):
    """Reads XML without a handler of its own."""

    name = "xml"

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield the text; the facts are root, depth, elements and the children of the root."""
        elements, repair = _Elements(), XmlRepair()
        for chunk in read_text(source, extracted.hints.charset):
            text = _lines(chunk)
            elements.count(repair.feed(text))
            yield Part(text)
        elements.count(repair.end())
        facts = filter(None, (elements.size(), elements.stopped, repair.summary()))
        extracted.learn(structure_info="; ".join(facts), outline=tuple(elements.children))

    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the elements, attributes or texts at ``path``, one a line.

        Raises OutOfRange, BadArgument or NoText.
        """
        return "".join(f"{_lines(part)}\n" for part in find(source, path, hints.charset))


def _lines(text: str) -> str:
    """Return ``text`` with long lines broken before start tags."""
    if not has_long_lines(text):
        return text
    return _BETWEEN_TAGS.sub(lambda match: ">\n" if match[0][0] == ">" else match[0], text)


class _Stop(Exception):
    """Ends the counting."""


class _Elements:
    """Counts the elements of a text, chunk by chunk, up to the reason why it ``stopped``."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._names: Counter[str] = Counter()
        self._root = ""
        self._depth = self._deepest = 0
        self.stopped = ""
        self.children: list[Heading] = []

    def count(self, text: str) -> None:
        """Count the elements of the next chunk."""
        if self.stopped:
            return
        try:
            self._parser.Parse(text.encode("utf-8", "replace"), False)
        except _Stop as stop:
            self.stopped = str(stop)
        except expat.ExpatError:
            self.stopped = "not well-formed"

    def size(self) -> str:
        """Return root, depth and the most frequent elements in one line, "" if there are none."""
        most = self._names.most_common(_SHOWN_NAMES)
        common = ", ".join(f"{clip(name, 60)} {count:,}" for name, count in most)
        total = f"{counted(self._names.total(), 'element')}: {common}"
        return f"root {clip(self._root, 60)}, depth {self._deepest:,}, {total}" if most else ""

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._root = self._root or name
        self._depth += 1
        self._deepest = max(self._deepest, self._depth)
        if self._depth > _MAX_DEPTH:
            raise _Stop(f"nested more than {_MAX_DEPTH:,} deep")
        if name in self._names or len(self._names) < _MAX_NAMES:
            self._names[name] += 1
        if self._depth == 2 and len(self.children) < _MAX_CHILDREN:
            label = attributes.get("id") or attributes.get("name") or ""
            line = self._parser.CurrentLineNumber
            self.children.append(Heading(f"{name} {label}".strip(), 1, "lines", line))

    def _end(self, _name: str) -> None:
        self._depth -= 1

    def _doctype(
        self, _name: str, _system: str | None, _public: str | None, has_subset: bool
    ) -> None:
        if has_subset:
            raise _Stop("not counted further, because it declares entities")


_SVG_MAX_BYTES = 8 * 1024 * 1024
_HEAD_BYTES = 64 * 1024
_MAX_SCALE = 8.0
_ROOT = re.compile(r"<(?:\w+:)?svg\b[^>]{0,4000}>")
_SIDE = re.compile(r"""\b(width|height)\s*=\s*["']\s*([\d.]{1,10})\s*(?:px)?\s*["']""")
_VIEW = re.compile(
    r"""\bviewBox\s*=\s*["']\s*[-\d.]+[\s,]+[-\d.]+[\s,]+([\d.]{1,10})[\s,]+([\d.]{1,10})"""
)


class SvgHandler:
    """Reads SVG as XML, and draws it."""

    name = "svg"

    def __init__(self) -> None:
        self._xml = XmlHandler()

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the text, as that of other XML, and the size of the drawing."""
        extracted = self._xml.extract(source, hints, limits)
        with source.open("rb") as file:
            width, height = _size(file.read(_HEAD_BYTES).decode("utf-8-sig", "replace"))
        extracted.learn(width=max(round(width), 1), height=max(round(height), 1))
        return extracted

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return elements as text, or all of it as a picture."""
        if request.render != "image" or request.path:
            return self._xml.part(request)
        from PIL import Image  # noqa: PLC0415 - a heavy import

        edge = request.limits.preview.max_image_edge_px
        with Image.open(io.BytesIO(_drawn(request.source, edge)), formats=("PNG",)) as image:
            return bounded(image, request.limits.preview, photo=False)


def _drawn(source: Path, edge: int) -> bytes:
    """Return a PNG whose longer side is at most ``edge`` pixels. Raises NoText."""
    import resvg_py  # noqa: PLC0415 - a heavy import

    if source.stat().st_size > _SVG_MAX_BYTES:
        raise DataReason.SVG_LARGE.error(limit=_SVG_MAX_BYTES)
    markup = source.read_bytes().decode("utf-8-sig", "replace")
    width, height = _size(markup)
    zoom = min(edge / max(width, height), _MAX_SCALE)
    across, down = (max(round(side * zoom), 1) for side in (width, height))
    with Reason.IMAGE_DAMAGED.instead_of(Exception):
        return bytes(
            resvg_py.svg_to_bytes(svg_string=markup, width=across, height=down, background="white")
        )


def _size(markup: str) -> tuple[float, float]:
    """Return width and height of a drawing in its own units, 300 by 150 where it has none."""
    root = _ROOT.search(markup, 0, _HEAD_BYTES)
    sides = dict(_SIDE.findall(root[0])) if root else {}
    view = _VIEW.search(root[0]) if root else None
    across, down = (view[1], view[2]) if view else ("", "")
    width = _number(sides.get("width", "")) or _number(across) or 300.0
    return width, _number(sides.get("height", "")) or _number(down) or 150.0


def _number(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1e6)
    except ValueError:
        return 0.0

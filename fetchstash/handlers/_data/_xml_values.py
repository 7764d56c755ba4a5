"""Parts of XML by path: the abbreviated XPath of ElementTree's documentation.

Prefixes of namespaces are ignored, in the document and in the path.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from fetchstash.handlers._charset import read_text
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._shared._xml_events import walk
from fetchstash.handlers._shared._xml_repair import XmlRepair

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
    except (
        SyntaxError,
        KeyError,
        ValueError,
        TypeError,
    ) as error:  # all are raised for malformed paths
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


class _Reader:
    """Builds the tree."""

    def __init__(self) -> None:
        self.builder = ET.TreeBuilder()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        own = {
            key.rpartition(":")[2]: value
            for key, value in attributes.items()
            if not key.startswith("xmlns")
        }
        self.builder.start(name, own)

    def end(self, name: str) -> None:
        self.builder.end(name)

    def text(self, data: str) -> None:
        self.builder.data(data)

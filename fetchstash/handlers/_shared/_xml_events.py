"""XML as a stream of events, by expat; declarations of entities are refused (XML 1.0, 2.8)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol
from xml.parsers import expat

from fetchstash.handlers._reasons import Reason

_MAX_DEPTH = 1_000
# expat parses an incomplete tag again with each chunk: one of megabytes takes quadratic time.
_MAX_TAG = 1024 * 1024


class XmlReader(Protocol):
    """Takes the events; names come without prefixes."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag; attributes keep their prefixes (see ``attribute``)."""

    def end(self, name: str) -> None:
        """Take an end tag."""

    def text(self, data: str) -> None:
        """Take character data."""


def walk(
    chunks: Iterable[bytes], reader: XmlReader, *, encoding: str | None = None
) -> Iterator[None]:
    """Pass the events of a document to ``reader``; yield after each chunk.

    ``encoding`` is that of the chunks, by default the one that the document declares. Raises NoText
    for damaged XML, declared entities, more than 1,000 levels and a tag larger than a mebibyte.
    """
    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True
    parser.buffer_size = 32 * 1024
    depth = size = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise Reason.XML_DEPTH.error(limit=_MAX_DEPTH)
        reader.start(name[name.find(":") + 1 :], attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        reader.end(name[name.find(":") + 1 :])

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _refuse_entities
    try:
        for chunk in chunks:
            parser.Parse(chunk, False)
            size += len(chunk)
            if size - parser.CurrentByteIndex > _MAX_TAG:
                raise Reason.XML_TAG.error(limit=_MAX_TAG)
            yield
        parser.Parse(b"", True)
        yield
    except expat.ExpatError as error:
        raise Reason.XML_DAMAGED.error(line=error.lineno) from None


def attribute(attributes: Mapping[str, str], name: str) -> str:
    """Return an attribute with any prefix, "" if there is none."""
    for key, value in attributes.items():
        if key == name or key.endswith(f":{name}"):
            return value
    return ""


class FirstTexts:
    """The first text of each element, by its name: enough for metadata, which do not nest."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._open: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:  # noqa: ARG002 - metadata are text
        """Open an element."""
        self._open.append(name)

    def end(self, name: str) -> None:  # noqa: ARG002 - expat checks that it is the open one
        """Close it."""
        self._open.pop()

    def text(self, data: str) -> None:
        """Keep the text of the open element."""
        if self._open and data.strip():
            self.texts.setdefault(self._open[-1], data.strip())


def _refuse_entities(
    _name: str, _system: str | None, _public: str | None, has_subset: bool
) -> None:
    if has_subset:
        raise Reason.XML_ENTITIES.error()

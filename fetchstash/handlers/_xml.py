"""XML of others: events and trees within bounds, and repair of what is not well-formed.

Feeds are full of faults, and a parser must stop at the first (XML 1.0, sections 2.2, 2.4 and 4.1).
Other damage, such as an unclosed tag, stays: its meaning would be a guess.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from html.entities import html5
from typing import Protocol
from xml.parsers import expat

from fetchstash.handlers._reasons import Reason
from fetchstash.text import counted

_MAX_DEPTH = 1_000
# expat parses an incomplete tag again with each chunk: one of megabytes takes quadratic time.
_MAX_TAG = 1024 * 1024
_MAX_NODES = 200_000
_MAX_TREE_DEPTH = 41  # with the node of the document

Tag = tuple[str, Callable[[str], str]]
"""The name of a start tag, and what gives its attributes by their names without prefixes."""


class XmlReader(Protocol):
    """Takes the events; names come without prefixes.

    ``unread`` are frequent elements that say nothing to the reader, though others in them may:
    two of three elements of a presentation are such, and each call would cost a microsecond.
    """

    unread: frozenset[str] = frozenset()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag; attributes keep their prefixes (see ``attribute``)."""

    def end(self, name: str) -> None:  # noqa: ARG002 - for who takes it
        """Take an end tag."""
        return

    def text(self, data: str) -> None:  # noqa: ARG002 - as above
        """Take character data."""
        return


class _LocalNames(dict[str, str]):
    """Names without their prefixes, each cut once; expat keeps each name of a document as well.

    Those of unread elements are "".
    """

    def __init__(self, unread: frozenset[str]) -> None:
        super().__init__()
        self._unread = unread

    def __missing__(self, name: str) -> str:
        local = name[name.find(":") + 1 :]
        self[name] = "" if local in self._unread else local
        return self[name]


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
    names = _LocalNames(reader.unread)
    take_start, take_end = reader.start, reader.end

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise Reason.XML_DEPTH.error(limit=_MAX_DEPTH)
        if local := names[name]:
            take_start(local, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        if local := names[name]:
            take_end(local)

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
    except LookupError as error:
        if type(error) is not LookupError:
            raise  # of a reader: no encoding that expat asked Python for
        raise Reason.XML_DAMAGED.error(line=1) from None


def attribute(attributes: Mapping[str, str], name: str) -> str:
    """Return an attribute with any prefix, "" if there is none."""
    if name in attributes:
        return attributes[name]
    suffix = f":{name}"
    for key, value in attributes.items():
        if key.endswith(suffix):
            return value
    return ""


def _refuse_entities(
    _name: str, _system: str | None, _public: str | None, has_subset: bool
) -> None:
    if has_subset:
        raise Reason.XML_ENTITIES.error()


class Node:
    """An element of XML: its name without a prefix, its attributes, and what is in it."""

    __slots__ = ("attributes", "pieces", "tag")

    def __init__(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.pieces: list[Node | str] = []

    def get(self, name: str) -> str:
        """Return an attribute with any prefix, "" if there is none."""
        return attribute(self.attributes, name)

    def iter(self) -> "list[Node]":
        """Return the elements directly in it."""
        return [piece for piece in self.pieces if isinstance(piece, Node)]

    def all(self, *names: str) -> "Iterator[Node]":
        """Yield the elements of these names within it, at any depth, in order."""
        for node in self.iter():
            if node.tag in names:
                yield node
            yield from node.all(*names)

    def text(self, *, deep: bool = True) -> str:  # noqa: ARG002 - always deep
        """Return all text in it."""
        return "".join(p if isinstance(p, str) else p.text() for p in self.pieces)


class Tree(XmlReader):
    """Builds a tree of the events, without what is nested too deeply or beyond the limit."""

    def __init__(self, limit: int = _MAX_NODES) -> None:
        self.root = Node("", {})
        self._open = [self.root]
        self._left = limit
        self._skipping = 0

    def __bool__(self) -> bool:
        """Return whether an element is open."""
        return len(self._open) > 1 or bool(self._skipping)

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        self._left -= 1
        if self._skipping or self._left < 0 or len(self._open) > _MAX_TREE_DEPTH:
            self._skipping += 1
            return
        node = Node(name, attributes)
        self._open[-1].pieces.append(node)
        self._open.append(node)

    def end(self, name: str) -> None:  # noqa: ARG002 - expat checks that it is the open one
        """Take an end tag."""
        if self._skipping:
            self._skipping -= 1
        else:
            self._open.pop()

    def text(self, data: str) -> None:
        """Take character data."""
        self._open[-1].pieces.append(data)


class Tags(XmlReader):
    """Collects start tags of some names, of all by default."""

    def __init__(self, names: Container[str] | None = None) -> None:
        self.tags: list[Tag] = []
        self._names = names

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        if self._names is None or name in self._names:
            self.tags.append((name, partial(attribute, attributes)))


_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# Ampersands are allowed in comments and CDATA sections.
_MARKUP = re.compile(
    r"<!\[CDATA\[|<!--|&(?!(?:amp|lt|gt|quot|apos);)(?:#(\d{1,8}|[xX][0-9a-fA-F]{1,8});|([A-Za-z]\w{1,31});)?"
)
_ENDS = {"<![CDATA[": "]]>", "<!--": "-->"}
# A chunk may end within a reference or a mark, which is no longer than this.
_KEPT_BACK = 40
_START_OF_MARKUP = re.compile(r"[&<\]-][^;<>]*\Z")


class XmlRepair:
    """Repairs the chunks of one document, and counts the repairs."""

    def __init__(self) -> None:
        self.count = 0
        self._awaited = ""
        self._kept = ""

    def __call__(self, chunks: Iterable[str]) -> Iterator[str]:
        """Yield the chunks of a document, repaired."""
        for chunk in chunks:
            yield self.feed(chunk)
        yield self.end()

    def feed(self, chunk: str) -> str:
        """Return the next chunk, repaired; a mark that may be cut waits for the next chunk."""
        text = self._kept + chunk
        start = _START_OF_MARKUP.search(text, max(len(text) - _KEPT_BACK, 0))
        end = start.start() if start else len(text)
        self._kept = text[end:]
        return self._repair(text[:end])

    def end(self) -> str:
        """Return the characters that waited, repaired."""
        return self._repair(self._kept)

    def summary(self) -> str:
        """Return "repaired in 3 places", "" if nothing was repaired."""
        return f"repaired in {counted(self.count, 'place')}" if self.count else ""

    def _repair(self, text: str) -> str:
        text, controls = _CONTROL.subn("", text)
        self.count += controls
        pieces: list[str] = []
        at = 0
        while at < len(text):
            if self._awaited:
                close = text.find(self._awaited, at)
                end = close + len(self._awaited) if close >= 0 else len(text)
                self._awaited = "" if close >= 0 else self._awaited
                pieces.append(text[at:end])
            else:
                mark = _MARKUP.search(text, at)
                end = mark.end() if mark else len(text)
                pieces.append(text[at : mark.start()] if mark else text[at:])
                if mark:
                    self._awaited = _ENDS.get(mark[0], "")
                    mended = mark[0] if self._awaited else _mended(mark)
                    self.count += mended != mark[0]
                    pieces.append(mended)
            at = end
        return "".join(pieces)


def _mended(reference: re.Match[str]) -> str:
    """Return a reference that XML knows: this one, its character, or an escaped ampersand."""
    number, name = reference[1], reference[2]
    if number:
        code = int(number[1:], 16) if number[0] in "xX" else int(number)
        # The characters that XML allows (XML 1.0, section 2.2).
        allowed = code in (9, 10, 13) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE
        return reference[0] if allowed or 2**16 <= code < 0x110000 else ""
    meant = html5.get(f"{name};", "") if name else ""
    if meant:
        return meant.replace("&", "&amp;").replace("<", "&lt;")
    return f"&amp;{reference[0][1:]}"

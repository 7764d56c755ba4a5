"""What documents share: members of a container, trees of XML, runs of text, slides."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby, islice
from typing import NamedTuple

from fetchstash.errors import NoText
from fetchstash.handlers._contract import Extracted
from fetchstash.handlers._shared._prose import Prose
from fetchstash.handlers._shared._xml import XmlReader, attribute, counted, walk
from fetchstash.handlers._shared._zip import MAX_MEMBER, Zip

_MAX_MEMBERS = 20_000
# A limit for metadata, styles and relationships; the text is streamed.
_MAX_SMALL_MEMBER = 32 * 1024 * 1024
_MAX_NODES = 200_000
_MAX_DEPTH = 41  # with the node of the document
_MAX_SCRIPT = 30
_MAX_DESCRIPTIONS = 20
_MAX_ROWS, _MAX_COLUMNS = 5_000, 100  # of the data of a chart
# What is raised and no exponent: marks of notes and trademarks, endings of ordinals.
_MARKS = "*†‡§®™©()[]"
_ORDINALS = frozenset(("st", "nd", "rd", "th", "er", "re", "e", "ème", "a", "o", "as", "º", "ª"))

Tag = tuple[str, Callable[[str], str]]
"""The name of a start tag, and what gives its attributes by their names without prefixes."""


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
        if self._skipping or self._left < 0 or len(self._open) > _MAX_DEPTH:
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


class _Tags(XmlReader):
    def __init__(self) -> None:
        self.tags: list[Tag] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self.tags.append((name, partial(attribute, attributes)))

    def end(self, name: str) -> None:  # noqa: ARG002 - start tags alone
        return

    def text(self, data: str) -> None:  # noqa: ARG002 - as above
        return


class Members:
    """The members of an open zip container, by name. A missing one is empty."""

    def __init__(self, container: Zip) -> None:
        self.container = container
        self.entries = {entry.name: entry for entry in islice(container.entries(), _MAX_MEMBERS)}

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def chunks(self, name: str, limit: int = MAX_MEMBER) -> Iterator[bytes]:
        """Yield the content of a member of at most ``limit`` bytes. Raises NoText if damaged."""
        return self.container.chunks(self.entries[name], limit) if name in self else iter(())

    def tags(self, name: str) -> Iterator[Tag]:
        """Yield the start tags of a member, up to the first damage."""
        reader = _Tags()
        with suppress(NoText):
            for _ in walk(self.chunks(name, _MAX_SMALL_MEMBER), reader) if name in self else ():
                yield from reader.tags
                reader.tags.clear()
        yield from reader.tags

    def read(self, name: str, reader: XmlReader, limit: int = 4 * 2**20) -> None:
        """Pass a member of at most ``limit`` bytes to ``reader``. Raises NoText if damaged."""
        for _ in walk(self.chunks(name, limit), reader) if name in self else ():
            pass

    def read_small(self, name: str, reader: XmlReader) -> None:
        """Pass a member to ``reader``, up to the first damage."""
        with suppress(NoText):
            self.read(name, reader, _MAX_SMALL_MEMBER)

    def tree(self, name: str, limit: int = _MAX_SMALL_MEMBER) -> Node:
        """Return the document node of a member, with what stands before the first damage."""
        tree = Tree()
        with suppress(NoText):
            self.read(name, tree, limit)
        return tree.root

    def whole_tree(self, name: str) -> Node:
        """Return the document node of a member. Raises NoText if it is damaged."""
        tree = Tree()
        self.read(name, tree)
        return tree.root


def number(text: str, default: int = 0) -> int:
    """Return a whole number without a sign; ``default`` for any other text, and a very long one."""
    return int(text) if text.isdecimal() and len(text) < 16 else default


def learn_metadata(described: Node, extracted: Extracted, date: str) -> None:
    """Add title, author, language and date (an element ``date``) to ``extracted``."""
    texts: dict[str, str] = {}
    for node in described.all("title", "initial-creator", "creator", "language", date):
        if text := node.text().strip():
            texts.setdefault(node.tag, text)
    extracted.learn(
        title=texts.get("title", ""),
        author=texts.get("initial-creator") or texts.get("creator", ""),
        published=texts.get(date, "")[:10],
        language=texts.get("language", ""),
    )


class Look(NamedTuple):
    """How a run stands in its text: ``script`` is "^" or "_"; tracked changes are ins or del."""

    script: str = ""
    struck: bool = False
    inserted: bool = False


PLAIN = Look()


class Runs:
    """The runs of one paragraph; those that look alike become one.

    ``look`` is how text looks from here on, ``change`` the tracked change that it belongs to.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[str, Look]] = []
        self.look = PLAIN
        self.change = PLAIN

    def add(self, text: str) -> None:
        """Add text as it looks now."""
        struck = self.look.struck or self.change.struck
        self._runs.append((text, Look(self.look.script, struck, self.change.inserted)))

    def mark(self, text: str) -> None:
        """Add text that looks plain: a bracket, a line end, a formula."""
        self._runs.append((text, self.change))

    def link(self, target: str) -> None:
        """Make the last text a link."""
        if self._runs:
            text, look = self._runs[-1]
            self._runs[-1] = f"[{text}]({target})", look

    def text(self) -> str:
        """Return all of it as Markdown."""
        return _written(self._runs, "", ("inserted", "struck", "script")).strip()


def _written(runs: Sequence[tuple[str, Look]], before: str, looks: Sequence[str]) -> str:
    """Return runs that stand behind ``before``; those of one look (the first) share its marks."""
    if not looks:
        return "".join(text for text, _ in runs)
    text = ""
    for look, group in groupby(runs, key=lambda run: getattr(run[1], looks[0])):
        inner = _written(list(group), before + text, looks[1:])
        if look and looks[0] == "script":
            text += _script(look, inner) if (before + text).strip() else inner
        elif look:
            marks = ("~~", "~~") if looks[0] == "struck" else ("<ins>", "</ins>")
            text += _between(inner, *marks)
        else:
            text += inner
    return text


def _script(mark: str, text: str) -> str:
    """Return ``x^2``, ``10^{-3}``, ``CO_2``; marks and endings of ordinals as they are."""
    plain = text.strip()
    if not plain.strip(_MARKS) or len(plain) > _MAX_SCRIPT or plain.lower() in _ORDINALS:
        return text
    trailing = text[len(text.rstrip()) :]
    return (f"{mark}{plain}" if len(plain) == 1 else f"{mark}{{{plain}}}") + trailing


def _between(text: str, begin: str, end: str) -> str:
    """Return text between marks, the spaces at its ends outside; blank text has none."""
    plain = text.strip()
    return text.replace(plain, f"{begin}{plain}{end}", 1) if plain and end not in plain else text


class Slides:
    """Writes slides into ``prose``: a page each, with number, title and the count of pictures."""

    def __init__(self, prose: Prose) -> None:
        self.count = 0
        self._pictures = 0
        self._prose = prose
        self._opening = ""

    def begin(self) -> None:
        """Begin a slide. Its heading waits for the first text, which may be the title."""
        self.count += 1
        self._prose.page()
        self._opening = f"Slide {self.count}"

    def open(self, title: str = "") -> None:
        """Write the heading of the slide unless it is written; another title gets its own."""
        if self._opening:
            self._prose.heading(f"{self._opening}: {title}" if title else self._opening, 2)
            self._opening = ""
        elif title:
            self._prose.heading(title, 3)

    def end(
        self, pictures: int, descriptions: Sequence[str] = (), shown: Sequence[str] = ()
    ) -> None:
        """End a slide: ``shown`` are its pictures as Markdown.

        ``pictures`` counts those that cannot be shown, and ``descriptions`` are theirs.
        """
        self.open()
        self._pictures += pictures + len(shown)
        self._prose.paragraph("\n".join(filter(None, shown)))
        described = "; ".join(" ".join(text.split()) for text in descriptions[:_MAX_DESCRIPTIONS])
        if pictures:
            described = f": {described}" if described else ""
            self._prose.paragraph(f"({counted(pictures, 'picture')}{described})")

    def learn(self, extracted: Extracted) -> None:
        """Add the numbers of slides and pictures to ``extracted``."""
        summary = counted(self.count, "slide")
        if self._pictures:
            summary += f", {counted(self._pictures, 'picture')}"
        extracted.learn(pages=self.count, structure_info=summary)


def write_odf_chart(content: Node, prose: Prose) -> None:
    """Write a chart of OpenDocument (section 11), its title and its data; nothing else."""
    kinds = [kind for chart in content.all("chart") if (kind := chart.get("class"))]
    if kinds:
        caption = f"Chart ({kinds[-1].rpartition(':')[2]})"
        title = "".join(title.text() for title in content.all("title")).strip()
        prose.paragraph(f"{caption}: {title}" if title else caption)
        rows = islice(content.all("table-row"), _MAX_ROWS)
        prose.table(
            [[cell.text() for cell in islice(row.all("table-cell"), _MAX_COLUMNS)] for row in rows]
        )

"""Elements of a page: a small tree of our own, which the other modules read."""

import re
from collections.abc import Iterator

from fetchstash.handlers._html._names import names

BLOCKS = names(
    "address article aside blockquote body caption center dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu "
    "nav ol p pre search section summary table tbody td tfoot th thead tr ul"
)
"""Block-level elements: each begins a line of its own."""
CODE_TAGS = frozenset(("code", "tt", "kbd", "samp"))
_OF_CODE = frozenset(("line", "foldopen", "ttc"))
_HOLDS_CODE = re.compile(r"code|fragment|highlight|listing|syntax", re.IGNORECASE)
HEADINGS = {f"h{level}": level for level in range(1, 7)}


class Element:
    """An element of a page.

    ``children`` are elements and texts in document order. ``holds_blocks`` says whether a
    block-level element is inside.
    """

    __slots__ = ("attributes", "children", "holds_blocks", "parent", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], parent: "Element | None") -> None:
        self.tag = tag
        self.attributes = attributes
        self.parent = parent
        self.children: list[Element | str] = []
        self.holds_blocks = False

    def elements(self) -> Iterator["Element"]:
        """Yield the child elements."""
        return (child for child in self.children if not isinstance(child, str))

    def descendants(self) -> Iterator["Element"]:
        """Yield all elements inside, in document order."""
        pending = self.children[::-1]
        while pending:
            child = pending.pop()
            if not isinstance(child, str):
                yield child
                pending += child.children[::-1]

    def ancestors(self) -> Iterator["Element"]:
        """Yield the elements around this one, the nearest first."""
        element = self.parent
        while element is not None:
            yield element
            element = element.parent

    def texts(self) -> Iterator[str]:
        """Yield all texts inside as they stand, in document order."""
        pending = self.children[::-1]
        while pending:
            child = pending.pop()
            if isinstance(child, str):
                yield child
            else:
                pending += child.children[::-1]

    def text(self) -> str:
        """Return the text inside, its white space collapsed."""
        return " ".join("".join(self.texts()).split())


def is_read(element: Element) -> bool:
    """Return whether an element is text, and not a control or the stand-in for scripts.

    A button is text if it opens a panel: a question of a FAQ, the label of a tab.
    """
    if element.tag != "button":
        return element.tag != "noscript"
    attributes = element.attributes
    return (
        "aria-controls" in attributes
        or "aria-expanded" in attributes
        or attributes.get("role") == "tab"
        or "accordion" in attributes.get("class", "")
    )


def is_code(element: Element) -> bool:
    """Return whether an element is a block of code: a ``pre``, or a ``div`` of one ``div`` a line.

    Doxygen writes ``div.fragment > div.line``, SyntaxHighlighter ``td.code > div > div.line``.
    """
    if element.tag != "div":
        return element.tag == "pre"
    first = next(element.elements(), None)
    if first is None or _OF_CODE.isdisjoint(classes(first)):
        return False
    around = (element, element.parent) if element.parent is not None else (element,)
    if not any(_HOLDS_CODE.search(holder.attributes.get("class", "")) for holder in around):
        return False
    return all(
        child.isspace() if isinstance(child, str) else not _OF_CODE.isdisjoint(classes(child))
        for child in element.children
    )


def lines_of_code(element: Element) -> Iterator[Element]:
    """Yield the lines of a ``div`` of code, without the tips that Doxygen shows over names."""
    for child in element.elements():
        if "line" in (names_of := classes(child)):
            yield child
        elif "ttc" not in names_of:
            yield from lines_of_code(child)


def classes(element: Element) -> list[str]:
    """Return the names of an element's classes."""
    return element.attributes.get("class", "").split()


Node = Element | str
"""A child of an element: an element or a text."""

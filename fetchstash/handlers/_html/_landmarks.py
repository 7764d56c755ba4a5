"""Where a page itself says what its content is and what stands around it: HTML's sections and ARIA's landmarks.

HTML Standard, 4.3; WAI-ARIA 1.2, 5.3.4.
"""

from collections.abc import Sequence
from typing import NamedTuple

from fetchstash.handlers._html._blocks import Block
from fetchstash.handlers._html._names import names
from fetchstash.handlers._html._tree import Element

_CHROME = names("nav header footer aside form menu search")
_CHROME_ROLES = names("navigation banner contentinfo complementary search menu menubar dialog")
_CONTENT = names("main article")
_MIN_SHARE = 0.3
"""Of the text outside of the chrome; where ``main`` and ``article`` hold less they are not what the page is about."""


class Place(NamedTuple):
    """Whether a block stands in the page's chrome, and whether in what is marked as content."""

    chrome: bool
    content: bool


_NOWHERE = Place(chrome=False, content=False)


def places(blocks: Sequence[Block]) -> list[Place]:
    """Return where each block stands."""
    known: dict[Element, Place] = {}
    found: list[Place] = []
    for block in blocks:
        chain: list[Element] = []
        element: Element | None = block.parent
        while element is not None and element not in known:
            chain.append(element)
            element = element.parent
        place = known[element] if element is not None else _NOWHERE
        for inner in reversed(chain):
            place = known[inner] = _inside(inner, place)
        found.append(place)
    return found


def _inside(element: Element, around: Place) -> Place:
    role = element.attributes.get("role", "")
    content = around.content or element.tag in _CONTENT or role == "main"
    # The header of an article is its title and author.
    is_chrome = role in _CHROME_ROLES or (
        element.tag in _CHROME and not (element.tag == "header" and around.content)
    )
    return Place(around.chrome or is_chrome, content)


def by_rules(blocks: Sequence[Block], where: Sequence[Place]) -> list[bool]:
    """Return which blocks stand outside of the page's chrome, and of these inside of what is marked as content if anything is."""
    outside = [not place.chrome for place in where]
    if not any(outside):
        return [True] * len(blocks)
    inside = [out and place.content for out, place in zip(outside, where, strict=True)]
    sizes = [len(block.words) for block in blocks]
    marked = sum(size for size, one in zip(sizes, inside, strict=True) if one)
    return (
        inside
        if marked > _MIN_SHARE * sum(size for size, one in zip(sizes, outside, strict=True) if one)
        else outside
    )

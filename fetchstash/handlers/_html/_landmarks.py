"""Choose content by rules: HTML's sections and ARIA's landmarks.

HTML Standard, 4.3; WAI-ARIA 1.2, 5.3.4.
"""

from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

from fetchstash.handlers._html._blocks import Block
from fetchstash.handlers._html._element import Element
from fetchstash.handlers._html._names import names

_CHROME = names("nav header footer aside form menu search")
_CHROME_ROLES = names("navigation banner contentinfo complementary search menu menubar dialog")
_CONTENT = names("main article")
_MIN_SHARE = 0.3
"""Of the text outside the chrome. If ``main`` and ``article`` hold less, they are ignored."""


class Place(NamedTuple):
    """Whether a block stands in the chrome, and whether in an element marked as content."""

    chrome: bool
    content: bool


_NOWHERE = Place(chrome=False, content=False)


def places(blocks: Sequence[Block]) -> list[Place]:
    """Return where each block stands."""
    known: dict[Element, Place] = {}
    result: list[Place] = []
    for block in blocks:
        chain: list[Element] = []
        element: Element | None = block.parent
        while element is not None and element not in known:
            chain.append(element)
            element = element.parent
        place = known[element] if element is not None else _NOWHERE
        for inner in reversed(chain):
            place = known[inner] = _inside(inner, place)
        result.append(place)
    return result


def _inside(element: Element, around: Place) -> Place:
    role = element.attributes.get("role", "")
    content = around.content or element.tag in _CONTENT or role == "main"
    # The header of an article is its title and author.
    is_chrome = role in _CHROME_ROLES or (
        element.tag in _CHROME and not (element.tag == "header" and around.content)
    )
    return Place(around.chrome or is_chrome, content)


def by_rules(blocks: Sequence[Block], where: Sequence[Place]) -> list[bool]:
    """Return which blocks are content.

    Blocks in the chrome are not. Where enough text is marked as content, only that is.
    """
    outside = [not place.chrome for place in where]
    if not any(outside):
        return [True] * len(blocks)
    inside = [place.content and not place.chrome for place in where]
    sizes = [len(block.words) for block in blocks]
    return (
        inside
        if sum(compress(sizes, inside)) > _MIN_SHARE * sum(compress(sizes, outside))
        else outside
    )

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
_QUOTING = names("blockquote figure")
"""Elements whose own header and footer name the source."""
_FIXED = names("nav footer menu")
"""Chrome even on a page that has little else, such as a form."""
_MIN_OUTSIDE = 0.2
"""Of the page's text. If less stands outside the chrome, only _FIXED chrome is left out."""
_CHROME_ROLES = names("navigation banner contentinfo complementary search menu menubar dialog")
_CONTENT = names("main article")
_TELLING = _CHROME | _CONTENT
_MIN_SHARE = 0.3
"""Of the text outside the chrome. If ``main`` and ``article`` hold less, they are ignored."""


class Place(NamedTuple):
    """Whether a block stands in the chrome, and whether in an element marked as content.

    ``fixed``: the chrome is navigation or a footer.
    """

    chrome: bool
    content: bool
    fixed: bool


_NOWHERE = Place(chrome=False, content=False, fixed=False)


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
    tag = element.tag
    role = element.attributes.get("role", "")
    if not role and tag not in _TELLING:
        return around
    # The header of an article is its title and author; the footer of a quotation its source.
    is_own = (tag == "header" and around.content) or (
        tag in {"header", "footer"} and any(a.tag in _QUOTING for a in element.ancestors())
    )
    content = around.content or tag in _CONTENT or role == "main"
    is_chrome = role in _CHROME_ROLES or (tag in _CHROME and not is_own)
    is_fixed = is_chrome and (tag in _FIXED or role in {"navigation", "contentinfo"})
    return Place(around.chrome or is_chrome, content, around.fixed or is_fixed)


def by_rules(blocks: Sequence[Block], where: Sequence[Place]) -> list[bool]:
    """Return which blocks are content.

    Blocks in the chrome are not. Where enough text is marked as content, only that is.
    """
    outside = [not place.chrome for place in where]
    if not any(outside):
        return [True] * len(blocks)
    inside = [place.content and not place.chrome for place in where]
    sizes = [len(block.words) for block in blocks]
    is_marked = sum(compress(sizes, inside)) > _MIN_SHARE * sum(compress(sizes, outside))
    return inside if is_marked else outside


def by_rules_alone(blocks: Sequence[Block]) -> list[bool]:
    """Return which blocks are content where no scorer decides.

    If little stands outside the chrome, the page is a form, and only fixed chrome is left out.
    """
    where = places(blocks)
    sizes = [len(block.words) for block in blocks]
    if sum(compress(sizes, (not place.chrome for place in where))) >= _MIN_OUTSIDE * sum(sizes):
        return by_rules(blocks, where)
    outside = [not place.fixed for place in where]
    return outside if any(outside) else [True] * len(blocks)

"""Which blocks of a page are its content."""

from fetchstash.handlers._html._blocks import Block
from fetchstash.handlers._html._tree import Element

_CHROME = frozenset(("nav", "header", "footer", "aside", "form", "menu", "search"))
_CHROME_ROLES = frozenset(("navigation", "banner", "contentinfo", "complementary", "search", "menu", "menubar", "dialog"))
_CONTENT = frozenset(("main", "article"))
MIN_SHARE = 0.3
"""Of the page's text that a container must hold before all outside of it is dropped."""


def content(blocks: list[Block]) -> list[Block]:
    """Return the blocks that a reader came for: without chrome, and inside ``main`` or ``article`` if they hold enough."""
    kept = [block for block in blocks if not any(map(_is_chrome, _around(block)))] or blocks
    inside = [block for block in kept if any(map(_is_content, _around(block)))]
    enough = MIN_SHARE * sum(len(block.words) for block in kept)
    return inside if sum(len(block.words) for block in inside) > enough else kept


def _around(block: Block) -> list[Element]:
    return [block.parent, *block.parent.ancestors()]


def _is_chrome(element: Element) -> bool:
    if element.attributes.get("role", "") in _CHROME_ROLES:
        return True
    return element.tag in _CHROME and not (element.tag == "header" and any(map(_is_content, element.ancestors())))


def _is_content(element: Element) -> bool:
    return element.tag in _CONTENT or element.attributes.get("role") == "main"

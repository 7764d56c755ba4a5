"""Name the regions of a page: those that are left out, and the section that a fragment names."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import compress
from urllib.parse import unquote

from fetchstash.handlers._html._blocks import HEADING, Block
from fetchstash.handlers._html._element import Element
from fetchstash.handlers._html._features import GROUPS, groups

MAX_REGIONS = 8
_NAMED = {
    "navigation": "navigation", "contents": "contents", "footer": "footer", "comments": "comments",
    "related": "related", "promotion": "promotion", "sharing": "sharing", "dialog": "dialog",
    "form": "form", "aside": "sidebar", "header": "header",
}  # fmt: skip
"""The names of regions by the GROUPS that tell them, the most telling first."""
_NUMBERS = {list(GROUPS).index(group): name for group, name in _NAMED.items()}


def left_out(blocks: Sequence[Block], keep: Sequence[bool]) -> tuple[int, str]:
    """Return the characters of the blocks that are not kept, and those of each region in words."""
    known: dict[Element, str] = {}
    sizes: Counter[str] = Counter()
    for block in compress(blocks, (not kept for kept in keep)):
        sizes[_region(block.parent, known)] += len(block.words)
    named = [f"{name} {size:,}" for name, size in sizes.most_common(MAX_REGIONS)]
    return sizes.total(), ", ".join(named)


def _region(element: Element | None, known: dict[Element, str]) -> str:
    """Return the name of the region that the nearest element around tells."""
    chain: list[Element] = []
    name = "other"
    while element is not None:
        if element in known:
            name = known[element]
            break
        chain.append(element)
        if here := _named(groups(element)):
            name = here
            break
        element = element.parent
    known.update(dict.fromkeys(chain, name))
    return name


@lru_cache(10_000)
def _named(numbers: tuple[int, ...]) -> str:
    """Return the name of the region that the first of _NAMED in these groups tells, or ""."""
    return next((region for number, region in _NUMBERS.items() if number in numbers), "")


def section(blocks: Sequence[Block], body: Element, fragment: str) -> range | None:
    """Return the numbers of the blocks that a URL's fragment points to, None if it points nowhere.

    They go from the element of that id or name (HTML Standard, 7.4.2.3.3) to the next heading of
    the same level or above.
    """
    target, order = _target(body, {fragment, unquote(fragment)})
    if target is None:
        return None
    start = next(
        (number for number, block in enumerate(blocks) if _begins_at(block, target, order)), None
    )
    if start is None:
        return None
    level = blocks[start].level if blocks[start].kind == HEADING else max(_LEVELS)
    following = range(start + 1, len(blocks))
    end = next(
        (n for n in following if blocks[n].kind == HEADING and blocks[n].level <= level),
        len(blocks),
    )
    return range(start, end)


_LEVELS = range(1, 7)


def _target(body: Element, names: set[str]) -> tuple[Element | None, dict[Element, int]]:
    """Return the element that a fragment names, and the place of each element in the page."""
    order = {element: number for number, element in enumerate((body, *body.descendants()))}
    by_name: Element | None = None
    for element in order:
        if element.attributes.get("id") in names:
            return element, order
        if by_name is None and element.tag == "a" and element.attributes.get("name") in names:
            by_name = element
    return by_name, order


def _begins_at(block: Block, target: Element, order: dict[Element, int]) -> bool:
    """Return whether a block holds the target or is the first behind its beginning."""
    elements = [node for node in block.nodes if not isinstance(node, str)]
    if any(target is element or target in element.ancestors() for element in elements):
        return True
    if any(target in element.descendants() for element in elements):
        return True
    return order.get(block.parent, -1) >= order[target]

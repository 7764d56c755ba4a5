"""Which blocks of a page are its content: what the scorer keeps, and what belongs to that."""

from itertools import pairwise

from fetchstash.handlers._html import _scorer
from fetchstash.handlers._html._blocks import CODE, HEADING, TABLE, Block
from fetchstash.handlers._html._names import names
from fetchstash.handlers._html._tree import Element

THRESHOLD = -0.4
"""Log odds from which a block is kept: missing a line costs a reader more than one too many."""
MAX_SCORED = 1_500
"""Blocks; a longer page is read by plain rules. It comes as a preview, to be searched: what is left out of it cannot be found."""
PROSE_CHARS = 250
"""A paragraph from this length on is content inside of ``main`` or ``article``: somebody wrote it, and somebody may look for it."""
MIN_SCORED_CHARS = 2_000
"""Of text; on a shorter page there is little to sift, and little to judge it by."""
TITLE_REACH = 12
"""Blocks above the first that is kept in which its title is looked for."""
MAX_GAP = 3
"""Blocks in a row that come back where they stand between kept ones of the same region."""

_CHROME = names("nav header footer aside form menu search")
_CHROME_ROLES = names("navigation banner contentinfo complementary search menu menubar dialog")
_CONTENT = names("main article")
_MIN_SHARE = 0.3


def content(blocks: list[Block], title: str) -> list[Block]:
    """Return the blocks that a reader came for, in order; some where there are any."""
    if not blocks:
        return []
    if len(blocks) > MAX_SCORED or sum(len(block.words) for block in blocks) < MIN_SCORED_CHARS:
        return _by_rules(blocks)
    scores = _scorer.log_odds(blocks, title)
    prose = {id(block) for block in _marked(_without_chrome(blocks)) if len(block.words) >= PROSE_CHARS}
    keep = [score > THRESHOLD or id(block) in prose for score, block in zip(scores, blocks, strict=True)]
    if any(block.kind == CODE for block in blocks):
        _repair(blocks, keep)
    _take_title(blocks, keep)
    return [block for block, kept in zip(blocks, keep, strict=True) if kept] or _by_rules(blocks)


def _take_title(blocks: list[Block], keep: list[bool]) -> None:
    """Keep the main heading that stands above what is kept."""
    first = next((number for number, kept in enumerate(keep) if kept), 0)
    for number in range(first - 1, max(first - TITLE_REACH, 0) - 1, -1):
        if blocks[number].level == 1:
            keep[number] = True
            return


def _repair(blocks: list[Block], keep: list[bool]) -> None:
    """Take back code, tables, headings and small gaps between kept blocks: on a page with code these are no filler."""
    kept = [number for number, one in enumerate(keep) if one]
    for before, after in pairwise(kept):
        gap = range(before + 1, after)
        if not gap or not _share_region(blocks[before], blocks[after]):
            continue
        for number in gap:
            keep[number] = len(gap) <= MAX_GAP or blocks[number].kind in {CODE, TABLE, HEADING}


def _share_region(one: Block, other: Block) -> bool:
    """Return whether two blocks stand close in the tree: under an element at most three levels above the first."""
    near = [element for element, _ in zip((one.parent, *one.parent.ancestors()), range(4), strict=False)]
    return any(element in near for element in (other.parent, *other.parent.ancestors()))


def _by_rules(blocks: list[Block]) -> list[Block]:
    """Return what is outside of the page's chrome, and of that what is marked as content if anything is."""
    kept = _without_chrome(blocks) or blocks
    return _marked(kept) or kept


def _without_chrome(blocks: list[Block]) -> list[Block]:
    return [block for block in blocks if not any(map(_is_chrome, _around(block)))]


def _marked(blocks: list[Block]) -> list[Block]:
    """Return the blocks inside of ``main`` or ``article``; none if those hold too little to be what the page is about."""
    inside = [block for block in blocks if any(map(_is_content, _around(block)))]
    enough = _MIN_SHARE * sum(len(block.words) for block in blocks)
    return inside if sum(len(block.words) for block in inside) > enough else []


def _around(block: Block) -> list[Element]:
    return [block.parent, *block.parent.ancestors()]


def _is_chrome(element: Element) -> bool:
    if element.attributes.get("role", "") in _CHROME_ROLES:
        return True
    return element.tag in _CHROME and not (element.tag == "header" and any(map(_is_content, element.ancestors())))


def _is_content(element: Element) -> bool:
    return element.tag in _CONTENT or element.attributes.get("role") == "main"

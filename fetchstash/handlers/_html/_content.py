"""Which blocks of a page are its content: what the scorer keeps, and what belongs to that."""

import math
from collections.abc import Sequence
from itertools import compress, pairwise

from fetchstash.handlers._html import _scorer
from fetchstash.handlers._html._blocks import CODE, HEADING, TABLE, Block
from fetchstash.handlers._html._landmarks import by_rules, places

MAX_SCORED = 5_000
"""Blocks; a longer page is read by plain rules. It comes as a preview, to be searched: what is left out of it cannot be found."""
MIN_SCORED_CHARS = 2_000
"""Of text; on a shorter page there is little to sift, and little to judge it by."""
TITLE_REACH = 12
"""Blocks above the first that is kept in which its title is looked for."""
MAX_GAP = 3
"""Blocks in a row that come back where they stand between kept ones of the same region."""


def content(blocks: list[Block]) -> list[Block]:
    """Return the blocks that a reader came for, in order; some where there are any."""
    if len(blocks) > MAX_SCORED or sum(len(block.words) for block in blocks) < MIN_SCORED_CHARS:
        return list(compress(blocks, by_rules(blocks, places(blocks))))
    keep = likeliest(_scorer.log_odds(blocks), [len(block.words.split()) for block in blocks])
    if any(block.kind == CODE for block in blocks):
        _repair(blocks, keep)
    _take_title(blocks, keep)
    return list(compress(blocks, keep))


def likeliest(scores: Sequence[float], sizes: Sequence[float]) -> list[bool]:
    """Return which blocks to keep, by their log odds and their words: those from the score on that makes the best expected F1.

    Where a page leaves the scorer in doubt that is a lower score than where all is plain: half of
    the best F1 is the probability from which on a block is worth keeping (Lipton, Elkan and
    Naryanaswamy, 2014, "Thresholding classifiers to maximize F1 score").
    """
    found = sorted(zip(scores, sizes, strict=True), reverse=True)
    likely = [words / (1 + math.exp(-score)) for score, words in found]
    expected = sum(likely)
    best = threshold = right = kept = 0.0
    for (score, words), one in zip(found, likely, strict=True):
        right += one
        kept += words
        if right > best * (kept + expected):
            best, threshold = right / (kept + expected), score
    return [score >= threshold for score in scores]


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
    near = [
        element for element, _ in zip((one.parent, *one.parent.ancestors()), range(4), strict=False)
    ]
    return any(element in near for element in (other.parent, *other.parent.ancestors()))

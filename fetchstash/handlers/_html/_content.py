"""Choose the blocks of a page that are its content."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from fetchstash.handlers._html import _scorer
from fetchstash.handlers._html._blocks import CODE, HEADING, TABLE, Block
from fetchstash.handlers._html._landmarks import by_rules, places
from fetchstash.handlers._html._tables import has_heads

if TYPE_CHECKING:
    from fetchstash.handlers._html._element import Element

MAX_SCORED = 5_000
"""Blocks. Rules choose on a longer page: they are cheaper and leave out less."""
MIN_SCORED_CHARS = 2_000
"""Rules choose on a page with less text: the scorer has too little to go by."""
TITLE_REACH = 12
"""The title is searched in this many blocks above the first kept block."""
CONTENT_SHARE = 0.5
"""Of the kept text; an element that holds as much is the content's."""
TABLE_REACH = 5
"""Elements above a table in which the content is searched."""
MAX_LINK_SHARE = 0.6
"""Of a table's text; one with more is navigation."""
MAX_GAP = 3
"""Blocks in a row that are kept if they stand between kept blocks of the same region."""


def content(blocks: list[Block]) -> list[bool]:
    """Return which blocks are the content; at least one is if there are any blocks."""
    if len(blocks) > MAX_SCORED or sum(len(block.words) for block in blocks) < MIN_SCORED_CHARS:
        return by_rules(blocks, places(blocks))
    keep = likeliest(_scorer.log_odds(blocks), [len(block.words.split()) for block in blocks])
    if any(block.kind == CODE for block in blocks):
        _repair(blocks, keep)
    _keep_tables(blocks, keep)
    _take_title(blocks, keep)
    return keep


def likeliest(scores: Sequence[float], sizes: Sequence[float]) -> list[bool]:
    """Return which blocks to keep: those at or above the score that maximizes the expected F1.

    ``scores`` are log odds, ``sizes`` are words. The threshold is lower on a page where the scorer
    is in doubt: a block is worth keeping from half of the best F1 on (Lipton, Elkan and
    Naryanaswamy, 2014, "Thresholding classifiers to maximize F1 score").
    """
    ranked = sorted(zip(scores, sizes, strict=True), reverse=True)
    expected_words = [words / (1 + math.exp(-score)) for score, words in ranked]
    expected = sum(expected_words)
    best = threshold = right = kept = 0.0
    for (score, words), likely_words in zip(ranked, expected_words, strict=True):
        right += likely_words
        kept += words
        if right > best * (kept + expected):
            best, threshold = right / (kept + expected), score
    return [score >= threshold for score in scores]


def _take_title(blocks: list[Block], keep: list[bool]) -> None:
    """Keep the main heading above the first kept block."""
    first = next((number for number, kept in enumerate(keep) if kept), 0)
    for number in range(first - 1, max(first - TITLE_REACH, 0) - 1, -1):
        if blocks[number].level == 1:
            keep[number] = True
            return


def _keep_tables(blocks: list[Block], keep: list[bool]) -> None:
    """Keep tables with header cells inside the content: facts of its subject, such as an infobox."""
    candidates = [
        number
        for number, block in enumerate(blocks)
        if block.kind == TABLE and not keep[number] and has_heads(block.parent)
    ]
    if not candidates:
        return
    sizes: Counter[Element] = Counter()
    kept = [block for block, is_kept in zip(blocks, keep, strict=True) if is_kept]
    for block in kept:
        for element in block.parent.ancestors():
            sizes[element] += len(block.words)
    enough = CONTENT_SHARE * sum(len(block.words) for block in kept)
    where = places([blocks[number] for number in candidates])
    for number, place in zip(candidates, where, strict=True):
        table = blocks[number]
        near = islice(table.parent.ancestors(), TABLE_REACH)
        holds_content = any(sizes[element] >= enough for element in near)
        keep[number] = holds_content and not place.chrome and not _is_links(table)


def _is_links(table: Block) -> bool:
    links = (element for element in table.parent.descendants() if element.tag == "a")
    return sum(len(link.text()) for link in links) > MAX_LINK_SHARE * len(table.words)


def _repair(blocks: list[Block], keep: list[bool]) -> None:
    """Keep code, tables, headings and small gaps between kept blocks of one region."""
    kept = [number for number, is_kept in enumerate(keep) if is_kept]
    for before, after in pairwise(kept):
        gap = range(before + 1, after)
        if not gap or not _share_region(blocks[before], blocks[after]):
            continue
        for number in gap:
            keep[number] = len(gap) <= MAX_GAP or blocks[number].kind in {CODE, TABLE, HEADING}


def _share_region(block: Block, other: Block) -> bool:
    """Return whether both blocks stand in an element at most three levels above the first."""
    near = list(islice((block.parent, *block.parent.ancestors()), 4))
    return any(element in near for element in (other.parent, *other.parent.ancestors()))

"""Choose the blocks of a page that are its content."""

import math
from collections.abc import Sequence
from itertools import compress

from fetchstash.handlers._html import _scorer
from fetchstash.handlers._html._blocks import CODE, MEDIUM, Block, texts
from fetchstash.handlers._html._landmarks import by_rules_alone
from fetchstash.handlers._html._repairs import (
    complete_cards,
    fill_gaps,
    keep_bylines,
    keep_media,
    keep_tables,
    keep_title,
)
from fetchstash.handlers._html._teasers import drop_teasers

MAX_SCORED = 5_000
"""Blocks. Rules choose on a longer page: they are cheaper and leave out less."""
MIN_SCORED_CHARS = 500
"""Rules choose on a page with less text: the scorer has too little to go by."""
SHORT_PAGE_CHARS = 2_000
MIN_AGREED = 0.75
"""Of what the rules keep of a short page; if the scorer keeps less, the rules choose."""


def content(blocks: list[Block], *, is_article: bool = False) -> list[bool]:
    """Return which blocks are the content; at least one is if there are any blocks.

    ``is_article``: the page says that it is one, so that teasers around it are of other pages.
    """
    with_words = texts(blocks)
    chosen = _choose(with_words)
    if is_article:
        drop_teasers(with_words, chosen)
    kept = iter(chosen)
    keep = [block.kind != MEDIUM and next(kept) for block in blocks]
    if len(with_words) < len(blocks):
        keep_media(blocks, keep)
    return keep


def _choose(blocks: list[Block]) -> list[bool]:
    sizes = [len(block.words) for block in blocks]
    is_short = sum(sizes) < SHORT_PAGE_CHARS
    by_place = by_rules_alone(blocks) if is_short or len(blocks) > MAX_SCORED else []
    if len(blocks) > MAX_SCORED or sum(sizes) < MIN_SCORED_CHARS:
        return by_place
    keep = likeliest(_scorer.log_odds(blocks), [len(block.words.split()) for block in blocks])
    if is_short and sum(compress(sizes, keep)) < MIN_AGREED * sum(compress(sizes, by_place)):
        keep = by_place
    if any(block.kind == CODE for block in blocks):
        fill_gaps(blocks, keep)
    keep_tables(blocks, keep)
    complete_cards(blocks, keep)
    keep_bylines(blocks, keep)
    keep_title(blocks, keep)
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

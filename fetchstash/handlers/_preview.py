"""Glimpses of long documents, within a number of tokens."""

from collections.abc import Callable, Sequence

from fetchstash.tokens import count
from fetchstash.views import clip

PREVIEW_TOKENS = 200
"""What a preview of structured data costs at the most: little, so that a preview and a grep of dense records stay under 900."""


def fits(text: str, max_tokens: int = PREVIEW_TOKENS) -> bool:
    """Return whether ``text`` costs at most ``max_tokens``."""
    return len(text) <= max_tokens or (len(text) < 20 * max_tokens and count(text).tokens <= max_tokens)


def largest(build: Callable[[int], str], most: int) -> str:
    """Return ``build(n)`` for the largest n from 1 to ``most`` that fits; where not even 1 fits, as much of it as does."""
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(build(middle)):
            low = middle
        else:
            high = middle - 1
    text = build(low)
    width = len(text)
    while not fits(text):
        width = width * 2 // 3
        text = clip(text, width)
    return text


def head_and_tail(head: Sequence[str], tail: Sequence[str], total: int, noun: str, width: int) -> str:
    """Return first and last lines, each clipped to ``width``, and between them how many of ``total`` are left out."""
    left_out = total - len(head) - len(tail)
    lines = [*head, *([f"… {left_out:,} more {noun} …"] if left_out > 0 else []), *tail]
    return "\n".join(clip(line, width) for line in lines)

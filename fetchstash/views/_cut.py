"""Cutting: pure functions from a text and a bound to what fits it. None of them ever returns more than its bound."""

ELLIPSIS = "…"


def clip(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of ``text``, the last of them "…" where something was left out."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + ELLIPSIS[:limit]


def clip_middle(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of ``text``, its beginning and its end, with "…" for what was left out between."""
    if len(text) <= limit:
        return text
    tail = max((limit - 1) // 2, 0)
    return clip(text, limit - tail) + text[len(text) - tail :]


def window(line: str, start: int, end: int, width: int) -> str:
    """Return the part of ``line`` around its characters [start, end), at most ``width`` characters, "…" at each side that was cut.

    A hit wider than the window is shown from its beginning.
    """
    if len(line) <= width:
        return line
    room = max(width - 2, 1)
    left = max(0, min(start - max(room - (end - start), 0) // 2, len(line) - room))
    right = left + room
    return f"{ELLIPSIS if left else ''}{line[left:right]}{ELLIPSIS if right < len(line) else ''}"[:width]

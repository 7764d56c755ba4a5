"""Cut texts to a bound: pure functions, none of which returns more than its bound."""

import json
from collections.abc import Callable, Sequence

ELLIPSIS = "…"
# Shorten the lines of a text before showing fewer of them than this.
_FEW_LINES = (9, 3, 1)
_SHORT_LINE = 60

Measure = Callable[[str], int]
"""How a host counts the length of a text. A longer text never counts less."""

_MAX_SEGMENTS = 1_000
"""Of a JPEG, before its frame header; cameras write about ten."""


def utf8_length(text: str) -> int:
    """Return the bytes of ``text`` in UTF-8, as VS Code counts."""
    return len(text.encode("utf-8", "surrogatepass"))


def json_length(text: str) -> int:
    """Return the characters of ``text`` as a JSON string without its quotes."""
    return len(json.dumps(text, ensure_ascii=False)) - 2


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number from 0 to ``most`` that ``fits``.

    Assumes that ``fits`` is monotonic and that 0 fits.
    """
    if fits(most):
        return most
    low, high = 0, most - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return max(low, 0)


def prefix_length(text: str, limit: int, measure: Measure = len) -> int:
    """Return how many characters of ``text`` fit ``limit`` as ``measure`` counts."""
    # A measure counts at least one for each character.
    return largest(min(len(text), limit), lambda length: measure(text[:length]) <= limit)


def clip(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of ``text``, ending in "…" if it was cut."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + ELLIPSIS[:limit]


def clip_middle(text: str, limit: int) -> str:
    """Return at most ``limit`` characters: both ends of ``text``, with "…" for the middle."""
    if len(text) <= limit:
        return text
    tail = max((limit - 1) // 2, 0)
    return clip(text, limit - tail) + text[len(text) - tail :]


def window(line: str, start: int, end: int, width: int) -> str:
    """Return at most ``width`` characters of ``line`` around its characters [start, end).

    "…" marks each side that was cut. A hit wider than the window is shown from its beginning.
    """
    if len(line) <= width:
        return line
    room = max(width - 2, 1)
    left = max(0, min(start - max(room - (end - start), 0) // 2, len(line) - room))
    right = left + room
    return f"{ELLIPSIS if left else ''}{line[left:right]}{ELLIPSIS if right < len(line) else ''}"[
        :width
    ]


def whole_lines(text: str, limit: int, measure: Measure = len) -> int:
    """Return the length of the whole lines that fit ``limit``, 0 if not even one does."""
    fits = prefix_length(text, limit, measure)
    return fits if fits == len(text) else text.rfind("\n", 0, fits) + 1


def split(number: int, head: int, tail: int) -> tuple[int, int]:
    """Divide ``number`` into first and last ones in the proportion of ``head`` to ``tail``."""
    first = round(number * head / max(head + tail, 1))
    return first, number - first


def head_and_tail(
    head: Sequence[str],
    tail: Sequence[str],
    total: int,
    most: tuple[int, int],
    width: int,
    fits: Callable[[str], bool],
) -> tuple[str, int]:
    """Return the first and last lines of ``total`` that fit, and how many they are.

    A line between them says how many are left out. ``head`` and ``tail`` are the lines at hand,
    ``most`` how many of each may be shown, none longer than ``width``; they are shortened where
    not even a few would fit. The room that is left is filled with text after the first lines.
    """
    whole = min(sum(most), total)

    def chosen(number: int) -> tuple[int, int]:
        first = min(split(number, *most)[0], len(head))
        return first, min(number - first, len(tail))

    def joined(begin: Sequence[str], end: Sequence[str], count: int) -> str:
        left_out = total - count
        between = [f"… {left_out} more line{'s' if left_out > 1 else ''} …"] if left_out else []
        return "\n".join([*begin, *between, *end])

    def lines(number: int, width: int) -> str:
        first, last = chosen(number)
        shown = [clip(line, width) for line in (*head[:first], *tail[len(tail) - last :])]
        return joined(shown[:first], shown[first:], first + last)

    def width_of(number: int) -> int:
        return largest(width, lambda narrow: fits(lines(number, narrow)))

    few = (min(number, whole) for number in _FEW_LINES)
    number = next(
        (number for number in few if width_of(number) >= min(_SHORT_LINE, width)), min(1, whole)
    )
    narrow = width_of(number)
    if narrow == width:
        number = largest(whole, lambda number: fits(lines(number, width)))
    first, last = chosen(number)
    begin = [clip(line, narrow) for line in head[: max(first - 1, 0)]]
    rest = "\n".join(
        clip(line, width) for line in head[len(begin) : first + whole - number] if first
    )
    end = [clip(line, narrow) for line in tail[len(tail) - last :]]

    def filled(length: int) -> str:
        cut = rest[:length]
        ended = cut.endswith("\n") or rest[length : length + 1] in {"", "\n"}
        shown = cut if ended else cut[:-1] + ELLIPSIS
        return joined([*begin, shown], end, len(begin) + 1 + cut.count("\n") + last)

    if length := largest(len(rest), lambda length: fits(filled(length))):
        return filled(length), len(begin) + 1 + rest.count("\n", 0, length) + last
    if fits(shown := lines(number, narrow)):
        return shown, first + last
    length = largest(len(head[0]), lambda length: fits(head[0][:length]))
    return head[0][:length], 1  # there is no room to say what is left out


def picture_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF, JPEG or WebP; None for all else, and if one is 0."""
    size = None
    if data[:8] == b"\x89PNG\r\n\x1a\n":  # PNG, 5.2 and 11.2.2
        size = _big(data[16:20]), _big(data[20:24])
    elif data[:4] == b"GIF8":  # GIF89a, 18
        size = _little(data[6:8]), _little(data[8:10])
    elif data[:2] == b"\xff\xd8":
        size = _jpeg_size(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        size = _webp_size(data)
    return size if size and all(size) else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Follow the segments up to the frame header (ITU-T T.81, B.1.1 and B.2.2)."""
    at = 2
    for _ in range(_MAX_SEGMENTS):
        if at + 9 > len(data) or data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            return _big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7])
        at += 1 if marker == 0xFF else 2 + _big(data[at + 2 : at + 4])
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    """Read the first chunk of a WebP (RFC 9649, section 2)."""
    chunk = data[12:16]
    if chunk == b"VP8X":
        return 1 + _little(data[24:27]), 1 + _little(data[27:30])
    if chunk == b"VP8L":
        bits = _little(data[21:25])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if chunk == b"VP8 ":
        return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")

"""The limits of results (settings views.* and context.*), and the cutting to them.

Pure functions: none that cuts returns more than its bound.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fetchstash.errors import BadArgument

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


def counted(count: float, noun: str, plural: str = "", digits: str = ",") -> str:
    """Return a count with its noun: "1 page", "1,200 pages"; the plural adds an s by default.

    ``digits`` is the format of the number.
    """
    return f"{count:{digits}} {noun if count == 1 else plural or f'{noun}s'}"


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
        between = [f"… {counted(left_out, 'more line', digits='d')} …"] if left_out else []
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


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting's meaning, its inclusive bounds, and its allowed values if they are listed."""

    meaning: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()


def setting(
    default: object,
    meaning: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Return a field of a dataclass that is a setting; config reads its description there."""
    described = Setting(meaning, low, high, choices)
    return field(default=default, metadata={"setting": described})


SHORT_MAX_CHARS = 10_000
"""The limit of grep, search and info where the caller names none."""

MIN_MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class ViewLimits:
    """Ceilings of the bodies, in characters; in UTF-8 bytes if ``count_bytes`` (as VS Code)."""

    default_max_chars: int = setting(
        30_000,
        "maxChars of get_search_content and artifact_slice when not given",
        low=200,
        high=100_000,
    )
    max_chars_ceiling: int = setting(
        100_000, "Most body characters of one result, whatever is asked for", low=200, high=100_000
    )
    inline_threshold: int = setting(
        30_000,
        "maxChars of fetch_content when not given: longer texts come as a preview",
        low=200,
        high=100_000,
    )
    preview_chars: int = setting(2_000, "Characters of a preview", low=1, high=100_000)
    structured: bool = setting(False, "Add structuredContent and output schemas to the results")
    count_bytes: bool = False

    @property
    def short_max_chars(self) -> int:
        """The limit of grep, search and info where the caller names none."""
        return min(SHORT_MAX_CHARS, self.max_chars_ceiling)

    @property
    def measure(self) -> Measure:
        """How the host counts a text."""
        if self.structured:
            return json_length
        return utf8_length if self.count_bytes else len

    def max_chars(self, asked: int | None, default: int) -> int:
        """Return how long a text may be: what was asked for, or the default, up to the ceiling.

        Raises BadArgument below ``MIN_MAX_CHARS``.
        """
        if asked is not None and asked < MIN_MAX_CHARS:
            what = f"The least is {MIN_MAX_CHARS} characters, and {asked:,} were asked for."
            raise BadArgument(what, "Ask for more, or leave the limit out.")
        return min(default if asked is None else asked, self.max_chars_ceiling)


@dataclass(frozen=True, slots=True)
class Truncation:
    """Bounds for a tool's result: over ``threshold`` characters only a preview is shown.

    The preview has at most so many tokens, and rows or lines of both ends.
    """

    threshold: int = 5_000
    max_preview_tokens: int = 500
    rows_head: int = 20
    rows_tail: int = 10
    lines_head: int | None = None
    lines_tail: int | None = None


TRUNCATIONS: Mapping[str, Truncation] = {
    "default": Truncation(),
    "sql_query": Truncation(2_000, 1_000, rows_head=30, rows_tail=10),
    "log_search": Truncation(10_000, 300, lines_head=50, lines_tail=20),
}
"""The default profiles of ``context_result`` by name."""


@dataclass(frozen=True, slots=True)
class PreviewLimits:
    """Bounds of previews. Each field's name says its unit; the smallest bound applies.

    ``structured_tokens`` bounds a JSON shape or a table. It is not configurable; it is small, so
    that a preview and a grep of dense records together stay under 900 tokens.
    """

    structured_tokens: int = 200
    max_tokens_per_file: int = setting(5_000, "Most tokens of one preview or read_file", low=1)
    max_total_output: int = setting(50_000, "Most characters of one preview or read_file", low=1)
    max_lines: int = setting(200, "Lines of a text preview", low=1)
    max_line_length: int = setting(1_000, "Characters of one line in a preview", low=1)
    max_nesting_depth: int = setting(5, "Depth of structured data in a preview", low=1)
    max_array_items: int = setting(50, "Items of one array in a preview", low=1)
    max_object_keys: int = setting(50, "Keys of one object in a preview", low=1)
    max_columns: int = setting(50, "Columns of a table in a preview", low=1)
    rows_head: int = setting(20, "First rows of a table in a preview", low=0)
    rows_tail: int = setting(10, "Last rows of a table in a preview", low=0)
    max_cell_length: int = setting(500, "Characters of one cell in a preview", low=1)
    max_image_size_bytes: int = setting(
        2_097_152, "Bytes of one picture that a model is shown", low=1024
    )
    max_image_edge_px: int = setting(1_568, "Longer edge of such a picture, in pixels", low=16)

    @property
    def lines(self) -> tuple[int, int]:
        """How many first and last lines are shown of a long text, two to one."""
        return split(self.max_lines, 2, 1)

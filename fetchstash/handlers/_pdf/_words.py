"""The words of a PDF page by pdfium, each with its baseline, size and font."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import CFUNCTYPE, byref, c_double, c_int, c_ushort, c_void_p, cast, create_string_buffer
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from fetchstash.handlers._pdf import without_ligatures
from fetchstash.handlers._symbols import is_symbol_font, seen

if TYPE_CHECKING:
    from pypdfium2 import PdfTextPage

Box = tuple[float, float, float, float]
"""Left, bottom, right and top."""

# pdfium replaces a hyphen and line end within a word by one of these.
BREAKS = "\ufffe\x02"
_TOKEN = re.compile(rf"[^\s\0{BREAKS}]+")
_LINE_END = re.compile(r"[\r\n]+")
RTL = re.compile(r"[\u0590-\u065f\u066d-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
"""Letters of scripts that are written from right to left; their digits are written to the right."""
# A character farther from the one before, as a share of its size, begins a word.
_WORD_GAP = 0.3
# The parts of a line's height that stand above and below its baseline, in most fonts.
ABOVE, BELOW = 0.75, 0.25
_BOLD = re.compile(
    r"bold|black|heavy|demi|CMBX|CMSSBX|SFBX|(?<![a-z])(bd|bx)|-Medi(?![a-z])", re.IGNORECASE
)
_MONO = re.compile(r"mono|courier|consol|typewriter|CMTT|SFTT|Menlo|-tt", re.IGNORECASE)
# What a symbol font may draw: its codes, moved to the private-use area, or a letter by itself.
_PRIVATE = re.compile("[\uf020-\uf0ff]")
_LONE = re.compile(r"[B-HJ-Zb-z\xa1-\xff]")
_BOLD_FLAG, _MONO_FLAG = 1 << 18, 1
_BOLD_WEIGHT = 600


class Style(NamedTuple):
    """The style of a font."""

    bold: bool = False
    mono: bool = False


class Word:
    """A word; places count in points from the lower left of the page as it is seen.

    ``middle`` is the height of the middle of its line. ``first`` and ``last`` are the indexes of
    its characters in the text of the page. ``broken``: a hyphen and a line end part it from the
    rest. ``unspaced``: it ends a line without a space, on a page where most lines end in one.
    """

    __slots__ = (
        "base",
        "broken",
        "first",
        "last",
        "left",
        "middle",
        "right",
        "size",
        "text",
        "unspaced",
    )

    def __init__(
        self, text: str, left: float, right: float, base: float, size: float, first: int, last: int
    ) -> None:
        self.text, self.first, self.last = text, first, last
        self.left, self.right, self.base, self.size = left, right, base, size
        self.middle = base + size / 4
        self.broken = self.unspaced = False

    @property
    def top(self) -> float:
        """The height of the top of its line."""
        return self.base + ABOVE * self.size

    @property
    def bottom(self) -> float:
        """The height of the bottom of its line."""
        return self.base - BELOW * self.size


@cache
def unchecked(name: str) -> Callable[..., Any]:
    """Return a function of pdfium that takes its arguments without a check of their types.

    ctypes takes 2.2 µs for a call that it checks and .65 for another, and a page has thousands of
    them. Only for handles, ``byref`` and indexes, which are passed as they should be.
    """
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    function = getattr(raw, name)
    return CFUNCTYPE(function.restype)(cast(function, c_void_p).value or 0)


def read_chars(text_page: "PdfTextPage") -> str:
    """Return the characters of a page by their index in pdfium, NUL for those without a meaning."""
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    handle = text_page.raw
    count = raw.FPDFText_CountChars(handle)
    buffer = (c_ushort * (count + 1))()
    if raw.FPDFText_GetText(handle, 0, count, buffer) == count + 1:
        text = bytes(buffer)[: 2 * count].decode("utf-16-le", "replace")
        if len(text) == count:
            return text
    codes = (raw.FPDFText_GetUnicode(handle, index) for index in range(count))
    return "".join(
        chr(code) if code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else "\0" for code in codes
    )


def turned(box: Box, rotation: int) -> Box:
    """Return a box as it stands when the page is turned clockwise by ``rotation`` degrees."""
    x0, y0, x1, y1 = box
    turns = {90: (y0, -x1, y1, -x0), 180: (-x1, -y1, -x0, -y0), 270: (-y1, x0, -y0, x1)}
    return turns.get(rotation, box)


class Glyphs:
    """Asks pdfium for places and fonts of the characters of a page, by their index.

    A call takes about a microsecond, and a page has thousands of characters: few are asked for.
    ``rotation``: by how many degrees the page is turned for its text to be upright.
    """

    def __init__(self, text_page: "PdfTextPage", chars: str) -> None:
        from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

        self.chars = chars
        self.is_rtl = RTL.search(chars) is not None
        self.rotation = 0
        self.raw, self.handle = raw, text_page.raw
        self._angle_of = unchecked("FPDFText_GetCharAngle")
        self._font_of = unchecked("FPDFText_GetFontInfo")
        self._box = raw.FS_RECTF()
        self._x, self._y = c_double(), c_double()
        self._name, self._flags = create_string_buffer(128), c_int()
        self._names: dict[bytes, str] = {}
        self._styles: dict[tuple[bytes, int], Style] = {}

    def quarters(self, index: int) -> float:
        """Return by how many quarters of a circle, up to 4, a character is turned clockwise."""
        turn: float = self._angle_of(self.handle, index)
        return 2 * turn / math.pi if turn > 0 else 0.0

    def box(self, index: int) -> Box | None:
        """Return the loose box of a character: as high as its font."""
        if not self.raw.FPDFText_GetLooseCharBox(self.handle, index, byref(self._box)):
            return None
        box = self._box.left, self._box.bottom, self._box.right, self._box.top
        return turned(box, self.rotation) if self.rotation else box

    def origin(self, index: int) -> tuple[float, float]:
        """Return where a character begins on its baseline.

        Boxes are no measure of a line: in fonts of small ascent they grow with the glyph.
        """
        self.raw.FPDFText_GetCharOrigin(self.handle, index, byref(self._x), byref(self._y))
        if self.rotation:
            x, y = self._x.value, self._y.value
            return turned((x, y, x, y), self.rotation)[:2]
        return self._x.value, self._y.value

    def mark(self, index: int) -> int:
        """Return the number of the marked content that a character stands in, -1 for none."""
        item = self.raw.FPDFText_GetTextObject(self.handle, index)
        return self.raw.FPDFPageObj_GetMarkedContentID(item) if item else -1

    def size(self, index: int) -> float:
        """Return the size of a character's font on the page."""
        size = self.raw.FPDFText_GetFontSize(self.handle, index)
        matrix = self.raw.FS_MATRIX()
        if self.raw.FPDFText_GetMatrix(self.handle, index, byref(matrix)):
            size *= math.hypot(matrix.c, matrix.d) or 1.0
        return size

    def font(self, index: int) -> str:
        """Return the name of a character's font, without the tag of a subset."""
        key = self._font(index)[0]
        if key not in self._names:
            self._names[key] = _font_name(key)
        return self._names[key]

    def _font(self, index: int) -> tuple[bytes, int]:
        length = self._font_of(self.handle, index, self._name, 128, byref(self._flags))
        return self._name.raw[: min(length, 128)], self._flags.value

    def style(self, index: int) -> Style:
        """Return the style of a character's font, by its name and its descriptor's flags."""
        key = self._font(index)
        style = self._styles.get(key)
        if style is None:
            name = _font_name(key[0])
            weight = self.raw.FPDFText_GetFontWeight(self.handle, index)
            is_named = _BOLD.search(name) is not None
            bold = is_named or bool(key[1] & _BOLD_FLAG) or _BOLD_WEIGHT <= weight <= 1000
            mono = bool(_MONO.search(name) or key[1] & _MONO_FLAG)
            style = self._styles[key] = Style(bold, mono)
        return style


def _font_name(name: bytes) -> str:
    return name.decode("utf-8", "replace").strip("\0").rpartition("+")[2]


def name_symbols(words: Iterable[Word], glyphs: Glyphs) -> None:
    """Replace what symbol fonts draw by its character: a tick for the "ü" of Wingdings."""
    has_private = _PRIVATE.search(glyphs.chars) is not None
    for word in words:
        text = word.text
        if has_private and _PRIVATE.search(text):
            codes = glyphs.chars[word.first : word.last + 1]
            signs = (
                seen(code, font)
                if _PRIVATE.match(code) and is_symbol_font(font := glyphs.font(index))
                else code
                for index, code in enumerate(codes, start=word.first)
            )
            word.text = without_ligatures("".join(signs))
        elif len(text) == 1 and _LONE.match(text):
            # pdfium knows the encoding of Symbol, whose "µ" is one, but not those of the others.
            font = glyphs.font(word.first)
            if is_symbol_font(font) and not font.casefold().startswith("symbol"):
                word.text = seen(text, font)


def straightened(glyphs: Glyphs) -> list[tuple[int, int]]:
    """Turn ``glyphs`` upright; return the lines, [first, last), that stand at another angle.

    How the page itself is turned says little: a wide table stands on its side on an upright page.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for end in _LINE_END.finditer(glyphs.chars):
        spans.append((start, end.start()))
        start = end.end()
    spans.append((start, len(glyphs.chars)))
    spans = [span for span in spans if span[1] > span[0]]
    turns = [glyphs.quarters(first) for first, _ in spans]
    if not any(turns):
        return []
    angles = [round(turn) % 4 * 90 for turn in turns]
    if not any(angles):
        return [s for s, turn in zip(spans, turns, strict=True) if abs(turn - round(turn)) > 0.03]
    chars: Counter[int] = Counter()
    for (first, last), angle in zip(spans, angles, strict=True):
        chars[angle] += last - first
    most = chars.most_common(1)[0][0]
    # A character that is turned clockwise is upright on a page that is turned the other way.
    glyphs.rotation = -most % 360
    return [span for span, angle in zip(spans, angles, strict=True) if angle != most]


def read_words(glyphs: Glyphs, beside: Sequence[tuple[int, int]] = ()) -> list[Word]:
    """Return the words in pdfium's order, without those of the lines ``beside``.

    This loop is most of what a page costs: it asks for the beginning of the first letter and the
    box of the last, and calls pdfium itself.
    """
    chars, handle, rotation, is_rtl = glyphs.chars, glyphs.handle, glyphs.rotation, glyphs.is_rtl
    raw = glyphs.raw
    size_of = unchecked("FPDFText_GetFontSize")
    origin_of = unchecked("FPDFText_GetCharOrigin")
    box_of = unchecked("FPDFText_GetLooseCharBox")
    x, y, box = c_double(), c_double(), raw.FS_RECTF()
    at_x, at_y, at_box = byref(x), byref(y), byref(box)
    skipped = {index for first, last in beside for index in range(first, last)}
    has_ligatures = without_ligatures(chars) != chars
    spaced = 2 * chars.count(" \r") > chars.count("\r")
    sizes: dict[float, float] = {}
    line, tall, size = math.nan, math.nan, 0.0
    words: list[Word] = []
    for match in _TOKEN.finditer(chars):
        first, end = match.span()
        if first in skipped:
            continue
        origin_of(handle, first, at_x, at_y)
        if not box_of(handle, end - 1, at_box):
            continue
        if y.value != line or box.top - box.bottom != tall:  # else it is the font of the last word
            line, tall = y.value, box.top - box.bottom
            named = size_of(handle, first)
            size = sizes.get(named, 0.0)
            if not size:
                size = sizes[named] = glyphs.size(first)
        if size <= 0:
            continue
        left, base, text = x.value, y.value, match[0]
        begin, low, right, high = box.left, box.bottom, box.right, box.top
        if rotation:
            left, base, _, _ = turned((left, base, left, base), rotation)
            begin, low, right, high = turned((begin, low, right, high), rotation)
        is_right = is_rtl and RTL.search(text) is not None
        if is_right and (start := glyphs.box(first)):
            left, right = min(begin, start[0]), max(right, start[2])
        # Letters of one word stand on one line, each at most as wide as the line is high.
        if (
            low - size <= base <= high + size / 2
            and 0 <= right - left <= 1.5 * size * (end - first)
            and (is_right or begin >= left - size / 4)
        ):
            if has_ligatures:
                text = without_ligatures(text)
            words.append(Word(text, left, right, base, size, first, end - 1))
        else:
            words += _by_letters(glyphs, first, end - 1)
        after = chars[end : end + 1]
        if words and after != " ":
            words[-1].broken = after != "" and after in BREAKS
            words[-1].unspaced = spaced and after == "\r"
    return words


def _by_letters(glyphs: Glyphs, first: int, last: int) -> Iterator[Word]:
    """Yield the words that letters without spaces make where they stand apart."""
    start, before, left, right, base, size = first, None, 0.0, 0.0, 0.0, 0.0
    for index in range(first, last + 1):
        box = glyphs.box(index)
        if box is None:
            continue
        x, y = glyphs.origin(index)
        here = glyphs.size(index)
        near = _WORD_GAP * max(here, 1.0)
        if before is None or not (
            (before - near <= x <= right + near or left - near <= box[2] <= before + near)
            and abs(y - base) < 0.5 * max(here, size)
        ):
            if before is not None:
                yield Word(glyphs.chars[start:index], left, right, base, size, start, index - 1)
            start, left, right, base, size = index, box[0], box[2], y, here
        left, right, before = min(left, box[0]), max(right, box[2]), x
    if before is not None:
        yield Word(glyphs.chars[start : last + 1], left, right, base, size, start, last)

"""Lines of a PDF page that are written from right to left, in reading order."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fetchstash.handlers._pdf import without_ligatures
from fetchstash.handlers._pdf._layout import BULLETS, is_rtl, joined, pieces_of
from fetchstash.handlers._pdf._words import RTL, Glyphs, Word

_ARABIC = re.compile(r"[\u0600-\u065f\u066d-\u06ef\u06fa-\u08ff\ufb50-\ufdff\ufe70-\ufefc]")
_MARK = re.compile(r"[\u0591-\u05c7\u064b-\u065f\u0670\u06d6-\u06ed]")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
# Between two digits these are part of a number (UAX #9: common and European separators).
_SEPARATORS, _SIGNS = frozenset(".,/:\u066b\u066c"), frozenset("+-\u2212")
_BRACKETS = {"(": "()", ")": "()", "[": "[]", "]": "[]", "{": "{}", "}": "{}"}
# Letters of the other direction, and signs whose place tells what they belong to.
_MIXED = re.compile(rf"(?!{RTL.pattern})[^\W\d_]|[()\[\]{{}}{BULLETS}]|[^\w\s]\d|\d[^\w\s]")
_SIGNED = re.compile(r"([\d.,\u066b\u066c]+)([+\-\u2212])")
_GLUED = re.compile(rf"([{BULLETS}]|\d{{1,3}}[.)])(?=[^\W\d_])")
# Letters farther apart than these shares of their size stand in other words, and in other cells.
_APART, _FAR = 0.15, 1.0
_MAX_LIGATURE = 4


class _Letter(NamedTuple):
    """A character with its marks, its index and where it stands; a space has none (-1)."""

    text: str
    at: int
    left: float
    right: float


_SPACE, _GAP = _Letter(" ", -1, 0, 0), _Letter("\t", -1, 0, 0)


def in_reading_order(words: Sequence[Word], glyphs: Glyphs) -> list[Word]:
    """Return the words of a page, those of lines from right to left in reading order.

    Their indexes follow that order, too: those of a line are dealt out anew.
    """
    mostly = is_rtl(glyphs.chars)
    out: list[Word] = []
    for line in joined(pieces_of(words), may_overlap=mostly):
        if RTL.search(line.text) and (mostly or is_rtl(line.text)):
            out += _read(line.words, line.text, glyphs)
            continue
        if mostly and (match := _SIGNED.fullmatch(line.text)):
            # In a text from right to left the sign of a number is drawn on its right.
            line.words[0].text = match[2] + match[1]
        out += line.words
    return out


def _read(words: list[Word], text: str, glyphs: Glyphs) -> list[Word]:
    """Return the words of a line from right to left.

    Where letters of both directions stand on a line, only their places tell the order: the letters
    are taken from the right, and what is written to the right (Latin words, numbers) is turned.
    Brackets come mirrored or not, as each program likes: the spaces around tell what they are.
    """
    if not _MIXED.search(text):
        for word in words:
            word.text = _without_ligatures(word, glyphs)
        return words
    letters = _mirrored(_turned_runs(_from_right(words, glyphs)))
    tokens: list[list[_Letter]] = [[]]
    for letter in letters:
        if letter.at < 0:
            tokens.append([])
        else:
            tokens[-1].append(letter)
    return _as_words([token for token in tokens if token], words)


def _as_words(tokens: Sequence[Sequence[_Letter]], words: Sequence[Word]) -> list[Word]:
    parts: list[tuple[str, Sequence[_Letter]]] = []
    for token in tokens:
        text = without_ligatures("".join([letter.text for letter in token]))
        mark = "" if parts else (match[1] if (match := _GLUED.match(text)) else "")
        if mark:
            parts.append((mark, token[: len(mark)]))
        parts.append((text[len(mark) :], token[len(mark) :]))
    firsts = sorted(min(letter.at for letter in token) for _, token in parts)
    held = {index: word for word in words for index in range(word.first, word.last + 1)}
    out: list[Word] = []
    for (text, token), first in zip(parts, firsts, strict=True):
        word = held[token[0].at]
        left, right = min(letter.left for letter in token), max(letter.right for letter in token)
        last = min(first + len(token) - 1, words[-1].last)
        out.append(Word(text, left, right, word.base, word.size, first, max(first, last)))
        out[-1].middle = word.middle
    out[-1].broken, out[-1].unspaced = words[-1].broken, words[-1].unspaced
    return out


def _without_ligatures(word: Word, glyphs: Glyphs) -> str:
    """Return a word with the letters of each ligature in their order.

    pdfium turns all letters of a line round, also those that one glyph stands for: they have one
    place.
    """
    out: list[str] = []
    run: list[str] = []
    last: tuple[float, float] | None = None
    for index in range(word.first, word.last + 1):
        char, place = glyphs.chars[index], glyphs.origin(index)
        if place != last or _MARK.match(char) or len(run) == _MAX_LIGATURE:
            out += reversed(run)
            run = []
        run.append(char)
        last = place
    return "".join([*out, *reversed(run)])


def _from_right(words: Sequence[Word], glyphs: Glyphs) -> list[_Letter]:
    """Return the letters of a line from the right, with spaces where words part."""
    letters: list[_Letter] = []
    owner: dict[int, Word] = {}
    for word in words:
        for index in range(word.first, word.last + 1):
            char = glyphs.chars[index]
            if letters and _MARK.match(char):
                letters[-1] = letters[-1]._replace(text=letters[-1].text + char)
            elif (box := glyphs.box(index)) is not None:
                letters.append(_Letter(char, index, box[0], box[2]))
                owner[index] = word
    # The letters of a ligature stand at one place; the last comes first, as pdfium has them.
    letters.sort(key=lambda letter: (-letter.right - letter.left, -letter.at))
    out: list[_Letter] = []
    size = max(word.size for word in words)
    for letter in letters:
        if out:
            before = out[-1]
            gap = before.left - letter.right
            is_parted = owner[before.at] is not owner[letter.at] and all(
                _LETTER_OR_DIGIT.match(side.text) for side in (before, letter)
            )
            if gap > _APART * size or is_parted:
                out.append(_GAP if gap > _FAR * size else _SPACE)
        out.append(letter)
    return out


def _turned_runs(letters: Sequence[_Letter]) -> list[_Letter]:
    """Return letters with the runs turned that are written to the right (UAX #9, in short)."""

    def is_right(letter: _Letter) -> bool:
        char = letter.text[0]
        return bool(_LETTER_OR_DIGIT.match(char)) and not RTL.match(char)

    out: list[_Letter] = []
    place = 0
    is_arabic = False
    while place < len(letters):
        letter = letters[place]
        if not is_right(letter):
            if RTL.match(letter.text[0]):
                is_arabic = _ARABIC.match(letter.text[0]) is not None
            out.append(letter)
            place += 1
            continue
        last, has_letter = _end_of_run(letters, place, is_right)
        if not has_letter:
            last = _end_of_number(letters, place, is_arabic=is_arabic)
        run = [*reversed(letters[place : last + 1])]
        before = out[-1].text if out else ""
        # A sign goes with its number (rule W5), and a bracket with its other one: f(x).
        if (before == "%" and not is_arabic) or (
            before in _BRACKETS and has_letter and _is_odd(run)
        ):
            run.append(out.pop())
        out += run
        place = last + 1
    return out


def _end_of_run(
    letters: Sequence[_Letter], place: int, is_right: Callable[[_Letter], bool]
) -> tuple[int, bool]:
    """Return the last letter of a run from ``place``, and whether it holds more than numbers."""
    last, has_letter = place, False
    for end in range(place, len(letters)):
        letter = letters[end]
        if letter is _GAP or RTL.match(letter.text):
            break
        if is_right(letter):
            has_letter = has_letter or not letter.text[0].isdigit()
            last = end
        elif letter.text in _BRACKETS:
            following = letters[end + 1] if end + 1 < len(letters) else _GAP
            is_outer = not is_right(following) and not _is_odd(letters[place:end])
            if not has_letter or (is_outer and end == last + 1):
                break  # the other bracket stands outside of the run (rule N0)
    return last, has_letter


def _end_of_number(letters: Sequence[_Letter], place: int, *, is_arabic: bool) -> int:
    # Behind Arabic letters a hyphen parts numbers (rules W2 and W4).
    inner = _SEPARATORS if is_arabic else _SEPARATORS | _SIGNS
    last = place
    while last + 1 < len(letters) and (
        letters[last + 1].text.isdigit()
        or (
            letters[last + 1].text in inner
            and last + 2 < len(letters)
            and letters[last + 2].text.isdigit()
        )
    ):
        last += 1
    after = [letter.text for letter in letters[last + 1 : last + 3]]
    is_alone = not place or letters[place - 1].text.isspace()
    if is_alone and after[:1] and after[0] in _SIGNS and (not after[1:] or after[1].isspace()):
        last += 1  # a sign on the left of a number belongs to it
    return last


def _is_odd(letters: Sequence[_Letter]) -> bool:
    return sum(letter.text in _BRACKETS for letter in letters) % 2 == 1


def _mirrored(letters: list[_Letter]) -> list[_Letter]:
    for place, letter in enumerate(letters):
        pair = _BRACKETS.get(letter.text)
        if not pair:
            continue
        before = letters[place - 1].text if place else " "
        after = letters[place + 1].text if place + 1 < len(letters) else " "
        if before.isspace() and not after.isspace():
            letters[place] = letter._replace(text=pair[0])
        elif not before.isspace() and (after.isspace() or not after[0].isalnum()):
            letters[place] = letter._replace(text=pair[1])
    return letters

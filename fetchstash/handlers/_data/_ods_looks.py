"""The texts that cells of an ODS show, and its hidden rows and columns (OpenDocument 1.3, 9.1).

A cell keeps its value and, as a paragraph, what the program shows of it; calamine gives the value.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from fetchstash.handlers._data._number_formats import Cell, Formatter, is_ambiguous_date
from fetchstash.handlers._data._sheet_looks import Hidden, LooksByRow, RowLooks
from fetchstash.handlers._office._common import number
from fetchstash.handlers._symbols import is_symbol_font, seen

_TAG = re.compile(
    rb"<table:(table|table-row|table-column|table-cell|covered-table-cell)(?=[\s/>])([^>]*)>"
    rb"(?:<text:p(?:\s[^>]*)?>((?:[^<]|<text:s\b[^>]*/>)*)</text:p></table:table-cell>)?"
)
_VALUE = re.compile(
    rb'\soffice:value-type="(?:float|percentage|currency|time|(date))"'
)  # texts and truths come as they are
_SPACE = re.compile(rb"<[^>]*>")
_STYLE = re.compile(rb'\stable:style-name="([^"]*)"')
_FONT = re.compile(
    rb'<style:style style:name="([^"]*)" style:family="table-cell"[^>]*>'
    rb"(?:(?!</style:style>|<style:style ).){0,2000}?"
    rb'<style:text-properties[^>]*? style:font-name="([^"]*)"'
)
_REPEATED = re.compile(rb'\stable:number-(?:rows|columns)-repeated="(\d{1,7})"')
_HIDDEN = re.compile(rb'\stable:visibility="(?:collapse|filter)"')
_MAX_REPEATS = 16_384
_MAX_KEPT = 1024 * 1024
_MOST_ROWS = 1_048_576

_Tag = tuple[bytes, bytes, bytes]
"""The name of an element, its attributes, and the text that it shows."""


class OdsLooks:
    """Gives the texts that cells show, one sheet after the other."""

    def __init__(self, chunks: Callable[[], Iterable[bytes]]) -> None:
        self._tags = _tags(chunks())
        self._chunks = chunks
        self._has_begun = False
        self._open: Iterator[RowLooks] = iter(())
        self._hidden = self._unseen()
        self._symbols = _symbol_styles(chunks())

    def _unseen(self) -> list[Hidden]:
        """Return the hidden rows and columns of each sheet."""
        sheets: list[Hidden] = []
        if not any(map(_HIDDEN.search, _overlapping(self._chunks()))):
            return sheets
        row = column = 0
        for name, attributes, _ in _tags(self._chunks()):
            if name == b"table":
                sheets.append(Hidden())
                row = column = 0
            elif name in {b"table-row", b"table-column"} and sheets:
                count, is_row = _repeats(attributes), name == b"table-row"
                first = row if is_row else column
                if _HIDDEN.search(attributes):
                    ranges = sheets[-1].rows if is_row else sheets[-1].columns
                    Hidden.add(ranges, first, first + count - 1)
                row, column = (row + count, column) if is_row else (row, column + count)
        return sheets

    def sheet(self, number: int) -> tuple[LooksByRow, Hidden]:
        """Return the texts that cells of the next sheet show, and its hidden rows and columns."""
        while not self._has_begun:
            name, _, _ = next(self._tags, (b"table", b"", b""))
            self._has_begun = name == b"table"
        hidden = self._hidden[number] if number < len(self._hidden) else Hidden()
        for _ in self._open:  # up to the beginning of this sheet
            pass
        self._open = self._rows()
        return LooksByRow(self._open), hidden

    def _look(self, attributes: bytes, text: bytes) -> Formatter | None:
        """Return the text that a cell shows, None if it is the value itself."""
        kind = _VALUE.search(attributes)
        style = _STYLE.search(attributes) if self._symbols and not kind else None
        font = self._symbols.get(style[1], "") if style else ""
        if not kind and not font:
            return None
        shown = html.unescape(_SPACE.sub(b" ", text).decode("utf-8", "replace"))
        if kind and kind[1] and is_ambiguous_date(shown):
            return None
        return partial(_said, seen(shown, font) if font else shown.strip())

    def _rows(self) -> Iterator[RowLooks]:
        row, column, repeats = -1, 0, 1
        looks: list[tuple[int, Formatter]] = []
        for name, attributes, text in self._tags:
            if name in {b"table-cell", b"covered-table-cell"}:
                count = min(_repeats(attributes), _MAX_REPEATS) if b"-repeated" in attributes else 1
                if text and (look := self._look(attributes, text)):
                    looks += [(place, look) for place in range(column, column + count)]
                column += count
            elif name in {b"table-row", b"table"}:
                for repeated in range(min(repeats, _MOST_ROWS) if looks else 0):
                    yield row + repeated, looks
                row, column, looks = row + repeats if row >= 0 else 0, 0, []
                repeats = _repeats(attributes)
                if name == b"table":
                    return
        for repeated in range(min(repeats, _MOST_ROWS) if looks else 0):
            yield row + repeated, looks


def _symbol_styles(chunks: Iterable[bytes]) -> dict[bytes, str]:
    """Return the styles of cells in a symbol font; they stand before the first sheet."""
    head = b""
    for chunk in chunks:
        head += chunk
        if b"<office:body" in head or len(head) > _MAX_KEPT:
            break
    fonts = ((name, font.decode("utf-8", "replace")) for name, font in _FONT.findall(head))
    return {name: font for name, font in fonts if is_symbol_font(font)}


def _overlapping(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield chunks that begin with the end of the one before."""
    kept = b""
    for chunk in chunks:
        yield kept + chunk
        kept = chunk[-64:]


def _said(text: str, _: Cell) -> str:
    return text


def _repeats(attributes: bytes) -> int:
    match = _REPEATED.search(attributes)
    return max(number(match[1].decode()), 1) if match else 1


def _tags(chunks: Iterable[bytes]) -> Iterator[_Tag]:
    """Yield the tags of tables; one that a piece cuts waits for the next."""
    kept = b""
    for chunk in chunks:
        text = kept + chunk
        end = text.rfind(b"<table:")
        end = end if end >= 0 else max(len(text) - _MAX_KEPT, 0)
        yield from _TAG.findall(text, 0, end)
        kept = text[end:]
    yield from _TAG.findall(kept)

"""The comments of a document of Word 97 to 2003 ([MS-DOC], section 2.3.4)."""

import re
import struct
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from fetchstash.handlers._office._common import comment_line
from fetchstash.handlers._symbols import without_private

# Offsets in the header of the places of: the references to comments, the bounds of their texts,
# the names of authors, and the bookmarks of the words that they are about (section 2.5.6).
_REFERENCES_AT, _TEXTS_AT, _AUTHORS_AT = 0xBA, 0xC2, 0x1BA
_TAGS_AT, _BEGINS_AT, _ENDS_AT = 0x1C2, 0x1EA, 0x1F2
_REFERENCE = struct.Struct("<20xh4xl")  # section 2.9.6
_BEGIN = struct.Struct("<H2x")  # section 2.9.71
_TAG = struct.Struct("<4xl4x")  # section 2.9.4, behind an empty name
_STRINGS_HEADER = 6
_MAX_COMMENTS = 10_000
_CODE = re.compile("\x13[^\x13-\x15]{0,4000}(?:\x14|(?=\x15))|[\0-\x08\x0e-\x1f]")


@dataclass(frozen=True, slots=True)
class DocComment:
    """A comment: where it is referred to, the bounds of its text and of the words it is about.

    Places are CPs; those of its text count from the beginning of all comments.
    """

    place: int
    author: str
    text: tuple[int, int]
    words: tuple[int, int]


def comments_of(stream: bytes, table: bytes) -> list[DocComment]:
    """Return the comments by their places; none if their tables are damaged."""
    found: list[DocComment] = []
    with suppress(struct.error, IndexError):
        authors = list(_authors(_at(stream, table, _AUTHORS_AT)))
        marked = dict(_marked(stream, table))
        references = _at(stream, table, _REFERENCES_AT)
        places = _bounds(references, _REFERENCE.size)
        bounds = _bounds(_at(stream, table, _TEXTS_AT), 0)
        for index, place in enumerate(places[:-1][:_MAX_COMMENTS]):
            start = 4 * len(places) + _REFERENCE.size * index
            author, tag = map(int, _REFERENCE.unpack_from(references, start))
            name = authors[author] if 0 <= author < len(authors) else ""
            text = bounds[index], bounds[index + 1]
            found.append(DocComment(place, name, text, marked.get(tag, (0, 0))))
    return sorted(found, key=lambda comment: comment.place)


class CommentLines:
    """The lines of comments; ``start`` is the place of their texts in ``text``."""

    def __init__(self, comments: list[DocComment], text: str, start: int) -> None:
        self.are_told = False
        self._waiting = deque(comments)
        self._text = text
        self._start = start

    def until(self, place: int, paragraph: str) -> list[str]:
        """Return the lines of the comments of a paragraph that ends at ``place``."""
        lines: list[str] = []
        while self._waiting and self._waiting[0].place <= place:
            comment = self._waiting.popleft()
            begin, end = (self._start + place for place in comment.text)
            if words := self._words(begin, end):
                quoted = self._words(*comment.words)
                lines.append(comment_line(comment.author, words, quoted, paragraph))
            self.are_told = not self._waiting
        return lines

    def _words(self, begin: int, end: int) -> str:
        """Return the words between two places, without codes of fields. Joins surrogate pairs."""
        words = _CODE.sub("", self._text[begin:end]).encode("utf-16-le", "surrogatepass")
        return without_private(words.decode("utf-16-le", "replace")).strip()


def _at(stream: bytes, table: bytes, place: int) -> bytes:
    offset, size = struct.unpack_from("<LL", stream, place)
    return table[offset : offset + size]


def _bounds(plc: bytes, size: int) -> tuple[int, ...]:
    """Return the CPs of a table that keeps ``size`` bytes for each but the last."""
    count = (len(plc) - 4) // (4 + size)
    return struct.unpack_from(f"<{count + 1}L", plc) if count > 0 else ()


def _authors(data: bytes) -> Iterator[str]:
    """Yield names, each behind its length in characters (section 2.9.105)."""
    place = 0
    while place + 2 <= len(data):
        (size,) = struct.unpack_from("<H", data, place)
        yield data[place + 2 : place + 2 + 2 * size].decode("utf-16-le", "replace")
        place += 2 + 2 * size


def _marked(stream: bytes, table: bytes) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the words that comments are about by the tags of their bookmarks."""
    begins, tags = _at(stream, table, _BEGINS_AT), _at(stream, table, _TAGS_AT)
    ends = _bounds(_at(stream, table, _ENDS_AT), 0)
    starts = _bounds(begins, _BEGIN.size)
    for index, start in enumerate(starts[:-1][:_MAX_COMMENTS]):
        (end,) = _BEGIN.unpack_from(begins, 4 * len(starts) + _BEGIN.size * index)
        (tag,) = _TAG.unpack_from(tags, _STRINGS_HEADER + _TAG.size * index)
        yield tag, (start, ends[end])

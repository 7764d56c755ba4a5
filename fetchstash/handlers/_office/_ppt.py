"""PPT: presentations of PowerPoint 97 to 2003 as Markdown, each slide a page ([MS-PPT])."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._office import OfficeReason
from fetchstash.handlers._office._common import Slides
from fetchstash.handlers._prose import Prose
from fetchstash.handlers._zip import CompoundFile

_HEADER = struct.Struct("<HHL")  # section 2.3.1
_CONTAINER = 0xF
_MAX_DEPTH = 64
_MAX_SLIDES = 10_000
_ENCRYPTED_TOKEN = 0xF3D1C4DF  # section 2.3.2
# Types of records (section 2.13.24).
_SLIDE_ATOM, _PERSIST, _EDIT, _DIRECTORY, _LIST = 0x03EF, 0x03F3, 0x0FF5, 0x1772, 0x0FF0
_REFERENCE, _TEXT_HEADER, _CHARS, _BYTES = 0x0F9E, 0x0F9F, 0x0FA0, 0x0FA8
_TEXT_BOX, _SHAPE = 0xF00D, 0xF00A
_SLIDES, _NOTES = 0, 2  # instances of lists
_PICTURE_FRAME = 75
# Types of text (section 2.13.33).
_TITLES, _BODIES, _NOTES_TEXT = {0, 6}, {1, 5, 7, 8}, 2
_NUMBER_SIGN = "*"  # replaces the number of a slide or a date


_Text = tuple[int, str]
"""A text after its type."""


@dataclass(frozen=True, slots=True)
class _Record:
    """A record: its type, its instance, and the place of its content in the stream."""

    kind: int
    instance: int
    start: int
    end: int


@dataclass(slots=True)
class _Slide:
    """A slide of the list: its persistent object, the number of its notes, and its listed texts."""

    reference: int
    number: int
    texts: list[_Text] = field(default_factory=list[_Text])


def read(file: CompoundFile, extracted: Extracted) -> Iterator[Part]:
    """Yield a page for each slide. Raises NoText if the presentation cannot be read."""
    user = file.read("Current User")
    if len(user) >= 16 and struct.unpack_from("<L", user, 12)[0] == _ENCRYPTED_TOKEN:
        raise OfficeReason.SLIDES_ENCRYPTED.error()
    stream = _Stream(file.read("PowerPoint Document"))
    try:
        objects, document = stream.objects(struct.unpack_from("<L", user, 16)[0])
        lists = {
            record.instance: record
            for record in stream.children(objects[document])
            if record.kind == _LIST
        }
        slides = list(stream.listed(lists[_SLIDES])) if _SLIDES in lists else []
        listed_notes = stream.listed(lists[_NOTES]) if _NOTES in lists else ()
        notes = {note.number: note for note in listed_notes}
    except (struct.error, KeyError):
        raise OfficeReason.SLIDES_DAMAGED.error() from None
    prose = Prose()
    pages = Slides(prose)
    seen: set[int] = set()
    for slide in slides:
        place = objects.get(slide.reference, -1)
        if place in seen:  # only in a hostile file
            continue
        seen.add(place)
        beside = notes.pop(stream.notes_of(place), None)
        _write(*stream.shown(place, slide.texts), pages, prose)
        if beside:
            for kind, text in stream.shown(objects.get(beside.reference, -1), beside.texts)[0]:
                if kind == _NOTES_TEXT:
                    prose.paragraph(f"Notes: {text}".replace("\r", "\n").replace("\v", "\n"))
        yield from prose.full()
    pages.learn(extracted)
    yield from prose.end()


def _write(texts: list[_Text], pictures: int, pages: Slides, prose: Prose) -> None:
    """Write a slide with its title first."""
    pages.begin()
    for title in [text for kind, text in texts if kind in _TITLES] or [""]:
        pages.open(" ".join(title.split()))
    for kind, text in texts:
        for paragraph in () if kind in _TITLES else text.split("\r"):
            (prose.item if kind in _BODIES else prose.paragraph)(paragraph.replace("\v", "\n"))
    pages.end(pictures)


class _Stream:
    """The records of a presentation.

    Raises NoText after more records than an honest file holds: containers may overlap.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = len(data) // 4  # a record has eight bytes at least

    def objects(self, edit: int) -> tuple[dict[int, int], int]:
        """Return the places of the latest persistent objects, and the document's number (2.1.2)."""
        places: dict[int, int] = {}
        document = 0
        seen: set[int] = set()
        while edit and edit not in seen:
            seen.add(edit)
            if self._record(edit, len(self._data)).kind != _EDIT:
                raise KeyError(edit)
            last, directory, own_document = struct.unpack_from("<LLL", self._data, edit + 16)
            document = document or own_document
            for number, place in self._directory(self._record(directory, len(self._data))):
                places.setdefault(number, place)
            edit = last
        return places, document

    def _directory(self, record: _Record) -> Iterator[tuple[int, int]]:
        """Yield numbers and places of persistent objects, which come in runs (section 2.3.4)."""
        place = record.start if record.kind == _DIRECTORY else record.end
        while place + 4 <= record.end:
            (run,) = struct.unpack_from("<L", self._data, place)
            first, count = run & 0xFFFFF, run >> 20
            place += 4
            for number in range(min(count, (record.end - place) // 4)):
                yield first + number, struct.unpack_from("<L", self._data, place + 4 * number)[0]
            place += 4 * count

    def children(self, place: int) -> Iterator[_Record]:
        """Yield the records in the container at ``place``."""
        return self._within(self._record(place, len(self._data)))

    def listed(self, record: _Record) -> Iterator[_Slide]:
        """Yield the slides or notes of a list, each with its texts (section 2.4.14.3)."""
        slide: _Slide | None = None
        kind = 4
        count = 0
        for child in self._within(record):
            if child.kind == _PERSIST:
                if slide:
                    yield slide
                count += 1
                if count > _MAX_SLIDES:
                    return
                reference, number = struct.unpack_from("<L8xL", self._data, child.start)
                slide = _Slide(reference, number)
            elif child.kind == _TEXT_HEADER:
                (kind,) = struct.unpack_from("<L", self._data, child.start)
            elif slide and child.kind in {_CHARS, _BYTES}:
                slide.texts.append((kind, self._text(child)))
        if slide:
            yield slide

    def shown(self, place: int, listed: list[_Text]) -> tuple[list[_Text], int]:
        """Return the texts of the slide at ``place``, and the number of its pictures.

        A shape holds its text or refers to a listed one. Listed texts without a shape come first.
        """
        texts: list[_Text] = []
        referred: set[int] = set()
        kind, pictures, in_box = 4, 0, 0
        for record in self._all(place):
            if record.kind == _SHAPE:
                pictures += record.instance == _PICTURE_FRAME
            elif record.kind == _TEXT_BOX:
                in_box = record.end
            elif record.start >= in_box:
                continue
            elif record.kind == _TEXT_HEADER:
                (kind,) = struct.unpack_from("<L", self._data, record.start)
            elif record.kind in {_CHARS, _BYTES}:
                texts.append((kind, self._text(record)))
            elif record.kind == _REFERENCE:
                (index,) = struct.unpack_from("<L", self._data, record.start)
                if index < len(listed) and index not in referred:
                    referred.add(index)
                    texts.append(listed[index])
        texts[:0] = [text for index, text in enumerate(listed) if index not in referred]
        texts = [(kind, text) for kind, text in texts if text.strip() not in {"", _NUMBER_SIGN}]
        return texts, pictures

    def notes_of(self, place: int) -> int:
        """Return the number of a slide's notes, 0 if it has none (section 2.5.10)."""
        atom = next((record for record in self._all(place) if record.kind == _SLIDE_ATOM), None)
        if atom is None or atom.end - atom.start < 20:
            return 0
        return int(struct.unpack_from("<L", self._data, atom.start + 16)[0])

    def _all(self, place: int) -> Iterator[_Record]:
        """Yield all records within the one at ``place``, in order."""
        if not 0 <= place <= len(self._data) - _HEADER.size:
            return
        waiting = [self.children(place)]
        while waiting:
            record = next(waiting[-1], None)
            if record is None:
                waiting.pop()
                continue
            yield record
            version = self._data[record.start - _HEADER.size] & 0x0F
            if version == _CONTAINER and len(waiting) < _MAX_DEPTH:
                waiting.append(self._within(record))

    def _within(self, outer: _Record) -> Iterator[_Record]:
        place = outer.start
        while place + _HEADER.size <= outer.end:
            record = self._record(place, outer.end)
            yield record
            place = record.end

    def _record(self, place: int, end: int) -> _Record:
        self._left -= 1
        if self._left < 0:
            raise OfficeReason.SLIDES_DAMAGED.error()
        mixed, kind, length = _HEADER.unpack_from(self._data, place)
        start = place + _HEADER.size
        return _Record(kind, mixed >> 4, start, min(start + length, end))

    def _text(self, record: _Record) -> str:
        """Return a text of two-byte characters or of their lower bytes (section 2.9.42 f.)."""
        raw = self._data[record.start : record.end]
        return raw.decode("utf-16-le" if record.kind == _CHARS else "latin-1", "replace")

"""Parts of a document: texts, members, pages and pictures, as a handler answers them."""

import io
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fetchstash.handlers._contract import Extracted, Hints, Part, PartRequest, PartText, Picture
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._pdf import NO_MAPPING
from fetchstash.handlers._reasons import Reason
from fetchstash.text import PreviewLimits
from fetchstash.text.ranges import Unit

if TYPE_CHECKING:
    from PIL import Image


class TextParts(ABC):
    """Base of handlers whose parts are text: a subclass finds the text, this cuts the range."""

    @abstractmethod
    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the text of what ``path`` names. Raises OutOfRange, BadArgument or NoText."""

    def part(self, request: PartRequest) -> PartText:
        """Return a range of what the path names. Raises OutOfRange, BadArgument or NoText."""
        if request.render == "image":
            raise Reason.NOT_A_PICTURE.error()
        return part_text(self.find(request.source, request.path, request.hints), request)


def part_text(text: str, request: PartRequest) -> PartText:
    """Return the range of ``text`` that ``request`` asks for, and how many there are of its unit.

    Lines and rows count from 1 with both ends included, characters and bytes from 0 with the end
    left out; a byte range that cuts a character begins and ends with the whole one. Raises
    OutOfRange if the range starts behind the end of the text, BadArgument for pages.
    """
    unit, start, end = request.unit, request.start, request.end
    if unit == "pages":
        raise Reason.NO_PAGES.error()
    if unit in {"lines", "rows"}:
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        first, last = _bounds(start, end, len(lines), unit, from_one=True)
        return PartText("".join(f"{line}\n" for line in lines[first:last]), len(lines))
    if unit == "chars":
        first, last = _bounds(start, end, len(text), unit, from_one=False)
        return PartText(text[first:last], len(text))
    data = text.encode("utf-8")
    first, last = _bounds(start, end, len(data), unit, from_one=False)
    while first > 0 and data[first] & 0xC0 == 0x80:
        first -= 1
    while last < len(data) and data[last] & 0xC0 == 0x80:
        last += 1
    return PartText(data[first:last].decode("utf-8"), len(data))


def _bounds(
    start: int | None, end: int | None, total: int, unit: Unit, *, from_one: bool
) -> tuple[int, int]:
    """Return the slice [first, last) of a sequence of ``total``."""
    base = 1 if from_one else 0
    first = base if start is None else start
    last = total if end is None else min(end, total)
    if first < base or (end is not None and end < first):
        raise Reason.BAD_RANGE.error(unit=unit, base=base)
    if first >= total + base and total:
        raise Reason.BEHIND_END.error(total=total, unit=unit, last=total - 1 + base)
    return first - base, last


WITHIN = "!/"
"""Separates a member from a member of it, as in the URLs of Java archives."""

MAX_NESTING = 2


class MemberParts(ABC):
    """Base of handlers whose parts are documents: a subclass opens a member, this reads it."""

    @abstractmethod
    def open_member(self, source: Path, name: str) -> AbstractContextManager[Iterable[bytes]]:
        """Open a member; give its content in pieces.

        Raises OutOfRange if there is no such member, NoText if it is not read.
        """

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return a member's text or picture.

        The path is its name; ``inner.zip!/name`` is a member of a member.
        """
        if not request.path:
            raise Reason.MEMBER_WANTED.error()
        name, within = split_path(request.path)
        with self.open_member(request.source, name) as pieces:
            return read_member(pieces, name, replace(request, path=within))


def split_path(path: str) -> tuple[str, str]:
    """Return the name of a member, and the path within it ("": all of it).

    Raises NoText if the path goes through too many documents.
    """
    if path.count(WITHIN) > MAX_NESTING:
        raise Reason.NESTED_MEMBERS.error(limit=MAX_NESTING)
    name, _, within = path.partition(WITHIN)
    return name, within


def read_member(pieces: Iterable[bytes], name: str, request: PartRequest) -> PartText | Picture:
    """Return text or picture of the document in ``pieces``, or of its part ``request.path``.

    Raises NoText if it has no text, and what its handler raises.
    """
    from fetchstash.handlers import _registry  # noqa: PLC0415 - it imports the caller
    from fetchstash.handlers._routing import _router  # noqa: PLC0415 - it imports the caller

    with tempfile.TemporaryDirectory(prefix="member-") as folder:
        member = Path(folder) / "member"
        with member.open("wb") as file:
            file.writelines(pieces)
        decision = _router.route_file(member, {}, name)
        handler = _registry.handler_of(_registry.format_of(decision))
        hints = Hints(name=name, media_type=decision.media_type)
        if request.path or request.render == "image":
            return _registry.read_part(handler, replace(request, source=member, hints=hints))
        extracted = handler.extract(member, hints, request.limits)
        if extracted.parts is None:
            known = _registry.built_in().declares(decision.media_type)
            media_type = decision.media_type if known else ""
            raise Reason.MEMBER_WITHOUT_TEXT.error(name=name, media_type=media_type)
        return part_text(_text(extracted, request.limits), request)


def _text(extracted: Extracted, limits: ExtractLimits) -> str:
    """Return the text of a document, up to max_chars."""
    pieces: list[str] = []
    room = limits.max_chars
    for part in extracted.parts or ():
        pieces.append(part.text[:room])
        room -= len(part.text)
        if room <= 0:
            break
    return "".join(pieces)


class Streamed(ABC):
    """Base of handlers that need neither hints nor limits: a subclass yields the parts."""

    @abstractmethod
    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
        """Yield the parts of ``source``, and add its facts to ``extracted``.

        Raises NoText if the file cannot be read, behind the text that could be.
        """

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the document; its parts are read as they are consumed."""
        del hints, limits
        extracted = Extracted(parts=None)
        extracted.parts = self.read(source, extracted)
        return extracted


_JPEG_QUALITIES = (85, 70, 50)
_SMALLEST_EDGE = 64


def bounded(image: "Image.Image", limits: PreviewLimits, *, photo: bool) -> Picture:
    """Return ``image`` encoded, and made smaller until it is within ``limits``.

    It is PNG, or JPEG if it is a ``photo`` or too large as PNG. Raises TooLarge if even a thumbnail
    is over the limit.
    """
    image = _plain(image)
    edge = min(limits.max_image_edge_px, max(image.size))
    while True:
        image.thumbnail((edge, edge), reducing_gap=2.0)
        for encoded, media_type in _encodings(image, photo=photo):
            if len(encoded) <= limits.max_image_size_bytes:
                return Picture(encoded, media_type, *image.size)
        edge = max(image.size) // 2
        if edge < _SMALLEST_EDGE:
            raise Reason.LARGE_PICTURE.error()


def _plain(image: "Image.Image") -> "Image.Image":
    """Return ``image`` in a mode that PNG and JPEG share, or in RGBA, which only PNG has."""
    if image.mode in {"L", "RGB", "RGBA"}:
        return image
    transparent = image.mode in {"LA", "La", "PA", "RGBa"} or "transparency" in image.info
    return image.convert("RGBA" if transparent else "L" if image.mode == "1" else "RGB")


def _encodings(image: "Image.Image", *, photo: bool) -> Iterator[tuple[bytes, str]]:
    """Yield ``image`` encoded, the best looking first."""
    from PIL import Image  # noqa: PLC0415 - only a worker that makes pictures pays for it

    if not photo:
        yield _encode(image, "PNG"), "image/png"
    if image.mode == "RGBA":  # JPEG has no transparency: paint on white
        backed = Image.new("RGB", image.size, "white")
        backed.paste(image, mask=image)
        image = backed
    for quality in _JPEG_QUALITIES:
        yield _encode(image, "JPEG", quality=quality), "image/jpeg"


def _encode(image: "Image.Image", form: str, **options: int) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


_LEGIBLE = 0.5
"""The confidence below which most of a page was not read."""


def blank_page(number: int) -> str:
    """Return the text of page ``number`` (from 1) where it has no text layer."""
    return f"[Page {number}]\n(no text on this page)\n\n"


def unmapped_page(number: int) -> str:
    """Return how page ``number`` begins where its font has no usable mapping to characters."""
    return f"[Page {number}]\n{NO_MAPPING}\n"


def ocr_text(text: str, confidence: float) -> str:
    """Return what OCR read, under a line that says so and how sure it is."""
    if not text and confidence >= _LEGIBLE:
        return "[read by OCR: no text]\n"
    sure = f"{confidence:.2f}".lstrip("0")
    if confidence < _LEGIBLE:
        sure += ": most of it is in letters that the models do not know. Look at the picture"
    return f"[read by OCR, confidence {sure}]\n{text}{text and chr(10)}"


def ocr_page(number: int, text: str, confidence: float) -> str:
    """Return the text of page ``number`` (from 1) as OCR read it."""
    return f"[Page {number}]\n{ocr_text(text, confidence)}\n"

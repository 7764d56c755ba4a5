"""Parts of a document: texts, members, pages and pictures, as a handler answers them."""

import io
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fetchstash.errors import NoText
from fetchstash.handlers._contract import (
    NO_HINTS,
    Extracted,
    Hints,
    Part,
    PartRequest,
    PartText,
    Picture,
)
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._pdf import NO_MAPPING
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._registry import built_in, format_of, handler_of, read_part
from fetchstash.handlers._router import route_file
from fetchstash.handlers._zip import Zip
from fetchstash.text import PreviewLimits

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
    match request.unit:
        case "pages":
            raise Reason.NO_PAGES.error()
        case "lines" | "rows":
            lines = text.removesuffix("\n").split("\n") if text else []
            first, last = _bounds(request, len(lines), base=1)
            return PartText("".join(f"{line}\n" for line in lines[first:last]), len(lines))
        case "chars":
            first, last = _bounds(request, len(text), base=0)
            return PartText(text[first:last], len(text))
        case _:
            data = text.encode("utf-8")
            first, last = _bounds(request, len(data), base=0)
            while first > 0 and data[first] & 0xC0 == 0x80:
                first -= 1
            while last < len(data) and data[last] & 0xC0 == 0x80:
                last += 1
            return PartText(data[first:last].decode("utf-8"), len(data))


def _bounds(request: PartRequest, total: int, *, base: int) -> tuple[int, int]:
    """Return the slice [first, last) of a sequence of ``total``, whose first is ``base``."""
    unit, end = request.unit, request.end
    first = base if request.start is None else request.start
    if first < base or (end is not None and end < first):
        raise Reason.BAD_RANGE.error(unit=unit, base=base)
    if first >= total + base and total:
        raise Reason.BEHIND_END.error(total=total, unit=unit, last=total - 1 + base)
    return first - base, total if end is None else min(end, total)


# Separates a member from a member of it, as in the URLs of Java archives.
_WITHIN = "!/"
_MAX_NESTING = 2


class MemberParts(ABC):
    """Base of handlers whose parts are documents: a subclass finds a member, this reads it."""

    @abstractmethod
    def member(self, request: PartRequest, name: str) -> Iterator[bytes]:
        """Yield the content of a member in pieces.

        Raises OutOfRange if there is no such member, NoText if it is not read.
        """

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return a member's text or picture.

        The path is its name; ``inner.zip!/name`` is a member of a member.
        """
        if not request.path:
            raise Reason.MEMBER_WANTED.error()
        if request.path.count(_WITHIN) > _MAX_NESTING:
            raise Reason.NESTED_MEMBERS.error(limit=_MAX_NESTING)
        name, _, within = request.path.partition(_WITHIN)
        pieces = self.member(request, name)
        return read_member(pieces, name, replace(request, path=within))


def read_member(pieces: Iterable[bytes], name: str, request: PartRequest) -> PartText | Picture:
    """Return text or picture of the document in ``pieces``, or of its part ``request.path``.

    Raises NoText if it has no text, and what its handler raises.
    """
    with tempfile.TemporaryDirectory(prefix="member-") as folder:
        member = Path(folder) / "member"
        with member.open("wb") as file:
            file.writelines(pieces)
        decision = route_file(member, {}, name)
        form = format_of(decision)
        handler = handler_of(form)
        hints = Hints(name=name, media_type=decision.media_type)
        if request.path or request.render == "image":
            return read_part(handler, replace(request, source=member, hints=hints))
        extracted = handler.extract(member, hints, request.limits)
        if extracted.parts is None:
            known = built_in().declares(decision.media_type)
            media_type = decision.media_type if known else ""
            reason = Reason.MEMBER_PICTURE if form.pictures else Reason.MEMBER_WITHOUT_TEXT
            raise reason.error(name=name, media_type=media_type)
        most = request.limits.max_chars
        return part_text(up_to(most, (part.text for part in extracted.parts))[:most], request)


def up_to(chars: int, texts: Iterable[str]) -> str:
    """Join ``texts`` up to the one that reaches ``chars``."""
    pieces: list[str] = []
    for text in texts:
        pieces.append(text)
        chars -= len(text)
        if chars <= 0:
            break
    return "".join(pieces)


@dataclass(slots=True)
class Reading(Extracted):
    """A document while its parts are read, with the hints and the limits that hold for it."""

    hints: Hints = NO_HINTS
    limits: ExtractLimits = field(default_factory=ExtractLimits)


class Streamed(ABC):
    """Base of handlers that read as their parts are consumed: a subclass yields the parts."""

    @abstractmethod
    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield the parts of ``source``, and add its facts to ``extracted``.

        Raises NoText if the file cannot be read, behind the text that could be.
        """

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the document; its parts are read as they are consumed."""
        extracted = Reading(None, hints=hints, limits=limits)
        extracted.parts = self.read(source, extracted)
        return extracted


_JPEG_QUALITIES = (85, 70, 50)
_SMALLEST_EDGE = 64


def bounded(image: "Image.Image", limits: PreviewLimits, *, photo: bool) -> Picture:
    """Return ``image`` encoded, and made smaller until it is within ``limits``.

    It is PNG, or JPEG if it is a ``photo`` or too large as PNG. Raises TooLarge if even a thumbnail
    is over the limit.
    """
    # A mode that PNG and JPEG share, or RGBA, which only PNG has.
    if image.mode not in {"L", "RGB", "RGBA"}:
        transparent = image.mode in {"LA", "La", "PA", "RGBa"} or "transparency" in image.info
        image = image.convert("RGBA" if transparent else "L" if image.mode == "1" else "RGB")
    edge = min(limits.max_image_edge_px, max(image.size))
    while True:
        image.thumbnail((edge, edge), reducing_gap=2.0)
        for encoded, media_type in _encodings(image, photo=photo):
            if len(encoded) <= limits.max_image_size_bytes:
                return Picture(encoded, media_type, *image.size)
        edge = max(image.size) // 2
        if edge < _SMALLEST_EDGE:
            raise Reason.LARGE_PICTURE.error()


def _encodings(image: "Image.Image", *, photo: bool) -> Iterator[tuple[bytes, str]]:
    """Yield ``image`` encoded, the best looking first."""
    from PIL import Image  # noqa: PLC0415 - only a worker that makes pictures pays for it

    def encoded(form: str, **options: int) -> bytes:
        out = io.BytesIO()
        image.save(out, form, **options)
        return out.getvalue()

    if not photo:
        yield encoded("PNG"), "image/png"
    if image.mode == "RGBA":  # JPEG has no transparency: paint on white
        backed = Image.new("RGB", image.size, "white")
        backed.paste(image, mask=image)
        image = backed
    for quality in _JPEG_QUALITIES:
        yield encoded("JPEG", quality=quality), "image/jpeg"


_LEGIBLE = 0.5
"""The confidence below which most of a page was not read."""


def blank_page(number: int, why: str = "no text on this page") -> str:
    """Return the text of page ``number`` (from 1) where it has no text layer, or nothing at all."""
    return f"[Page {number}]\n({why})\n\n"


def unmapped_page(number: int) -> str:
    """Return the first line of page ``number`` if its font has no usable mapping to characters."""
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


IMAGES, LEFT_OUT = "images", "left_out"
PATHS = (LEFT_OUT, IMAGES, f"{IMAGES}/*")
"""The paths that these handlers answer."""

_MAX_PICTURES = 1_000
_MAX_LABEL = 300
_MAX_PICTURE_BYTES = 64 * 1024 * 1024


class Beside:
    """Collects pictures, each once and numbered from 1, and texts that are left out, by region."""

    def __init__(self) -> None:
        self._pictures: dict[str, str] = {}
        self._texts: dict[str, list[str]] = {}

    def picture(self, address: str, label: str = "") -> str:
        """Return a picture as Markdown, "" if it was there before or has no address.

        ``address`` is a member of the document, or where on the web it is.
        """
        if not address or address in self._pictures or len(self._pictures) >= _MAX_PICTURES:
            return ""
        label = " ".join(label.split())[:_MAX_LABEL].replace("[", "(").replace("]", ")")
        self._pictures[address] = label
        linked = address.startswith(("http://", "https://"))
        return f"![{label}]({address if linked else f'{IMAGES}/{len(self._pictures)}'})"

    def leave_out(self, region: str, text: str) -> None:
        """Add a text that the document's text leaves out."""
        if text := text.strip():
            self._texts.setdefault(region, []).append(text)

    def learn(self, extracted: Extracted) -> None:
        """Add how much is left out to the facts."""
        sizes = {region: sum(map(len, texts)) for region, texts in self._texts.items()}
        if sizes:
            extracted.left_out = self.left_out()
            extracted.learn(
                left_out_chars=sum(sizes.values()),
                left_out=", ".join(f"{region} {size:,}" for region, size in sizes.items()),
            )

    def left_out(self) -> str:
        """Return what is left out, each region under its name."""
        return "\n".join(
            f"## {region}\n\n" + "".join(f"{text}\n" for text in texts)
            for region, texts in self._texts.items()
        )

    def listed(self) -> list[tuple[str, str]]:
        """Return a line and the address of each picture."""
        return [
            (f"{number}. {label or 'picture'} ({address})", address)
            for number, (address, label) in enumerate(self._pictures.items(), start=1)
        ]


class BesideParts(Streamed):
    """Base of handlers of ZIP containers with paths for pictures and left-out texts."""

    @abstractmethod
    def read_beside(self, source: Path, extracted: Reading, beside: Beside) -> Iterator[Part]:
        """Yield the parts of ``source`` as ``read`` does; add to ``beside`` what stands there."""

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield the parts of ``source``. Raises NoText if it cannot be read."""
        beside = Beside()
        yield from self.read_beside(source, extracted, beside)
        beside.learn(extracted)

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return the pictures as a list, one of them, or what the text leaves out.

        Raises OutOfRange for a path that leads nowhere.
        """
        beside = Beside()
        with suppress(NoText):
            for _ in self.read_beside(request.source, Reading(None), beside):
                pass
        listed = beside.listed()
        lines = [line for line, _ in listed]
        folder, slash, number = request.path.partition("/")
        if folder == IMAGES and slash:
            if not number.isdecimal() or not 1 <= int(number) <= len(listed):
                raise Reason.DOCUMENT_PICTURES.error(count=len(listed))
            line, address = listed[int(number) - 1]
            if request.render == "image":
                return self.shown(request, address)
            lines = [line]
        elif request.render == "image":
            raise Reason.DOCUMENT_NO_PICTURE.error()
        elif request.path == LEFT_OUT:
            return part_text(beside.left_out(), request)
        elif request.path != IMAGES:
            raise Reason.DOCUMENT_NO_PART.error()
        return part_text("".join(f"{line}\n" for line in lines), request)

    def shown(self, request: PartRequest, address: str) -> PartText | Picture:
        """Return a picture of the document, or the address of one on the web."""
        if address.startswith(("http://", "https://")):
            return PartText(address, 1)
        with Zip(request.source) as container:
            entry = container.find([address]).get(address)
            if entry is None:
                raise Reason.DOCUMENT_HOLDS_NO_PICTURE.error()
            pieces = container.chunks(entry, _MAX_PICTURE_BYTES)
            return read_member(pieces, address, replace(request, path=""))

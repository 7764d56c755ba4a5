"""What stands beside the text of a document: its pictures, and what the text leaves out."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from fetchstash.errors import NoText
from fetchstash.handlers._contract import Extracted, Part, PartRequest, PartText, Picture
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._shared._parts import Streamed, part_text, read_member
from fetchstash.handlers._shared._zip import Zip

IMAGES, LEFT_OUT = "images", "left_out"
PATHS = (LEFT_OUT, IMAGES, f"{IMAGES}/*")
"""The paths that these handlers answer."""

_MAX_PICTURES = 1_000
_MAX_LABEL = 300
_MAX_PICTURE_BYTES = 64 * 1024 * 1024


class Beside:
    """Collects pictures, each once and numbered from 1, and texts by the region they stand in."""

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
        """Add a text that is not in that of the document."""
        if text := text.strip():
            self._texts.setdefault(region, []).append(text)

    def learn(self, extracted: Extracted) -> None:
        """Add how much is left out to the facts."""
        sizes = {region: sum(map(len, texts)) for region, texts in self._texts.items()}
        if sizes:
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
    """Base of handlers of ZIP containers that answer for pictures and what is left out."""

    @abstractmethod
    def read_beside(self, source: Path, extracted: Extracted, beside: Beside) -> Iterator[Part]:
        """Yield the parts of ``source`` as ``read`` does; add to ``beside`` what stands there."""

    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
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
            for _ in self.read_beside(request.source, Extracted(None), beside):
                pass
        listed = beside.listed()
        if request.path.startswith(f"{IMAGES}/"):
            number = request.path.removeprefix(f"{IMAGES}/")
            if not number.isdecimal() or not 1 <= int(number) <= len(listed):
                raise Reason.DOCUMENT_PICTURES.error(count=len(listed))
            line, address = listed[int(number) - 1]
            if request.render == "image":
                return self.shown(request, address)
            return part_text(f"{line}\n", request)
        if request.render == "image":
            raise Reason.DOCUMENT_NO_PICTURE.error()
        if request.path == IMAGES:
            return part_text("".join(f"{line}\n" for line, _ in listed), request)
        if request.path == LEFT_OUT:
            return part_text(beside.left_out(), request)
        raise Reason.DOCUMENT_NO_PART.error()

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

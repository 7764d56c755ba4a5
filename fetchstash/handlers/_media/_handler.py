"""Sound and film: what their headers say."""

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from fetchstash.handlers._contract import Extracted, Hints
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.text.facts import DocumentFacts

# A larger box, chunk or tag is skipped.
MAX_PIECE = 1024 * 1024
MAX_PIECES = 10_000

TAGS = ("title", "artist", "album", "date", "genre", "comment")


@dataclass(slots=True)
class Media:
    """Facts of a container: seconds (None: unknown), pixels, codecs, and tags by ``TAGS``."""

    seconds: float | None = None
    width: int | None = None
    height: int | None = None
    channels: int | None = None
    sample_rate: int | None = None
    codecs: list[str] = field(default_factory=list[str])
    tags: dict[str, str] = field(default_factory=dict[str, str])

    def learn_size(self, width: int, height: int) -> None:
        """Keep the size of the largest track or picture."""
        if width * height > (self.width or 0) * (self.height or 0):
            self.width, self.height = width, height

    def line(self) -> str:
        """Return the facts in one line: duration, sound, codecs, tags."""
        facts = [clock(self.seconds)] if self.seconds is not None else []
        facts += [f"{self.sample_rate:,} Hz"] if self.sample_rate else []
        if self.channels:
            facts.append(f"{self.channels} channels" if self.channels > 1 else "mono")
        facts += dict.fromkeys(self.codecs)
        facts += [f"{name} {self.tags[name]}" for name in TAGS if self.tags.get(name)]
        return ", ".join(facts)


def clock(seconds: float) -> str:
    """Return a duration as people write it: 3:05, 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def read_at(file: BinaryIO, place: int, size: int) -> bytes:
    """Return ``size`` bytes (at most a mebibyte) from ``place``, fewer at the end of the file."""
    if place >= 1 << 62:  # seek takes no such place
        return b""
    file.seek(place)
    return file.read(max(min(size, MAX_PIECE), 0))


_CONTAINERS = {
    b"moov", b"trak", b"mdia", b"minf", b"stbl", b"udta", b"ilst", b"meta", b"iprp", b"ipco",
}  # fmt: skip
_TAGS = {
    b"\xa9nam": "title", b"\xa9ART": "artist", b"\xa9alb": "album", b"\xa9day": "date",
    b"\xa9gen": "genre", b"\xa9cmt": "comment",
}  # fmt: skip
_MAX_DEPTH = 12


def mp4(file: BinaryIO, size: int) -> Media:
    """Return the facts of an open file of ``size`` bytes."""
    media = Media()
    for name, place, length in _boxes(file, 0, size, 0):
        if name in _TAGS:
            media.tags[_TAGS[name]] = read_at(file, place, length)[16:].decode("utf-8", "replace")
        elif name in _READERS:
            with suppress(struct.error):  # the box is too short
                _READERS[name](read_at(file, place, length), media)
    return media


def _boxes(file: BinaryIO, start: int, end: int, depth: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, place and size of all boxes, at any level."""
    for _ in range(MAX_PIECES):
        head = read_at(file, start, 16)
        if start + 8 > end or len(head) < 8:
            return
        size, name = struct.unpack(">L4s", head[:8])
        header = 8
        if size == 1 and len(head) == 16:
            size, header = struct.unpack(">Q", head[8:])[0], 16
        elif size == 0:
            size = end - start
        if size < header:
            return
        stop = min(start + size, end)
        yield name, start + header, stop - start - header
        if name in _CONTAINERS and depth < _MAX_DEPTH:
            inner = start + header + (4 if name == b"meta" else 0)  # it is a full box
            yield from _boxes(file, inner, stop, depth + 1)
        start += size


def _movie_header(data: bytes, media: Media) -> None:
    layout = ">20xLQ" if data[0] == 1 else ">12xLL"
    scale, duration = struct.unpack_from(layout, data)
    if scale:
        media.seconds = duration / scale


def _track_header(data: bytes, media: Media) -> None:
    """Read width and height, fixed-point numbers at the end, 0 for a sound (section 8.3.2)."""
    width, height = struct.unpack(">LL", data[-8:])
    media.learn_size(width >> 16, height >> 16)


def _spatial_extent(data: bytes, media: Media) -> None:
    """Read the size of a still picture (ISO 23008-12, section 6.5.3)."""
    media.learn_size(*struct.unpack_from(">4xLL", data))


def _sample_description(data: bytes, media: Media) -> None:
    codec = struct.unpack_from(">12x4s", data)[0]
    media.codecs.append(codec.decode("ascii", "replace").strip())
    if codec in {b"mp4a", b"Opus", b"fLaC", b"alac", b"ac-3", b"ec-3"}:
        media.channels, media.sample_rate = struct.unpack_from(">32xH6xH", data)


_READERS = {
    b"mvhd": _movie_header,
    b"tkhd": _track_header,
    b"ispe": _spatial_extent,
    b"stsd": _sample_description,
}


_CODECS = {b"fLaC": "FLAC", b"ID3": "MP3", b"\xff": "MP3"}
_OGG_CODECS = {b"\x01vorbis": "Vorbis", b"OpusHead": "Opus", b"\x80theora": "Theora"}
_MOVIE = re.compile(rb".{4}(?:ftyp|moov)", re.DOTALL)
_MAX_SECONDS = 10**9


def sound(file: BinaryIO, head: bytes) -> Media:
    """Return the facts of a file of sound, those that were read of a damaged one."""
    from tinytag import TinyTag  # noqa: PLC0415 - for sound alone

    media = Media(codecs=[name for magic, name in _CODECS.items() if head.startswith(magic)])
    media.codecs += [name for mark, name in _OGG_CODECS.items() if mark in head]
    with suppress(Exception):
        read = TinyTag.get(file_obj=file)
        if read.duration is not None and 0 <= read.duration < _MAX_SECONDS:
            media.seconds = read.duration
        media.channels, media.sample_rate = read.channels, read.samplerate
        values = {name: getattr(read, "year" if name == "date" else name) for name in TAGS}
        media.tags = {name: str(value).strip("\0 ") for name, value in values.items() if value}
    return media


class MediaHandler:
    """Reads duration, size, codecs and tags. There is no text."""

    name = "media"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - the file is enough
        """Return the facts, none for an unknown or broken container."""
        with source.open("rb") as file:
            head = file.read(512)
            file.seek(0)
            is_movie = _MOVIE.match(head)
            media = mp4(file, source.stat().st_size) if is_movie else sound(file, head)
        tags = media.tags
        facts = DocumentFacts(
            title=tags.get("title", ""),
            author=tags.get("artist", ""),
            published=tags.get("date", "")[:10],
            width=media.width,
            height=media.height,
            seconds=None if media.seconds is None else max(round(media.seconds), 0),
            structure_info=media.line(),
        )
        return Extracted(None, facts)

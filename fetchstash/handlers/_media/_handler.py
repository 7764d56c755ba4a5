"""Sound and film: what their headers say."""

import re
import struct
from collections.abc import Callable, Iterator
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


def chunks(file: BinaryIO, layout: str, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, place and size of the chunks of an IFF-like file.

    A chunk is a name of four letters, a size of this ``layout``, and the data.
    """
    header = struct.Struct(f"{layout[0]}4s{layout[1]}")
    for _ in range(MAX_PIECES):
        file.seek(start)
        head = file.read(header.size)
        if start + header.size > end or len(head) < header.size:
            return
        name, size = header.unpack(head)
        yield name, start + header.size, size
        start += header.size + size + size % 2


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


_INFO = {
    b"INAM": "title", b"IART": "artist", b"IPRD": "album", b"ICRD": "date", b"IGNR": "genre",
    b"ICMT": "comment",
}  # fmt: skip
_WAVE_CODECS = {1: "PCM", 3: "float PCM", 6: "A-law", 7: "mu-law", 0x55: "MP3", 0xFFFE: "PCM"}
_ID3 = {
    b"TIT2": "title", b"TPE1": "artist", b"TALB": "album", b"TDRC": "date", b"TYER": "date",
    b"TCON": "genre",
}  # fmt: skip
_ID3_CHARSETS = ("latin-1", "utf-16", "utf-16-be", "utf-8")
# Bit rates of layer III in kbit/s, and sampling rates of version 1; versions 2 and 2.5 have a half
# and a quarter of those (section 2.4.2.3).
_BITRATES_1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_BITRATES_2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_RATES = (44_100, 48_000, 32_000)
# The sync word of a frame of layer III, and the frame that counts the others: its flags, of which
# the last says that the number is there.
_SYNC = re.compile(rb"\xff[\xe2\xe3\xea\xeb\xf2\xf3\xfa\xfb]")
_XING = re.compile(rb"(?:Xing|Info).{3}(.)(.{4})", re.DOTALL)


def wav(file: BinaryIO, size: int) -> Media:
    """Return the facts of a WAV file."""
    media = Media()
    byte_rate = 0
    for name, place, length in chunks(file, "<L", 12, size):
        data = read_at(file, place, min(length, 4096))
        if name == b"fmt " and len(data) >= 16:
            codec, media.channels, media.sample_rate, byte_rate = struct.unpack_from("<HHLL", data)
            media.codecs.append(_WAVE_CODECS.get(codec, f"codec {codec}"))
        elif name == b"data" and byte_rate:
            media.seconds = min(length, size - place) / byte_rate
        elif name == b"LIST" and data[:4] == b"INFO":
            for tag, at, size_of_tag in chunks(file, "<L", place + 4, min(place + length, size)):
                if tag in _INFO:
                    value = read_at(file, at, size_of_tag).rstrip(b"\0")
                    media.tags[_INFO[tag]] = value.decode("utf-8", "replace")
    return media


def flac(file: BinaryIO, size: int) -> Media:
    """Return the facts of the metadata blocks of a FLAC file (RFC 9639, section 8)."""
    media = Media(codecs=["FLAC"])
    place = 4
    for _ in range(MAX_PIECES):
        head = read_at(file, place, 4)
        if len(head) < 4:
            break
        length = int.from_bytes(head[1:])
        data = read_at(file, place + 4, length)
        if head[0] & 0x7F == 0 and len(data) >= 18:
            packed = int.from_bytes(data[10:18])
            media.sample_rate, media.channels = packed >> 44, (packed >> 41 & 7) + 1
            samples = packed & (1 << 36) - 1
            media.seconds = samples / media.sample_rate if media.sample_rate else None
        elif head[0] & 0x7F == 4:
            _vorbis_comment(data, media)
        place += 4 + length
        if head[0] & 0x80 or place >= size:
            break
    return media


def ogg(file: BinaryIO, size: int) -> Media:
    """Return the facts of the first packets of an Ogg file, and the duration from its last page."""
    media = Media()
    head = read_at(file, 0, 65_536)
    if (at := head.find(b"\x01vorbis")) >= 0 and len(head) >= at + 16:
        media.codecs.append("Vorbis")
        media.channels, media.sample_rate = struct.unpack_from("<BL", head, at + 11)
    elif (at := head.find(b"OpusHead")) >= 0 and len(head) >= at + 12:
        media.codecs.append("Opus")
        # Granules always count 48 kHz (RFC 7845, section 4).
        media.channels, media.sample_rate = head[at + 9], 48_000
    elif b"\x80theora" in head:
        media.codecs.append("Theora")
    for mark in (b"\x03vorbis", b"OpusTags"):
        if (at := head.find(mark)) >= 0:
            _vorbis_comment(head[at + len(mark) :], media)
    tail = read_at(file, max(size - 65_536, 0), 65_536)
    last = tail.rfind(b"OggS")
    if last >= 0 and len(tail) >= last + 14 and media.sample_rate:
        media.seconds = struct.unpack_from("<Q", tail, last + 6)[0] / media.sample_rate
    return media


def mp3(file: BinaryIO, size: int) -> Media:
    """Return tags and duration of an MP3 file: from its Xing or Info frame, else its bit rate."""
    media = Media(codecs=["MP3"])
    start = _id3(file, media)
    head = read_at(file, start, 65_536)
    for sync in _SYNC.finditer(head, 0, max(len(head) - 3, 0)):
        at = sync.start()
        if frame := _mp3_frame(head[at : at + 4]):
            bitrate, media.sample_rate, media.channels, samples = frame
            media.seconds = (size - start - at) * 8 / (bitrate * 1000)
            counted = _XING.search(head, at, at + 72)
            if counted and counted[1][0] & 1:
                media.seconds = int.from_bytes(counted[2]) * samples / media.sample_rate
            break
    return media


def _mp3_frame(head: bytes) -> tuple[int, int, int, int] | None:
    """Return kbit/s, samples a second, channels and samples a frame, None without a header."""
    version = head[1] >> 3 & 3  # 3: version 1, 2: version 2, 0: version 2.5
    bitrate, rate = head[2] >> 4, head[2] >> 2 & 3
    if version == 1 or bitrate in {0, 15} or rate == 3:
        return None
    kbits = (_BITRATES_1 if version == 3 else _BITRATES_2)[bitrate]
    return (
        kbits,
        _RATES[rate] >> {3: 0, 2: 1, 0: 2}[version],
        1 if head[3] >> 6 == 3 else 2,
        1152 if version == 3 else 576,
    )


def _id3(file: BinaryIO, media: Media) -> int:
    """Read the tags before the sound (ID3v2.3 and 2.4); return the place of the sound."""
    head = read_at(file, 0, 10)
    if head[:3] != b"ID3" or len(head) < 10:
        return 0
    end = 10 + _synchsafe(head[6:10])
    place = 10
    for _ in range(MAX_PIECES):
        frame = read_at(file, place, 10)
        if place + 10 > end or len(frame) < 10 or not frame[0]:
            break
        size = _synchsafe(frame[4:8]) if head[3] == 4 else int.from_bytes(frame[4:8])
        if frame[:4] in _ID3:
            data = read_at(file, place + 10, min(size, 4096))
            if data and data[0] < len(_ID3_CHARSETS):
                value = data[1:].decode(_ID3_CHARSETS[data[0]], "replace")
                media.tags[_ID3[frame[:4]]] = value.strip("\0\ufeff")
        place += 10 + size
    return end


def _synchsafe(data: bytes) -> int:
    """Return a number of seven bits a byte."""
    value = 0
    for byte in data:
        value = value << 7 | byte & 0x7F
    return value


def _vorbis_comment(data: bytes, media: Media) -> None:
    """Read ``NAME=value`` fields, each after its length (RFC 9639, section 8.6)."""
    place = 4 + int.from_bytes(data[:4], "little") + 4
    while place + 4 <= len(data):
        length = int.from_bytes(data[place : place + 4], "little")
        text = data[place + 4 : place + 4 + length].decode("utf-8", "replace")
        name, equals, value = text.partition("=")
        if equals and name.lower() in TAGS:
            media.tags[name.lower()] = value
        place += 4 + length


_BY_SIGNATURE: tuple[tuple[re.Pattern[bytes], Callable[[BinaryIO, int], Media]], ...] = (
    (re.compile(rb".{4}(?:ftyp|moov)", re.DOTALL), mp4),
    (re.compile(b"RIFF"), wav),
    (re.compile(b"fLaC"), flac),
    (re.compile(b"OggS"), ogg),
    (re.compile(rb"ID3|" + _SYNC.pattern), mp3),
)


class MediaHandler:
    """Reads duration, size, codecs and tags. There is no text."""

    name = "media"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - the file is enough
        """Return the facts, none for an unknown or broken container."""
        with source.open("rb") as file:
            head = file.read(16)
            readers = (reader for signature, reader in _BY_SIGNATURE if signature.match(head))
            media = next(readers, _unknown)(file, source.stat().st_size)
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


def _unknown(_file: BinaryIO, _size: int) -> Media:
    return Media()

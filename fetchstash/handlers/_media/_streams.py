"""WAV (RIFF), FLAC (RFC 9639), Ogg (RFC 3533, RFC 7845) and MP3 (ISO 11172-3, ID3)."""

import struct
from typing import BinaryIO

from fetchstash.handlers._media._facts import MAX_PIECES, TAGS, Media, chunks, read_at

_INFO = {
    b"INAM": "title",
    b"IART": "artist",
    b"IPRD": "album",
    b"ICRD": "date",
    b"IGNR": "genre",
    b"ICMT": "comment",
}
_WAVE_CODECS = {1: "PCM", 3: "float PCM", 6: "A-law", 7: "mu-law", 0x55: "MP3", 0xFFFE: "PCM"}
_ID3 = {
    b"TIT2": "title",
    b"TPE1": "artist",
    b"TALB": "album",
    b"TDRC": "date",
    b"TYER": "date",
    b"TCON": "genre",
}
_ID3_CHARSETS = ("latin-1", "utf-16", "utf-16-be", "utf-8")
# Bit rates of layer III in kbit/s, and sampling rates of version 1; versions 2 and 2.5 have a half
# and a quarter of those (section 2.4.2.3).
_BITRATES_1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_BITRATES_2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_RATES = (44_100, 48_000, 32_000)


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
            for tag, at, tag_length in chunks(file, "<L", place + 4, min(place + length, size)):
                if tag in _INFO:
                    media.tags[_INFO[tag]] = (
                        read_at(file, at, tag_length).rstrip(b"\0").decode("utf-8", "replace")
                    )
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
        media.channels, media.sample_rate = (
            head[at + 9],
            48_000,
        )  # granules always count 48 kHz (RFC 7845, section 4)
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
    for at in range(len(head) - 4):
        if (
            head[at] == 0xFF
            and head[at + 1] & 0xE6 == 0xE2
            and (frame := _mp3_frame(head[at : at + 4]))
        ):
            bitrate, media.sample_rate, media.channels, samples = frame
            media.seconds = (size - start - at) * 8 / (bitrate * 1000)
            for mark in (b"Xing", b"Info"):
                mark_at = head.find(mark, at, at + 64)
                if mark_at >= 0 and len(head) >= mark_at + 12 and head[mark_at + 7] & 1:
                    media.seconds = (
                        struct.unpack_from(">L", head, mark_at + 8)[0] * samples / media.sample_rate
                    )
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
        if (
            frame[:4] in _ID3
            and (data := read_at(file, place + 10, min(size, 4096)))
            and data[0] < len(_ID3_CHARSETS)
        ):
            media.tags[_ID3[frame[:4]]] = (
                data[1:].decode(_ID3_CHARSETS[data[0]], "replace").strip("\0\ufeff")
            )
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
        name, equals, value = (
            data[place + 4 : place + 4 + length].decode("utf-8", "replace").partition("=")
        )
        if equals and name.lower() in TAGS:
            media.tags[name.lower()] = value
        place += 4 + length

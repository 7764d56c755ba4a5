"""MP4, MOV, M4A, 3GP and HEIF: boxes of ISO base media files (ISO 14496-12), iTunes tags."""

import struct
from collections.abc import Iterator
from typing import BinaryIO

from fetchstash.handlers._media._facts import MAX_PIECES, Media, read_at

# Boxes with boxes in them, and the bytes before those ("meta" is a full box).
_CONTAINERS = {
    b"moov": 0,
    b"trak": 0,
    b"mdia": 0,
    b"minf": 0,
    b"stbl": 0,
    b"udta": 0,
    b"ilst": 0,
    b"meta": 4,
    b"iprp": 0,
    b"ipco": 0,
}
_TAGS = {
    b"\xa9nam": "title",
    b"\xa9ART": "artist",
    b"\xa9alb": "album",
    b"\xa9day": "date",
    b"\xa9gen": "genre",
    b"\xa9cmt": "comment",
}
_MAX_DEPTH = 12


def mp4(file: BinaryIO, size: int) -> Media:
    """Return the facts of an open file of ``size`` bytes."""
    media = Media()
    for name, place, length in _boxes(file, 0, size, 0):
        if name in _READERS or name in _TAGS:
            data = read_at(file, place, length)
            try:
                if name in _TAGS:
                    media.tags[_TAGS[name]] = data[16:].decode("utf-8", "replace")
                else:
                    _READERS[name](data, media)
            except struct.error:  # the box is too short
                continue
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
            yield from _boxes(file, start + header + _CONTAINERS[name], stop, depth + 1)
        start += size


def _movie_header(data: bytes, media: Media) -> None:
    layout = ">20xLQ" if data[0] == 1 else ">12xLL"
    scale, duration = struct.unpack_from(layout, data)
    if scale:
        media.seconds = duration / scale


def _track_header(data: bytes, media: Media) -> None:
    """Read width and height, fixed-point numbers at the end, 0 for a sound (section 8.3.2)."""
    width, height = (value >> 16 for value in struct.unpack(">LL", data[-8:]))
    if width * height > (media.width or 0) * (media.height or 0):
        media.width, media.height = width, height


def _spatial_extent(data: bytes, media: Media) -> None:
    """Read the size of a still picture; the largest counts (ISO 23008-12, section 6.5.3)."""
    width, height = struct.unpack_from(">4xLL", data)
    if width * height > (media.width or 0) * (media.height or 0):
        media.width, media.height = width, height


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

"""Matroska and WebM: elements of EBML (RFC 8794, RFC 9559)."""

import struct
from collections.abc import Iterator
from typing import BinaryIO

from fetchstash.handlers._media._facts import MAX_PIECES, Media, read_at


class Id:
    """Ids of elements with facts (RFC 9559, section 5.1)."""

    SEGMENT, INFO, TRACKS, TRACK, VIDEO, AUDIO, CLUSTER = (
        0x18538067,
        0x1549A966,
        0x1654AE6B,
        0xAE,
        0xE0,
        0xE1,
        0x1F43B675,
    )
    SCALE, DURATION, TITLE, CODEC = 0x2AD7B1, 0x4489, 0x7BA9, 0x86
    WIDTH, HEIGHT, RATE, CHANNELS = 0xB0, 0xBA, 0xB5, 0x9F


_MASTERS = {Id.SEGMENT, Id.INFO, Id.TRACKS, Id.TRACK, Id.VIDEO, Id.AUDIO}
_MAX_DEPTH = 8


def matroska(file: BinaryIO, size: int) -> Media:
    """Return the facts of an open file of ``size`` bytes, without its clusters."""
    media = Media()
    scale, duration = 1_000_000, 0.0  # nanoseconds a tick, by default
    for name, place, length in _elements(file, 0, size, 0):
        if name in _MASTERS:
            continue
        data = read_at(file, place, min(length, 1024))
        match name:
            case Id.SCALE:
                scale = int.from_bytes(data)
            case Id.DURATION:
                duration = _float(data)
            case Id.TITLE:
                media.tags["title"] = data.decode("utf-8", "replace")
            case Id.CODEC:
                media.codecs.append(data.decode("ascii", "replace"))
            case Id.WIDTH:
                media.width = int.from_bytes(data)
            case Id.HEIGHT:
                media.height = int.from_bytes(data)
            case Id.RATE:
                media.sample_rate = round(_float(data))
            case Id.CHANNELS:
                media.channels = int.from_bytes(data)
            case _:
                pass
    if duration:
        media.seconds = duration * scale / 1e9
    return media


def _elements(file: BinaryIO, start: int, end: int, depth: int) -> Iterator[tuple[int, int, int]]:
    """Yield id, place and size of elements up to the first cluster, where the facts usually are."""
    for _ in range(MAX_PIECES):
        head = read_at(file, start, 12)
        if start >= end or not head:
            return
        name, id_length = _number(head, keep_marker=True)
        size, size_length = _number(head[id_length:], keep_marker=False)
        if not id_length or not size_length or name == Id.CLUSTER:
            return
        place = start + id_length + size_length
        stop = end if size is None else min(place + size, end)
        yield name or 0, place, stop - place
        if name in _MASTERS and depth < _MAX_DEPTH:
            yield from _elements(file, place, stop, depth + 1)
        start = stop


def _number(data: bytes, *, keep_marker: bool) -> tuple[int | None, int]:
    """Return a variable-size integer (None: unknown) and its length (RFC 8794, sections 4, 6.2)."""
    if not data or not data[0]:
        return None, 0
    length = 9 - data[0].bit_length()
    if len(data) < length:
        return None, 0
    value = int.from_bytes(data[:length])
    if keep_marker:
        return value, length
    value &= (1 << 7 * length) - 1
    return (None if value == (1 << 7 * length) - 1 else value), length


def _float(data: bytes) -> float:
    layout = {4: ">f", 8: ">d"}.get(len(data))
    return float(struct.unpack(layout, data)[0]) if layout else 0.0

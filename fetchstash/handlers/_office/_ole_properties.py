"""Title, author and date of documents in compound files ([MS-OLEPS], sections 2.21 and 3.1)."""

import datetime as dt
import struct

from fetchstash.handlers._contract import Extracted
from fetchstash.handlers._shared._compound import CompoundFile

_CODEPAGE, _TITLE, _AUTHOR, _CREATED = 1, 2, 4, 12
_I2, _STRING, _WIDE_STRING, _TIME = 0x02, 0x1E, 0x1F, 0x40
_MAX_PROPERTIES = 1_000


def describe(file: CompoundFile, extracted: Extracted) -> None:
    """Add title, author and date to ``extracted``; damaged properties are ignored."""
    properties = _properties(file.read("\x05SummaryInformation"))
    extracted.learn(
        title=str(properties.get(_TITLE, "")),
        author=str(properties.get(_AUTHOR, "")),
        published=str(properties.get(_CREATED, "")),
    )


def _properties(data: bytes) -> dict[int, str | int]:
    """Return the values of the first property set, with dates for times."""
    properties: dict[int, str | int] = {_CODEPAGE: 1252}
    try:
        (start,) = struct.unpack_from("<L", data, 44)
        (count,) = struct.unpack_from("<L", data, start + 4)
        places = dict(
            struct.unpack_from("<LL", data, start + 8 + 8 * n)
            for n in range(min(count, _MAX_PROPERTIES))
        )
        for number in sorted(places.keys() & {_CODEPAGE, _TITLE, _AUTHOR, _CREATED}):
            properties[number] = _value(data, start + places[number], f"cp{properties[_CODEPAGE]}")
    except (struct.error, OverflowError):
        pass
    return properties


def _value(data: bytes, place: int, charset: str) -> str | int:
    kind, size = struct.unpack_from("<LL", data, place)
    if kind == _I2:
        return int(size & 0xFFFF)
    if kind == _STRING:
        return _decoded(data[place + 8 : place + 8 + size], charset)
    if kind == _WIDE_STRING:
        return data[place + 8 : place + 8 + 2 * size].decode("utf-16-le", "replace").rstrip("\0")
    if kind == _TIME:
        (ticks,) = struct.unpack_from("<Q", data, place + 4)
        return (
            (dt.datetime(1601, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=ticks // 10))
            .date()
            .isoformat()
            if ticks
            else ""
        )
    return ""


def _decoded(raw: bytes, charset: str) -> str:
    try:
        return raw.decode("utf-8" if charset == "cp65001" else charset, "replace").rstrip("\0")
    except LookupError:
        return raw.decode("cp1252", "replace").rstrip("\0")

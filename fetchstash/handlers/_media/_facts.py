"""Facts of audio and video, and reading containers in small pieces."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

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

    def line(self) -> str:
        """Return the facts in one line: duration, sound, codecs, tags."""
        facts = [clock(self.seconds)] if self.seconds is not None else []
        facts += [f"{self.sample_rate:,} Hz"] if self.sample_rate else []
        facts += (
            [f"{self.channels} channels" if self.channels > 1 else "mono"] if self.channels else []
        )
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

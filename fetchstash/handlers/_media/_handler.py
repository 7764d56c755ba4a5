"""Audio and video: the facts of the container, read in a few small pieces."""

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from fetchstash.handlers._contract import Extracted, Hints
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._media._facts import Media
from fetchstash.handlers._media._mp4 import mp4
from fetchstash.handlers._media._streams import flac, mp3, ogg, wav
from fetchstash.text.facts import DocumentFacts

# The place of a signature, the signature, and the reader.
_READERS: tuple[tuple[int, bytes, Callable[[BinaryIO, int], Media]], ...] = (
    (4, b"ftyp", mp4),
    (4, b"moov", mp4),
    (0, b"RIFF", wav),
    (0, b"fLaC", flac),
    (0, b"OggS", ogg),
    (0, b"ID3", mp3),
)


class MediaHandler:
    """Reads duration, size, codecs and tags. There is no text."""

    name = "media"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - the file is enough
        """Return the facts, none for an unknown or broken container."""
        with source.open("rb") as file:
            head = file.read(16)
            media = _reader(head)(file, source.stat().st_size)
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


def _reader(head: bytes) -> Callable[[BinaryIO, int], Media]:
    for place, signature, reader in _READERS:
        if head.startswith(signature, place):
            return reader
    is_mp3 = head[:1] == b"\xff" and len(head) > 1 and head[1] & 0xE6 == 0xE2
    return mp3 if is_mp3 else lambda _file, _size: Media()

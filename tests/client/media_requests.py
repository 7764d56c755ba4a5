"""Pictures for requests, and what a request shows of them."""

import base64
import struct
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from fetchstash.client._media import media_of
from fetchstash.text import picture_size


@cache
def picture(number: int, width: int = 64, height: int = 48) -> str:
    """Return a PNG in base64 that looks like no other number's."""
    colour = bytes((number * 7 % 256, number * 13 % 256, number % 256))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + colour * width) * height)
    chunks = [(b"IHDR", head), (b"IDAT", rows), (b"IEND", b"")]
    data = b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + data).decode()


def shown(messages: Any) -> Iterator[Any]:
    """Yield the blocks of media anywhere in a request."""
    if isinstance(messages, dict):
        block: dict[str, Any] = messages  # pyright: ignore[reportUnknownVariableType]
        if media_of(block):
            yield block
            return
        for value in block.values():
            yield from shown(value)
    elif isinstance(messages, list):
        blocks: list[Any] = messages  # pyright: ignore[reportUnknownVariableType]
        for value in blocks:
            yield from shown(value)


def widths(messages: Any) -> list[int]:
    """Return the longer edge of each picture that is shown."""
    found = (media_of(block) for block in shown(messages))
    data = [base64.b64decode(media.data) for media in found if media]
    return [max(picture_size(one) or (0,)) for one in data]

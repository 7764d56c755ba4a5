"""Frames of the pipe between server and worker: JSON objects after their length in four bytes.

Never pickle: the worker reads hostile bytes, so that its answers may be nothing but data.
"""

import json
from typing import IO, Any

LENGTH_BYTES = 4
MAX_FRAME = 16 * 2**20
MAX_STRUCTURE = 128 * 2**10
"""Bytes of a frame outside its strings."""

# Bounds of one job's answer, in characters: kept by the worker, checked by the server.
MAX_HEADINGS = 2_000
MAX_TITLE = 200
MAX_LINE = 1_000
MAX_PREVIEW = 50_000
# A result shows at most a tenth of this. A longer part is cut, and the result says so.
MAX_PART_TEXT = 1_000_000


class ProtocolError(Exception):
    """The other side broke the protocol."""


def encode(frame: dict[str, Any]) -> bytes:
    """Return ``frame`` as bytes. Raises ProtocolError if it is longer than MAX_FRAME."""
    # ASCII with escapes can hold a lone surrogate; the reader cleans every string.
    body = json.dumps(frame, separators=(",", ":")).encode("ascii")
    if len(body) > MAX_FRAME:
        raise ProtocolError
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def body_length(prefix: bytes) -> int:
    """Return the length that ``prefix`` announces. Raises ProtocolError above MAX_FRAME."""
    length = int.from_bytes(prefix, "big")
    if length > MAX_FRAME:
        raise ProtocolError
    return length


def decode(body: bytes) -> dict[str, Any]:
    """Return the object in ``body``. Raises ProtocolError if there is none.

    What is long in an answer is one string. Millions of small values would hold the server's loop
    for a second while they are read.
    """
    if len(body) > MAX_STRUCTURE and _structure(body) > MAX_STRUCTURE:
        raise ProtocolError
    try:
        frame: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProtocolError from error
    if not isinstance(frame, dict):
        raise ProtocolError
    return frame  # pyright: ignore[reportUnknownVariableType] - values are checked one by one


def _structure(body: bytes) -> int:
    """Return how many bytes are outside of strings.

    JSON has a byte between two strings. So those above MAX_STRUCTURE need not be looked at.
    """
    # No regular expression: one over escapes keeps gigabytes, or breaks before Python 3.11.5.
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    return sum(map(len, unescaped.split(b'"', 2 * MAX_STRUCTURE)[::2]))


def read(stream: IO[bytes]) -> dict[str, Any] | None:
    """Read one frame, blocking; None at the end of the stream. Raises ProtocolError."""
    prefix = stream.read(LENGTH_BYTES)
    if len(prefix) < LENGTH_BYTES:
        return None
    return decode(stream.read(body_length(prefix)))

"""The pipe between server and worker: JSON objects, each after its length in four bytes, big-endian.

Never pickle: the worker reads what strangers wrote, so nothing that comes from it may be more than
data.
"""

import json
from typing import IO, Any

LENGTH_BYTES = 4
MAX_FRAME = 16 * 2**20

# What one job may answer, kept by the worker and checked by the server. Sizes in characters.
MAX_HEADINGS = 2_000
MAX_TITLE = 200
MAX_LINE = 1_000
MAX_PREVIEW = 50_000
# A result shows at most a tenth of this; what lies behind is reached by a narrower part, and the
# result says so.
MAX_PART_TEXT = 1_000_000


class ProtocolError(Exception):
    """The other side sent what is no frame."""


def encode(frame: dict[str, Any]) -> bytes:
    """Return ``frame`` as it goes over the pipe. Raises ProtocolError if it is longer than MAX_FRAME."""
    # ASCII with escapes carries a lone surrogate without failing; the reader cleans every string.
    body = json.dumps(frame, separators=(",", ":")).encode("ascii")
    if len(body) > MAX_FRAME:
        raise ProtocolError
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def body_length(prefix: bytes) -> int:
    """Return the length that ``prefix`` announces. Raises ProtocolError if it is over MAX_FRAME."""
    length = int.from_bytes(prefix, "big")
    if length > MAX_FRAME:
        raise ProtocolError
    return length


def decode(body: bytes) -> dict[str, Any]:
    """Return the object that ``body`` holds. Raises ProtocolError if it holds none."""
    try:
        frame: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProtocolError from error
    if not isinstance(frame, dict):
        raise ProtocolError
    return frame  # pyright: ignore[reportUnknownVariableType] - keys of JSON objects are strings; the values are checked one by one


def read(stream: IO[bytes]) -> dict[str, Any] | None:
    """Read one frame, blocking; None at the end of the stream. Raises ProtocolError."""
    prefix = stream.read(LENGTH_BYTES)
    if len(prefix) < LENGTH_BYTES:
        return None
    return decode(stream.read(body_length(prefix)))

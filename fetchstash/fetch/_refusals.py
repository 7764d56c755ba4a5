"""What a 4xx or 5xx means to a reader: pure functions over a response that is no document."""

import re
from collections.abc import Iterator, Mapping
from email.message import Message
from itertools import chain

from fetchstash.errors import FetchFailed
from fetchstash.fetch._coding import BrokenCoding, codings, decoders
from fetchstash.fetch._url import Target
from fetchstash.hygiene import clean_line

_EXCERPT_CHARS = 500
_EXCERPT_BYTES = 8 * 1024
_TEXT_TYPE = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml)|\Z")


def excerpt(body: bytes, headers: Mapping[str, str]) -> str:
    """Return at most 500 characters of an error's ``body``, cleaned and on one line; "" where it is no text."""
    if not _TEXT_TYPE.match(headers.get("content-type", "").lower()):
        return ""
    decoded = _decode(body, headers.get("content-encoding", ""))
    content_type = Message()
    content_type["content-type"] = headers.get("content-type", "") or "text/plain"
    try:
        text = decoded.decode(content_type.get_content_charset() or "utf-8", "replace")
    except (LookupError, ValueError):
        text = decoded.decode("utf-8", "replace")
    return clean_line(text)[:_EXCERPT_CHARS]


def what_next(status: int) -> str:
    """Return what a reader can do about ``status`` (RFC 9110, section 15)."""
    if status in {401, 403, 407}:
        return "The page is not open to everybody: look for it elsewhere."
    if status in {404, 410}:
        return "Check the URL, or search for where the page is now."
    if status == 429:
        return "Wait before you ask this site again."
    if status >= 500:
        return "Try again later."
    return "Check the URL."


def nothing_came(target: Target, reason: str) -> FetchFailed:
    """Return the error for a body of which nothing could be kept, with the ``reason``, half a sentence."""
    return FetchFailed(f"Nothing of {target.host}'s answer could be kept: {reason}.", "Try again later.", passing=True)


def _decode(body: bytes, content_encoding: str) -> bytes:
    """Undo the content codings, up to 8 KiB and up to where they break."""
    pieces: Iterator[bytes] = iter((body,))
    decoded = b""
    try:
        for decoder in decoders(codings(content_encoding) or ()):
            pieces = chain.from_iterable(map(decoder.feed, pieces))
        while len(decoded) < _EXCERPT_BYTES and (piece := next(pieces, None)) is not None:
            decoded += piece
    except BrokenCoding:
        pass  # what came before the fault is still worth reading
    return decoded[:_EXCERPT_BYTES]

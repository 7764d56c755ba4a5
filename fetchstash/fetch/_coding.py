"""Decode content codings in steps of at most 96 KiB, whatever the input (RFC 9110, section 8.4).

httpx2's decoders drop the second and later members of a gzip body, and bound a step at 1 MiB only.
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Protocol

STEP = 64 * 1024  # brotli fills whole blocks of its own and goes over it, to 96 KiB
# Input goes in by slices: zlib returns the rest of each as a copy, which must stay cheap.
_SLICE = 16 * 1024
_MAX_CODINGS = 2
_NO_CODINGS = frozenset(
    {"", "identity", "none", "utf-8", "utf8", "iso-8859-1", "binary", "8bit", "7bit"}
)
_MAX_MEMBERS = 10_000  # block-gzipped files have one for each 64 KiB
_ZSTD_WINDOW_LOG = 23  # RFC 9659, section 3: 8 MiB for the content coding

ACCEPT_ENCODING = "gzip, deflate, br, zstd"


class BrokenCoding(Exception):
    """The bytes do not match Content-Encoding, or end too soon. Its text is half a sentence."""


class Decoder(Protocol):
    """Decodes one coding. ``has_large_window``: it may hold many MiB between two calls."""

    has_large_window: bool

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield ``data`` decoded in pieces of 0 to 96 KiB. Raises BrokenCoding."""
        ...

    def finish(self) -> None:
        """Raise BrokenCoding unless the coded stream is complete."""
        ...


def codings(header: str) -> tuple[str, ...] | None:
    """Return the codings of a Content-Encoding header in order, or None if one is unknown.

    ``identity``, empty members and the charsets that some servers write here are ignored.
    """
    names = tuple(
        name for part in header.lower().split(",") if (name := part.strip()) not in _NO_CODINGS
    )
    return names if all(name in _DECODERS for name in names) else None


def decoders(names: tuple[str, ...]) -> list[Decoder]:
    """Return a decoder for each coding, the last applied first.

    Raises BrokenCoding for more than two.
    """
    if len(names) > _MAX_CODINGS:
        raise BrokenCoding(f"has {len(names)} content codings, more than {_MAX_CODINGS}")
    return [_DECODERS[name]() for name in reversed(names)]


def decode_beginning(body: bytes, content_encoding: str, max_bytes: int) -> bytes:
    """Return at most ``max_bytes`` of ``body`` decoded, up to where its coding breaks."""
    pieces: Iterator[bytes] = iter((body,))
    decoded = bytearray()
    with suppress(BrokenCoding):
        for decoder in decoders(codings(content_encoding) or ()):
            pieces = chain.from_iterable(map(decoder.feed, pieces))
        while len(decoded) < max_bytes and (piece := next(pieces, None)) is not None:
            decoded += piece
    return bytes(decoded[:max_bytes])


class _Inflater(Protocol):
    """The type of zlib.decompressobj(), which has no public name."""

    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


def _inflate(member: _Inflater, data: bytes, coding: str) -> Iterator[bytes]:
    """Yield all of ``data`` inflated, and what zlib holds back after a step of full size."""
    while True:
        try:
            piece = member.decompress(data, STEP)
        except zlib.error:
            raise BrokenCoding(f"has a {coding} coding that is broken") from None
        yield piece
        data = member.unconsumed_tail
        if member.eof or (not data and len(piece) < STEP):
            return


class _Gzip:
    """All members of a gzip body (RFC 1952, section 2.2). Ignores trailing garbage, as gzip."""

    has_large_window = False

    def __init__(self) -> None:
        self._member: _Inflater | None = None
        self._members = 0
        self._trailer = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        for begin in range(0, len(data), _SLICE):
            rest = data[begin : begin + _SLICE]
            while rest and not self._trailer:
                if self._member is None:
                    rest = self._next_member(rest)
                if self._member is None:
                    break
                yield from _inflate(self._member, rest, "gzip")
                rest = b""
                if self._member.eof:
                    rest, self._member = self._member.unused_data, None

    def _next_member(self, data: bytes) -> bytes:
        """Begin a member if one begins here, and return its bytes, else b""."""
        if self._members:
            data = data.lstrip(b"\0")  # padding between members
            self._trailer = bool(data) and not data.startswith(b"\x1f")
            if not data or self._trailer:
                return b""
        if self._members >= _MAX_MEMBERS:
            raise BrokenCoding(f"has more than {_MAX_MEMBERS} gzip members")
        self._members += 1
        self._member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        return data

    def finish(self) -> None:
        if self._member is not None:
            raise BrokenCoding("has a gzip coding that ends too soon")


class _Deflate:
    """The zlib format (RFC 1950), and bare deflate (RFC 1951), which some servers send as well."""

    has_large_window = False

    def __init__(self) -> None:
        self._head = b""
        self._stream: _Inflater | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._stream is None:
            data = self._head = self._head + data
            if len(data) < 2:
                return
            # RFC 1950, section 2.2
            has_header = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._stream = zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
        for begin in range(0, len(data), _SLICE):
            if not self._stream.eof:
                yield from _inflate(self._stream, data[begin : begin + _SLICE], "deflate")

    def finish(self) -> None:
        if self._head and (self._stream is None or not self._stream.eof):
            raise BrokenCoding("has a deflate coding that ends too soon")


class _Brotli:
    """Brotli (RFC 7932); its window is 16 MiB at the most."""

    has_large_window = True

    def __init__(self) -> None:
        import brotli  # noqa: PLC0415 -- most bodies need one decoder or none

        self._decoder = brotli.Decompressor()
        self._error = brotli.error
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        for begin in range(0, len(data), _SLICE):
            if self._decoder.is_finished():
                return
            self._begun = True
            piece = self._process(data[begin : begin + _SLICE])
            # can_accept_more_data does not count decoded bytes that wait to be returned.
            while piece or not self._decoder.can_accept_more_data():
                yield piece
                piece = self._process(b"")

    def _process(self, data: bytes) -> bytes:
        try:
            return self._decoder.process(data, output_buffer_limit=STEP)
        except self._error:
            raise BrokenCoding("has a br coding that is broken") from None

    def finish(self) -> None:
        if self._begun and not self._decoder.is_finished():
            raise BrokenCoding("has a br coding that ends too soon")


class _Zstd:
    """All frames of a zstd stream (RFC 8878, RFC 9659)."""

    has_large_window = True

    def __init__(self) -> None:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415 -- most bodies need one decoder or none
        else:
            from backports import zstd  # noqa: PLC0415 -- see above

        self._new = partial(
            zstd.ZstdDecompressor,
            options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG},
        )
        self._error = zstd.ZstdError
        self._frame = self._new()
        self._frames = 0
        self._inside = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        for begin in range(0, len(data), _SLICE):
            rest = data[begin : begin + _SLICE]
            while rest:
                if not self._inside:
                    self._begin_frame()
                yield self._decompress(rest)
                while not self._frame.eof and not self._frame.needs_input:
                    yield self._decompress(b"")
                rest = b""
                if self._frame.eof:
                    rest, self._inside = self._frame.unused_data, False

    def _begin_frame(self) -> None:
        if self._frames >= _MAX_MEMBERS:
            raise BrokenCoding(f"has more than {_MAX_MEMBERS} zstd frames")
        self._frame = self._new()
        self._frames += 1
        self._inside = True

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self._frame.decompress(data, STEP)
        except self._error:
            raise BrokenCoding("has a zstd coding that is broken") from None

    def finish(self) -> None:
        if self._inside:
            raise BrokenCoding("has a zstd coding that ends too soon")


_DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,  # RFC 9110, section 8.4.1.3
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}

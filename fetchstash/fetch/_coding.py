"""Decode content codings in steps of at most 96 KiB, whatever the input (RFC 9110, section 8.4).

httpx2's decoders drop the second and later members of a gzip body, and bound a step at 1 MiB only.
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

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


class Decoder:
    """Decodes one coding: the only member of a body, or all of them one after the other.

    ``members_are`` is what its members are called; "" if there is one, and what follows it is left
    out. ``has_large_window``: it may hold many MiB between two calls.
    """

    name: str
    members_are = ""
    has_large_window = False
    error: type[Exception] = zlib.error

    def __init__(self) -> None:
        self._member: Any = None
        self._members = 0
        self._is_over = False
        self._head = b""  # the beginning of a member, too short to tell what it is

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield ``data`` decoded in pieces of 0 to 96 KiB. Raises BrokenCoding."""
        for begin in range(0, len(data), _SLICE):
            rest = data[begin : begin + _SLICE]
            while rest and not self._is_over:
                if self._member is None:
                    rest = self._begin(rest)
                if self._member is None:
                    break
                try:
                    yield from self._decode(rest)
                except self.error:
                    raise BrokenCoding(f"has a {self.name} coding that is broken") from None
                unused = self._unused()
                rest = unused or b""
                if unused is not None:
                    self._member, self._is_over = None, not self.members_are

    def finish(self) -> None:
        """Raise BrokenCoding unless the coded stream is complete."""
        if self._member is not None or self._head:
            raise BrokenCoding(f"has a {self.name} coding that ends too soon")

    def _begin(self, data: bytes) -> bytes:
        """Begin a member if one begins here, and return its bytes."""
        if self._members >= _MAX_MEMBERS:
            raise BrokenCoding(f"has more than {_MAX_MEMBERS} {self.members_are}")
        self._members += 1
        self._member = self._new()
        return data

    def _new(self) -> Any:
        """Return the decompressor of a member."""
        raise NotImplementedError

    def _decode(self, data: bytes) -> Iterator[bytes]:
        """Yield ``data`` inflated, also the output that zlib holds back after a full step."""
        while True:
            piece = self._member.decompress(data, STEP)
            yield piece
            data = self._member.unconsumed_tail
            if self._member.eof or (not data and len(piece) < STEP):
                return

    def _unused(self) -> bytes | None:
        """Return the bytes after the member's end, None before it."""
        return self._member.unused_data if self._member.eof else None


class _Gzip(Decoder):
    """All members of a gzip body (RFC 1952, section 2.2). Ignores trailing garbage, as gzip."""

    name, members_are = "gzip", "gzip members"

    def _begin(self, data: bytes) -> bytes:
        if self._members:
            data = data.lstrip(b"\0")  # padding between members
            self._is_over = bool(data) and not data.startswith(b"\x1f")
            if not data or self._is_over:
                return b""
        return super()._begin(data)

    def _new(self) -> Any:
        return zlib.decompressobj(16 + zlib.MAX_WBITS)


class _Deflate(Decoder):
    """The zlib format (RFC 1950), and bare deflate (RFC 1951), which some servers send as well."""

    name = "deflate"

    def _begin(self, data: bytes) -> bytes:
        data, self._head = self._head + data, b""
        if len(data) < 2:
            self._head = data
            return b""
        # RFC 1950, section 2.2
        has_header = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
        self._window_bits = zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS
        return super()._begin(data)

    def _new(self) -> Any:
        return zlib.decompressobj(self._window_bits)


class _Brotli(Decoder):
    """Brotli (RFC 7932); its window is 16 MiB at the most."""

    name, has_large_window = "br", True

    def _new(self) -> Any:
        import brotli  # noqa: PLC0415 -- most bodies need one decoder or none

        self.error = brotli.error
        return brotli.Decompressor()

    def _decode(self, data: bytes) -> Iterator[bytes]:
        piece = self._member.process(data, output_buffer_limit=STEP)
        # can_accept_more_data does not count decoded bytes that wait to be returned.
        while piece or not self._member.can_accept_more_data():
            yield piece
            piece = self._member.process(b"", output_buffer_limit=STEP)

    def _unused(self) -> bytes | None:
        return b"" if self._member.is_finished() else None


class _Zstd(Decoder):
    """All frames of a zstd stream (RFC 8878, RFC 9659)."""

    name, members_are, has_large_window = "zstd", "zstd frames", True

    def _new(self) -> Any:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415 -- most bodies need one decoder or none
        else:
            from backports import zstd  # noqa: PLC0415 -- see above

        self.error = zstd.ZstdError
        window = int(zstd.DecompressionParameter.window_log_max)
        return zstd.ZstdDecompressor(options={window: _ZSTD_WINDOW_LOG})

    def _decode(self, data: bytes) -> Iterator[bytes]:
        yield self._member.decompress(data, STEP)
        while not self._member.eof and not self._member.needs_input:
            yield self._member.decompress(b"", STEP)


_DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,  # RFC 9110, section 8.4.1.3
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}


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

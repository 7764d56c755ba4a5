"""Content codings: decoded whole, in bounded steps, and broken ones told."""

import gzip
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress

import brotli
import pytest
from hypothesis import given, strategies as st

from fetchstash.fetch._coding import STEP, BrokenCoding, codings, decode_beginning, decoders

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = b"".join(b"line %d of a text that repeats itself\n" % number for number in range(20_000))


def raw_deflate(data: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeezer.compress(data) + squeezer.flush()


CODED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", lambda data: brotli.compress(data, quality=5)),
    "zstd": ("zstd", zstd.compress),
}


def decode(header: str, data: bytes, chunk: int = 10_000) -> bytes:
    """Decode ``data`` in chunks, as it comes, and check that every step is bounded."""
    names = codings(header)
    assert names is not None
    stages = decoders(names)
    out = b""
    for begin in range(0, len(data), chunk):
        pieces = [data[begin : begin + chunk]]
        for stage in stages:
            pieces = [piece for some in pieces for piece in stage.feed(some)]
        assert all(len(piece) <= STEP * 3 // 2 for piece in pieces)
        out += b"".join(pieces)
    for stage in stages:
        stage.finish()
    return out


@pytest.mark.parametrize("chunk", [1, 7, 10_000, 10_000_000])
@pytest.mark.parametrize(("header", "encode"), CODED.values(), ids=CODED)
def test_a_coding_is_decoded_from_pieces_of_any_size(
    header: str, encode: Callable[[bytes], bytes], chunk: int
) -> None:
    text = TEXT if chunk > 10 else TEXT[:5_000]
    assert decode(header, encode(text), chunk) == text


@pytest.mark.parametrize(("header", "encode"), CODED.values(), ids=CODED)
def test_a_coding_that_ends_too_soon_is_broken(
    header: str, encode: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(BrokenCoding, match="ends too soon"):
        decode(header, encode(TEXT)[:-9])


@pytest.mark.parametrize("header", ["gzip", "br", "zstd"])
def test_bytes_of_another_coding_are_broken(header: str) -> None:
    with pytest.raises(BrokenCoding, match="broken"):
        decode(header, b"<!doctype html><p>no coding at all</p>" * 3)


@pytest.mark.parametrize("header", ["gzip", "deflate", "br", "zstd"])
def test_an_empty_body_is_whole_in_every_coding(header: str) -> None:
    assert decode(header, b"") == b""


@pytest.mark.parametrize(("header", "encode"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
def test_all_members_and_frames_are_read(header: str, encode: Callable[[bytes], bytes]) -> None:
    assert decode(header, encode(b"one ") + encode(b"") + encode(b"two"), chunk=5) == b"one two"


def test_bytes_after_the_last_gzip_member_are_left_out() -> None:
    assert (
        decode("gzip", gzip.compress(b"one") + b"\0\0\0" + gzip.compress(b"two") + b"\0\0trailing")
        == b"onetwo"
    )


def test_a_flood_of_empty_gzip_members_ends() -> None:
    with pytest.raises(BrokenCoding, match="members"):
        decode("gzip", gzip.compress(b"") * 10_001, chunk=1_000_000)


def test_two_codings_are_decoded_in_reverse_order() -> None:
    assert decode("br, gzip", gzip.compress(brotli.compress(TEXT, quality=5))) == TEXT


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("", ()),
        ("identity", ()),
        ("GZIP", ("gzip",)),
        ("gzip, identity, br", ("gzip", "br")),
        ("compress", None),
        ("UTF-8", ()),
    ],
)
def test_a_header_with_an_unknown_coding_has_no_codings(
    header: str, names: tuple[str, ...] | None
) -> None:
    assert codings(header) == names


@pytest.mark.long
@pytest.mark.parametrize(("header", "encode"), CODED.values(), ids=CODED)
def test_a_bomb_takes_memory_for_one_step_at_a_time(
    header: str, encode: Callable[[bytes], bytes]
) -> None:
    bomb = encode(bytes(64 * 2**20))
    (stage,) = decoders(codings(header) or ())
    tracemalloc.start()
    try:
        total = sum(
            len(piece)
            for begin in range(0, len(bomb), 4096)
            for piece in stage.feed(bomb[begin : begin + 4096])
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == 64 * 2**20
    assert peak < 2 * 2**20


def test_the_readable_beginning_of_a_broken_body_is_kept() -> None:
    assert decode_beginning(gzip.compress(TEXT)[:200], "gzip", 50) == TEXT[:50]
    assert decode_beginning(b"plain", "gzip", 50) == b""
    assert decode_beginning(b"plain", "", 3) == b"pla"


@given(st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br"]), st.binary(max_size=300))
def test_any_bytes_are_decoded_or_broken(header: str, data: bytes) -> None:
    with suppress(BrokenCoding):
        decode(header, data, chunk=17)

#!/usr/bin/env python3
"""Fuzz the content decoders: any bytes are decoded in bounded steps, or said to be broken.

scripts/ci fuzz runs it. Takes libFuzzer's arguments, such as ``-max_total_time=60``.
"""

import sys

import atheris

with atheris.instrument_imports(include=["fetchstash.fetch"]):
    from fetchstash.fetch._coding import STEP, BrokenCoding, codings, decode_beginning, decoders

HEADERS = ("gzip", "deflate", "br", "zstd", "gzip, br", "zstd, gzip")
MOST_BYTES = 32 * 2**20


def check(data: bytes) -> None:
    """Decode some bytes in pieces of some size."""
    provider = atheris.FuzzedDataProvider(data)
    header = HEADERS[provider.ConsumeIntInRange(0, len(HEADERS) - 1)]
    size = provider.ConsumeIntInRange(1, 4_000)
    body = provider.ConsumeBytes(sys.maxsize)
    decode_beginning(body, header, 1_000)
    first, *further = decoders(codings(header) or ())
    produced = 0
    try:
        for begin in range(0, len(body), size):
            for piece in first.feed(body[begin : begin + size]):
                produced += (
                    sum(len(out) for out in further[0].feed(piece)) if further else len(piece)
                )
                assert len(piece) <= STEP * 3 // 2
                if produced > MOST_BYTES:
                    return
        first.finish()
    except BrokenCoding:
        pass


atheris.Setup(sys.argv, check)
atheris.Fuzz()

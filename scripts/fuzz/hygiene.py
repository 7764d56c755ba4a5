#!/usr/bin/env python3
"""Fuzz the cleaning: the result encodes, is clean, and does not change when cleaned again.

scripts/ci fuzz runs it. Takes libFuzzer's arguments, such as ``-max_total_time=60``.
"""

import sys

import atheris

with atheris.instrument_imports(include=["fetchstash.text.hygiene"]):
    from fetchstash.text.hygiene import clean, clean_line


def one(data: bytes) -> None:
    """Clean one text, surrogates and all."""
    provider = atheris.FuzzedDataProvider(data)
    text = provider.ConsumeUnicode(4_096)
    cleaned = clean(text)
    cleaned.text.encode()
    assert "\r" not in cleaned.text
    assert cleaned.removed >= 0
    assert clean(cleaned.text).text == cleaned.text
    assert "\n" not in clean_line(text)


atheris.Setup(sys.argv, one)
atheris.Fuzz()

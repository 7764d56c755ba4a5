#!/usr/bin/env python3
"""Fuzz the parser of URLs, redirects and the mask: what was parsed parses the same again.

scripts/ci fuzz runs it. Takes libFuzzer's arguments, such as ``-max_total_time=60``.
"""

import sys

import atheris

with atheris.instrument_imports(include=["fetchstash.fetch", "idna"]):
    from fetchstash.errors import FetchstashError
    from fetchstash.fetch._mask import mask_url
    from fetchstash.fetch._url import join, parse

MAX_CHARS = 8_192
BEGINNINGS = [
    "",
    "//",
    "/",
    "http://",
    "https://",
    "https://example.org/",
    "http://[",
    "http://xn--",
    "http://127.",
]


def check(data: bytes) -> None:
    """Read one text as a URL and as a redirect."""
    provider = atheris.FuzzedDataProvider(data)
    text = provider.PickValueInList(BEGINNINGS) + provider.ConsumeUnicode(400)
    mask_url(text)
    for base in (None, parse("https://example.org/a/b", MAX_CHARS)):
        try:
            target = parse(text, MAX_CHARS) if base is None else join(base, text, MAX_CHARS)
        except FetchstashError:
            continue
        assert target.text.isascii()
        assert not set(target.path) & set(" \r\n\t\0#")
        assert target.host == target.host.lower()
        assert parse(target.text, MAX_CHARS * 12) == target


atheris.Setup(sys.argv, check)
atheris.Fuzz()

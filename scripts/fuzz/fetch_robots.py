#!/usr/bin/env python3
"""Fuzz robots.txt: any file is read into no more than its text, and decides on any path.

scripts/ci fuzz runs it. Takes libFuzzer's arguments, such as ``-max_total_time=60``.
"""

import sys

import atheris

with atheris.instrument_imports(include=["fetchstash.fetch"]):
    from fetchstash.fetch._robots import read_robots

BEGINNINGS = [b"", b"user-agent: *\n", b"user-agent: x\nuser-agent: fetchstash\nallow: "]


def check(data: bytes) -> None:
    """Read one file and ask it for one path."""
    provider = atheris.FuzzedDataProvider(data)
    path = "/" + provider.ConsumeUnicodeNoSurrogates(50)
    body = provider.PickValueInList(BEGINNINGS) + provider.ConsumeBytes(sys.maxsize)
    robots = read_robots(200, body, "fetchstash/1.0")
    assert len(robots.rules) <= 9 * len(body)  # three bytes make a character, and nine in escapes
    assert robots.allows(path) in {True, False}
    assert read_robots(200, body + b"\nuser-agent: fetchstash\nallow: /$", "fetchstash").allows("/")


atheris.Setup(sys.argv, check)
atheris.Fuzz()

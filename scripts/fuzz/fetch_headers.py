#!/usr/bin/env python3
"""Fuzz what is read out of header values: file names, Retry-After, dates, ages, codings, excerpts.

scripts/ci fuzz runs it. Takes libFuzzer's arguments, such as ``-max_total_time=60``.
"""

import sys
from datetime import UTC, datetime

import atheris

with atheris.instrument_imports(include=["fetchstash.fetch", "hishel._core._spec", "email"]):
    from fetchstash.fetch import Cached, age_seconds, is_fresh, may_keep
    from fetchstash.fetch._causes import beginning_of, cause_of, excerpt
    from fetchstash.fetch._coding import codings
    from fetchstash.fetch._responses import (
        conditions,
        disposition_name,
        retry_after_seconds,
        safe_name,
    )
    from fetchstash.fetch._url import parse

NOW = datetime(2026, 11, 21, tzinfo=UTC)
TARGET = parse("https://example.org/", 100)
LIMITS = ("retry-after", "x-ratelimit-remaining", "ratelimit-reset", "www-authenticate")
NAMES = ("age", "cache-control", "date", "expires", "last-modified", "vary", "pragma")


def check(data: bytes) -> None:
    """Read one value as each header in turn."""
    provider = atheris.FuzzedDataProvider(data)
    value = provider.ConsumeUnicodeNoSurrogates(200)
    name = safe_name(disposition_name(f"attachment; filename{value}"))
    assert len(name) <= 200
    assert name not in {".", ".."}
    assert not set(name) & set("/\\\0\r\n")
    seconds = retry_after_seconds(value, NOW)
    assert seconds is None or seconds >= 0
    codings(value)
    may_keep({"cache-control": value})
    cached = Cached(
        NOW,
        etag=value,
        last_modified=value,
        headers={header: value for header in NAMES if provider.ConsumeBool()},
    )
    assert all(field.isprintable() for field in conditions(cached, TARGET, 0).values())
    is_fresh(cached)
    age_seconds(cached, NOW)
    fields = {name: value for name in LIMITS if provider.ConsumeBool()}
    fields["content-type"] = f"text/plain; charset={value}"
    body = beginning_of(provider.ConsumeBytes(200), fields)
    cause = cause_of(TARGET, provider.ConsumeIntInRange(300, 999), fields, body, NOW)
    assert cause.next_step
    text = excerpt(body)
    assert len(text) <= 300
    text.encode()


atheris.Setup(sys.argv, check)
atheris.Fuzz()

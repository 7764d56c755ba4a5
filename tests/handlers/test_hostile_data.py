"""Hostile files of the text formats end in text or one clear line, and the next one is read."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fetchstash.handlers import (
    Extraction,
    ExtractLimits,
    Hints,
    WorkerPool,
    detect_content_kind,
    route_file,
)
from tests.handlers.hostile.texts import texts

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

HOSTILE = texts(2**18)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Run the whole module in one loop, so that one pool serves all of it."""
    return "asyncio"


@pytest.fixture(scope="module")
async def pool(anyio_backend: str) -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(ExtractLimits(cpu_seconds=10), workers=1)
    yield pool
    await pool.aclose()


async def extract(pool: WorkerPool, folder: Path, name: str, data: bytes) -> Extraction:
    source = folder / name
    source.write_bytes(data)
    return await pool.extract(source, route_file(source, {}, name), Hints(name=name), folder)


@pytest.mark.parametrize("case", HOSTILE)
async def test_a_hostile_file_ends_in_text_or_one_clear_line(
    pool: WorkerPool, tmp_path: Path, case: str
) -> None:
    name, data = HOSTILE[case]
    found = await extract(pool, tmp_path, name, data)
    assert found.text is not None or found.extraction_error
    assert "Error" not in found.extraction_error.replace("MemoryError", "Error ")
    assert len(found.extraction_error) < 300
    assert "\n" not in found.extraction_error + found.structure_info + found.title
    assert all(len(heading.title) <= 200 for heading in found.outline)
    assert len(found.outline) <= 2_000
    assert len(found.ranges.preview.text) <= 20_000
    if found.text is not None:
        text = found.text.read_bytes().decode("utf-8")
        assert "root:x:" not in text
        assert len(text) <= 45 * len(data)
    assert not Path("/tmp/fetchstash-was-here").exists()


# What the router looks at stands in the server's own process: no expression may go back and forth
# over it.
HOSTILE_HEADS: dict[str, bytes] = {
    "comments": b"<!-- -->" * 8_000,
    "comments that nest": b"<!--" * 16_000,
    "instructions": b"<?x?>" * 12_000,
    "a document type without end": b"<!DOCTYPE a [" + b"<!ENTITY x 'y'>" * 4_000,
    "angle brackets": b"<" * 65_536,
    "a tag without end": b"<a " + b"b=c " * 16_000,
    "line feeds": b"\n" * 65_536,
    "line feeds after three dashes": b"---\n" + b"\n" * 65_000,
    "blanks": b" " * 65_536,
    "pipes and blanks": b"| " * 32_000,
    "dashes": b"-" * 65_536,
    "brackets": b"[" * 65_536,
    "brackets in pairs": b"[](" * 20_000,
    "braces": b"{" * 65_536,
    "quotes": b'{"' + b'"' * 65_000,
    "backslashes": b'{"' + b"\\" * 65_000,
    "commas": b"[" + b"," * 65_000,
    "white space in JSON": b'{"a":' + b" " * 65_000,
    "headers": b"From: a\n" + b"X-A: b\n" * 8_000,
    "folded headers": b"From: a\n" + b" b\n" * 16_000,
    "cells": b",".join([b'"x"'] * 16_000),
    "quotes in cells": b'","' * 20_000,
    "%PDF-": b"%PDF-" * 13_000,
    "PK": b"PK\3\4" * 16_000,
    "members": (b"PK\3\4" + b"\0" * 22 + b"\1\0\0\0x") * 2_000,
    "high bytes": b"\x81\x40" * 32_000,
    "NULs": b"\0" * 65_536,
    "text and NULs": b"a\0" * 32_000,
    **{case: data[:65_536] for case, (_, data) in HOSTILE.items()},
}


@pytest.mark.parametrize("case", HOSTILE_HEADS)
def test_routing_is_cheap_whatever_the_bytes_are(case: str) -> None:
    before = time.process_time()
    for label in ("", "text/html"):
        detect_content_kind({"content-type": label}, HOSTILE_HEADS[case], "https://example.org/a")
    assert time.process_time() - before < 0.5

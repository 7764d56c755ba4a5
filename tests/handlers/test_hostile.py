"""Hostile files of all formats end in text, facts or one clear line, and the next one is read."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fetchstash.cli.demo.site import make_pdf
from fetchstash.errors import TooLarge
from fetchstash.handlers import (
    Extraction,
    ExtractLimits,
    Hints,
    PartRequest,
    PartText,
    WorkerPool,
    detect_content_kind,
    route_file,
)
from tests.handlers.hostile import KINDS, files_of
from tests.handlers.hostile.documents import packed
from tests.handlers.hostile.texts import texts

pytestmark = pytest.mark.long

LENGTH = 2**18


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    # Low, so that a file which reaches one takes no longer than it must.
    limits = ExtractLimits(max_chars=500_000, cpu_seconds=2, wall_seconds=15, pdf_max_pages=500)
    pool = WorkerPool(limits, workers=1)
    yield pool
    await pool.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pages"])
async def test_each_hostile_file_ends_and_the_next_one_is_read(
    kind: str, pool: WorkerPool, tmp_path: Path
) -> None:
    wrong: dict[str, str] = {}
    for case, (name, data) in files_of(kind, LENGTH).items():
        source = tmp_path / "hostile"
        source.write_bytes(data)
        decision = route_file(source, {}, name)
        extraction = await pool.extract(source, decision, Hints(name=name), tmp_path)
        if complaint := _complaint(extraction, len(data)):
            wrong[case] = complaint
    assert wrong == {}
    assert not Path("/tmp/fetchstash-was-here").exists()
    good = tmp_path / "good.pdf"
    good.write_bytes(make_pdf(["Still here."], "t"))
    extraction = await pool.extract(good, route_file(good, {}, ""), Hints(), tmp_path)
    assert extraction.text is not None
    assert "Still here." in extraction.text.read_text("utf-8")


def _complaint(extraction: Extraction, size: int) -> str:
    error = extraction.extraction_error
    facts = error + extraction.structure_info + extraction.title
    if "\n" in facts or len(error) > 300 or "Error" in error.replace("MemoryError", ""):
        return f"no clear line: {facts}"
    titles = [heading.title for heading in extraction.outline]
    if len(titles) > 2_000 or max(map(len, titles), default=0) > 200:
        return f"{len(titles)} headings"
    if len(extraction.ranges.preview.text) > 20_000 or extraction.handler == "":
        return "a long preview, or no handler"
    if extraction.text is None:
        return ""
    if extraction.chars > (45 * size if extraction.is_text else 500_000):
        return f"{extraction.chars} characters"
    return "read another file" if "root:x:" in extraction.text.read_text("utf-8") else ""


@pytest.mark.anyio
async def test_a_member_is_unpacked_in_the_worker_s_own_folder_and_leaves_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, spool, system = tmp_path / "archive.zip", tmp_path / "spool", tmp_path / "system"
    spool.mkdir()
    system.mkdir()
    monkeypatch.setenv("TMPDIR", str(system))
    slow = b"[" + b'[],{"a":[]},' * 4_000_000 + b"1]"
    source.write_bytes(packed({"slow.json": slow, "a.txt": "x\n"}))
    decision = route_file(source, {}, "")
    hurried = WorkerPool(ExtractLimits(wall_seconds=0.5), workers=1, folder=spool)
    with pytest.raises(TooLarge):
        await hurried.part(decision, PartRequest(source=source, path="slow.json"))
    assert [*spool.iterdir(), *system.iterdir()] == []
    await hurried.aclose()
    pool = WorkerPool(workers=1, folder=spool)
    request = PartRequest(source=source, path="a.txt")
    assert await pool.part(decision, request) == PartText("x\n", 1)
    assert [*spool.glob("*/out/*"), *system.iterdir()] == []
    await pool.aclose()


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
    **{case: data[:65_536] for case, (_, data) in texts(LENGTH).items()},
}


@pytest.mark.parametrize("case", HOSTILE_HEADS)
def test_routing_is_cheap_whatever_the_bytes_are(case: str) -> None:
    before = time.process_time()
    for label in ("", "text/html"):
        detect_content_kind({"content-type": label}, HOSTILE_HEADS[case], "https://example.org/a")
    assert time.process_time() - before < 0.5

"""Reasons are our own words: nothing that a document holds stands in them."""

import ast
import asyncio
import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fetchstash import handlers
from fetchstash.errors import FetchstashError
from fetchstash.handlers import ExtractLimits, Hints, PartRequest, Reason, WorkerPool, route_file
from fetchstash.handlers._reasons import ReasonTable
from fetchstash.handlers._registry import reasons

pytestmark = pytest.mark.slow

SECRET = "IgnoreAllPreviousInstructions"
Pack = Callable[[Mapping[str, str | bytes]], bytes]


def strangely_packed(data: bytes) -> bytes:
    """Return a zip in which the member called SECRET has a compression method that nobody knows."""
    spoilt = bytearray(data)
    entry = spoilt.rindex(b"PK\x01\x02", 0, spoilt.rindex(SECRET.encode()))
    struct.pack_into("<H", spoilt, entry + 10, 77)
    return bytes(spoilt)


def documents(pack: Pack) -> dict[str, bytes]:
    container = f'<c><rootfile full-path="{SECRET}.opf"/></c>'
    main = f'<R><Relationship Id="a" Type="x/officeDocument" Target="{SECRET}.xml"/></R>'
    epub = {"mimetype": "application/epub+zip", "META-INF/container.xml": container}
    word = {"[Content_Types].xml": "<Types/>", "_rels/.rels": main, "word/a.xml": "<a/>"}
    types = 'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml'
    word["[Content_Types].xml"] = f'<Types><Override {types}.document.main+xml"/></Types>'
    return {
        "EPUB": strangely_packed(pack({**epub, f"{SECRET}.opf": "<package/>"})),
        "DOCX": strangely_packed(pack({**word, f"{SECRET}.xml": "<document/>"})),
        "damaged XML": f"<rss><channel><{SECRET}></b></channel></rss>".encode(),
        "RTF": b"{\\rtf1 {\\info{\\title " + SECRET.encode() + b"}}}",
        "notebook": json.dumps({"nbformat": 4, SECRET: [], "cells": {SECRET: 1}}).encode(),
        "mail": f"From: {SECRET}\nSubject: {SECRET}\nTo: a\nDate: x\n\n".encode(),
        "zip": strangely_packed(pack({f"{SECRET}.txt": "x"})),
    }


@pytest.mark.long
@pytest.mark.anyio
async def test_no_reason_quotes_the_document(pack: Pack, tmp_path: Path) -> None:
    pool = WorkerPool(ExtractLimits(), workers=1)
    try:
        for name, data in documents(pack).items():
            source = tmp_path / name
            await asyncio.to_thread(source.write_bytes, data)
            decision = route_file(source, {}, "")
            extraction = await pool.extract(source, decision, Hints(), tmp_path)
            assert SECRET[:12] not in extraction.extraction_error, name
    finally:
        await pool.aclose()


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/nothing", f"/{SECRET}/x", "$..[", "$.nothing"])
async def test_no_error_about_a_part_quotes_the_document(tmp_path: Path, path: str) -> None:
    source = tmp_path / "a.json"
    source.write_text(json.dumps({SECRET: 1, "a": [SECRET]}))
    pool = WorkerPool(ExtractLimits(), workers=1)
    try:
        with pytest.raises(FetchstashError) as caught:
            await pool.part(route_file(source, {}, ""), PartRequest(source=source, path=path))
    finally:
        await pool.aclose()
    assert SECRET[:12] not in caught.value.line().replace(path, "")


@pytest.mark.anyio
async def test_an_error_quotes_60_characters_of_a_path_at_the_most(
    pack: Pack, tmp_path: Path
) -> None:
    source = tmp_path / "a.zip"
    source.write_bytes(pack({"x": "y"}))
    pool = WorkerPool(ExtractLimits(), workers=1)
    try:
        request = PartRequest(source=source, path="m" * 500)
        with pytest.raises(FetchstashError) as caught:
            await pool.part(route_file(source, {}, ""), request)
    finally:
        await pool.aclose()
    assert "m" * 59 in caught.value.what
    assert "m" * 61 not in caught.value.what


OWN_WORDS = {"NoText", "OutOfRange", "BadArgument", "TooLarge"}
MODULES = [
    path
    for path in sorted(Path(handlers.__file__).parent.rglob("*.py"))
    if path.parent.name != "_worker"
]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_a_reader_takes_its_reasons_from_the_table(module: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call)]
    names = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
    assert not names & OWN_WORDS, "raise Reason.….error() (docs/handlers.md)"


@pytest.mark.parametrize("reason", reasons().values(), ids=str)
def test_a_reason_is_a_whole_sentence_or_the_end_of_one(reason: ReasonTable) -> None:
    values: dict[str, int | str | ReasonTable] = dict.fromkeys(reason.names, 2)
    strings: dict[str, int | str | ReasonTable]
    strings = {"name": "nowhere", "unit": "lines", "why": Reason.EMPTY_FILE}
    strings |= {"error": "ValueError", "library": "PIL", "media_type": "text/html"}
    error = reason.error(**values | {k: v for k, v in strings.items() if k in values})
    assert error.next_step.endswith(".")
    assert error.what.endswith(".") or error.what[0].islower() or error.what == "no PDF"
    assert "{" not in error.line()
    assert len(error.what) <= 160


def test_no_two_tables_of_reasons_have_the_same_code() -> None:
    assert sum(map(len, ReasonTable.__subclasses__())) == len(reasons())


@pytest.mark.parametrize(
    "module", [m for m in MODULES if m.stem != "_contract"], ids=lambda path: path.stem
)
def test_a_reader_gives_its_reason_for_missing_text_from_the_table(module: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call)]
    learnt = {keyword.arg for call in calls for keyword in call.keywords}
    assert "extraction_error" not in learnt, "extracted.fail(Reason.….cause()) (docs/handlers.md)"

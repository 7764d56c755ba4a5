"""Hostile documents, images and archives end in text, facts or one line; the next one is read."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from fetchstash.cli.demo.pdf import make_pdf
from fetchstash.errors import TooLarge
from fetchstash.handlers import (
    Extraction,
    ExtractLimits,
    Hints,
    PartRequest,
    PartText,
    WorkerPool,
    route_file,
)
from tests.handlers.hostile.documents import (
    archives,
    documents,
    packed,
    pdfs,
    pictures,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.long]


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(ExtractLimits(max_chars=500_000, cpu_seconds=4, wall_seconds=15), workers=1)
    yield pool
    await pool.aclose()


@pytest.mark.parametrize(
    "make", [pdfs, documents, archives, pictures], ids=lambda make: make.__name__
)
async def test_each_hostile_file_ends_and_the_next_one_is_read(
    make: Callable[[], dict[str, bytes]], pool: WorkerPool, tmp_path: Path
) -> None:
    good = tmp_path / "good.pdf"
    good.write_bytes(make_pdf(["Still here."], "t"))
    wrong: dict[str, str] = {}
    for name, data in make().items():
        source = tmp_path / "hostile"
        source.write_bytes(data)
        extraction = await pool.extract(
            source, route_file(source, {}, "x.ipynb" if "IPYNB" in name else ""), Hints(), tmp_path
        )
        if complaint := _complaint(extraction):
            wrong[name] = complaint
    assert wrong == {}
    extraction = await pool.extract(good, route_file(good, {}, ""), Hints(), tmp_path)
    assert extraction.text is not None
    assert "Still here." in extraction.text.read_text("utf-8")


def _complaint(extraction: Extraction) -> str:
    if "\n" in extraction.extraction_error or len(extraction.extraction_error) > 300:
        return f"more than one line: {extraction.extraction_error}"
    if extraction.chars > 500_000 and extraction.handler != "text":
        return f"{extraction.chars} characters"
    if extraction.handler == "":
        return "no handler"
    return ""


async def test_a_member_is_unpacked_in_the_worker_s_own_folder_and_leaves_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, spool, system = tmp_path / "archive.zip", tmp_path / "spool", tmp_path / "system"
    spool.mkdir()
    system.mkdir()
    monkeypatch.setenv("TMPDIR", str(system))
    slow = b"[" + b'[],{"a":[]},' * 4_000_000 + b"1]"
    source.write_bytes(packed({"slow.json": slow, "a.txt": "x\n"}))
    pool = WorkerPool(ExtractLimits(wall_seconds=0.5), workers=1, folder=spool)
    decision = route_file(source, {}, "")
    try:
        with pytest.raises(TooLarge):
            await pool.part(decision, PartRequest(source=source, path="slow.json"))
        assert [*spool.iterdir(), *system.iterdir()] == []
        request = PartRequest(source=source, path="a.txt")
        assert await pool.part(decision, request) == PartText("x\n", 1)
        assert [*spool.glob("*/out/*"), *system.iterdir()] == []
    finally:
        await pool.aclose()

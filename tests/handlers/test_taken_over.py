"""What a worker that was taken over tells the server, or leaves for it, does the server no harm."""

import asyncio
import sys
from pathlib import Path

import pytest

from fetchstash.errors import Internal
from fetchstash.fetch import _browser
from fetchstash.handlers import Decision, Extraction, ExtractLimits, Hints, PartRequest, WorkerPool
from tests.handlers.taken_over import instead

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="pipes and files are those of Linux"),
    pytest.mark.long,
]

PDF = Decision("pdf", "application/pdf", "", "magic", (), mismatch=False)
LONG = 30
"""Seconds; what ends at all ends long before."""


async def extracted(pool: WorkerPool, folder: Path) -> Extraction:
    source = folder / "document"
    source.write_bytes(b"%PDF-1.4")
    async with asyncio.timeout(LONG):
        return await pool.extract(source, PDF, Hints(), folder)


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    (tmp_path / "spool").mkdir()
    return tmp_path / "spool"


FLOOD = """
receive()
fcntl.fcntl(1, 1031, 2**20)  # F_SETPIPE_SZ: the server reads more at once than it keeps
write(b"\\xff" * 2**20)
time.sleep(600)
"""
HELD_OPEN = f"""
receive()
if not os.fork():
    time.sleep({LONG})
os.abort()
"""


@pytest.mark.parametrize("program", [FLOOD, HELD_OPEN], ids=["a flood", "a child"])
async def test_a_place_comes_back_whatever_a_killed_worker_left_in_its_pipe(
    tmp_path: Path, spool: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """asyncio waits for the end of the pipes, too, and one that is paused or shared has none."""
    instead(monkeypatch, tmp_path, program)
    pool = WorkerPool(ExtractLimits(wall_seconds=1), workers=1, folder=spool)
    try:
        for _ in range(3):
            assert (await extracted(pool, spool)).extraction_error
    finally:
        async with asyncio.timeout(LONG):
            await pool.aclose()
    assert list(spool.glob("worker-*")) == []


SPARSE = """
job = receive()
os.truncate(job["text"], 2**30)
send({"handler": "h"})
send(piece(2**30, 2**30))
send({"done": FACTS, "sound": True})
"""


async def test_a_text_far_longer_than_its_document_is_no_answer(
    tmp_path: Path, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead(monkeypatch, tmp_path, SPARSE)
    pool = WorkerPool(workers=1, folder=spool)
    extraction = await extracted(pool, spool)
    await pool.aclose()
    assert extraction.extraction_error == "its reader sent what is no answer"
    assert extraction.text is None


async def test_a_browser_that_floods_its_pipe_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flood = "import fcntl, os, time; fcntl.fcntl(1, 1031, 2**20); os.write(1, b'x' * 2**20)"
    stay = "[time.sleep(600) for _ in iter(int, 1)]"
    monkeypatch.setattr(_browser, "COMMAND", (sys.executable, "-c", f"{flood}; {stay}"))
    monkeypatch.setattr(_browser, "missing", str)

    def prepared(folder: Path) -> tuple[str, Path]:
        return "", folder

    monkeypatch.setattr(_browser, "prepared", prepared)
    async with asyncio.timeout(LONG):
        assert "ended before the page was rendered" in await _browser.browser_fault()


async def test_what_is_no_picture_for_a_model_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = {"picture": "PGh0bWw+", "media_type": "image/png", "width": 1, "height": 1}
    answer = f"receive()\nsend({{'found': {picture!r}, 'sound': True}})\ntime.sleep(600)"
    instead(monkeypatch, tmp_path, answer)
    (tmp_path / "document").write_bytes(b"%PDF-1.4")
    pool = WorkerPool(workers=1, folder=tmp_path)
    request = PartRequest(source=tmp_path / "document", unit="pages", render="image")
    with pytest.raises(Internal, match=r"A worker sent what is no answer\."):
        await pool.part(PDF, request)
    await pool.aclose()

"""OCR with the real models, confined in a worker, where the extra `ocr` is: scripts/ci extras."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont, ImageOps

from fetchstash.errors import FetchstashError, NoText, OutOfRange
from fetchstash.handlers import (
    Decision,
    ExtractLimits,
    PageReader,
    WorkerPool,
    ocr_is_installed,
    ocr_limits,
)
from tests.scanned import PROSE, accuracy, in_two_columns, noisy, page, png, scan

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

if not ocr_is_installed():
    pytest.skip("the extra ocr is not installed: scripts/ci extras", allow_module_level=True)

PDF = Decision("pdf", "application/pdf", "", "magic", (), mismatch=False)
PNG = Decision("image", "image/png", "", "magic", (), mismatch=False)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def reader() -> AsyncGenerator[WorkerPool]:
    pool = WorkerPool(ocr_limits(ExtractLimits()), workers=1)
    yield pool
    await pool.aclose()


PAGES: dict[str, tuple[Callable[[], Image.Image], float]] = {
    "upright": (page, 0.97),
    "skewed": (lambda: page().rotate(2, Image.Resampling.BICUBIC, fillcolor=255), 0.9),
    "noisy": (lambda: noisy(page()), 0.9),
    "on its left side": (lambda: page().transpose(Image.Transpose.ROTATE_90), 0.9),
    "on its right side": (lambda: page().transpose(Image.Transpose.ROTATE_270), 0.9),
    "upside down": (lambda: page().transpose(Image.Transpose.ROTATE_180), 0.9),
}


async def read(
    reader: PageReader, folder: Path, data: bytes, decision: Decision, number: int = 1
) -> tuple[str, float]:
    path = folder / "document"
    path.write_bytes(data)
    result = await reader.read_page(decision, path, number)
    return result.text, result.confidence


@pytest.mark.parametrize("name", PAGES)
async def test_the_words_of_a_scanned_page_are_read(
    name: str, reader: WorkerPool, tmp_path: Path
) -> None:
    make, least = PAGES[name]
    text, confidence = await read(reader, tmp_path, scan([make()]), PDF)
    assert accuracy(text.split(), PROSE.split()) >= least
    assert confidence > 0.9


async def test_two_columns_are_read_one_after_the_other(reader: WorkerPool, tmp_path: Path) -> None:
    picture, expected = in_two_columns()
    text, _ = await read(reader, tmp_path, scan([picture]), PDF)
    assert accuracy(text.split(), expected.split()) >= 0.9


async def test_a_screenshot_with_small_letters_is_read(reader: WorkerPool, tmp_path: Path) -> None:
    picture = page("Settings\nThe server is not running", dpi=72, points=12).crop((0, 0, 400, 120))
    text, _ = await read(reader, tmp_path, png(picture.convert("RGBA")), PNG)
    assert text.split() == ["Settings", "The", "server", "is", "not", "running"]


@pytest.mark.parametrize(
    ("paper", "ink", "pixels"),
    [("white", (20, 20, 20), 12), ("white", (180, 180, 180), 12), ("black", (0, 0, 110), 11)],
)
async def test_small_print_below_a_page_is_read(
    paper: str, ink: tuple[int, int, int], pixels: int, reader: WorkerPool, tmp_path: Path
) -> None:
    picture, footer = page().convert("RGB"), "Harbour office, quay 4, room 17"
    picture = picture if paper == "white" else ImageOps.invert(picture)
    letters = ImageFont.load_default(pixels)
    ImageDraw.Draw(picture).text((200, 1_680), footer, ink, font=letters)
    text, _ = await read(reader, tmp_path, png(picture), PNG)
    assert text.endswith(footer)


async def test_a_page_of_small_print_is_read(reader: WorkerPool, tmp_path: Path) -> None:
    picture = page(points=6, dpi=170, width=130)
    text, _ = await read(reader, tmp_path, png(picture), PNG)
    assert accuracy(text.split(), PROSE.split()) >= 0.97


async def test_a_blank_page_has_no_text(reader: WorkerPool, tmp_path: Path) -> None:
    assert await read(reader, tmp_path, scan([page("")]), PDF) == ("", 1.0)


async def test_a_page_that_is_not_there_is_out_of_range(reader: WorkerPool, tmp_path: Path) -> None:
    with pytest.raises(OutOfRange, match="There is no page 2"):
        await read(reader, tmp_path, scan([page("")]), PDF, 2)


@pytest.mark.parametrize("kind", [PDF, PNG], ids=["pdf", "png"])
async def test_damaged_bytes_are_one_clear_error(
    kind: Decision, reader: WorkerPool, tmp_path: Path
) -> None:
    data = scan([page("")])[:60] if kind is PDF else png(page())[:500]
    with pytest.raises(FetchstashError) as caught:
        await read(reader, tmp_path, data, kind)
    assert caught.value.code in ("no_text", "too_large")


async def test_other_documents_have_no_pages_for_ocr(reader: WorkerPool, tmp_path: Path) -> None:
    text = Decision("text", "text/plain", "", "structure", (), mismatch=False)
    with pytest.raises(NoText):
        await read(reader, tmp_path, b"words", text)


async def test_the_worker_of_ocr_is_confined_as_the_others_are(
    reader: WorkerPool, tmp_path: Path
) -> None:
    await read(reader, tmp_path, scan([page("word")]), PDF)
    plain = WorkerPool(ExtractLimits())
    try:
        await plain.plugins()
        assert reader.unconfined == plain.unconfined
    finally:
        await plain.aclose()


async def test_memory_above_the_limit_is_refused_and_the_next_page_is_read(tmp_path: Path) -> None:
    pool = WorkerPool(ExtractLimits(memory_mb=400), workers=1)
    try:
        with pytest.raises(FetchstashError, match=r"memory|crashed|failed|ended"):
            await read(pool, tmp_path, scan([page()]), PDF)
        assert (await read(pool, tmp_path, scan([page("")]), PDF))[0] == ""
    finally:
        await pool.aclose()

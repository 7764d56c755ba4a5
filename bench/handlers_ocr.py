"""OCR of rendered pages: word accuracy, CPU and memory, ours beside tesseract.

    python -P bench/handlers_ocr.py [--pages N] [--sorts N]

Renders some pages of each sort with the fonts of this machine (DejaVu, Liberation, Noto CJK),
spoils some of them, and reads them in a process of ours, with the extra `ocr` as requirements/tools
locks it, and with Debian's tesseract, which scripts/ci extras installs. Accuracy is the share of
the words, of Chinese the characters, that come in their order. What is missing is said.
"""

# ruff: noqa: RUF001 - Cyrillic is one of the scripts
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter, ImageFont

from scripts.drive.programs import options
from scripts.drive.tools import ROOT, python_tool

FONTS = Path("/usr/share/fonts")
DPI = 150
LATIN = (
    "The committee met on 14 March 2023 to review the annual report of the northern harbour "
    "authority. Total revenue rose by 12.4 percent to 3,481,207 euros, while maintenance costs "
    "fell for the third year in a row. Members asked why the dredging of the eastern channel had "
    "been postponed, and the engineer explained that two barges were still under repair. It was "
    "agreed that the contract should be renewed until 2026, provided that the price of a load does "
    "not exceed 7.85 euros. The chairman thanked the staff for their patience during the flood."
)
GERMAN = (
    "Der Ausschuss prüfte am Dienstag den Jahresbericht der Hafenbehörde. Die Einnahmen stiegen um "
    "12,4 Prozent, während die Kosten für größere Reparaturen fielen. Die Mitglieder fragten, "
    "warum die Öffnung der östlichen Schleuse verschoben wurde, und der Ingenieur erklärte, dass "
    "zwei Kähne noch überholt würden. Français: le procès-verbal a été approuvé à l'unanimité."
)
CYRILLIC = (
    "Комитет рассмотрел годовой отчёт портового управления. Общий доход вырос на двенадцать "
    "процентов, а расходы на ремонт снизились третий год подряд. Члены комитета спросили, почему "
    "углубление восточного канала отложено, и инженер объяснил, что две баржи ещё стоят в ремонте."
)
CHINESE = (
    "委员会于三月十四日审议了北方港务局的年度报告。总收入增长了百分之十二,而维修费用连续第三年下降。"
    "委员们询问为什么推迟了东部航道的疏浚工作,工程师解释说两艘驳船仍在修理。会议同意把合同延长到二零二六年,"
    "条件是每立方米的价格不超过八欧元。主席感谢工作人员在洪水期间的耐心。"
)


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort of page: its text, font, letters in points, columns, what spoils it, languages."""

    name: str
    text: str
    font: str = "LiberationSerif-Regular.ttf"
    points: float = 11
    columns: int = 1
    spoil: Callable[[Image.Image], Image.Image] = lambda picture: picture
    languages: str = "eng"
    words: int = 400
    unspaced: bool = False


def skewed(picture: Image.Image) -> Image.Image:
    return picture.rotate(2.5, Image.Resampling.BICUBIC, fillcolor=255)


def noisy(picture: Image.Image) -> Image.Image:
    specks = random.Random(3)
    spoiled = picture.point([round(40 + level * 0.75) for level in range(256)])  # pyright: ignore[reportUnknownMemberType]
    for _ in range(spoiled.width * spoiled.height // 120):
        at = specks.randrange(spoiled.width), specks.randrange(spoiled.height)
        spoiled.putpixel(at, specks.choice((0, 255)))
    return spoiled.filter(ImageFilter.GaussianBlur(0.8))


def turned(picture: Image.Image) -> Image.Image:
    return picture.transpose(Image.Transpose.ROTATE_90)


def flipped(picture: Image.Image) -> Image.Image:
    return picture.transpose(Image.Transpose.ROTATE_180)


SORTS = (
    Sort("150 dpi", LATIN),
    Sort("sans, 9 points", LATIN, "DejaVuSans.ttf", 9),
    Sort("two columns", LATIN, points=10, columns=2),
    Sort("three columns", LATIN, points=8, columns=3),
    Sort("skewed", LATIN, spoil=skewed),
    Sort("skewed, two columns", LATIN, points=10, columns=2, spoil=skewed),
    Sort("noisy", LATIN, spoil=noisy),
    Sort("noisy, two columns", LATIN, points=10, columns=2, spoil=noisy),
    Sort("on its side", LATIN, spoil=turned),
    Sort("upside down", LATIN, spoil=flipped),
    Sort("German, French", GERMAN, languages="eng"),
    Sort("Cyrillic", CYRILLIC, "DejaVuSerif.ttf", languages="rus"),
    Sort("Chinese", CHINESE, "NotoSerifCJK-Regular.ttc", languages="chi_sim", unspaced=True),
)

OURS = """
import json, sys
from PIL import Image
from fetchstash.handlers._ocr import read
readings = [read(Image.open(path)) for path in sys.argv[1:]]
print(json.dumps([[reading.text, reading.confidence] for reading in readings]))
"""


def font_named(name: str, pixels: float) -> ImageFont.FreeTypeFont | None:
    path = next(FONTS.rglob(name), None)
    return ImageFont.truetype(str(path), pixels) if path else None


def render(sort: Sort, seed: int) -> tuple[Image.Image, list[str]] | None:
    """Return a page and its words in reading order; None where its font is missing."""
    pixels = sort.points * DPI / 72
    font = font_named(sort.font, pixels)
    if font is None:
        return None
    pick = random.Random(seed)
    source = list(sort.text) if sort.unspaced else sort.text.split()
    words: list[str] = []
    while len(words) < sort.words:
        at = pick.randrange(len(source) - 8)
        words += source[at : at + 8]
    space = "" if sort.unspaced else " "
    page = Image.new("L", (round(8.27 * DPI), round(11.69 * DPI)), 255)
    draw = ImageDraw.Draw(page)
    margin, gutter = round(0.9 * DPI), round(0.35 * DPI)
    width = (page.width - 2 * margin - gutter * (sort.columns - 1)) // sort.columns
    # Columns are of one height, as on a printed page.
    capacity = max(-(-len(words) // sort.columns), 1)
    placed: list[str] = []
    for column in range(sort.columns):
        x, y, line = margin + column * (width + gutter), margin, list[str]()
        for word in [*words[column * capacity : (column + 1) * capacity], ""]:
            if not word or draw.textlength(space.join([*line, word]), font=font) > width:
                draw.text((x, y), space.join(line), 20, font)
                placed += line
                line, y = [], y + round(pixels * 1.35)
                if y > page.height - margin:
                    break
            line.append(word)
    return sort.spoil(page), placed


def accuracy(expected: Sequence[str], text: str, *, unspaced: bool) -> float:
    read = [char for char in text if not char.isspace()] if unspaced else text.split()
    blocks = SequenceMatcher(None, expected, read, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / max(len(expected), 1)


def measured(command: Sequence[str]) -> tuple[str, float, int]:
    """Run a command; return what it prints, its seconds of CPU, and its peak memory in MiB."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_THREAD_LIMIT": "2"},
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return printed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


def cells(
    made: Sequence[tuple[Image.Image, list[str]]],
    texts: Sequence[str],
    cost: tuple[float, int],
    *,
    unspaced: bool,
) -> str:
    """Return the accuracy, the seconds of CPU for each page, and the memory."""
    pairs = zip(made, texts, strict=True)
    scores = [accuracy(words, text, unspaced=unspaced) for (_, words), text in pairs]
    return f"{sum(scores) / len(scores):9.3f}{cost[0] / len(made):7.1f}{cost[1]:6}"


def main() -> int:
    chosen = options(__doc__, pages=3, sorts=len(SORTS))
    programs, tesseract = python_tool("extras"), shutil.which("tesseract")
    if not tesseract:
        print("SKIPPED: tesseract is missing (Debian: tesseract-ocr, -rus, -chi-sim)")
    columns = f"{'accuracy':>9}{'CPU s':>7}{'MiB':>6}"
    print(f"{'':20}{'ours':>22}{'sure':>6}{'tesseract':>22}\n{'':20}{columns}{'':6}{columns}")
    for sort in SORTS[: chosen.sorts]:
        pages = [render(sort, seed) for seed in range(chosen.pages)]
        made = [page for page in pages if page]
        if not made:
            print(f"{sort.name:20} SKIPPED, no font {sort.font}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            paths = [f"{folder}/{number}.png" for number in range(len(made))]
            for path, (picture, _) in zip(paths, made, strict=True):
                picture.save(path, dpi=(DPI, DPI))
            row = f"{sort.name:20}"
            if programs:
                command = [str(programs / "python"), "-P", "-c", OURS, *paths]
                printed, cpu, memory = measured(command)
                texts, sure = zip(*json.loads(printed), strict=True)
                row += cells(made, texts, (cpu, memory), unspaced=sort.unspaced)
                row += f"{sum(sure) / len(sure):6.2f}"
            else:
                row += f"{'':28}"
            if tesseract:
                more = ["stdout", "-l", sort.languages, "--psm", "1"]
                texts, seconds, peaks = zip(
                    *(measured([tesseract, path, *more]) for path in paths), strict=True
                )
                row += cells(made, texts, (sum(seconds), max(peaks)), unspaced=sort.unspaced)
            print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

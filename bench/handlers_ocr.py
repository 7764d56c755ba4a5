"""OCR of rendered pages: word accuracy, CPU and memory, ours beside tesseract.

    python -P bench/handlers_ocr.py [--sorts N]

Reads the pages of tests/scanned.py, and others in scripts whose fonts this machine has, in a worker
of ours, with the extra `ocr` as requirements locks it, and with Debian's tesseract, which
scripts/ci extras installs. The first page of a worker loads the models. Accuracy is the share of
the words, of Chinese the characters, that come in their order. What is missing is said.
"""

# ruff: noqa: RUF001 - Cyrillic is one of the scripts
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from scripts.drive.programs import options
from scripts.drive.tools import ROOT, python_tool
from tests.scanned import PROSE, accuracy, in_two_columns, noisy, page

DPI = 150
FONTS = Path("/usr/share/fonts")
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
OURS = """
import json, os, sys
from pathlib import Path
import anyio
from bench._run import cpu_seconds
from fetchstash.handlers import Decision, ExtractLimits, WorkerPool, ocr_limits

async def read():
    page = Decision("image", "image/png", "", "magic", (), mismatch=False), Path(sys.argv[1]), 1
    pool = WorkerPool(ocr_limits(ExtractLimits()), workers=1)
    before = cpu_seconds(os.getpid())
    await pool.read_page(*page)
    first = cpu_seconds(os.getpid())
    reading = await pool.read_page(*page)
    after = cpu_seconds(os.getpid())
    await pool.aclose()
    print(json.dumps([reading.text, reading.confidence, first - before, after - first]))

anyio.run(read)
"""

Page = tuple[str, Image.Image, str, str]
"""A page: what it shows, its picture, its text in reading order, tesseract's language."""


def pages() -> list[Page]:
    """Return the pages that can be rendered here."""
    columns, in_order = in_two_columns()
    made: list[Page] = [
        ("150 dpi", page(), PROSE, "eng"),
        ("9 points", page(points=9, width=90), PROSE, "eng"),
        ("two columns", columns, in_order, "eng"),
        ("skewed", page().rotate(2.5, Image.Resampling.BICUBIC, fillcolor=255), PROSE, "eng"),
        ("noisy", noisy(page()), PROSE, "eng"),
        ("noisy, two columns", noisy(columns), in_order, "eng"),
        ("on its side", page().transpose(Image.Transpose.ROTATE_90), PROSE, "eng"),
        ("upside down", page().transpose(Image.Transpose.ROTATE_180), PROSE, "eng"),
    ]
    for name, text, file, language, width in (
        ("German, French", GERMAN, "DejaVuSerif.ttf", "eng", 66),
        ("Cyrillic", CYRILLIC, "DejaVuSerif.ttf", "rus", 66),
        ("Chinese", CHINESE, "NotoSerifCJK-Regular.ttc", "chi_sim", 36),
    ):
        if font := next(FONTS.rglob(file), None):
            made.append((name, page(text, width=width, font=str(font)), text, language))
        else:
            print(f"SKIPPED: {name}: there is no font {file}")
    return made


def measured(command: Sequence[str]) -> tuple[str, float, int]:
    """Run a command; return what it prints, its seconds of CPU and its peak in MiB."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_THREAD_LIMIT": "1"},
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return printed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


def score(text: str, expected: str, language: str) -> str:
    """Return the accuracy as shown: of words, of Chinese that of characters."""
    if language == "chi_sim":
        return f"{accuracy(''.join(text.split()), ''.join(expected.split())):9.3f}"
    return f"{accuracy(text.split(), expected.split()):9.3f}"


def main() -> int:
    made = pages()
    chosen = options(__doc__, sorts=len(made))
    programs, tesseract = python_tool("extras"), shutil.which("tesseract")
    if not tesseract:
        print("SKIPPED: tesseract is missing (Debian: tesseract-ocr, -rus, -chi-sim)")
    columns = f"{'ours: accuracy':>15} first s  next s   MiB  sure"
    print(f"{'CPU':20}{columns}{'tesseract: accuracy':>21} CPU s   MiB")
    for name, picture, text, language in made[: chosen.sorts]:
        with tempfile.NamedTemporaryFile(suffix=".png") as file:
            picture.save(file.name, dpi=(DPI, DPI))
            row = f"{name:20}"
            if programs:
                command = [str(programs / "python"), "-P", "-c", OURS, file.name]
                printed, _, peak = measured(command)
                read, sure, first, again = json.loads(printed)
                costs = f"{first:8.2f}{again:8.2f}{peak:6}{sure:6.2f}"
                row += f"{score(read, text, language):>15}{costs}"
            else:
                row += f"{'':43}"
            if tesseract:
                words = [tesseract, file.name, "stdout", "-l", language, "--psm", "1"]
                read, seconds, peak = measured(words)
                row += f"{score(read, text, language):>21}{seconds:6.2f}{peak:6}"
            print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

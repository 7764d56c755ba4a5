"""Measure the handlers of Office documents: the words that they keep of a corpus, and the CPU.

    python -P bench/handlers_office.py CORPUS

CORPUS is a folder with DOCX, PPTX and XLSX files. The words that count are those of the packages'
own text elements (w:t, a:t, t), markup and charts aside; a score of 1 loses none of them. What
slides repeat (numbers, dates, footers) and what a document hides is left out on purpose.
"""

import gc
import html
import re
import time
import zipfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from bench._run import load
from fetchstash.errors import FetchstashError
from fetchstash.handlers import ExtractLimits, Handler, Hints
from fetchstash.handlers._data._sheets import SheetsHandler
from fetchstash.handlers._office._docx import DocxHandler
from fetchstash.handlers._office._pptx import PptxHandler
from fetchstash.handlers._worker._child import GC_THRESHOLDS
from scripts.drive.programs import options

HANDLERS: Mapping[str, Handler] = {
    "docx": DocxHandler(),
    "pptx": PptxHandler(),
    "xlsx": SheetsHandler(),
}
PARTS = {
    "docx": r"word/(document|footnotes|endnotes|comments|header\d*|footer\d*)\.xml",
    "pptx": r"ppt/(slides|notesSlides)/[^/]+\.xml",
    "xlsx": r"xl/(sharedStrings|worksheets/[^/]+)\.xml",
}
"""The parts that hold text."""
TEXT = re.compile(r"<(?:w:|a:)?t(?: [^>]*)?>([^<]*)</")
# The runs of a paragraph make its words together.
PARAGRAPH_END = re.compile(r"</(?:w:p|a:p|si|c)>")
RUNS = 3


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w{2,}", text))


def words_of_package(source: Path, kind: str) -> Counter[str]:
    found: Counter[str] = Counter()
    with zipfile.ZipFile(source) as container:
        for name in container.namelist():
            if re.fullmatch(PARTS[kind], name):
                xml = container.read(name).decode("utf-8", "replace")
                for paragraph in PARAGRAPH_END.split(xml):
                    found += words(html.unescape("".join(TEXT.findall(paragraph))))
    return found


def read(source: Path, kind: str) -> tuple[float, str]:
    """Return the CPU seconds, the least of some runs, and the text."""
    least, text = float("inf"), ""
    for _ in range(RUNS):
        pieces: list[str] = []
        began = time.process_time()
        with suppress(FetchstashError):
            found = HANDLERS[kind].extract(source, Hints(), ExtractLimits())
            pieces.extend(part.text for part in found.parts or ())
        least, text = min(least, time.process_time() - began), "".join(pieces)
    return least, text


def main() -> None:
    corpus = options(__doc__, "**/*.docx").folder
    gc.set_threshold(*GC_THRESHOLDS)  # as in the worker
    print("| files | words kept | ms of CPU a file |\n| --- | --- | --- |")
    for kind in HANDLERS:
        sources = [s for s in sorted(corpus.rglob(f"*.{kind}")) if zipfile.is_zipfile(s)]
        if not sources:
            print(f"| no {kind.upper()} in {corpus.name} | | |")
            continue
        seconds = kept = total = 0.0
        for source in sources:
            spent, text = read(source, kind)
            expected = words_of_package(source, kind)
            seconds += spent
            kept += (expected & words(text)).total()
            total += expected.total()
        each = 1_000 * seconds / len(sources)
        print(f"| {len(sources)} {kind.upper()} | {kept / max(total, 1):.4f} | {each:.2f} |")
    print(load())


if __name__ == "__main__":
    main()

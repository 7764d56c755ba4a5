"""Measure the PDF handler: what is read of a corpus and what it costs, beside liteparse.

    python -P bench/handlers_pdf.py CORPUS

CORPUS is a folder with pdf/, gold/ (the Markdown that should come out) and score_pdf.py. Both sides
read each file in turns, and the corpus' scorer compares order, headings and tables. CPU is that of
reading; the last line adds the whole way of fetchstash: its process, the worker and the store.
liteparse and the scorer's rapidfuzz are those of requirements/tools.toml, liteparse without OCR.
"""

import gc
import os
import runpy
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio

from bench._run import cpu_seconds, load, peer
from fetchstash import open_stash
from fetchstash.handlers import ExtractLimits, Hints
from fetchstash.handlers._pdf._handler import PdfHandler
from fetchstash.handlers._worker._child import GC_THRESHOLDS
from scripts.drive.programs import options

Read = Callable[[Path], tuple[str, int]]
"""Returns the text and the number of pages."""
Scorer = Callable[[str, str], Mapping[str, float]]
COLUMNS = ("overall", "order", "headings", "tables")


def ours(source: Path) -> tuple[str, int]:
    extracted = PdfHandler().extract(source, Hints(), ExtractLimits())
    text = "".join(part.text for part in extracted.parts or ())
    return text, extracted.facts.pages or 0


def sides() -> dict[str, Read]:
    """Return who reads, by name."""
    readers: dict[str, Read] = {"fetchstash": ours}
    if liteparse := peer("liteparse", "liteparse"):
        parser = liteparse.LiteParse(ocr_enabled=False, output_format="markdown", quiet=True)

        def theirs(source: Path) -> tuple[str, int]:
            result = parser.parse(source)
            return result.text, len(result.pages)

        readers["liteparse"] = theirs
    return readers


def compare(sources: list[Path], score: Scorer) -> None:
    """Print the means of the scores of each side, and the CPU that a page takes."""
    readers = sides()
    spent, pages = dict.fromkeys(readers, 0.0), dict.fromkeys(readers, 0)
    scores: dict[str, list[Mapping[str, float]]] = {name: [] for name in readers}
    for read in readers.values():
        read(sources[0])  # imports are no page's cost
    for source in sources:
        gold = (source.parents[1] / "gold" / f"{source.stem}.md").read_text("utf-8")
        for name, read in readers.items():
            began = time.process_time()
            text, count = read(source)
            spent[name] += time.process_time() - began
            pages[name] += count
            scores[name].append(score(gold, text))
    print(f"| {len(sources)} PDFs | {' | '.join(COLUMNS)} | ms of CPU a page |\n|{' --- |' * 6}")
    for name, rows in scores.items():
        means = [[row[key] for row in rows if key in row] for key in COLUMNS]
        shown = " | ".join(f"{sum(found) / max(len(found), 1):.3f}" for found in means)
        print(f"| {name} | {shown} | {1_000 * spent[name] / pages[name]:.1f} |")


async def whole_way(sources: list[Path]) -> float:
    """Return the milliseconds of CPU that keeping a page takes."""
    pages = 0
    with tempfile.TemporaryDirectory() as folder:
        async with open_stash({"store.folder": folder}) as stash:
            await stash.add_file(sources[0])
            before = cpu_seconds(os.getpid())
            for source in sources[1:]:
                pages += (await stash.add_file(source)).facts.pages or 0
            return 1_000 * (cpu_seconds(os.getpid()) - before) / max(pages, 1)


def main() -> None:
    corpus: Path = options(__doc__, "score_pdf.py").folder
    sources = sorted((corpus / "pdf").glob("*.pdf"))
    if peer("rapidfuzz", "liteparse") is None:
        print("rapidfuzz cannot be had: see requirements/tools.toml", file=sys.stderr)
        raise SystemExit(2)
    gc.set_threshold(*GC_THRESHOLDS)  # as in the worker
    compare(sources, runpy.run_path(str(corpus / "score_pdf.py"))["score"])
    print(f"fetchstash with worker and store: {anyio.run(whole_way, sources):.1f} ms; {load()}")


if __name__ == "__main__":
    main()

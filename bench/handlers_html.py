"""Measure the HTML handler: quality by the corpus' scorer, CPU time against trafilatura.

    python -P bench/handlers_html.py CORPUS [--folds FOLDER] [--every N] [--sample N]

CORPUS is a folder with index.jsonl, pages/, gold/ and score_html.py. The committed model has seen
all its pages. With the models of scripts/make/train_html.py --folds, each page is read by the
model that has not seen its site, and the scores are held out. CPU time is compared on every Nth
page; trafilatura is that of requirements/tools. --sample reads every Nth page alone, to see that it
runs: the scorer counts the others as empty.
"""

import gc
import gzip
import json
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench._run import peer
from fetchstash.handlers import ExtractLimits, Hints
from fetchstash.handlers._html import _content, _trees
from fetchstash.handlers._html._handler import HtmlHandler
from fetchstash.handlers._worker._child import GC_THRESHOLDS
from scripts.drive.programs import options

LOW_RECALL = 0.8
DEFAULT_THRESHOLDS = gc.get_threshold()


def extract(source: Path, url: str) -> str:
    extracted = HtmlHandler().extract(source, Hints(url=url), ExtractLimits())
    return "".join(part.text for part in extracted.parts or ())


def seconds(read: Callable[[Path, str], object], pages: list[tuple[Path, dict[str, Any]]]) -> float:
    """Return the CPU time of reading pages."""
    start = time.process_time()
    for source, row in pages:
        read(source, row["url"])
    return time.process_time() - start


def compare(pages: list[tuple[Path, dict[str, Any]]]) -> None:
    """Print the CPU time of both sides."""
    ours = seconds(extract, pages)
    trafilatura = peer("trafilatura", "trafilatura")
    if trafilatura is None:
        print(f"{len(pages)} pages: {ours:.2f} s CPU")
        return

    def theirs(source: Path, url: str) -> None:
        text = source.read_bytes().decode("utf-8", "replace")
        more = {"include_links": True, "include_tables": True}
        trafilatura.extract(text, url=url, output_format="markdown", **more)

    gc.set_threshold(*DEFAULT_THRESHOLDS)
    its = seconds(theirs, pages)
    print(f"{len(pages)} pages: {ours:.2f} s CPU; trafilatura {its:.2f} s, ratio {ours / its:.2f}")


def main() -> None:
    chosen = options(__doc__, "index.jsonl", folds=Path(), every=10, sample=1)
    corpus: Path = chosen.folder
    rows = [json.loads(line) for line in (corpus / "index.jsonl").read_text("utf-8").splitlines()]
    rows = rows[:: chosen.sample]
    gc.set_threshold(*GC_THRESHOLDS)  # as in the worker, where pages are read
    with tempfile.TemporaryDirectory() as folder:
        pages: list[tuple[Path, dict[str, Any]]] = []
        for number, row in enumerate(rows):
            source = Path(folder, f"{number}.html")
            source.write_bytes(gzip.decompress((corpus / row["path"]).read_bytes()))
            pages.append((source, row))
        out, scored = Path(folder, "out"), Path(folder, "scores.json")
        start = time.process_time()
        for fold in sorted({row["fold"] for row in rows}):
            rounds = _trees.ROUNDS
            if chosen.folds.name:
                rounds = runpy.run_path(str(chosen.folds / f"{fold}.py"))["ROUNDS"]
            with patch.object(_content, "ROUNDS", rounds):
                for source, row in pages:
                    if row["fold"] == fold:
                        target = out / row["set"] / f"{row['id']}.md"
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.write_text(extract(source, row["url"]), "utf-8", errors="replace")
        print(f"all {len(pages)} pages: {time.process_time() - start:.1f} s CPU")
        compare(pages[:: chosen.every])
        score = [sys.executable, str(corpus / "score_html.py"), str(corpus), str(out)]
        subprocess.run([*score, "--families", "--json", str(scored)], check=True)
        scores = json.loads(scored.read_text("utf-8"))["pages"]
        low = sum(page["r"] < LOW_RECALL for page in scores) / len(scores)
        print(f"pages with less than {LOW_RECALL} of the gold's words: {low:.3f}")


if __name__ == "__main__":
    main()

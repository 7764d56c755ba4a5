"""Measure the HTML handler: quality by the corpus' scorer, CPU time against trafilatura.

    python -P bench/handlers_html.py CORPUS [--folds FOLDER] [--every N]

CORPUS is a folder with index.jsonl, pages/, gold/ and score_html.py. The committed model has seen
all its pages. With the models of scripts/make/train_html.py --folds, each page is read by the
model that has not seen its site, and the scores are held out. trafilatura is measured if it is
installed.
"""

import argparse
import gc
import gzip
import json
import runpy
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fetchstash.handlers import ExtractLimits, Hints
from fetchstash.handlers._html import _content, _trees
from fetchstash.handlers._html._handler import HtmlHandler
from fetchstash.handlers._worker._child import GC_THRESHOLDS

LOW_RECALL = 0.8
DEFAULT_THRESHOLDS = gc.get_threshold()


def extract(source: Path, url: str) -> str:
    extracted = HtmlHandler().extract(source, Hints(url=url), ExtractLimits())
    return "".join(part.text for part in extracted.parts or ())


def trafilatura_seconds(pages: list[tuple[Path, dict[str, Any]]]) -> float:
    try:
        trafilatura: Any = import_module("trafilatura")
    except ImportError:
        return 0.0
    gc.set_threshold(*DEFAULT_THRESHOLDS)
    start = time.process_time()
    for source, row in pages:
        text = source.read_bytes().decode("utf-8", "replace")
        trafilatura.extract(
            text, url=row["url"], output_format="markdown", include_links=True, include_tables=True
        )
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--folds", type=Path, help="folder of models, FOLD.py each")
    parser.add_argument(
        "--every", type=int, default=10, help="compare CPU time on every Nth page (default 10)"
    )
    arguments = parser.parse_args()
    index = arguments.corpus / "index.jsonl"
    if not index.is_file():
        sys.exit(f"{arguments.corpus} holds no corpus. Name the folder of one.")
    rows = [json.loads(line) for line in index.read_text("utf-8").splitlines()]
    gc.set_threshold(*GC_THRESHOLDS)  # as in the worker, where pages are read
    with tempfile.TemporaryDirectory() as folder:
        pages: list[tuple[Path, dict[str, Any]]] = []
        for number, row in enumerate(rows):
            source = Path(folder, f"{number}.html")
            source.write_bytes(gzip.decompress((arguments.corpus / row["path"]).read_bytes()))
            pages.append((source, row))
        out = Path(folder, "out")
        start = time.process_time()
        for fold in sorted({row["fold"] for row in rows}):
            rounds = _trees.ROUNDS
            if arguments.folds:
                rounds = runpy.run_path(str(arguments.folds / f"{fold}.py"))["ROUNDS"]
            with patch.object(_content, "ROUNDS", rounds):
                for source, row in pages:
                    if row["fold"] == fold:
                        target = out / row["set"] / f"{row['id']}.md"
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.write_text(extract(source, row["url"]), "utf-8", errors="replace")
        print(f"all {len(pages)} pages: {time.process_time() - start:.1f} s CPU")
        sample = pages[:: arguments.every]
        start = time.process_time()
        for source, row in sample:
            extract(source, row["url"])
        ours = time.process_time() - start
        theirs = trafilatura_seconds(sample)
        ratio = (
            f"trafilatura {theirs:.2f} s, ratio {ours / theirs:.2f}"
            if theirs
            else "trafilatura is not installed"
        )
        print(f"{len(sample)} pages: {ours:.2f} s CPU; {ratio}")
        subprocess.run(
            [
                sys.executable,
                arguments.corpus / "score_html.py",
                arguments.corpus,
                out,
                "--families",
                "--json",
                Path(folder, "scores.json"),
            ],
            check=True,
        )
        scores = json.loads(Path(folder, "scores.json").read_text("utf-8"))["pages"]
        low = sum(page["r"] < LOW_RECALL for page in scores) / len(scores)
        print(f"pages with less than {LOW_RECALL} of the gold's words: {low:.3f}")


if __name__ == "__main__":
    main()

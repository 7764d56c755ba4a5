"""Tables of PDF files read by rows: ours, pdfplumber and markitdown on documents of known tables.

    python -P bench/handlers_pdf_tables.py --peers PYTHON [--each]

PYTHON is an interpreter that has reportlab, fpdf2 and typst, which write the documents, and
pdfplumber and markitdown. A row counts as read if one line holds all its cells in order and little
else; its columns count as kept if the cells of that line, parted by bars, are those of the row.
"""

import argparse
import json
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from fetchstash.handlers import ExtractLimits, Hints, handler_named

SCRIPTS = Path(__file__).with_suffix(".d")
Answer = tuple[float, list[str]]


def ours(paths: list[Path]) -> list[Answer]:
    answers: list[Answer] = []
    for path in [paths[0], *paths]:  # the first loads the library
        started = time.process_time()
        parts = handler_named("pdf").extract(path, Hints(), ExtractLimits()).parts or ()
        lines = "".join(part.text for part in parts).split("\n")
        answers.append((time.process_time() - started, lines))
    return answers[1:]


def theirs(peers: str, name: str, paths: list[Path]) -> list[Answer]:
    command = [peers, str(SCRIPTS / "read.py"), name, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [(seconds, lines) for seconds, lines in json.loads(done.stdout)]


def cells(line: str) -> list[str]:
    """Return the cells of a Markdown row, those that are empty left out."""
    if not line.startswith("|"):
        return []
    return [cell.strip() for cell in line.replace("\\|", "\0").split("|") if cell.strip()]


def plain(line: str) -> str:
    return "".join(line.replace("\\", "").replace("|", "").split())


def holds(line: str, row: list[str]) -> bool:
    """Return whether a line holds the cells of a row in order, and at most a quarter more."""
    at = 0
    for cell in row:
        at = line.find(cell, at)
        if at < 0:
            return False
        at += len(cell)
    return len(line) <= 1.25 * sum(map(len, row)) + 2


def scores(lines: list[str], tables: list[list[list[str]]]) -> tuple[int, int, int]:
    """Return the numbers of rows that are read, that keep their columns, and of all."""
    texts = {plain(line) for line in lines}
    kept_cells = {tuple(cells(line)) for line in lines}
    read = kept = total = 0
    for row in (row for table in tables for row in table):
        filled = [" ".join(cell.split()) for cell in row if cell]
        packed = [plain(cell) for cell in filled]
        total += 1
        read += any(holds(text, packed) for text in texts)
        kept += tuple(filled) in kept_cells
    return read, kept, total


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", required=True, help="a Python that has the programs above")
    parser.add_argument("--each", action="store_true", help="print each document, too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([asked.peers, str(SCRIPTS / "make.py"), name], check=True)
        paths = sorted(folder.glob("*.pdf"))
        gold = [json.loads(path.with_suffix(".json").read_text()) for path in paths]
        readers = {
            "fetchstash": ours(paths),
            "pdfplumber": theirs(asked.peers, "pdfplumber", paths),
            "markitdown": theirs(asked.peers, "markitdown", paths),
        }
    print(f"{len(paths)} documents, {sum(len(table) for tables in gold for table in tables)} rows")
    by_document = defaultdict[str, dict[str, tuple[int, int, int]]](dict)
    for reader, answers in readers.items():
        results = [scores(lines, tables) for (_, lines), tables in zip(answers, gold, strict=True)]
        for path, result in zip(paths, results, strict=True):
            by_document[path.stem][reader] = result
        read, kept, total = (sum(column) for column in zip(*results, strict=True))
        seconds = sum(spent for spent, _ in answers)
        print(
            f"{reader:10} rows on one line {read / total:.3f}, with their columns "
            f"{kept / total:.3f}, {seconds:.2f} s CPU"
        )
    if asked.each:
        for document, answers_of in by_document.items():
            figures = "  ".join(f"{r} {a}/{b}/{c}" for r, (a, b, c) in answers_of.items())
            print(f"{document:32} {figures}")


if __name__ == "__main__":
    main()

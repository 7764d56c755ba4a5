"""PDF text against pypdfium2 bare, pypdf and markitdown: CPU and words, in one run.

    python -P bench/handlers_pdf.py CORPUS [--peers PYTHON] [--only-plain]

CORPUS is a folder of PDF files (searched for *.pdf); PYTHON is an interpreter that has markitdown.
What is missing is said.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pypdfium2
from pypdf import PdfReader

from fetchstash.cli.demo.pdf import make_pdf, stream, write_objects
from fetchstash.errors import FetchstashError
from fetchstash.handlers import ExtractLimits, Hints
from fetchstash.handlers._pdf._handler import PdfHandler

MARKITDOWN = """
import sys, time
from markitdown import MarkItDown
converter = MarkItDown(enable_plugins=False)
for line in sys.stdin:
    started = time.process_time()
    try:
        converter.convert(line.strip())
    except Exception:
        pass
    print(time.process_time() - started, flush=True)
"""
PROSE = "The wardens open the lower gate at the mark, and the reservoir fills slowly in spring. "


def bare(source: Path) -> Iterator[str]:
    with pypdfium2.PdfDocument(source) as document:
        for index in range(len(document)):
            with closing(document[index]) as page, closing(page.get_textpage()) as text:
                yield text.get_text_bounded()


def ours(source: Path) -> Iterator[str]:
    found = PdfHandler().extract(source, Hints(), ExtractLimits())
    return (part.text for part in found.parts or ())


def pypdf(source: Path) -> Iterator[str]:
    reader = PdfReader(source)
    return (page.extract_text() for page in reader.pages)


def timed(
    read: Callable[[Path], Iterator[str]], source: Path, chars: int = sys.maxsize
) -> tuple[float, str]:
    """Return CPU seconds and text of ``source``, up to ``chars`` characters or the first error."""
    pieces: list[str] = []
    started = time.process_time()
    with suppress(FetchstashError, pypdfium2.PdfiumError, Exception):
        for piece in read(source):
            pieces.append(piece)
            chars -= len(piece)
            if chars <= 0:
                break
    return time.process_time() - started, "".join(pieces)


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w{2,}", text))


def mended(text: str) -> str:
    """Return pdfium's text with its marks of broken words taken out, so that words compare."""
    return re.sub(r"[\ufffe\x02]", "", text)


def corpus_figures(folder: Path, peers: str, *, only_plain: bool) -> None:
    sources = sorted(folder.rglob("*.pdf"))
    print(f"{len(sources)} files in {folder}")
    spent = defaultdict[str, float](float)
    kept = total = 0
    for source in sources:
        turns = [
            (timed(bare, source), timed(ours, source)) for _ in range(3)
        ]  # the best of three is warm, and alone
        reference, text = turns[0][0][1], turns[0][1][1]
        spent["pypdfium2"] += min(plain for (plain, _), _ in turns)
        spent["fetchstash"] += min(own for _, (own, _) in turns)
        expected, got = words(mended(reference)), words(text)
        kept += sum((expected & got).values())
        total += sum(expected.values())
        if not only_plain:
            spent["pypdf"] += timed(pypdf, source)[0]
    if not only_plain:
        spent["markitdown"] = markitdown_seconds(sources, peers)
    print(f"words of pypdfium2 that fetchstash has too: {kept / max(total, 1):.2%} of {total:,}")
    for name, seconds in spent.items():
        print(
            f"{name:12} {seconds:8.2f} s CPU = {seconds / max(spent['fetchstash'], 1e-9):6.2f} x "
            "fetchstash"
        )


def markitdown_seconds(sources: list[Path], peers: str) -> float:
    if not peers:
        print("markitdown: not measured, no --peers given")
        return 0.0
    lines = "".join(f"{source}\n" for source in sources)
    done = subprocess.run(
        [peers, "-c", MARKITDOWN], input=lines, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"markitdown: not measured, {done.stderr.strip().splitlines()[-1]}")
    return sum(map(float, done.stdout.split()))


def long_document_figures() -> None:
    """Print the time of the first 30,000 characters of 1,000 pages, and of all of them."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "long.pdf"
        source.write_bytes(
            make_pdf([f"Page {number}.\n\n{PROSE * 30}" for number in range(1, 1_001)], "Long")
        )
        for chars, label in (
            (30_000, "first 30,000 characters of 1,000 pages"),
            (sys.maxsize, "all 1,000 pages"),
        ):
            plain, own = (
                min(timed(read, source, chars)[0] for _ in range(5)) for read in (bare, ours)
            )
            print(
                f"{label}: fetchstash {own * 1000:.1f} ms, pypdfium2 {plain * 1000:.1f} ms, ratio "
                f"{own / plain:.2f}"
            )


def columns_document(pages: int) -> bytes:
    """Return a PDF in two columns whose lines are written across both, the worst case."""
    content = b"".join(
        b"BT /F1 10 Tf %d %d Td (%s) Tj ET\n"
        % (left, 780 - 13 * line, PROSE[line % 40 :][:46].encode())
        for line in range(55)
        for left in (60, 310)
    )
    kids = " ".join(f"{5 + index} 0 R" for index in range(pages))
    return write_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            f"<< /Type /Pages /Kids [{kids}] /Count {pages} /MediaBox [0 0 595 842] >>".encode(),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            stream(content),
            *[
                (
                    b"<< /Type /Page /Parent 2 0 R "
                    b"/Resources << /Font << /F1 3 0 R >> >> /Contents 4 0 R >>"
                )
            ]
            * pages,
        ]
    )


def column_figures() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "columns.pdf"
        source.write_bytes(columns_document(100))
        plain, own = (min(timed(read, source)[0] for _ in range(5)) for read in (bare, ours))
        print(
            f"100 pages in two columns: fetchstash {own * 1000:.1f} ms, pypdfium2 "
            f"{plain * 1000:.1f} ms, ratio {own / plain:.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--peers", default="", help="a Python that has markitdown")
    parser.add_argument("--only-plain", action="store_true", help="leave out the slow peers")
    asked = parser.parse_args()
    long_document_figures()
    column_figures()
    if asked.corpus.is_dir():
        corpus_figures(asked.corpus, asked.peers, only_plain=asked.only_plain)
    else:
        print(f"no corpus: {asked.corpus} is no folder")


if __name__ == "__main__":
    main()

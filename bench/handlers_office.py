"""Word, PowerPoint and Excel documents against markitdown: CPU and words, in one run.

    python -P bench/handlers_office.py CORPUS [--peers PYTHON]

CORPUS is a folder with DOCX, PPTX and XLSX files; PYTHON is an interpreter that has markitdown.
What is missing is said. The words that count are those of the packages' own text elements (w:t,
a:t, t), markup and charts aside.
"""

import argparse
import html
import json
import re
import subprocess
import time
import zipfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

from fetchstash.errors import FetchstashError
from fetchstash.handlers import ExtractLimits, Handler, Hints
from fetchstash.handlers._data._sheets import SheetsHandler
from fetchstash.handlers._office._docx import DocxHandler
from fetchstash.handlers._office._pptx import PptxHandler

HANDLERS: dict[str, Handler] = {
    "docx": DocxHandler(),
    "pptx": PptxHandler(),
    "xlsx": SheetsHandler(),
}
# The parts that hold text, and its elements; phonetic readings (rPh) stand beside the text that
# they explain.
PARTS = {
    "docx": r"word/(document|footnotes|endnotes|comments|header\d*|footer\d*)\.xml",
    "pptx": r"ppt/(slides|notesSlides)/[^/]+\.xml",
    "xlsx": r"xl/(sharedStrings|worksheets/[^/]+)\.xml",
}
TEXT = re.compile(r"<(?:w:|a:)?t(?: [^>]*)?>([^<]*)</")
MARKITDOWN = """
import json, sys, time
from markitdown import MarkItDown
converter = MarkItDown(enable_plugins=False)
for line in sys.stdin:
    started = time.process_time()
    try:
        text = converter.convert(line.strip()).text_content
    except Exception:
        text = ""
    print(json.dumps([time.process_time() - started, text]), flush=True)
"""


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w{2,}", text))


def gold(source: Path, kind: str) -> Counter[str]:
    found: Counter[str] = Counter()
    with zipfile.ZipFile(source) as container:
        for name in container.namelist():
            if re.fullmatch(PARTS[kind], name):
                xml = container.read(name).decode("utf-8", "replace")
                # The runs of a paragraph make its words together.
                for paragraph in re.split(r"</(?:w:p|a:p|si|c)>", xml):
                    found += words(html.unescape("".join(TEXT.findall(paragraph))))
    return found


def ours(source: Path, kind: str) -> tuple[float, str]:
    pieces: list[str] = []
    started = time.process_time()
    with suppress(FetchstashError):
        found = HANDLERS[kind].extract(source, Hints(), ExtractLimits())
        pieces.extend(part.text for part in found.parts or ())
    return time.process_time() - started, "".join(pieces)


def markitdown(sources: list[Path], peers: str) -> list[tuple[float, str]]:
    done = subprocess.run(
        [peers, "-c", MARKITDOWN],
        input="".join(f"{s}\n" for s in sources),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"markitdown: not measured, {done.stderr.strip().splitlines()[-1]}")
    return [(seconds, text) for seconds, text in map(json.loads, done.stdout.splitlines())]


def report(name: str, results: list[tuple[float, str]], expected: list[Counter[str]]) -> float:
    seconds = sum(spent for spent, _ in results)
    kept = sum(
        sum((wanted & words(text)).values())
        for (_, text), wanted in zip(results, expected, strict=True)
    )
    total = sum(sum(wanted.values()) for wanted in expected)
    each = seconds * 1000 / max(len(results), 1)
    print(f"  {name:11} {each:7.2f} ms CPU a file, {kept / max(total, 1):.2%} of {total:,} words")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--peers", default="", help="a Python that has markitdown")
    asked = parser.parse_args()
    if not asked.corpus.is_dir():
        print(f"no corpus: {asked.corpus} is no folder")
        return
    for kind in HANDLERS:
        sources = [
            source
            for source in sorted(asked.corpus.rglob(f"*.{kind}"))
            if zipfile.is_zipfile(source)
        ]
        print(f"{kind}: {len(sources)} files")
        if not sources:
            continue
        expected = [gold(source, kind) for source in sources]
        for source in sources:
            ours(source, kind)  # what is imported is imported, for both
        own = report("fetchstash", [ours(source, kind) for source in sources], expected)
        if not asked.peers:
            print("  markitdown: not measured, no --peers given")
        elif results := markitdown([sources[0], *sources], asked.peers)[1:]:
            print(
                f"  markitdown takes {report('markitdown', results, expected) / own:.1f} times as "
                "long"
            )


if __name__ == "__main__":
    main()

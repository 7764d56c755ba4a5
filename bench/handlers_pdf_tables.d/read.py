"""Print the lines that pdfplumber and markitdown read from PDF files, as JSON.

    python read.py pdfplumber|markitdown FILE...

A line of pdfplumber is a row of a table that it finds, its cells parted by bars, or a line of text.
"""
# ruff: noqa: PLC0415 - only the reader that is asked for is imported
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

import json
import logging
import sys
import time


def with_pdfplumber(path: str) -> list[str]:
    import pdfplumber

    lines = []
    with pdfplumber.open(path) as document:
        for page in document.pages:
            for table in page.extract_tables():
                for row in table:
                    cells = (" ".join((cell or "").split()) for cell in row)
                    lines.append(f"| {' | '.join(cells)} |")
            lines += page.extract_text().split("\n")
    return lines


def with_markitdown(path: str) -> list[str]:
    from markitdown import MarkItDown

    return MarkItDown(enable_plugins=False).convert(path).text_content.split("\n")


def main() -> None:
    logging.disable(logging.CRITICAL)
    read = {"pdfplumber": with_pdfplumber, "markitdown": with_markitdown}[sys.argv[1]]
    read(sys.argv[2])  # what a library loads at its first document is not counted
    answers = []
    for path in sys.argv[2:]:
        started = time.process_time()
        lines = read(path)
        answers.append((time.process_time() - started, lines))
    print(json.dumps(answers))


if __name__ == "__main__":
    main()

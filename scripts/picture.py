"""Draw docs/before-and-after.svg: what a model sees of a PDF without fetchstash and with it.

.venv/bin/python scripts/picture.py [--out FILE]
"""

import argparse
import asyncio
import textwrap
from pathlib import Path
from xml.sax.saxutils import escape

from fetchstash.cli.demo.driver import Answer, ask, started
from fetchstash.cli.demo.site import NEEDLES, Site, documents
from fetchstash.text import tokens

TARGET = Path(__file__).resolve().parent.parent / "docs" / "before-and-after.svg"
COLUMNS, ROWS, LEADING, ADVANCE = 78, 36, 15, 7.2
GAP, MARGIN, TOP = 24, 16, 64


async def seen() -> tuple[Answer, Answer, bytes]:
    """Return the result of a fetch and of a grep, and the bytes that are behind them."""
    needle = next(needle for needle in NEEDLES if needle.path.endswith(".pdf"))
    async with Site() as site, started(site) as client:
        fetched = await ask(client, "fetch_content", url=site.url(needle.path), maxChars=500)
        found = await ask(client, "artifact_grep", artifact_ref=fetched.ref, pattern=needle.pattern)
    return fetched, found, documents()[needle.path].body


def rows(text: str) -> list[str]:
    """Wrap a text to the panel and cut it at its height."""
    lines = [
        row
        for line in text.split("\n")
        for row in textwrap.wrap(line, COLUMNS, drop_whitespace=False) or [""]
    ]
    return lines if len(lines) <= ROWS else [*lines[: ROWS - 1], "…"]


def panel(x: float, title: str, cost: str, colour: str, lines: list[str]) -> str:
    """Return one panel: a title, what it costs, and the text."""
    width, height = COLUMNS * ADVANCE + 2 * MARGIN, TOP + ROWS * LEADING + MARGIN
    parts = [
        (
            f'<rect x="{x}" y="0" width="{width}" height="{height}" rx="8" fill="#f6f8fa" '
            f'stroke="{colour}"/>'
        ),
        f'<text x="{x + MARGIN}" y="26" font-weight="bold" font-size="15">{escape(title)}</text>',
        f'<text x="{x + MARGIN}" y="46" fill="{colour}" font-weight="bold">{escape(cost)}</text>',
    ]
    for number, line in enumerate(lines):
        y = TOP + (number + 1) * LEADING
        parts.append(f'<text x="{x + MARGIN}" y="{y}" xml:space="preserve">{escape(line)}</text>')
    return "\n".join(parts)


def drawing(fetched: Answer, found: Answer, body: bytes) -> str:
    """Return the picture."""
    garbage = "".join(
        char if char.isprintable() or char == "\n" else "\ufffd"
        for char in body.decode("utf-8", "replace")
    )
    width = COLUMNS * ADVANCE + 2 * MARGIN
    before = panel(
        0,
        "Before: the PDF decoded as text",
        f"{tokens.count(garbage).tokens:,} tokens, and not one word of it",
        "#cf222e",
        rows(garbage),
    )
    cost = f"{fetched.tokens + found.tokens:,} tokens, and the passage is there"
    after = panel(
        width + GAP,
        "After: fetch_content, then artifact_grep",
        cost,
        "#1a7f37",
        rows(f"{fetched.text}\n\n{found.text}"),
    )
    size = f'viewBox="-1 -1 {2 * width + GAP + 2} {TOP + ROWS * LEADING + MARGIN + 2}"'
    font = 'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12" fill="#1f2328"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>\n{before}\n{after}\n</svg>\n'


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=TARGET)
    parser.parse_args().out.write_text(drawing(*asyncio.run(seen())), encoding="utf-8")

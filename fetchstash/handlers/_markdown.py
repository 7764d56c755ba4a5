"""Markdown: kept as it is, with its headings as the outline."""

import re
from collections.abc import Iterator
from pathlib import Path

from fetchstash.handlers._charset import read_text
from fetchstash.handlers._contract import Extracted, Format, Hints, Part
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._routing._structure import sniff_markdown
from fetchstash.handlers._shared._prose import MAX_HEADINGS, find_headings

_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*\n")
_FRONT_TITLE = re.compile(r"^title:[ \t]*[\"']?(.*?)[\"']?[ \t]*$", re.MULTILINE)
_FRONT_REACH = 16_384


class MarkdownHandler:
    """Markdown, as it is written."""

    name = "markdown"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - text is kept whole
        """Return the text with its headings."""
        extracted = Extracted(parts=None)
        extracted.parts = _parts(extracted, read_text(source, hints.charset))
        return extracted


def _parts(extracted: Extracted, chunks: Iterator[str]) -> Iterator[Part]:
    fence = ""
    sections = 0
    for number, chunk in enumerate(chunks):
        front = _FRONT_MATTER.match(chunk[:_FRONT_REACH]) if number == 0 else None
        title = _FRONT_TITLE.search(front[0]) if front else None
        if title:
            extracted.learn(title=title[1])
        start = front.end() if front else 0
        headings, fence = find_headings(chunk, fence, start, MAX_HEADINGS - sections)
        sections += len(headings)
        if not extracted.facts.title and headings:
            extracted.learn(title=headings[0].title)
        yield Part(chunk, headings=tuple(headings))
    extracted.learn(structure_info=_summary(sections))


def _summary(headings: int) -> str:
    if not headings:
        return ""
    return f"{headings:,} headings{' or more' if headings == MAX_HEADINGS else ''}"


FORMATS = (
    Format(
        kind="markdown",
        word="Markdown",
        handler=MarkdownHandler,
        media_types=("text/markdown", "text/x-markdown", "text/x-web-markdown"),
        extensions=("md", "markdown", "mdx"),
        sniff=sniff_markdown,
        is_text=True,
    ),
)

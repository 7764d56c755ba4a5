"""Markdown: kept as it is, with its headings as the outline."""

import re
from collections.abc import Iterator
from pathlib import Path

from fetchstash.handlers._charset import read_text
from fetchstash.handlers._contract import Extracted, Format, Head, Hints, Part, Sniffed
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._prose import MAX_HEADINGS, find_headings

_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*\n")
_FRONT_TITLE = re.compile(r"^title:[ \t]*[\"']?(.*?)[\"']?[ \t]*$", re.MULTILINE)
_FRONT_REACH = 16_384


class MarkdownHandler:
    """Markdown, as it is written."""

    name = "markdown"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - text is kept whole
        """Return the text with its headings."""
        return Extracted.of(lambda extracted: _parts(extracted, read_text(source, hints.charset)))


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


def sniff_markdown(head: Head) -> Sniffed | None:
    """Recognise Markdown by a heading and two more of its marks.

    A comment in a script may look like a heading, but nothing else there is a link.
    """
    text = head.text
    marks = [
        bool(re.search(r"^#{1,6} \S", text, re.MULTILINE)),
        bool(re.search(r"^##{1,5} \S", text, re.MULTILINE)),
        bool(re.search(r"^(?:```|~~~)[\w+-]*\s*$", text, re.MULTILINE)),
        bool(re.search(r"\[[^\[\]\n]+\]\((?:https?://|[./#])[^)\s]*\)", text)),
        bool(re.search(r"^\|?[ \t]*:?-{3,}:?[ \t]*\|", text, re.MULTILINE)),
    ]
    if marks[0] and sum(marks) >= 3:
        return Sniffed("text/markdown", "headings and other marks of Markdown", full=False)
    return None


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

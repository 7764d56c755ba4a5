"""Markdown: kept as it is, with its headings as the outline."""

import re
from collections.abc import Iterator
from pathlib import Path

from fetchstash.handlers._charset import read_text
from fetchstash.handlers._contract import ContentKind, Extracted, ExtractLimits, Hints, Part
from fetchstash.ranges import Heading

# ATX headings, fences and setext underlines (CommonMark 0.31, sections 4.2, 4.5 and 4.3).
_MARK = re.compile(
    r"^ {0,3}(?P<level>#{1,6})[ \t]+(?P<title>[^\n]*)$"
    r"|^ {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^\n`]*)$"
    r"|^(?P<setext>[^\s#>`~|*+-][^\n]*)\n {0,3}(?P<line>=+|-+)[ \t]*$",
    re.MULTILINE,
)
_FENCE = re.compile(r"`{3,}|~{3,}")
_LONG_FENCE = 16
_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*\n")
_FRONT_TITLE = re.compile(r"^title:[ \t]*[\"']?(.*?)[\"']?[ \t]*$", re.MULTILINE)
_FRONT_REACH = 16_384


class MarkdownHandler:
    """Markdown, as it is written."""

    name = "markdown"

    def can_handle(self, kind: ContentKind, media_type: str) -> bool:  # noqa: ARG002 - any of them
        """Return whether this is Markdown."""
        return kind == "markdown"

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
        headings, fence = find_headings(chunk, fence, front.end() if front else 0)
        sections += len(headings)
        if not extracted.facts.title and headings:
            extracted.learn(title=headings[0].title)
        yield Part(chunk, headings=tuple(headings))
    extracted.learn(structure_info=f"{sections:,} headings" if sections else "")


def find_headings(text: str, fence: str = "", start: int = 0) -> tuple[list[Heading], str]:
    """Return the headings of ``text`` from ``start`` on, lines counted from 1, and the fence that is open at its end ("" if none).

    ``fence`` is the one that is open at its beginning: what stands inside of code is no heading.
    """
    headings: list[Heading] = []
    line, counted = 1, 0
    for mark in _MARK.finditer(text, start):
        if mark["fence"]:
            if not fence:
                fence = mark["fence"]
            elif mark["fence"].startswith(fence) and not mark["info"].strip():
                fence = ""
        elif not fence:
            line += text.count("\n", counted, mark.start())
            counted = mark.start()
            title, level = (
                (_without_closing(mark["title"]), len(mark["level"]))
                if mark["level"]
                else (mark["setext"], 1 if mark["line"][0] == "=" else 2)
            )
            headings.append(Heading(title, level, "lines", line))
    return headings, fence


def fence_for(text: str) -> str:
    """Return a fence that nothing within ``text`` closes (CommonMark 0.31, section 4.5): tildes where backticks would be many."""
    longest = {"`": 2, "~": 2}
    for run in _FENCE.finditer(text):
        longest[run[0][0]] = max(longest[run[0][0]], len(run[0]))
    mark = "~" if longest["`"] > max(longest["~"], _LONG_FENCE) else "`"
    return mark * (longest[mark] + 1)


def _without_closing(title: str) -> str:
    """Return the text of an ATX heading without the marks that may close it."""
    title = title.rstrip()
    closed = title.rstrip("#")
    return closed.rstrip() if closed.endswith((" ", "\t")) or not closed else title

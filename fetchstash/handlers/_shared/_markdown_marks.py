"""Headings and fences of Markdown."""

import re

from fetchstash.text.ranges import Heading

# ATX headings, fences and setext underlines (CommonMark 0.31, sections 4.2, 4.5 and 4.3).
_MARK = re.compile(
    r"^ {0,3}(?P<level>#{1,6})[ \t]+(?P<title>[^\n]*)$"
    r"|^ {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^\n`]*)$"
    r"|^(?P<setext>[^\s#>`~|*+-][^\n]*)\n {0,3}(?P<line>=+|-+)[ \t]*$",
    re.MULTILINE,
)
_FENCE = re.compile(r"`{3,}|~{3,}")
_LONG_FENCE = 16
MAX_HEADINGS = 10_000
"""Only hostile documents have more, and an outline shows far fewer."""


def find_headings(
    text: str, fence: str = "", start: int = 0, limit: int = MAX_HEADINGS
) -> tuple[list[Heading], str]:
    """Return the first ``limit`` headings of ``text``, and the fence that is open at its end.

    Lines count from 1. ``fence`` is open at the beginning ("": none is): a heading inside of code
    is none. The search begins at ``start``.
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
            if len(headings) >= limit:
                break
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
    """Return a fence that no line of ``text`` closes (CommonMark 0.31, section 4.5).

    It is of tildes if it would take many backticks.
    """
    longest = {"`": 2, "~": 2}
    for run in _FENCE.finditer(text):
        longest[run[0][0]] = max(longest[run[0][0]], len(run[0]))
    mark = "~" if longest["`"] > max(longest["~"], _LONG_FENCE) else "`"
    return mark * (longest[mark] + 1)


def _without_closing(title: str) -> str:
    """Return the text of an ATX heading without its closing marks."""
    title = title.rstrip()
    closed = title.rstrip("#")
    return closed.rstrip() if closed.endswith((" ", "\t")) or not closed else title

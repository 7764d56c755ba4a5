"""The prompt of a memory extractor, read as what it quotes: a conversation, in sections.

    [background extraction]
    Note what is worth remembering.

    [user]
    Read the manual.

    [assistant calls fetch]
    {"url":"https://a.example/"}

    [tool]
    ...

A text of the user's whose first line is the mark is such a prompt, and of the class
background_extraction: nobody said it, and what it quotes is bounded as the conversation itself
would be. The text before the first heading is the extractor's task, and stays.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

EXTRACTION_MARK = "[background extraction]"

Speaker = Literal["system", "user", "assistant", "tool"]

_HEADING = re.compile(
    r"^\[(system|user|assistant|tool)(?: calls ([^\]\n]{0,100}))?\]\n", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Section:
    """The text under a heading: ``text[start:end]`` of the prompt."""

    start: int
    end: int
    kind: Literal["text", "call", "result"]
    role: Speaker
    name: str = ""


def is_extraction(text: str) -> bool:
    """Return whether this is a prompt of a memory extractor: its first line is the mark."""
    return text.startswith(EXTRACTION_MARK) and text[len(EXTRACTION_MARK) :][:1] in {"", "\n"}


def sections(text: str) -> Iterator[Section]:
    """Yield the sections of a prompt in order, empty ones too: their numbers must not change."""
    headings = list(_HEADING.finditer(text))
    starts = [*(heading.start() for heading in headings), len(text)]
    for heading, end in zip(headings, starts[1:], strict=True):
        stop = heading.end() + len(text[heading.end() : end].rstrip("\n"))
        role, name = cast("Speaker", heading[1]), heading[2]
        yield Section(
            heading.end(),
            stop,
            "call" if name is not None else "result" if role == "tool" else "text",
            role,
            name or "",
        )

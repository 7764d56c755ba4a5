"""Read a page: what it is, its blocks, which of them are its content."""

from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from fetchstash.handlers._charset import decode
from fetchstash.handlers._html import (
    _blocks,
    _content,
    _drawn,
    _embedded,
    _media,
    _metadata,
    _safety,
    _tree,
    _verdict,
)
from fetchstash.handlers._html._blocks import HEADING, Block
from fetchstash.handlers._html._inline import Inline

MAX_SOURCE_BYTES = 4 * _safety.MAX_SOURCE_CHARS
FEW_CHARS = 600
"""Of content; only a page that shows no more may hold its text in data."""
MIN_DATA_CHARS, MIN_TIMES = 500, 4
"""Characters of a text in data, and how many times what the page shows; less is no text."""
LINKED_DATA = "JSON-LD"
_SHELLS = frozenset(("", "empty_shell", "no_text"))


@dataclass(frozen=True, slots=True)
class Reading:
    """A page and its content.

    ``blocks`` are those that the page shows, ``keep`` says which of them are its content.
    ``content`` are the same, or what was drawn of the data called ``data`` if the page shows
    nothing by itself; ``verdict`` is a key of PAGE_VERDICTS or "". ``playing`` is a line on a film
    or sound that scripts insert.
    """

    page: _tree.Page
    metadata: _metadata.Metadata
    blocks: list[Block]
    keep: list[bool]
    content: list[Block]
    verdict: str
    data: str
    playing: str
    base: str
    source_chars: int

    def inline(self) -> Inline:
        """Return a writer of links that are resolved against the page's address."""
        return Inline(self.base, self.source_chars // 2)


def load(source: Path, charset: str) -> _safety.Checked:
    """Return the source of a page, safe to parse."""
    with source.open("rb") as file:
        raw = file.read(MAX_SOURCE_BYTES)
        more = bool(file.read(1))
    checked = _safety.check(decode(raw, charset))
    return _safety.Checked(checked.source, checked.cut or more)


def read(source: str, url: str) -> Reading:
    """Read the source of a page that has passed the safety scan."""
    page = _tree.parse(source)
    metadata = _metadata.read(page)
    blocks = _blocks.cut(page)
    keep = _content.content(blocks, is_article=metadata.is_article)
    content = list(compress(blocks, keep))
    verdict = _verdict.verdict(_words(content), _words(blocks), page)
    name = ""
    shown = sum(len(block.words) for block in content)
    if (page.script_texts or page.json_ld) and verdict in _SHELLS and shown <= FEW_CHARS:
        name, drawn = _from_data(page, metadata.title)
        if sum(len(block.words) for block in drawn) >= max(MIN_DATA_CHARS, MIN_TIMES * shown):
            content, verdict, keep = drawn, "", [False] * len(blocks)
        else:
            name = ""
    playing = _media.describe(page.media, metadata.linked_data)
    base = _base(url, page, metadata)
    return Reading(page, metadata, blocks, keep, content, verdict, name, playing, base, len(source))


def embedded(page: _tree.Page) -> list[tuple[str, Any]]:
    """Return the data that a page brings along, with their names."""
    linked = [(LINKED_DATA, source) for source in page.json_ld]
    scripts = ((_embedded.is_data(attrs, text), text) for attrs, text in page.script_texts)
    return list(_embedded.values([*((name, text) for name, text in scripts if name), *linked]))


def _from_data(page: _tree.Page, title: str) -> tuple[str, list[Block]]:
    """Return the name and the blocks of those data of a page that hold the most text."""
    best_name, best, most = "", list[Block](), 0
    for name, value in embedded(page):
        blocks = _blocks.texts(_blocks.cut(_tree.Page(_drawn.drawn(value))))
        size = sum(len(block.words) for block in blocks)
        if size > most:
            best_name, best, most = name, blocks, size
    if best and title and all(block.level != 1 for block in best):
        best.insert(0, Block(HEADING, [title], page.body, (), title, level=1))
    return best_name, best


def _words(blocks: list[Block]) -> str:
    """Return the first texts of blocks, enough to recognise a page without content."""
    texts: list[str] = []
    size = 0
    for block in blocks:
        texts.append(block.words)
        size += len(block.words)
        if size > 4 * _verdict.MOST_CHARS:
            break
    return " ".join(texts)


def _base(url: str, page: _tree.Page, metadata: _metadata.Metadata) -> str:
    """Return the page's base address (HTML Standard, 4.2.3)."""
    try:
        return urljoin(url, page.base) if page.base else url or metadata.canonical
    except ValueError:
        return url

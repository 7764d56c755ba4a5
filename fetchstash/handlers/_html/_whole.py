"""Convert HTML that is all content: a chapter of a book, the body of a mail."""

from dataclasses import dataclass

from fetchstash.handlers._contract import Part
from fetchstash.handlers._html import _blocks, _markdown, _metadata, _safety, _tree
from fetchstash.handlers._html._inline import Inline


@dataclass(frozen=True, slots=True)
class Whole:
    """The Markdown of a piece of HTML.

    ``title`` is "" if there is none; ``hidden`` counts the hidden elements that were removed.
    """

    parts: tuple[Part, ...]
    title: str
    hidden: int


def whole(source: str, url: str = "") -> Whole:
    """Return ``source`` as Markdown without hidden text.

    Relative links are resolved against ``url``, and stay as they are without one.
    """
    checked = _safety.check(source)
    page = _tree.parse(checked.source)
    parts = _markdown.parts(_blocks.cut(page), Inline(url, len(checked.source) // 2))
    return Whole(tuple(parts), _metadata.read(page).title, page.hidden)

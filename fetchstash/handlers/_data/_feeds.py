"""RSS, Atom and sitemaps as lists: title, address, date and summary of each entry."""

import re
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path

from fetchstash.errors import NoText
from fetchstash.handlers._charset import read_text
from fetchstash.handlers._contract import Extracted, Hints, Part
from fetchstash.handlers._data._xml import XmlHandler
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._shared._xml import XmlRepair, attribute, counted, walk

_MEDIA_TYPES = {
    "application/rss+xml": "RSS feed",
    "application/atom+xml": "Atom feed",
    "application/x-sitemap+xml": "sitemap",
}
_SUMMARY_CHARS = 500

# The role of each element in an entry: RSS 2.0, RFC 4287 (Atom), RSS 1.0 with Dublin Core,
# sitemaps.org 0.9.
_ENTRIES = frozenset(("item", "entry", "url", "sitemap"))
_TEXTS = {
    "title": "title", "link": "link", "loc": "link", "description": "summary", "summary": "summary",
    "encoded": "content", "content": "content", "pubDate": "date", "date": "date",
    "published": "date", "updated": "updated", "lastmod": "date", "creator": "author",
    "name": "author", "author": "author", "language": "language",
}  # fmt: skip
_TAG = re.compile(r"<[^<>]*>")


class FeedHandler(XmlHandler):
    """Reads feeds and sitemaps; a path names elements, as in any XML."""

    name = "feed"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - all entries are kept
        """Return one list item for each entry, under the title of the feed."""
        return Extracted.of(lambda extracted: _parts(source, hints, extracted))


def _parts(source: Path, hints: Hints, extracted: Extracted) -> Iterator[Part]:
    """Yield the entries up to the first damage that cannot be repaired."""
    reader, repair = _Reader(), XmlRepair()
    chunks = (chunk.encode() for chunk in repair(read_text(source, hints.charset)))
    try:
        for _ in walk(chunks, reader, encoding="utf-8"):
            yield from reader.ready(extracted)
    except NoText:
        yield from reader.ready(extracted)
        raise
    finally:
        kind = _MEDIA_TYPES.get(hints.media_type, "feed")
        size = f"{kind} of {counted(reader.count, 'entry', 'entries')}"
        extracted.learn(structure_info="; ".join(filter(None, (size, repair.summary()))))


def _item(entry: Mapping[str, str]) -> str:
    link, title = entry.get("link", ""), entry.get("title", "")
    name = f"[{title}]({link})" if title and link else title or link or "(no title)"
    facts = (entry.get("date") or entry.get("updated"), entry.get("author"))
    line = " · ".join(filter(None, (f"- {name}", *facts)))
    summary = entry.get("summary") or entry.get("content", "")
    return f"{line}\n" + (f"  {summary}\n" if summary and summary != title else "")


class _Reader:
    """Collects complete entries and the facts of the feed."""

    def __init__(self) -> None:
        self.count = 0
        self._feed: dict[str, str] = {}
        self._entries: list[dict[str, str]] = []
        self._entry: dict[str, str] | None = None
        self._depth = self._entry_depth = 0
        self._texts: list[str] = []

    def ready(self, extracted: Extracted) -> Iterator[Part]:
        """Yield the entries since the last call; before the first, the title of the feed."""
        if not self._entries:
            return
        if not self.count:
            title, summary = self._feed.get("title", ""), self._feed.get("summary", "")
            extracted.learn(title=title, language=self._feed.get("language", ""))
            if title or summary:
                yield Part(f"{' — '.join(filter(None, (title, summary)))}\n\n")
        self.count += len(self._entries)
        yield Part("".join(map(_item, self._entries)))
        self._entries.clear()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Begin an entry, or take the link of an Atom entry (RFC 4287, section 4.2.7)."""
        self._depth += 1
        self._texts = []
        if self._entry is None and name in _ENTRIES:
            self._entry, self._entry_depth = {}, self._depth
        elif (
            name == "link"
            and (href := attribute(attributes, "href"))
            and attribute(attributes, "rel") in {"", "alternate"}
        ):
            self._into().setdefault("link", href)

    def end(self, name: str) -> None:
        """Keep the text of an element, or end the entry."""
        if self._entry is not None and self._depth == self._entry_depth:
            self._entries.append(self._entry)
            self._entry = None
        elif name in _TEXTS and (text := _plain("".join(self._texts))):
            self._into().setdefault(_TEXTS[name], text)
        self._depth -= 1
        self._texts = []

    def text(self, data: str) -> None:
        """Take text of the innermost element."""
        self._texts.append(data)

    def _into(self) -> dict[str, str]:
        return self._feed if self._entry is None else self._entry


def _plain(text: str) -> str:
    """Return the text of a value, which may be escaped HTML, on one line and bounded."""
    plain = " ".join(unescape(_TAG.sub(" ", unescape(text) if "&lt;" in text else text)).split())
    return (
        plain if len(plain) <= _SUMMARY_CHARS else f"{plain[:_SUMMARY_CHARS].rsplit(' ', 1)[0]} …"
    )

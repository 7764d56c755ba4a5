"""RSS, Atom and sitemaps as lists: title, address and date of each entry, with its summary where there is one."""

import re
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path

from fetchstash.handlers._contract import Extracted, ExtractLimits, Hints, Part
from fetchstash.handlers._data._xml import XmlHandler
from fetchstash.handlers._shared._xml_events import attribute, walk

_MEDIA_TYPES = {
    "application/rss+xml": "RSS feed",
    "application/atom+xml": "Atom feed",
    "application/x-sitemap+xml": "sitemap",
}
_CHUNK_BYTES = 64 * 1024
_SUMMARY_CHARS = 500

# Elements by their part in an entry: RSS 2.0, RFC 4287 (Atom), RSS 1.0 with Dublin Core,
# sitemaps.org 0.9.
_ENTRIES = frozenset(("item", "entry", "url", "sitemap"))
_TEXTS = {
    "title": "title", "link": "link", "loc": "link", "description": "summary", "summary": "summary", "encoded": "content",
    "content": "content", "pubDate": "date", "date": "date", "published": "date", "updated": "updated", "lastmod": "date",
    "creator": "author", "name": "author", "author": "author", "language": "language",
}  # fmt: skip
_TAG = re.compile(r"<[^<>]*>")


class FeedHandler(XmlHandler):
    """Reads what is a list of addresses in XML; a path names its elements, as in any XML."""

    name = "feed"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - all entries are kept
        """Return one list item for each entry, under the feed's own title."""
        extracted = Extracted(None)
        extracted.parts = _parts(source, _MEDIA_TYPES.get(hints.media_type, "feed"), extracted)
        return extracted


def _parts(source: Path, what: str, extracted: Extracted) -> Iterator[Part]:
    reader = _Reader()
    entries = 0
    with source.open("rb") as file:
        for _ in walk(iter(lambda: file.read(_CHUNK_BYTES), b""), reader):
            if reader.entries:
                if not entries:
                    extracted.learn(
                        title=reader.feed.get("title", ""), language=reader.feed.get("language", "")
                    )
                    yield from _head(reader.feed)
                entries += len(reader.entries)
                yield Part("".join(map(_item, reader.entries)))
                reader.entries = []
    extracted.learn(
        structure_info=f"{what} of {entries:,} {'entry' if entries == 1 else 'entries'}"
    )


def _head(feed: Mapping[str, str]) -> Iterator[Part]:
    title = " — ".join(filter(None, (feed.get("title", ""), feed.get("summary", ""))))
    if title:
        yield Part(f"{title}\n\n")


def _item(entry: Mapping[str, str]) -> str:
    link, title = entry.get("link", ""), entry.get("title", "")
    name = f"[{title}]({link})" if title and link else title or link or "(no title)"
    facts = "".join(
        f" · {fact}"
        for fact in (entry.get("date") or entry.get("updated"), entry.get("author"))
        if fact
    )
    summary = entry.get("summary") or entry.get("content", "")
    return f"- {name}{facts}\n" + (f"  {summary}\n" if summary and summary != title else "")


class _Reader:
    """Collects the entries that have ended, and what the feed says of itself."""

    def __init__(self) -> None:
        self.feed: dict[str, str] = {}
        self.entries: list[dict[str, str]] = []
        self._entry: dict[str, str] | None = None
        self._depth = 0
        self._entry_depth = 0
        self._texts: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Open an entry, or take the link of an Atom entry, which is an attribute (RFC 4287, section 4.2.7)."""
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
        """Keep the text of an element, and close the entry."""
        if self._entry is not None and self._depth == self._entry_depth:
            self.entries.append(self._entry)
            self._entry = None
        elif name in _TEXTS and (text := _plain("".join(self._texts))):
            self._into().setdefault(_TEXTS[name], text)
        self._depth -= 1
        self._texts = []

    def text(self, data: str) -> None:
        """Take character data of the innermost element."""
        self._texts.append(data)

    def _into(self) -> dict[str, str]:
        return self.feed if self._entry is None else self._entry


def _plain(text: str) -> str:
    """Return the text of a value that may be HTML, escaped once or twice, on one line and of a bounded length."""
    plain = " ".join(unescape(_TAG.sub(" ", unescape(text) if "&lt;" in text else text)).split())
    return (
        plain if len(plain) <= _SUMMARY_CHARS else f"{plain[:_SUMMARY_CHARS].rsplit(' ', 1)[0]} …"
    )

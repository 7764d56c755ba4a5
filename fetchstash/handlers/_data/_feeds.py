"""Read RSS, Atom, JSON Feed and sitemaps as lists of entries, each with its whole text as Markdown.

Of several texts of an entry (``content:encoded``, ``content``, ``description``) the longest is
read: a description is the beginning of the content, or all there is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape, unescape
from pathlib import Path
from textwrap import indent
from typing import Any

from fetchstash.errors import NoText
from fetchstash.handlers._charset import decode, read_text
from fetchstash.handlers._contract import Extracted, Hints, Part
from fetchstash.handlers._data import DataReason, _json_values
from fetchstash.handlers._data._json import JsonHandler
from fetchstash.handlers._data._xml import XmlHandler
from fetchstash.handlers._dates import moment
from fetchstash.handlers._leads import absolute
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._parts import Reading
from fetchstash.handlers._xml import XmlReader, XmlRepair, attribute, walk
from fetchstash.text import clip, counted
from fetchstash.text.untyped import as_objects, is_array, is_object

MAX_ENTRY_CHARS = 1_000_000
"""Characters of one text of an entry, as it stands in the feed. What is cut is said."""
MAX_LINKS = 50  # enclosures and other links of an entry
LINE_CHARS = 500  # of a title, a name, a date
MAX_JSON_BYTES = 64 * 2**20

_FEEDS = {
    "application/rss+xml": "RSS feed",
    "application/atom+xml": "Atom feed",
    "application/x-sitemap+xml": "sitemap",
    "application/feed+json": "JSON Feed",
}
# The role of each element of an entry: RSS 2.0, RFC 4287 (Atom), RSS 1.0 with Dublin Core, Media
# RSS, iTunes, sitemaps.org 0.9.
_ENTRIES = frozenset(("item", "entry", "url", "sitemap"))
_TEXTS = frozenset(("description", "summary", "encoded", "content", "subtitle", "tagline"))
_LINES = {
    "title": "title",
    "link": "link",
    "loc": "link",
    "guid": "id",
    "id": "id",
    "pubDate": "date",
    "date": "date",
    "issued": "date",
    "published": "date",
    "lastmod": "date",
    "updated": "updated",
    "modified": "updated",
    "lastBuildDate": "updated",
    "creator": "author",
    "name": "author",
    "author": "author",
    "managingEditor": "author",
    "language": "language",
    "comments": "comments",
}
_CITED = frozenset(("source", "contributor", "image", "textInput", "textinput"))
"""Elements with titles and names that are not the entry's own."""
_OTHER_LINKS = frozenset(("related", "via", "replies"))  # of Atom, beside the entry's own
_TAG = re.compile(r"<[^<>]*>")
_IS_HTML = re.compile(r"<(?:/?[a-zA-Z][\w:-]*(?=[\s/>])|!--)|&(?:#\w{1,8}|[A-Za-z]\w{1,30});")
_TAGS_OF_TEXT = re.compile(
    r"</?(?:p|div|br|a|img|ul|ol|li|h[1-6]|em|strong|b|i|blockquote|pre|code|span|table)\b",
    re.IGNORECASE,
)
_VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "wbr"))
_ADDRESS = re.compile(r"https?://\S+")


@dataclass(slots=True)
class Text:
    """One text of an entry; ``cut`` counts the characters beyond the limit."""

    source: str
    is_html: bool
    cut: int = 0

    @property
    def size(self) -> tuple[int, int]:
        """How many characters there are to read, and with the markup."""
        plain = _TAG.sub(" ", self.source) if self.is_html else self.source
        return len(" ".join(plain.split())) + self.cut, len(self.source)


@dataclass(slots=True)
class Entry:
    """An entry, or the head of a feed. ``lines`` are its short values by role."""

    lines: dict[str, str] = field(default_factory=dict[str, str])
    texts: list[Text] = field(default_factory=list[Text])
    links: dict[str, str] = field(default_factory=dict[str, str])
    base: str = ""

    def learn(self, role: str, value: str) -> None:
        """Keep the first value of a role, on one line and bounded."""
        if line := _on_a_line(value):
            self.lines.setdefault(role, line)

    def add_link(self, address: str, label: str) -> None:
        """Add an enclosure or another link; the first label of an address stays."""
        if address and len(self.links) < MAX_LINKS:
            self.links.setdefault(address, label)


def _address(reference: str, base: str) -> str:
    """Return where a reference leads, and the reference itself where that is no web address.

    What states no base is below the address it came from (RFC 3986, section 5.1.3).
    """
    return absolute(base, reference) or reference


def _on_a_line(text: str) -> str:
    plain = unescape(text) if "&" in text else text
    line = " ".join((_TAG.sub(" ", plain) if "<" in plain else plain).split())
    return line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS].rsplit(' ', 1)[0]} …"


class Writer:
    """Writes the entries of one feed, and collects facts that are not in its text."""

    def __init__(self, hints: Hints, path: str, first: int = 1) -> None:
        self._hints = hints
        self._path = path
        self._first = first  # the number of the first entry in its path
        self.count = 0
        self.hidden = 0
        self.is_cut = False

    def entry(self, entry: Entry) -> str:
        """Return an entry as an item of a list, with its text, enclosures and links below."""
        self.count += 1
        lines = entry.lines
        title, link = lines.get("title", ""), lines.get("link", "")
        if not link and _ADDRESS.fullmatch(lines.get("id", "")):
            link = lines["id"]
        base = entry.base or self._hints.url
        link = _address(link, base)
        name = f"[{title}]({link})" if title and link else title or link
        date, updated = lines.get("date", ""), lines.get("updated", "")
        dates = (
            date or updated,
            f"updated {updated}" if date and updated not in {"", date} else "",
        )
        body = self.body(entry, link)
        if not name:
            name = "(no title)"
        line = " · ".join(filter(None, (f"- {name}", *dates, lines.get("author"))))
        if comments := lines.get("comments"):
            entry.add_link(comments, "Comments")
        below = [body] if body and body != title else []
        links = dict[str, str]()
        for reference, label in entry.links.items():
            links.setdefault(_address(reference, base), label)
        below += [f"[{label}]({address})" for address, label in links.items() if address != link]
        if "\n" not in body:
            return "".join(f"{text}\n" for text in (line, *(f"  {text}" for text in below)))
        inside = indent("\n\n".join(below), "  ")
        return f"{line}\n\n{inside}\n\n"

    def body(self, entry: Entry, link: str = "") -> str:
        """Return the longest text of an entry as Markdown."""
        if not entry.texts:
            return ""
        best = max(entry.texts, key=lambda text: text.size)
        if best.is_html:
            body = self._markdown(best.source, entry.base or link or self._hints.url)
        else:
            rows = (" ".join(row.split()) for row in best.source.strip().split("\n"))
            body = re.sub(r"\n{3,}", "\n\n", "\n".join(rows))
        if best.cut:
            self.is_cut = True
            path = self._path.format(self.count - 1 + self._first)
            body += f'\n\n… {counted(best.cut, "more character")}: path="{path}"'
        return body

    def _markdown(self, source: str, base: str) -> str:
        from fetchstash.handlers._html._reading import whole  # noqa: PLC0415 - the HTML parser

        page = whole(source, base)
        self.hidden += page.hidden
        return "".join(part.text for part in page.parts).strip("\n")

    def learn(self, extracted: Extracted, head: Entry) -> None:
        """Add what the head of the feed says to the facts."""
        lines = head.lines
        extracted.learn(
            title=lines.get("title", ""),
            language=lines.get("language", ""),
            author=lines.get("author", ""),
            modified=moment(lines.get("updated") or lines.get("date", "")),
            next_url=lines.get("next", ""),
        )

    def finish(self, extracted: Reading, repaired: str = "") -> None:
        """Add the facts that are known at the end."""
        kind = _FEEDS.get(extracted.hints.media_type, "feed")
        size = f"{kind} of {counted(self.count, 'entry', 'entries')}"
        extracted.learn(
            structure_info="; ".join(filter(None, (size, repaired))), hidden_removed=self.hidden
        )
        if self.is_cut:
            extracted.learn(extraction_truncated=True)
            if not extracted.cause:
                extracted.fail(DataReason.LONG_ENTRY.cause(limit=MAX_ENTRY_CHARS))

    def head(self, head: Entry) -> str:
        """Return the title of the feed and its description."""
        text = _on_a_line(self.body(head))
        return " — ".join(filter(None, (head.lines.get("title", ""), text)))


class FeedHandler(XmlHandler):
    """Reads feeds and sitemaps; a path names elements, as in any XML."""

    name = "feed"

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield a list item for each entry, under the title of the feed.

        Raises NoText behind the entries up to damage that cannot be repaired.
        """
        hints, repair = extracted.hints, XmlRepair()
        is_atom = hints.media_type == "application/atom+xml"
        writer = Writer(hints, "//entry[{}]" if is_atom else "//item[{}]")
        reader = _FeedReader(hints.url)
        chunks = (chunk.encode() for chunk in repair(read_text(source, hints.charset)))
        try:
            for _ in walk(chunks, reader, encoding="utf-8"):
                yield from reader.ready(extracted, writer)
        except NoText:
            yield from reader.ready(extracted, writer)
            raise
        finally:
            writer.finish(extracted, repair.summary())


class _FeedReader(XmlReader):
    """Collects complete entries and the facts of the feed, which came from ``url``."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._feed = Entry()
        self._has_head = False
        self._entries: list[Entry] = []
        self._entry: Entry | None = None
        self._depth = self._entry_depth = 0
        self._open: list[str] = []  # the elements around, inside of the entry or the feed
        self._pieces: list[str] = []
        self._room = MAX_ENTRY_CHARS
        self._cut = 0
        self._kind = ""  # the type that the open text states
        self._text_depth = 0  # of the open text; its own elements are markup
        self._is_markup = False

    def ready(self, extracted: Extracted, writer: Writer) -> Iterator[Part]:
        """Yield the entries since the last call; before the first, the title of the feed."""
        if not self._entries:
            return
        if not self._has_head:
            self._has_head = True
            writer.learn(extracted, self._feed)
            if head := writer.head(self._feed):
                yield Part(f"{head}\n\n")
        for entry in self._entries:
            yield Part(writer.entry(entry))
        self._entries.clear()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Begin an entry or a text, or take a link or an enclosure."""
        self._depth += 1
        if self._text_depth:
            if not self._is_markup:
                self._is_markup = True
                self._pieces = [escape(piece, quote=False) for piece in self._pieces]
            self._add(_start_tag(name, attributes))
            return
        self._open.append(name)
        self._begin()
        base = attribute(attributes, "base")
        if self._entry is None and name in _ENTRIES:
            self._entry, self._entry_depth = Entry(base=self._feed.base), self._depth
        into = self._into()
        into.base = absolute(into.base or self._url, base) or into.base
        if name == "link":
            self._take_link(into, attributes)
        elif name == "enclosure" or (name == "content" and attribute(attributes, "url")):
            _add_enclosure(into, attributes, "url")
        elif name in _TEXTS:
            self._kind = attribute(attributes, "type").lower()
            if attribute(attributes, "src"):  # Atom, section 4.1.3.2
                into.add_link(attribute(attributes, "src"), "Content")
            self._text_depth = self._depth
        elif name == "title" and attribute(attributes, "type").lower() == "xhtml":
            self._text_depth = self._depth  # RFC 4287, section 3.1.1.3

    def end(self, name: str) -> None:
        """Keep the text of an element, or end the entry."""
        if self._text_depth and self._depth > self._text_depth:
            self._add("" if name in _VOID else f"</{name}>")
            self._depth -= 1
            return
        if self._entry is not None and self._depth == self._entry_depth:
            self._entries.append(self._entry)
            self._entry = None
        elif text := "".join(self._pieces).strip():
            self._keep(name, text)
        self._open.pop()
        self._depth -= 1
        self._begin()

    def text(self, data: str) -> None:
        """Take text of the innermost element."""
        self._add(escape(data, quote=False) if self._is_markup else data)

    def _begin(self) -> None:
        self._pieces, self._room, self._cut = [], MAX_ENTRY_CHARS, 0
        self._kind, self._text_depth, self._is_markup = "", 0, False

    def _add(self, piece: str) -> None:
        kept = piece[: max(self._room, 0)]
        self._room -= len(kept)
        self._cut += len(piece) - len(kept)
        if kept:
            self._pieces.append(kept)

    def _into(self) -> Entry:
        return self._feed if self._entry is None else self._entry

    def _keep(self, name: str, text: str) -> None:
        """Keep the text of the element that ends: of an entry's own, not of what it cites."""
        if not _CITED.isdisjoint(self._open[:-1]):
            return
        into = self._into()
        if name in _TEXTS:
            kind = "xhtml" if self._is_markup else self._kind
            if "/" not in kind or kind.startswith("text/") or kind.endswith("xml"):
                into.texts.append(Text(text, _is_html(name, kind, text), self._cut))
        elif name in _LINES:
            into.learn(_LINES[name], text)

    def _take_link(self, into: Entry, attributes: Mapping[str, str]) -> None:
        """Take a link of Atom (RFC 4287, section 4.2.7; RFC 5005 for the next page)."""
        href = attribute(attributes, "href")
        address = _address(href, into.base or self._url)
        relation = attribute(attributes, "rel")
        if not href:
            return
        if relation in {"", "alternate"}:
            into.lines.setdefault("link", address)
        elif relation == "enclosure":
            _add_enclosure(into, attributes, "href")
        elif relation == "next" and self._entry is None:
            into.lines.setdefault("next", address)
        elif relation in _OTHER_LINKS and self._entry is not None:
            into.add_link(address, relation.capitalize())


def _start_tag(name: str, attributes: Mapping[str, str]) -> str:
    values = (
        f' {key}="{escape(value)}"'
        for key, value in attributes.items()
        if not key.startswith("xml")
    )
    return f"<{name}{''.join(values)}>"


def _is_html(name: str, kind: str, text: str) -> bool:
    """Return whether a text is markup. Atom states it; in RSS the text itself tells."""
    if kind:
        return kind in {"html", "xhtml", "text/html", "application/xhtml+xml"}
    return bool((_IS_HTML if name in {"description", "encoded"} else _TAGS_OF_TEXT).search(text))


def _add_enclosure(into: Entry, attributes: Mapping[str, str], address: str) -> None:
    """Add a file that belongs to an entry (RSS 2.0, Atom, Media RSS)."""
    size = attribute(attributes, "length") or attribute(attributes, "fileSize")
    kind = attribute(attributes, "type") or attribute(attributes, "medium")
    into.add_link(attribute(attributes, address), _enclosure(kind, size))


def _enclosure(kind: str, size: str) -> str:
    length = counted(int(size), "byte") if size.isdecimal() and 0 < len(size) < 16 else ""
    length = "" if length == "0 bytes" else length
    return f"Enclosure: {', '.join(filter(None, (clip(kind, 60), length)))}".rstrip(": ")


class JsonFeedHandler(JsonHandler):
    """Reads JSON Feed (jsonfeed.org, version 1.1); a path names values, as in any JSON."""

    name = "jsonfeed"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return a list item for each entry; what is no feed, or too large, as any JSON."""
        if source.stat().st_size <= MAX_JSON_BYTES:
            with suppress(ValueError, RecursionError, MemoryError):
                feed = _json_values.read(decode(source.read_bytes(), hints.charset))
                if is_object(feed) and is_array(feed.get("items")):
                    extracted = Reading(None, hints=hints, limits=limits)
                    extracted.parts = self._entries(feed, extracted)
                    return extracted
        return super().extract(source, hints, limits)

    def _entries(self, feed: dict[str, Any], extracted: Reading) -> Iterator[Part]:
        writer = Writer(extracted.hints, "/items/{}", first=0)
        head = _json_entry(feed)
        head.lines |= {"next": _word(feed.get("next_url"))}
        writer.learn(extracted, head)
        if title := writer.head(head):
            yield Part(f"{title}\n\n")
        try:
            for item in as_objects(feed.get("items")):
                yield Part(writer.entry(_json_entry(item)))
        finally:
            writer.finish(extracted)


def _word(value: Any) -> str:
    return str(value) if isinstance(value, (str, int)) else ""


def _json_entry(item: dict[str, Any]) -> Entry:
    entry = Entry()
    authors = [*as_objects(item.get("authors")), *as_objects([item.get("author")])]
    lines = {
        "title": item.get("title"),
        "link": item.get("url") or item.get("home_page_url"),
        "id": item.get("id"),
        "date": item.get("date_published"),
        "updated": item.get("date_modified"),
        "language": item.get("language"),
        "author": ", ".join(filter(None, (_word(author.get("name")) for author in authors[:10]))),
    }
    for role, value in lines.items():
        entry.learn(role, _word(value))
    texts: Iterable[tuple[str, bool]] = (
        ("content_html", True),
        ("content_text", False),
        ("summary", False),
        ("description", False),
    )
    for name, is_html in texts:
        if text := _word(item.get(name)).strip():
            kept = text[:MAX_ENTRY_CHARS]
            entry.texts.append(Text(kept, is_html, len(text) - len(kept)))
    for file in as_objects(item.get("attachments")):
        label = _enclosure(_word(file.get("mime_type")), _word(file.get("size_in_bytes")))
        entry.add_link(_word(file.get("url")), label)
    entry.add_link(_word(item.get("external_url")), "Related")
    entry.add_link(_word(item.get("image")), "Image")
    return entry

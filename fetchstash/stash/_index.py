"""The index of a site, which is an artifact's text, and the lists that name its pages."""

import gzip
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

from fetchstash.errors import FetchstashError
from fetchstash.fetch import mask_url
from fetchstash.handlers import PageLinks, page_links
from fetchstash.store import Facts
from fetchstash.text import clip, counted
from fetchstash.text.hygiene import clean_line
from fetchstash.text.ranges import Heading
from fetchstash.text.urls import is_below, normal_url

MOST_KNOWN = 10_000
"""Addresses of one site: pages, failures and what waits."""
MOST_SITEMAPS = 50
_SITEMAP_BYTES, _SITEMAP_ADDRESSES = 50 * 2**20, 50_000
_CHUNK = 2**20
# Bounded: however much blank space a hostile one has, a place costs a few thousand steps.
_LOC = re.compile(
    rb"<(?:(?!image:|video:)[\w-]{1,20}:)?loc\s{0,100}>\s{0,500}(?:<!\[CDATA\[\s{0,500})?"
    rb"([^<>\s\]]{1,2000})\s{0,500}(?:\]\]>\s{0,500})?<"
)
_LINE = re.compile(rb"^(https?://\S{1,2000})[^\S\n]{0,500}$", re.MULTILINE)
_EXTENSION = re.compile(r"\.[A-Za-z]{2,5}\Z")
_PAGES, _FAILED, _WAITING = "Pages", "Failed", "Not fetched yet"
# Titles and addresses are the site's words: they stand behind what is read back here, on one line.
_PAGE = re.compile(r"- (art_[a-z2-7]{26}) (\d+) chars (\S+) ?(.*)")
_FAILURE = re.compile(r"- (\S+) \[(\w+)(?: (\d+))?\] (.*)")
LINKS_BESIDE = "links beside: "
"""Begins the note of a site of one page, which links to pages beside it; their count follows."""
_BY, _CUT = "pages by ", "more addresses than are kept"
_PASSING = frozenset({"timeout", "fetch_failed", "busy"})


def prefix_of(url: str) -> str:
    """Return the address below which the pages of a site lie: that of its folder, ending in "/".

    A last part with the extension of a file is none of the folder: /guide/ of /guide/index.html.
    """
    path = url.partition("?")[0]
    if path.endswith("/"):
        return path
    folder, _, last = path.rpartition("/")
    return f"{folder}/" if _EXTENSION.search(last) else f"{path}/"


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its artifact, the characters of its text, its address and its title."""

    ref: str
    chars: int
    url: str
    title: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Why an address gave no page: the code of an error, the status of the answer, and a clause."""

    code: str
    status: int
    reason: str

    @classmethod
    def of(cls, error: FetchstashError) -> "Failed":
        """Return the entry of an index for an error."""
        reason = clip(clean_line(error.what).removesuffix("."), 160)
        return cls(error.code, int(error.details.get("status", 0)), reason)

    @property
    def is_passing(self) -> bool:
        """Whether the same address may give a page later."""
        return self.code in _PASSING or self.status >= 500 or self.status == 429


@dataclass(slots=True)
class Index:
    """The pages of a site below ``prefix`` by address, and the state of fetching it.

    ``source`` says what named them ("": nobody was asked yet). ``is_cut``: the site names more
    addresses than are looked at, or than MOST_KNOWN. ``names`` are all addresses of a listed page,
    ``sitemaps`` those that robots.txt names. ``order`` numbers the addresses as they
    were found: pages are listed so, whichever came first.
    """

    prefix: str
    begun: datetime
    source: str = ""
    is_cut: bool = False
    pages: dict[str, Page] = field(default_factory=dict[str, Page])
    failed: dict[str, Failed] = field(default_factory=dict[str, Failed])
    waiting: dict[str, None] = field(default_factory=dict[str, None])
    names: dict[str, Page] = field(default_factory=dict[str, Page])
    sitemaps: tuple[str, ...] = ()
    order: dict[str, int] = field(default_factory=dict[str, int])
    beside: int = 0

    @property
    def evidence(self) -> tuple[str, ...]:
        """Return the sources of the page list, and whether they named too many, as facts."""
        by = (f"{_BY}{self.source}",) if self.source else ()
        alone = len(self.pages) == 1 and self.beside > 0 and not self.is_due
        beside = (f"{LINKS_BESIDE}{self.beside}",) if alone else ()
        return (*by, *beside, *((_CUT,) if self.is_cut else ()))

    @property
    def is_due(self) -> bool:
        """Whether there is something left to fetch."""
        return bool(
            not self.source or self.waiting or any(f.is_passing for f in self.failed.values())
        )

    @property
    def count(self) -> int:
        """How many addresses are known."""
        return len(self.pages) + len(self.failed) + len(self.waiting)

    @property
    def summary(self) -> str:
        """The numbers of pages, failures and addresses that wait."""
        failures = sum(failed.code != "duplicate" for failed in self.failed.values())
        parts = [f"{counted(len(self.pages), 'page')} by {self.source or 'links'}"]
        parts += [f"{failures:,} failed"] if failures else []
        parts += [f"{len(self.waiting):,} not fetched yet"] if self.waiting else []
        if self.is_cut:
            parts.append(f"the site names more than the {MOST_KNOWN:,} addresses that are kept")
        return ", ".join(parts)

    def knows(self, url: str) -> bool:
        """Return whether an address is listed, failed or waits."""
        return url in self.names or url in self.failed or url in self.waiting

    def same_as(self, names: Iterable[str]) -> Page | None:
        """Return the page that is listed under one of these addresses."""
        return next((self.names[name] for name in names if name in self.names), None)

    def snapshot(self) -> "Index":
        """Return the index as it is now, for a thread: this one may change meanwhile."""
        return replace(
            self,
            pages=dict(self.pages),
            failed=dict(self.failed),
            waiting=dict(self.waiting),
            order=dict(self.order),
        )

    def wait(self, url: str) -> None:
        """Add an address to those that wait to be fetched."""
        self.waiting[url] = None
        self.order.setdefault(url, len(self.order))

    def add(self, page: Page, names: Iterable[str]) -> None:
        """List a page, which is known under all of ``names``."""
        self.pages[page.url] = page
        self.order.setdefault(page.url, len(self.order))
        for name in names:
            self.names[name] = page
            self.waiting.pop(name, None)

    def fail(self, url: str, failed: Failed) -> None:
        """Record why an address gave no page."""
        self.waiting.pop(url, None)
        self.failed[url] = failed

    def retry(self) -> None:
        """Queue the failed addresses again that may work now."""
        for url in [url for url, failed in self.failed.items() if failed.is_passing]:
            del self.failed[url]
            self.wait(url)

    def text(self) -> tuple[str, tuple[Heading, ...]]:
        """Return the index as Markdown, with its outline."""
        lines = [f"# Pages of {self.prefix}", ""]
        pages = sorted(self.pages.values(), key=lambda page: self.order[page.url])
        sections = {
            _PAGES: [f"{p.ref} {p.chars} chars {p.url} {p.title}" for p in pages],
            _FAILED: [_printed(url, failed) for url, failed in self.failed.items()],
            _WAITING: list(self.waiting),
        }
        outline: list[Heading] = []
        for title, items in sections.items():
            if items:
                outline.append(Heading(title, 1, "lines", len(lines) + 1))
                lines += [f"## {title}", "", *(f"- {item}".rstrip() for item in items), ""]
        return "\n".join(lines), tuple(outline)

    @classmethod
    def read(cls, text: str, facts: Facts) -> "Index":
        """Parse the output of ``text``, and the facts of its artifact."""
        assert facts.validated_at is not None  # when it was begun
        notes = facts.evidence
        source = next((note.removeprefix(_BY) for note in notes if note.startswith(_BY)), "")
        index = cls(facts.site_prefix, facts.validated_at, source, _CUT in notes)
        lines = text.split("\n")
        section = ""
        for line in lines:
            if line.startswith("## "):
                section = line[3:]
            elif section == _PAGES and (found := _PAGE.fullmatch(line)):
                index.add(Page(found[1], int(found[2]), found[3], found[4]), [found[3]])
            elif section == _FAILED and (found := _FAILURE.fullmatch(line)):
                index.failed[found[1]] = Failed(found[2], int(found[3] or 0), found[4])
            elif section == _WAITING and line.startswith("- "):
                index.wait(line[2:])
        return index


def _printed(url: str, failed: Failed) -> str:
    status = f" {failed.status}" if failed.status else ""
    return f"{url} [{failed.code}{status}] {failed.reason}"


# Files that are no pages: pictures, films, sounds, archives, programs, and what pages are made of.
_NO_PAGE = re.compile(
    r"\.(?:png|jpe?g|gif|webp|svg|ico|bmp|tiff?|mp[34]|m4[av]|webm|ogg|wav|avi|mov|zip|gz|bz2|xz|tar|"
    r"tgz|7z|rar|whl|exe|dmg|deb|rpm|iso|jar|css|js|mjs|map|woff2?|ttf|otf|eot|inv)\Z",
    re.IGNORECASE,
)


def links_below(source: Path, facts: Facts, prefix: str) -> PageLinks:
    """Return the pages below ``prefix`` that a document links to, and its canonical address.

    The address of the site itself is no canonical address of another page: sites that name it on
    every page are frequent. Blocking: to read one address takes 70 µs, and a page has 10,000.
    """
    links = page_links(source, facts.content_kind, facts.charset, facts.final_url)
    canonical = normal_url(links.canonical)
    own = canonical if is_below(canonical, prefix) and canonical != prefix else ""
    below = (url for url in map(normal_url, links.addresses) if is_below(url, prefix))
    pages = (url for url in below if not _NO_PAGE.search(url.partition("?")[0]))
    found = tuple(url for url in pages if mask_url(url) == url)
    return PageLinks(own, found, links.has_more, _beside(prefix, links.addresses))


def _beside(prefix: str, addresses: Iterable[str]) -> int:
    """Return how many addresses lie in the folder above a site, and not below it."""
    above = parent_of(prefix)
    named = (url.partition("#")[0] for url in addresses if url.startswith(above)) if above else ()
    return len({url for url in named if not is_below(url, prefix)})


def parent_of(prefix: str) -> str:
    """Return the address of the folder that a site's folder lies in, "" for the root of a host."""
    above = prefix.removesuffix("/").rpartition("/")[0] + "/"
    return above if above.count("/") > 2 else ""


@dataclass(frozen=True, slots=True)
class Sitemap:
    """The addresses in a sitemap: of pages, or if it ``is_index`` of other sitemaps.

    ``has_more``: there are more of them than were read.
    """

    is_index: bool
    addresses: tuple[str, ...]
    has_more: bool


def read_sitemap(path: Path, prefix: str) -> Sitemap:
    """Return the addresses in a sitemap: of pages below ``prefix``, or of sitemaps of its origin.

    It is searched for its <loc> elements and never parsed, so that there is no entity to expand.
    Compressed or not, its first 50 MB and 50,000 addresses are read (the limits of sitemaps.org).
    One of plain text has an address a line. Blocking.
    """
    parts = urlsplit(prefix)
    host, origin = parts.netloc.encode(), f"{parts.scheme}://{parts.netloc}/"
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"  # RFC 1952, 2.3.1
    named: dict[str, None] = {}
    is_index, carried, size, count, pattern = False, b"", 0, 0, _LOC
    is_whole = False
    with gzip.open(path) if is_packed else path.open("rb") as source:
        while size < _SITEMAP_BYTES and count < _SITEMAP_ADDRESSES and len(named) < MOST_KNOWN:
            try:
                data = source.read(_CHUNK)
            except (OSError, EOFError, zlib.error):  # it breaks off: what came counts
                data = b""
            if not data:
                is_whole = True
                break
            if not size:
                is_index = b"sitemapindex" in data[:4096]
                pattern = _LOC if b"<" in data[:4096] else _LINE
            size += len(data)
            carried += data
            for match in pattern.finditer(carried):
                count += 1
                if host not in match[1]:  # to read a whole address takes a hundred times as long
                    continue
                url = normal_url(unescape(match[1].decode("utf-8", "replace")))
                is_page = not is_index and is_below(url, prefix) and mask_url(url) == url
                if is_page or (is_index and url.startswith(origin)):
                    named[url] = None
            carried = carried[-4096:]
    # Those of the part of the site that was asked for go first.
    found = sorted(named, key=lambda url: not is_below(url, prefix)) if is_index else list(named)
    most = MOST_SITEMAPS if is_index else MOST_KNOWN
    return Sitemap(is_index, tuple(found[:most]), not is_whole or len(found) > most)

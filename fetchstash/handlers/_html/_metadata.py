"""The metadata in the head of a page: Open Graph, Dublin Core, schema.org."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fetchstash.handlers._data._json_values import is_array, is_object
from fetchstash.handlers._html import _scripts
from fetchstash.handlers._html._tree import Page

_DESCRIPTIONS = ("og:description", "twitter:description", "description", "dc.description")
_PICTURES = ("og:image:secure_url", "og:image", "og:image:url", "twitter:image", "thumbnailurl")
_TITLES = ("og:title", "twitter:title", "dc.title")
_AUTHORS = (
    "author",
    "article:author",
    "dc.creator",
    "parsely-author",
    "sailthru.author",
    "twitter:creator",
)
_DATES = (
    "article:published_time", "datepublished", "date", "dc.date", "dc.date.issued",
    "dcterms.created", "parsely-pub-date", "sailthru.date", "og:published_time", "publishdate",
    "citation_publication_date",
)  # fmt: skip
_INNER_OBJECTS = ("@graph", "mainEntity", "mainEntityOfPage", "video", "audio")
_SITES = ("og:site_name", "application-name", "twitter:site")
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?|\d{4}/\d\d/\d\d"
)
VALUE_CHARS = 300
MAX_JSON_LD = 500_000
MAX_JSON_NODES = 2_000


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a page, "" for what is missing. ``published`` is an ISO 8601 date or time.

    ``linked_data`` are the objects of its JSON-LD.
    """

    title: str
    author: str
    published: str
    site: str
    language: str
    canonical: str
    description: str = ""
    picture: str = ""
    linked_data: tuple[dict[str, Any], ...] = ()
    is_article: bool = False


def read(page: Page) -> Metadata:
    """Return the metadata in the head of a page."""
    meta: dict[str, str] = {}
    for attributes in page.meta:
        name = (
            attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or ""
        ).lower()
        content = " ".join(attributes.get("content", "").split())[:VALUE_CHARS]
        if name and content:
            meta.setdefault(name, content)
    linked = list(_linked_data(page.json_ld))
    author = _first(meta, _AUTHORS)
    if not author or author.startswith(("http://", "https://", "@")):
        author = next((name for item in linked if (name := _name(item.get("author")))), author)
    dates = [_first(meta, _DATES), *(str(item.get("datePublished", "")) for item in linked)]
    canonical = next(
        (link.get("href", "") for link in page.links if link.get("rel", "").lower() == "canonical"),
        "",
    )
    return Metadata(
        title=page.title[:VALUE_CHARS] or _first(meta, _TITLES),
        author=author,
        published=next((match[0] for date in dates if (match := _DATE.search(date))), ""),
        site=_first(meta, _SITES),
        language=(page.language or meta.get("og:locale", "")).replace("_", "-")[:35],
        canonical=(canonical or meta.get("og:url", "")).strip(),
        description=_first(meta, _DESCRIPTIONS) or _said(linked, "description"),
        picture=_first(meta, _PICTURES) or _said(linked, "image", "thumbnailUrl"),
        linked_data=tuple(linked),
        is_article=_is_article(meta, linked),
    )


def _is_article(meta: dict[str, str], linked: list[dict[str, Any]]) -> bool:
    """Return whether a page says that it is an article (Open Graph, schema.org)."""
    if meta.get("og:type", "").lower() == "article" or "article:published_time" in meta:
        return True
    return any(str(item.get("@type", "")).endswith(("Article", "BlogPosting")) for item in linked)


def _said(linked: list[dict[str, Any]], *names: str) -> str:
    """Return the first text of linked data under one of these names."""
    values = (item[name] for item in linked for name in names if name in item)
    texts = (value[0] if is_array(value) and value else value for value in values)
    found = next((text for text in texts if isinstance(text, str)), "")
    return " ".join(found.split())[:VALUE_CHARS]


def _first(meta: dict[str, str], names: tuple[str, ...]) -> str:
    return next((meta[name] for name in names if name in meta), "")


def _linked_data(sources: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON-LD, outer objects first (JSON-LD 1.1, @graph)."""
    for source in sources:
        pending: list[Any] = [_scripts.loaded(source)] if len(source) <= MAX_JSON_LD else []
        for _ in range(MAX_JSON_NODES):
            if not pending:
                break
            item = pending.pop(0)
            if is_object(item):
                yield item
                pending += [item[key] for key in _INNER_OBJECTS if key in item]
            elif is_array(item):
                pending += item


def _name(author: object) -> str:
    """Return the names of a schema.org author: a string, a Person or a list of them."""
    if isinstance(author, str):
        return " ".join(author.split())[:VALUE_CHARS]
    if is_object(author):
        return _name(author.get("name"))
    if is_array(author):
        return ", ".join(filter(None, map(_name, author[:5])))[:VALUE_CHARS]
    return ""

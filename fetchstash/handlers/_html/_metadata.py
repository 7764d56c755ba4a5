"""Read the metadata in the head of a page: Open Graph, Dublin Core, schema.org and the like."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from fetchstash.handlers._dates import moment
from fetchstash.handlers._html._byline import author_of
from fetchstash.handlers._html._element import Element
from fetchstash.handlers._html._tree import Page
from fetchstash.text.untyped import is_array, is_object

_DESCRIPTIONS = ("og:description", "twitter:description", "description", "dc.description")
_PICTURES = ("og:image:secure_url", "og:image", "og:image:url", "twitter:image", "thumbnailurl")
_TITLES = ("og:title", "twitter:title", "dc.title")
_AUTHORS = (
    "author",
    "article:author",
    "og:article:author",
    "citation_author",
    "dc.creator",
    "dcterms.creator",
    "parsely-author",
    "sailthru.author",
    "byl",
)
_WRITTEN_BY = re.compile(
    r"(?:written|posted) by|author|geschrieben von|verfasst von|écrit par|escrito por|scritto da|"
    r"geschreven door|skrivet av|skrevet af|napisane przez|автор|написано|作者|執筆者|글쓴이",
    re.IGNORECASE,
)
"""What stands in twitter:label1 before the author in twitter:data1."""
_POSTED_BY = re.compile(
    r"(?:\(\d+\+?\) )?(.{2,60}?) on (?:X|Twitter|Instagram|Threads|TikTok|LinkedIn)(?: ?:|$)"
)
"""The title of a post in a social network."""
_PUBLISHED = (
    "article:published_time",
    "og:article:published_time",
    "og:published_time",
    "datepublished",
    "dc.date.issued",
    "dcterms.issued",
    "dcterms.created",
    "dc.date.created",
    "parsely-pub-date",
    "sailthru.date",
    "publishdate",
    "publish-date",
    "pubdate",
    "publication_date",
    "citation_publication_date",
    "citation_date",
    "citation_online_date",
    "dc.date",
    "date",
    "pdate",
)
_MODIFIED = (
    "article:modified_time",
    "og:updated_time",
    "datemodified",
    "dcterms.modified",
    "dc.date.modified",
    "last-modified",
    "lastmod",
)
_DOCUMENTS = re.compile(
    r"(?:Article|Posting|Report|Recipe|VideoObject|Episode|Question|HowTo|Book|Course|Dataset|"
    r"Thesis|CreativeWork|Chapter|SoftwareSourceCode)$"
)
"""The types of schema.org that are what a page is for."""
_PAGES = re.compile(r"WebPage$|^(?:About|Profile|FAQ|QA|Item|Medical\w*)Page$")
_SITES = ("og:site_name",)
_SITES_OF = re.compile(r"^WebSite$")
_INNER_OBJECTS = ("@graph", "mainEntity", "mainEntityOfPage", "video", "audio")
_PRODUCTS = frozenset(("product", "og:product", "product.item", "Product", "ProductGroup"))
_WRAPPED = re.compile(
    r"\s*(?:(?://|/\*)?\s*<!\[CDATA\[\s*(?:\*/)?|<!--|(?://|/\*)?\s*\]\]>\s*(?:\*/)?|-->)\s*;?\s*"
)
"""What old pages wrap scripts in: comments and CDATA sections (XHTML 1.0, section C.4)."""
_NO_COMMA = re.compile(r",(\s*[}\]])")  # one too many, which templates write
_TYPE = re.compile(r"[^\s/#:]+(?=\s|$)")
VALUE_CHARS = 300
MAX_JSON_LD = 500_000
MAX_JSON_NODES = 2_000


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a page, "" for what is missing.

    ``published`` and ``modified`` are dates or times in ISO 8601.
    ``linked_data`` are the objects of its JSON-LD. ``kind`` is "article", "product" or "".
    """

    title: str
    author: str
    published: str
    modified: str
    site: str
    language: str
    canonical: str
    description: str = ""
    picture: str = ""
    linked_data: tuple[dict[str, Any], ...] = ()
    kind: str = ""

    def completed(self, author: str, published: str, modified: str) -> "Metadata":
        """Return this metadata with what the page itself shows in place of missing values."""
        return replace(
            self,
            author=self.author or author,
            published=self.published or published,
            modified=self.modified or modified,
        )


def metadata(page: Page) -> Metadata:
    """Return the metadata in the head of a page."""
    meta: dict[str, list[str]] = {}
    for attributes in page.meta:
        name = (
            attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or ""
        ).lower()
        content = " ".join(attributes.get("content", "").split())[:VALUE_CHARS]
        if name and content:
            meta.setdefault(name, []).append(content)
    linked = list(_linked_data(page.json_ld))
    canonical = next(
        (link.get("href", "") for link in page.links if link.get("rel", "").lower() == "canonical"),
        "",
    )
    title = page.title[:VALUE_CHARS] or _first(meta, _TITLES)
    language = (page.language or _first(meta, ("og:locale",))).replace("_", "-")[:35]
    documents = _documents(linked, title, canonical or page.base)
    by_id = {item["@id"]: item for item in linked if isinstance(item.get("@id"), str)}
    authors = (_named(item.get("author") or item.get("creator"), by_id) for item in documents)
    return Metadata(
        title=title,
        author=next(filter(None, authors), "") or _author(meta, title),
        published=_date(documents, meta, "datePublished", _PUBLISHED, language)
        or _date(documents, {}, "uploadDate", (), language),
        modified=_date(documents, meta, "dateModified", _MODIFIED, language),
        site=_site(meta, linked, documents, by_id),
        language=language,
        canonical=(canonical or _first(meta, ("og:url",))).strip(),
        description=_first(meta, _DESCRIPTIONS) or _said(linked, "description"),
        picture=_first(meta, _PICTURES) or _said(linked, "image", "thumbnailUrl"),
        linked_data=tuple(linked),
        kind=_kind(meta, linked, page),
    )


def _documents(linked: list[dict[str, Any]], title: str, address: str) -> list[dict[str, Any]]:
    """Return the objects of linked data that are the page's document, the surest first.

    Of several, as in a list of teasers, it is what has the page's title or address.
    """
    documents = [item for item in linked if any(map(_DOCUMENTS.search, _types(item)))]
    documents = documents or [i for i in linked if "@type" not in i and "@graph" not in i]
    if len(documents) > 1:
        documents = [item for item in documents if _is_named(item, title, address)]
    pages = [item for item in linked if any(map(_PAGES.search, _types(item)))]
    return documents + pages[:1]


def _types(item: dict[str, Any]) -> list[str]:
    kinds = item.get("@type")
    return [str(kind) for kind in (kinds if is_array(kinds) else [kinds])]


def _is_named(item: dict[str, Any], title: str, address: str) -> bool:
    names = [str(item[key]).strip() for key in ("headline", "name") if item.get(key)]
    if any(len(name) > 3 and (name in title or title in name) for name in names if title):
        return True
    page = item.get("mainEntityOfPage")
    page = page.get("@id") if is_object(page) else page
    addresses = {str(value).partition("#")[0] for value in (item.get("url"), page) if value}
    return bool(address) and address in addresses


def _author(meta: dict[str, list[str]], title: str) -> str:
    """Return the authors that the head names, "" if they are only addresses and roles."""
    for name in _AUTHORS:
        values = meta.get(name, [])[:20]
        names = dict.fromkeys(author for author in map(author_of, values) if author)
        if names:
            return ", ".join(names)[:VALUE_CHARS]
    for label, data in (("twitter:label1", "twitter:data1"), ("twitter:label2", "twitter:data2")):
        if _WRITTEN_BY.match(_first(meta, (label,))):
            return author_of(_first(meta, (data,)))
    match = _POSTED_BY.match(_first(meta, _TITLES) or title)
    return author_of(match[1]) if match else ""


def _date(
    documents: list[dict[str, Any]],
    meta: dict[str, list[str]],
    key: str,
    names: tuple[str, ...],
    language: str,
) -> str:
    values = [str(item[key]) for item in documents if item.get(key)]
    values += [meta[name][0] for name in names if name in meta]
    return next(filter(None, (moment(value, language) for value in values)), "")


def _site(
    meta: dict[str, list[str]],
    linked: list[dict[str, Any]],
    documents: list[dict[str, Any]],
    by_id: dict[str, dict[str, Any]],
) -> str:
    """Return the name of the site or the organisation that publishes a page."""
    if name := _first(meta, _SITES):
        return name
    publishers = [item["publisher"] for item in documents if "publisher" in item]
    sites = [item for item in linked if any(map(_SITES_OF.search, _types(item)))]
    names = (_named(value, by_id) for value in (*sites, *publishers))
    return next(filter(None, names), "") or _first(meta, ("application-name",))


def _kind(meta: dict[str, list[str]], linked: list[dict[str, Any]], page: Page) -> str:
    """Return the kind that a page states for itself (Open Graph, schema.org).

    Of microdata a product is believed: themes of documentation call all pages articles.
    """
    said = {_first(meta, ("og:type",)).lower(), *(str(item.get("@type", "")) for item in linked)}
    is_article = any(kind.endswith(("article", "Article", "BlogPosting")) for kind in said)
    if is_article or "article:published_time" in meta:
        return "article"
    is_product = page.has_items and _is_of_product(page.body)
    return "product" if is_product or not _PRODUCTS.isdisjoint(said) else ""


def _is_of_product(body: Element) -> bool:
    """Return whether the item of a product holds the main heading or half of the text of a page.

    Items are in microdata (HTML Standard, 5.2.2) or RDFa (RDFa Core 1.1, section 5).
    """
    item = next(filter(_is_product, body.subtree()), None)
    if item is None:
        return False
    heading = next((element for element in body.descendants() if element.tag == "h1"), body)
    return any(map(_is_product, heading.outward())) or 2 * len(item.raw()) >= len(body.raw())


def _is_product(element: Element) -> bool:
    types = element.get("itemtype") or element.get("typeof")
    return bool(types) and not _PRODUCTS.isdisjoint(_TYPE.findall(types))


def _said(linked: list[dict[str, Any]], *names: str) -> str:
    """Return the first text of linked data under one of these names."""
    values = (item[name] for item in linked for name in names if name in item)
    texts = (value[0] if is_array(value) and value else value for value in values)
    found = next((text for text in texts if isinstance(text, str)), "")
    return " ".join(found.split())[:VALUE_CHARS]


def _first(meta: dict[str, list[str]], names: tuple[str, ...]) -> str:
    return next((meta[name][0] for name in names if name in meta), "")


def _linked_data(sources: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON-LD, outer objects first (JSON-LD 1.1, @graph)."""
    for source in sources:
        pending: list[Any] = [_loaded(source)] if len(source) <= MAX_JSON_LD else []
        for _ in range(MAX_JSON_NODES):
            if not pending:
                break
            item = pending.pop(0)
            if is_object(item):
                yield item
                pending += [item[key] for key in _INNER_OBJECTS if key in item]
            elif is_array(item):
                pending += item


def _loaded(source: str) -> Any:
    """Return the value of a script of linked data; line ends inside of strings are forgiven."""
    text = _WRAPPED.sub("", source) if "<!" in source or "]]>" in source else source
    for candidate in (text, _NO_COMMA.sub(r"\1", text.strip().rstrip(";"))):
        try:
            return json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _named(author: object, by_id: dict[str, dict[str, Any]], depth: int = 0) -> str:
    """Return the names of a schema.org author: a string, a Person, a reference, a list of them."""
    if isinstance(author, str):
        return author_of(author)[:VALUE_CHARS]
    if depth > 3:
        return ""
    if is_object(author):
        reference = by_id.get(str(author.get("@id", "")))
        name = author.get("name") or (reference and reference.get("name"))
        return _named(name, by_id, depth + 1)
    if is_array(author):
        names = (_named(one, by_id, depth + 1) for one in author[:10])
        return ", ".join(dict.fromkeys(filter(None, names)))[:VALUE_CHARS]
    return ""

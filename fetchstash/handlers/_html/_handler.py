"""The HTML handler: a web page becomes Markdown of its content."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

from fetchstash.handlers._contract import ContentKind, Extracted, ExtractLimits, Hints, Part
from fetchstash.handlers._html import _blocks, _content, _markdown, _metadata, _safety, _tree
from fetchstash.handlers._html._inline import Inline

MAX_SOURCE_BYTES = 4 * _safety.MAX_SOURCE_CHARS


class HtmlHandler:
    """Reads HTML and XHTML pages."""

    name = "html"

    def can_handle(self, kind: ContentKind, media_type: str) -> bool:  # noqa: ARG002 - the protocol's signature
        """Return whether this is HTML."""
        return kind == "html"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the content of a page as Markdown, with its headings as outline."""
        with source.open("rb") as file:
            raw = file.read(MAX_SOURCE_BYTES)
        checked = _safety.check(_decode(raw, hints.charset))
        page = _tree.parse(checked.source)
        found = _metadata.read(page)
        extracted = Extracted(
            None,
            title=found.title,
            language=found.language,
            author=found.author,
            published=found.published,
            truncated=checked.cut or source.stat().st_size > len(raw),
            hidden_removed=page.hidden,
        )
        inline = Inline(_base(hints.url, page, found), len(checked.source) // 2)
        extracted.parts = _bounded(_markdown.parts(_content.content(_blocks.cut(page.body)), inline), limits.max_chars, extracted)
        return extracted


def _bounded(parts: Iterator[Part], max_chars: int, extracted: Extracted) -> Iterator[Part]:
    """Pass the parts on while they fit."""
    for part in parts:
        max_chars -= len(part.text)
        if max_chars < 0:
            extracted.truncated = True
            return
        extracted.outline += part.headings
        yield part


def _base(url: str, page: _tree.Page, found: _metadata.Metadata) -> str:
    try:
        return urljoin(url, page.base) if page.base else url or found.canonical
    except ValueError:
        return url


def _decode(raw: bytes, charset: str) -> str:
    for bom, name in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if raw.startswith(bom):
            return raw[len(bom) :].decode(name, "replace")
    found = re.search(rb"<meta[^>]{1,200}charset\s*=\s*[\"']?([\w-]+)", raw[:4096], re.IGNORECASE)
    for name in (charset, found[1].decode("ascii", "replace") if found else "", "utf-8"):
        try:
            return raw.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    return raw.decode("utf-8", "replace")

"""Web archives of MIME (MHTML): the saved page with the frames in it (RFC 2557)."""

import email.message
import re
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from html import escape, unescape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from fetchstash.handlers._charset import decode
from fetchstash.handlers._contract import Extracted, Hints, PartRequest, PartText, Picture
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._mail import MailReason
from fetchstash.handlers._mail._eml import MAX_BYTES, MAX_PARTS, parse, payload

if TYPE_CHECKING:
    from fetchstash.handlers._html._handler import HtmlHandler

_FRAME = re.compile(
    r"""<(i?frame)\b[^>]{0,2000}?\bsrc\s*=\s*(["']?)([^"'>\s]{1,2000})\2[^>]{0,2000}>""",
    re.IGNORECASE,
)
_FRAMESET = re.compile(r"</?(?:frameset|noframes)\b[^>]*>", re.IGNORECASE)
_MAX_DEPTH = 3  # of frames within frames


class MhtmlHandler:
    """Reads the page of a web archive as the handler of web pages does."""

    name = "mhtml"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the page. Raises NoText if the file holds none."""
        with _page(source, hints) as (handler, page, own):
            return handler.extract(page, own, limits)

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return a part of the page: its links, its tables … Raises what it raises."""
        with _page(request.source, request.hints) as (handler, page, hints):
            return handler.part(replace(request, source=page, hints=hints))


@contextmanager
def _page(source: Path, hints: Hints) -> Generator[tuple["HtmlHandler", Path, Hints]]:
    """Give its handler, the page in a file of its own, and its charset and address as hints."""
    from fetchstash.handlers._html._handler import HtmlHandler  # noqa: PLC0415 - imports the parser

    with source.open("rb") as file:
        raw = file.read(MAX_BYTES)
    message = parse(raw)
    pages = _pages(message)
    part = _root(message, pages)
    with tempfile.TemporaryDirectory(prefix="page-") as folder:
        page = Path(folder) / "page.html"
        content, charset = payload(part), part.get_content_charset() or ""
        text = decode(content, charset)
        if _FRAME.search(text):
            content, charset = _with_frames(text, part, _by_name(pages)).encode(), "utf-8"
        page.write_bytes(content)
        address = _location(part) or str(message.get("Snapshot-Content-Location") or "")
        url = address if address.startswith(("http://", "https://")) else ""
        yield HtmlHandler(), page, replace(hints, charset=charset, url=url)


def _pages(message: email.message.Message) -> list[email.message.Message]:
    """Return the pages of an archive. Raises NoText if there is none."""
    pages = [
        part
        for part in islice(message.walk(), MAX_PARTS)
        if part.get_content_type() in {"text/html", "application/xhtml+xml"}
        and not part.is_multipart()
    ]
    if not pages:
        raise MailReason.MHTML_NO_PAGE.error()
    return pages


def _root(
    message: email.message.Message, pages: list[email.message.Message]
) -> email.message.Message:
    """Return the page of a web archive: that of ``start`` (RFC 2387, section 3.2), else the first.

    Frames and advertisements are pages, too.
    """
    start, saved = message.get_param("start"), message.get("Snapshot-Content-Location")
    for name, value in (("Content-ID", start), ("Content-Location", saved)):
        for part in pages:
            if value and part.get(name) == value:
                return part
    return pages[0]


def _location(part: email.message.Message) -> str:
    return str(part.get("Content-Location") or "").strip()


def _host(part: email.message.Message) -> str | None:
    try:
        return urlsplit(_location(part)).hostname
    except ValueError:  # a bracket without the other
        return None


def _joined(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:
        return address


def _by_name(pages: list[email.message.Message]) -> dict[str, email.message.Message]:
    """Return the pages by the addresses that frames use: their own, and "cid:" with their ids."""
    named: dict[str, email.message.Message] = {}
    for part in pages:
        number = str(part.get("Content-ID") or "").strip().strip("<>")
        for name in filter(None, (_location(part), f"cid:{number}" if number else "")):
            named.setdefault(name, part)
    return named


def _with_frames(
    text: str, part: email.message.Message, pages: Mapping[str, email.message.Message]
) -> str:
    """Return a page in which its archived frames stand as documents of their own.

    Frames of other sites are left out: most are advertisements. Those of a frameset are the page.
    Each is shown once, so that pages that frame each other end.
    """
    shown = {id(part)}

    def filled(text: str, part: email.message.Message, depth: int) -> str:
        here, host = _location(part), _host(part)

        def frame(found: re.Match[str]) -> str:
            address = unescape(found[3])
            held = pages.get(address) or pages.get(_joined(here, address))
            if held is None or id(held) in shown or depth >= _MAX_DEPTH:
                return found[0]
            is_inline = found[1].lower() == "iframe"
            if is_inline and _host(held) not in {None, host}:
                return found[0]
            shown.add(id(held))
            inner = decode(payload(held), held.get_content_charset() or "")
            document = filled(inner, held, depth + 1)
            if depth:  # the reader of pages takes no frames in frames
                return f"<div>{document}</div>"
            return f'<iframe srcdoc="{escape(document)}">{"" if is_inline else "</iframe>"}'

        written = _FRAME.sub(frame, text)
        return _FRAMESET.sub("", written) if written != text else text

    return filled(text, part, 0)

"""Web pages saved as one file (MHTML, RFC 2557): the page, read as any other."""

import email
import email.message
import email.policy
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fetchstash.handlers._contract import Extracted, Hints, PartRequest, PartText, Picture
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._mail import MailReason

_MAX_BYTES = 64 * 1024 * 1024
_MAX_PARTS = 1_000


class MhtmlHandler:
    """Reads the page of a web archive as the handler of web pages does."""

    name = "mhtml"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the page. Raises NoText if the file holds none."""
        from fetchstash.handlers._html._handler import HtmlHandler  # noqa: PLC0415 - imports the parser

        with _page(source) as (page, charset, url):
            return HtmlHandler().extract(page, replace(hints, charset=charset, url=url), limits)

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return a part of the page: its links, its tables … Raises what it raises."""
        from fetchstash.handlers._html._handler import HtmlHandler  # noqa: PLC0415 - as above

        with _page(request.source) as (page, charset, url):
            hints = replace(request.hints, charset=charset, url=url)
            return HtmlHandler().part(replace(request, source=page, hints=hints))


@contextmanager
def _page(source: Path) -> Generator[tuple[Path, str, str]]:
    """Give the page in a file of its own, with its charset and its address."""
    with source.open("rb") as file:
        raw = file.read(_MAX_BYTES)
    try:
        message = email.message_from_bytes(raw, policy=email.policy.compat32)
    except RecursionError:
        raise MailReason.MAIL_DEPTH.error() from None
    for _, part in zip(range(_MAX_PARTS), message.walk(), strict=False):
        payload = part.get_payload(decode=True)
        if part.get_content_type() in {"text/html", "application/xhtml+xml"} and isinstance(
            payload, bytes
        ):
            with tempfile.TemporaryDirectory(prefix="page-") as folder:
                page = Path(folder) / "page.html"
                page.write_bytes(payload)
                yield page, part.get_content_charset() or "", _address(message, part)
            return
    raise MailReason.MHTML_NO_PAGE.error()


def _address(message: email.message.Message, part: email.message.Message) -> str:
    address = str(part.get("Content-Location") or message.get("Snapshot-Content-Location") or "")
    return address if address.startswith(("http://", "https://")) else ""

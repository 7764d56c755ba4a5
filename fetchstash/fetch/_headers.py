"""Request headers that the operator sets for an origin, such as the token of an API.

A value is a secret: no error names it, and it goes to its origin alone.
"""

import re
from collections.abc import Iterable, Mapping

from fetchstash.errors import BadArgument, FetchstashError
from fetchstash.fetch._url import parse

OriginHeaders = Mapping[str, Mapping[str, str]]
"""Header fields by origin: ``{"https://api.example.org": {"authorization": "Bearer …"}}``."""

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")  # RFC 9110, section 5.6.2
_VALUE = re.compile(r"[!-~](?:[ -~\t]*[!-~])?")  # RFC 9110, section 5.5, ASCII alone
_MAX_URL_CHARS = 2_000
# Set by us for each request: where it goes, how it is framed, what may come back (RFC 9110,
# section 7.6.1 for those of one connection).
_OURS = re.compile(
    "accept-encoding|connection|content-(?:encoding|length|type)|expect|host|"
    "if-(?:match|modified-since|none-match|range|unmodified-since)|keep-alive|"
    "proxy-(?:authenticate|authorization|connection)|range|te|trailer|transfer-encoding|upgrade"
)


def origin_headers(tables: OriginHeaders) -> dict[str, dict[str, str]]:
    """Return the header fields by normal origin and lower-case name.

    Raises BadArgument for what is no origin, name or value, and for a field of our own.
    """
    headers: dict[str, dict[str, str]] = {}
    for text, fields in tables.items():
        origin = _origin(text)
        if origin in headers:
            raise BadArgument(f"fetch.headers names {origin} twice.", "Put them into one table.")
        headers[origin] = dict(_field(origin, name, value) for name, value in fields.items())
    return headers


def without(secrets: Iterable[str], text: str) -> str:
    """Return ``text`` without the values that it echoes."""
    for secret in secrets:
        text = text.replace(secret, "…")
    return text


def _origin(text: str) -> str:
    try:
        target = parse(text, _MAX_URL_CHARS)
    except FetchstashError:
        target = None
    if target is None or target.path != "/" or any(mark in text for mark in "?#*"):
        what = f"fetch.headers has {text[:100]!r}, which is no origin."
        raise BadArgument(what, "Give scheme and host, such as https://api.example.org.")
    return target.origin


def _field(origin: str, name: str, value: str) -> tuple[str, str]:
    field = name.lower()
    setting = f'fetch.headers."{origin}".{name[:100]}'
    if not _TOKEN.fullmatch(field):
        raise BadArgument(f"{setting} is no name of a header.", "Use letters, digits and -.")
    if _OURS.fullmatch(field):
        raise BadArgument(f"{setting} is a header that fetchstash sets itself.", "Leave it out.")
    if not _VALUE.fullmatch(value):
        what = f"The value of {setting} is empty or no header value."
        raise BadArgument(what, "Use printable ASCII without blanks at its ends.")
    return field, value

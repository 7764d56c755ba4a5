"""Headers and cookies that the operator configured for one origin.

Both are secrets: they go to that origin alone, and no error and no log has a value.
"""

import json
import logging
import math
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from fetchstash.errors import BadArgument, FetchFailed, FetchstashError
from fetchstash.fetch._cookies import CONTROL, Cookie, Jar
from fetchstash.text.urls import Target, parse

_log = logging.getLogger("fetchstash.fetch")

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
    is_file = field == "cookie" and value.startswith(_FILE)
    if not _VALUE.fullmatch(value) and not is_file:
        what = f"The value of {setting} is empty or no header value."
        raise BadArgument(what, "Use printable ASCII without blanks at its ends.")
    return field, value


_MAX_FILE_BYTES = 2**20
_FILE = "file:"
_OF_OTHERS = stat.S_IWGRP | stat.S_IRWXO


class CookieFile:
    """The cookies of one origin in a file that a browser or Playwright exported.

    The file is read again when it has changed.
    """

    def __init__(self, origin: str, host: str, path: str) -> None:
        """Read the file. Raises BadArgument where that cannot be, or where it has none for it."""
        self._setting = f'fetch.headers."{origin}".cookie'
        self._origin, self._host = origin, host
        self._path = Path(path).expanduser()
        self._seen: tuple[int, ...] = ()
        self._cookies: tuple[Cookie, ...] = ()
        self.cookies(0)

    def cookies(self, now: float) -> tuple[Cookie, ...]:
        """Return the cookies for the host that have not expired. Blocking; raises BadArgument."""
        with self._opened() as file:
            facts = os.fstat(file.fileno())
            seen = facts.st_ino, facts.st_mtime_ns, facts.st_size
            if seen != self._seen:
                self._cookies = self._read(file.read(_MAX_FILE_BYTES + 1))
                self._seen = seen
        valid = tuple(cookie for cookie in self._cookies if cookie.expires > now)
        if not valid:
            _log.warning(
                "All cookies for %s in %s have expired: export them again.",
                self._origin,
                self._path,
            )
        return valid

    def values(self) -> list[str]:
        """Return the secrets in it."""
        return [cookie.value for cookie in self._cookies]

    def _opened(self) -> BinaryIO:
        """Open the file if it is private. Raises BadArgument."""
        advice = "Give the absolute path of a file that the server may read."
        if not self._path.is_absolute():
            raise self._bad("is no absolute path", advice)
        try:
            file = self._path.open("rb")
        except OSError as error:
            raise self._bad(f"cannot be read: {error.strerror}", advice) from None
        facts = os.fstat(file.fileno())
        fault = ""
        if not stat.S_ISREG(facts.st_mode):
            fault, advice = "is no file", "Name the file itself."
        elif os.name == "posix" and facts.st_uid not in {0, os.geteuid()}:
            fault, advice = "belongs to another user", "Copy it to a file of the server's own user."
        elif os.name == "posix" and facts.st_mode & _OF_OTHERS:
            fault, advice = "is open to other users", "Run chmod 600 on it: cookies are passwords."
        if fault:
            file.close()
            raise self._bad(fault, advice)
        return file

    def _bad(self, fault: str, advice: str) -> BadArgument:
        return BadArgument(f"{self._setting} names {self._path}, which {fault}.", advice)

    def _read(self, data: bytes) -> tuple[Cookie, ...]:
        """Return the cookies of the file that belong to the host. Raises BadArgument."""
        advice = "Export the cookies again, as Netscape's cookies.txt or Playwright's JSON."
        if len(data) > _MAX_FILE_BYTES:
            raise self._bad("is larger than 1 MiB", advice)
        try:
            text = data.decode("utf-8-sig")
            lines = from_playwright(text) if text.lstrip()[:1] == "{" else from_netscape(text)
            read = tuple(lines)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            where = f" ({error})" if isinstance(error, BadLine) else ""
            raise self._bad(f"is no file of cookies{where}", advice) from None
        own = tuple(
            cookie
            for cookie in read
            if cookie.domain == self._host
            or (not cookie.host_only and self._host.endswith("." + cookie.domain))
        )
        if not own:
            raise self._bad(f"has no cookie for {self._host}", "Sign in there and export again.")
        return own


class BadLine(ValueError):
    """A line that is no cookie; its text names the line by number alone."""


def from_netscape(text: str) -> Iterator[Cookie]:
    """Yield the cookies of a cookies.txt: seven fields a line, with tabs between them."""
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.removeprefix("#HttpOnly_")
        if not entry.strip() or (entry == line and line.startswith("#")):
            continue
        fields = entry.split("\t")
        if len(fields) == 6:
            fields.append("")  # a cookie without a value
        if len(fields) != 7 or not re.fullmatch(r"-?\d{1,20}(?:\.\d+)?", fields[4], re.ASCII):
            raise BadLine(f"line {number}")
        domain, below, path, secure, expires, name, value = fields
        entire, is_secure = (flag.upper() == "TRUE" for flag in (below, secure))
        yield _kept(number, name, value, domain, path, float(expires), entire, is_secure)


def from_playwright(text: str) -> Iterator[Cookie]:
    """Yield the cookies of a storage state, as Playwright writes it."""
    state: Mapping[str, Any] = json.loads(text)
    for number, entry in enumerate(cast("Sequence[Mapping[str, Any]]", state["cookies"]), 1):
        try:
            domain = str(entry["domain"])
            expires = float(entry.get("expires", -1))
            name, value, path = (str(entry[key]) for key in ("name", "value", "path"))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise BadLine(f"cookie {number}") from None
        entire, is_secure = domain.startswith("."), entry.get("secure") is True
        yield _kept(number, name, value, domain, path, expires, entire, is_secure)


def _kept(
    number: int,
    name: str,
    value: str,
    domain: str,
    path: str,
    expires: float,
    entire: bool,
    secure: bool,
) -> Cookie:
    """Return a cookie of a file; one that expires at 0 or -1 lasts as long as the file."""
    if not name.isascii() or CONTROL.search(name + value) or ";" in name + value:
        raise BadLine(f"cookie {number}")
    end = expires if expires > 0 else math.inf
    host = domain.removeprefix(".").lower()
    octets = value.encode("utf-8").decode("iso-8859-1")  # as it is sent
    return Cookie(name, octets, host, path or "/", not entire, secure, end)


_LEAST_SECRET = 6
"""Characters; a shorter value of a cookie is no secret, and masking it would garble a text."""


class OwnFields:
    """The header fields and cookies that the operator has sent to an origin."""

    def __init__(self, tables: OriginHeaders) -> None:
        """Read what ``cookie = "file:…"`` names. Raises BadArgument for a table in error."""
        self._headers = origin_headers(tables)
        self._files: dict[str, CookieFile] = {}
        for origin, fields in self._headers.items():
            if fields.get("cookie", "").startswith(_FILE):
                path = fields.pop("cookie").removeprefix(_FILE)
                self._files[origin] = CookieFile(origin, parse(origin, 2_000).host, path)

    def has_file(self, target: Target) -> bool:
        """Whether there is a cookie file, which has to be read in a thread."""
        return target.origin in self._files

    def fields(self, target: Target, jar: Jar, *, left_origin: bool) -> dict[str, str]:
        """Return the fields for a request, with the cookies of ``jar``. Raises FetchFailed.

        ``left_origin``: a server of another origin was asked before. It chose this URL, and must
        not choose what the operator's fields open.
        """
        now = time.time()
        fields = {} if left_origin else dict(self._headers.get(target.origin, {}))
        file = None if left_origin else self._files.get(target.origin)
        try:
            header = jar.header(target, now, file.cookies(now) if file else ())
        except BadArgument as fault:
            _log.warning("%s", fault.line())
            what = f"The cookies that the operator has for {target.host} cannot be read."
            raise FetchFailed(what, "Tell the operator: the log says why.") from None
        pairs = "; ".join(filter(None, (fields.get("cookie"), header)))
        return fields | ({"cookie": pairs} if pairs else {})

    def is_set(self, target: Target) -> bool:
        """Whether anything is configured for this origin."""
        return bool(self._headers.get(target.origin)) or self.has_file(target)

    def hidden(self, text: str, target: Target, jar: Jar) -> str:
        """Return a text from ``target`` without the values that it echoes."""
        file = self._files.get(target.origin)
        cookies = [*jar.values(), *(file.values() if file else ())]
        secrets = [value for value in cookies if len(value) >= _LEAST_SECRET]
        for secret in (*self._headers.get(target.origin, {}).values(), *secrets):
            text = text.replace(secret, "…")
        return text

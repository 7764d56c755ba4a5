"""Fuzz one thing that reads what others wrote; scripts/ci fuzz runs all of them.

    python -P scripts/fuzz/checks.py NAME [-max_total_time=60 …]

Each check takes any data and asserts what holds of all of it. The options are libFuzzer's.
"""

import sys
from datetime import UTC, datetime
from typing import Any

import atheris

FUZZED = ["email", "fetchstash.fetch", "h11", "hishel._core._spec", "idna"]

with atheris.instrument_imports(include=FUZZED):
    import h11

    from fetchstash.errors import FetchstashError
    from fetchstash.fetch import Cached, age_seconds, is_fresh, may_keep
    from fetchstash.fetch._causes import beginning_of, cause_of, excerpt
    from fetchstash.fetch._coding import STEP, BrokenCoding, codings, decode_beginning, decoders
    from fetchstash.fetch._exchange import joined
    from fetchstash.fetch._framing import Framing
    from fetchstash.fetch._mask import mask_url
    from fetchstash.fetch._responses import (
        conditions,
        disposition_name,
        retry_after_seconds,
        safe_name,
    )
    from fetchstash.fetch._robots import read_robots
    from fetchstash.text.urls import join, parse


CODINGS = ("gzip", "deflate", "br", "zstd", "gzip, br", "zstd, gzip")
MOST_DECODED_BYTES = 32 * 2**20


def fetch_coding(provider: Any) -> None:
    """Decode any bytes: in bounded steps, or said to be broken."""
    header = str(provider.PickValueInList(list(CODINGS)))
    size = provider.ConsumeIntInRange(1, 4_000)
    body = provider.ConsumeBytes(sys.maxsize)
    decode_beginning(body, header, 1_000)
    first, *further = decoders(codings(header) or ())
    produced = 0
    try:
        for begin in range(0, len(body), size):
            for piece in first.feed(body[begin : begin + size]):
                produced += (
                    sum(len(out) for out in further[0].feed(piece)) if further else len(piece)
                )
                assert len(piece) <= STEP * 3 // 2
                if produced > MOST_DECODED_BYTES:
                    return
        first.finish()
    except BrokenCoding:
        pass


HEADS = [
    b"",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
]


def parser() -> h11.Connection:
    """Return a parser that waits for a response."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=100 * 1024)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    connection.send(h11.EndOfMessage())
    return connection


def whole(received: bytes) -> tuple[bytes, bytes] | None:
    """Return the body that h11 reads out of all bytes at once, and what is left over."""
    connection = parser()
    connection.receive_data(received)
    body = b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return body, connection.trailing_data[0]
            elif event is h11.NEED_DATA or event is h11.PAUSED:
                return None
    except h11.RemoteProtocolError:
        return None


def framed(received: bytes, size: int) -> tuple[bytes, bytes] | None:
    """Do the same by way of a Framing, in pieces. Raises ValueError as that does."""
    connection, framing = parser(), Framing()
    framing.begin()
    body, unread = b"", received
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError:
            return None
        if isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.Response):
            framing.end_head(event.status_code, joined(event.headers.raw_items()))
        elif isinstance(event, h11.EndOfMessage):
            assert connection.trailing_data[0] == b"", "a byte beyond the end"
            return body, framing.held_back + unread
        elif event is h11.NEED_DATA and (unread or framing.held_back):
            if not framing.held_back:
                framing.receive(unread[:size])
                unread = unread[size:]
            piece = framing.take()
            assert piece, "h11 waits for bytes that are held back"
            connection.receive_data(piece)
        elif event is h11.NEED_DATA or event is h11.PAUSED:
            return None


def fetch_framing(provider: Any) -> None:
    """Read a response in pieces: h11 is handed all of it, and no byte beyond it."""
    head = provider.PickValueInList(HEADS)
    size = provider.ConsumeIntInRange(1, 50)
    received = head + provider.ConsumeBytes(sys.maxsize)
    try:
        seen = framed(received, size)
    except ValueError:  # a header of blanks
        return
    assert seen == whole(received)


NOW = datetime(2026, 11, 21, tzinfo=UTC)
TARGET = parse("https://example.org/", 100)
LIMITS = ("retry-after", "x-ratelimit-remaining", "ratelimit-reset", "www-authenticate")
NAMES = ("age", "cache-control", "date", "expires", "last-modified", "vary", "pragma")


def fetch_headers(provider: Any) -> None:
    """Read a value as each header: what is read out of it is bounded and clean."""
    value = provider.ConsumeUnicodeNoSurrogates(200)
    name = safe_name(disposition_name(f"attachment; filename{value}"))
    assert len(name) <= 200
    assert name not in {".", ".."}
    assert not set(name) & set("/\\\0\r\n")
    seconds = retry_after_seconds(value, NOW)
    assert seconds is None or seconds >= 0
    codings(value)
    may_keep({"cache-control": value})
    cached = Cached(
        NOW,
        etag=value,
        last_modified=value,
        headers={header: value for header in NAMES if provider.ConsumeBool()},
    )
    assert all(field.isprintable() for field in conditions(cached, TARGET, 0).values())
    is_fresh(cached)
    age_seconds(cached, NOW)
    fields = {name: value for name in LIMITS if provider.ConsumeBool()}
    fields["content-type"] = f"text/plain; charset={value}"
    body = beginning_of(provider.ConsumeBytes(200), fields)
    cause = cause_of(TARGET, provider.ConsumeIntInRange(300, 999), fields, body, NOW)
    assert cause.next_step
    text = excerpt(body)
    assert len(text) <= 300
    text.encode()


ROBOTS = [b"", b"user-agent: *\n", b"user-agent: x\nuser-agent: fetchstash\nallow: "]


def fetch_robots(provider: Any) -> None:
    """Read a robots.txt: it becomes no more than its text, and decides on any path."""
    path = "/" + provider.ConsumeUnicodeNoSurrogates(50)
    body = provider.PickValueInList(ROBOTS) + provider.ConsumeBytes(sys.maxsize)
    robots = read_robots(200, body, "fetchstash/1.0")
    assert len(robots.rules) <= 9 * len(body)  # three bytes make a character, and nine in escapes
    assert robots.allows(path) in {True, False}
    assert read_robots(200, body + b"\nuser-agent: fetchstash\nallow: /$", "fetchstash").allows("/")


MAX_URL_CHARS = 8_192
URLS = [
    "",
    "//",
    "/",
    "http://",
    "https://",
    "https://example.org/",
    "http://[",
    "http://xn--",
    "http://127.",
]


def fetch_url(provider: Any) -> None:
    """Parse a URL and a redirect: what was parsed parses the same again."""
    text = provider.PickValueInList(URLS) + provider.ConsumeUnicode(400)
    mask_url(text)
    for base in (None, parse("https://example.org/a/b", MAX_URL_CHARS)):
        try:
            target = parse(text, MAX_URL_CHARS) if base is None else join(base, text, MAX_URL_CHARS)
        except FetchstashError:
            continue
        assert target.text.isascii()
        assert not set(target.path) & set(" \r\n\t\0#")
        assert target.host == target.host.lower()
        assert parse(target.text, MAX_URL_CHARS * 12) == target


if __name__ == "__main__":
    program, name, *options = sys.argv
    check = globals()[name]
    atheris.Setup([program, *options], lambda data: check(atheris.FuzzedDataProvider(data)))
    atheris.Fuzz()

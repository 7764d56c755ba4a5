"""What a stored answer is worth: fresh or not, to be kept or not, and how old (RFC 9111)."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fetchstash.fetch import Cached, age_seconds, is_fresh, may_keep
from tests.fetch.sending import Make
from tests.loopback import Site

CONDITIONS = ("If-None-Match", "If-Modified-Since")
Ask = Callable[..., Awaitable[dict[str, str]]]


def stored(seconds_ago: float, **headers: str) -> Cached:
    """Return an answer that was stored so long ago, with these headers and the Date of then."""
    then = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    fields = {"date": format_datetime(then, usegmt=True)} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return Cached(then, headers=fields)


def at(seconds_from_now: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds_from_now), usegmt=True)


FRESH = {
    "max-age": stored(10, cache_control="max-age=6000"),
    "max-age, quoted and in company": stored(
        10, cache_control='public, max-age="6000", stale-if-error=5'
    ),
    "expires": stored(10, expires=at(6000)),
    "max-age goes before expires": stored(10, cache_control="max-age=6000", expires=at(-60)),
    "private is ours to keep": stored(10, cache_control="private, max-age=6000"),
    "a tenth of the time since it was modified": stored(10, last_modified=at(-36_000)),
    "told to be young": stored(10, cache_control="max-age=6000", age="20"),
    "expires counts from the server's clock": Cached(
        datetime.now(UTC),
        headers={"date": at(-7200), "expires": at(-7200 + 10_000), "cache-control": "public"},
    ),
}
NOT_FRESH = {
    "max-age has passed": stored(61, cache_control="max-age=60"),
    "told to be old": stored(10, cache_control="max-age=60", age="55"),
    "expires has passed": stored(10, expires=at(-1)),
    "expires that is no date": stored(10, expires="0"),
    "no-cache": stored(10, cache_control="no-cache, max-age=60"),
    "no headers that say anything": stored(0),
    "max-age=0": stored(0, cache_control="max-age=0"),
    "vary on everything": stored(10, cache_control="max-age=60", vary="Accept, *"),
    "headers unknown": Cached(datetime.now(UTC)),
}


@pytest.mark.parametrize("cached", FRESH.values(), ids=FRESH)
def test_a_fresh_answer_needs_no_request(cached: Cached) -> None:
    assert is_fresh(cached)


@pytest.mark.parametrize("cached", NOT_FRESH.values(), ids=NOT_FRESH)
def test_a_stale_answer_has_to_be_revalidated(cached: Cached) -> None:
    assert not is_fresh(cached)


def test_no_store_is_not_kept() -> None:
    assert not may_keep({"cache-control": "Private, No-Store"})
    assert may_keep({"cache-control": "max-age=0"})
    assert may_keep({})


def test_an_answer_s_age_counts_from_where_the_server_made_it() -> None:
    cached = stored(100, age="50")
    assert 149 <= age_seconds(cached, datetime.now(UTC)) <= 152


@pytest.fixture
def ask(site: Site, fetcher: Make, tmp_path: Path) -> Ask:
    """Return a function that fetches, by a redirect or not, and returns the conditions sent."""
    sent: dict[str, str] = {}

    def script(handler: BaseHTTPRequestHandler) -> None:
        sent.update({name: handler.headers[name] for name in CONDITIONS if name in handler.headers})
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    async def fetch(cached: Cached | None, redirects: int = 0) -> dict[str, str]:
        url = site.put("/x?key=s3cret", script=script)
        if redirects:
            url = site.put("/begin", status=302, headers={"Location": url})
        await fetcher().fetch(url, tmp_path, cached=cached)
        return sent

    return fetch


@pytest.mark.anyio
async def test_the_validators_become_conditions(ask: Ask) -> None:
    assert await ask(Cached(datetime.now(UTC))) == {}
    assert await ask(None) == {}
    cached = Cached(datetime.now(UTC), etag='"abc"', last_modified="Sat, 21 Nov 2026 12:00:00 GMT")
    assert await ask(cached) == {
        "If-None-Match": '"abc"',
        "If-Modified-Since": "Sat, 21 Nov 2026 12:00:00 GMT",
    }


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("url", "redirects", "is_sent"),
    [
        ("", 0, True),
        ("", 1, False),
        ("{}/x?key=***", 1, True),
        ("{}/y", 0, False),
        ("http://b.test/x?key=***", 1, False),
    ],
)
async def test_a_validator_is_sent_to_the_url_alone_that_gave_it(
    url: str, redirects: int, is_sent: bool, ask: Ask, site: Site
) -> None:
    stored_url = url.format(f"http://127.0.0.1:{site.port}")
    cached = Cached(datetime.now(UTC), etag='"abc"', url=stored_url)
    assert bool(await ask(cached, redirects)) is is_sent


@pytest.mark.anyio
async def test_a_validator_that_would_break_the_request_is_left_out(ask: Ask) -> None:
    cached = Cached(datetime.now(UTC), etag='"a"\r\nHost: x', last_modified="é")
    assert await ask(cached) == {}

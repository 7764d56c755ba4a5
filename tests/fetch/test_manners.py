"""robots.txt, concurrency, rate and retries."""

import time
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any

import anyio
import pytest
from hypothesis import given, strategies as st

from fetchstash.errors import FetchFailed, HttpError, Refused, RobotsRefused
from fetchstash.fetch._responses import retry_after_seconds, wait_after_failure, wait_after_status
from fetchstash.fetch._robots import MAX_BYTES, read_robots
from tests.fetch.sending import OK, Fetch, sends
from tests.loopback import Site

pytestmark = pytest.mark.anyio


async def test_a_server_that_is_busy_is_asked_again_and_answers(site: Site, fetch: Fetch) -> None:
    answers = [b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\n\r\n", OK + b"Content-Length: 2\r\n\r\nok"]

    def script(handler: BaseHTTPRequestHandler) -> None:
        sends(answers.pop(0))(handler)

    assert (await fetch(site.put("/busy", script=script))).size_bytes == 2


async def test_a_retry_after_beyond_the_deadline_is_an_error_with_its_seconds(
    site: Site, fetch: Fetch
) -> None:
    url = site.put("/busy", status=429, headers={"Retry-After": "3600"})
    with pytest.raises(HttpError, match="3600 s") as failed:
        await fetch(url)
    assert failed.value.details["retry_after_seconds"] == 3600
    assert len(site.asked) == 1


async def test_robots_txt_is_asked_once_and_obeyed_on_every_hop(site: Site, fetch: Fetch) -> None:
    rules = b"User-agent: fetchstash\nDisallow: /private\n\nUser-agent: *\nDisallow: /\n"
    site.put("/robots.txt", rules, "text/plain")
    hop = site.put("/hop", status=302, headers={"Location": "/private/x"})
    await fetch(site.put("/public", b"x"), respect_robots=True)
    with pytest.raises(RobotsRefused, match=r"robots\.txt of 127\.0\.0\.1 forbids"):
        await fetch(site.put("/private/x", b"x"), respect_robots=True)
    with pytest.raises(RobotsRefused, match=r"site that 127\.0\.0\.1 redirected to forbids"):
        await fetch(hop, respect_robots=True)
    await fetch(site.url("/robots.txt"), respect_robots=True)
    assert site.asked == ["/robots.txt", "/public", "/hop", "/robots.txt"]


async def test_ten_fetches_of_one_site_ask_robots_txt_once(site: Site, fetch: Fetch) -> None:
    site.put("/robots.txt", b"", "text/plain")
    urls = [site.put(f"/{number}", b"x") for number in range(10)]
    async with anyio.create_task_group() as tasks:
        for url in urls:
            tasks.start_soon(partial(fetch, url, respect_robots=True))
    assert site.asked.count("/robots.txt") == 1


async def test_a_robots_txt_that_fails_with_5xx_allows_nothing_for_a_while(
    site: Site, fetch: Fetch
) -> None:
    site.put("/robots.txt", status=500)
    url = site.put("/x", b"x")
    for _ in range(2):
        with pytest.raises(RobotsRefused, match="is unavailable, which forbids every page"):
            await fetch(url, respect_robots=True)
    assert site.asked == ["/robots.txt"]
    await fetch(url)


@pytest.mark.parametrize(
    ("there", "limits"),
    [
        ("http://127.0.0.2:{}/robots.txt", {}),
        ("http://localhost:{}/robots.txt", {"deny_domains": ("localhost",)}),
    ],
    ids=["an address inside", "a domain that is denied"],
)
async def test_a_robots_txt_that_leads_where_nobody_may_go_is_not_followed(
    there: str, limits: dict[str, Any], site: Site, fetch: Fetch
) -> None:
    site.put("/robots.txt", status=302, headers={"Location": there.format(site.port)})
    limits |= {"respect_robots": True, "allow_hosts": ("127.0.0.1", "localhost")}
    await fetch(site.put("/x", b"x"), **limits)
    assert site.asked == ["/robots.txt", "/x"]


async def test_requests_to_one_host_keep_to_the_concurrency(site: Site, fetch: Fetch) -> None:
    here = most = 0

    def script(handler: BaseHTTPRequestHandler) -> None:
        nonlocal here, most
        here += 1
        most = max(most, here)
        time.sleep(0.03)
        here -= 1
        sends(OK + b"Content-Length: 0\r\n\r\n")(handler)

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            url = site.put(f"/{number}", script=script)
            tasks.start_soon(partial(fetch, url, per_host_concurrency=2))
    assert most <= 2


async def test_requests_to_one_host_keep_to_the_rate(site: Site, fetch: Fetch) -> None:
    began = time.monotonic()
    for number in range(4):
        await fetch(site.put(f"/{number}", b"x"), per_host_rate=20)
    assert time.monotonic() - began >= 3 / 20


@pytest.mark.slow
async def test_a_missing_server_fails_after_its_retries(fetch: Fetch) -> None:
    with pytest.raises(FetchFailed, match="cannot be reached"):
        await fetch("http://127.0.0.1:9/")


DECISIONS = {
    "no rules": ("", "/a", True),
    "another's group": ("User-agent: other\nDisallow: /", "/a", True),
    "everyone's group": ("User-agent: *\nDisallow: /", "/a", False),
    "our group before everyone's": (
        "User-agent: *\nDisallow: /\nUser-agent: fetchstash\nDisallow: /b",
        "/a",
        True,
    ),
    "our empty group before everyone's": ("User-agent: fetchstash\nUser-agent: x", "/a", True),
    "one group for several": ("User-agent: x\nUser-agent: FetchStash\n\nDisallow: /a", "/a", False),
    "our groups add up": (
        "User-agent: fetchstash\nDisallow: /a\nUser-agent: x\nUser-agent: fetchstash\nDisallow: /b",
        "/b",
        False,
    ),
    "a version after our name": ("User-agent: fetchstash/2.0 (x)\nDisallow: /", "/a", False),
    "a longer name than ours": ("User-agent: fetchstasher\nDisallow: /", "/a", True),
    "other records close no group": (
        "User-agent: *\nSitemap: https://x/\nUser-agent: y\nDisallow: /",
        "/a",
        False,
    ),
    "a rule before any group": ("Disallow: /\nUser-agent: fetchstash", "/a", True),
    "the longest pattern": ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),
    "allow among equals": ("User-agent: *\nDisallow: /a\nAllow: /a", "/a", True),
    "an empty pattern": ("User-agent: *\nDisallow:", "/a", True),
    "a comment": ("User-agent: * # all\nDisallow: /a # b", "/a", False),
    "case in a path": ("User-agent: *\nDisallow: /A", "/a", True),
    "a star": ("User-agent: *\nDisallow: /a*z", "/abcz9", False),
    "a star that matches nothing": ("User-agent: *\nDisallow: /a*z", "/az", False),
    "stars in order": ("User-agent: *\nDisallow: /*b*a", "/ab", True),
    "an end": ("User-agent: *\nDisallow: /*.pdf$", "/x.pdf?a", True),
    "an end that matches": ("User-agent: *\nDisallow: /*.pdf$", "/x.pdf", False),
    "an end without a star": ("User-agent: *\nDisallow: /a$", "/a/", True),
    "an end behind overlapping parts": ("User-agent: *\nDisallow: /ab*bc$", "/abc", True),
    "a literal star": ("User-agent: *\nDisallow: /a-%2A.html", "/a-*.html", False),
    "a query": ("User-agent: *\nDisallow: /*?session=", "/a?session=1", False),
    "an escape in the file": ("User-agent: *\nDisallow: /%62%61r", "/bar", False),
    "an escape in the URL": ("User-agent: *\nDisallow: /a/ツ", "/a/%e3%83%84", False),
    "a reserved escape": ("User-agent: *\nDisallow: /a%2fb", "/a/b", True),
    "a byte order mark": ("\ufeffUser-agent: *\nDisallow: /", "/a", False),
    "line ends of all kinds": ("User-agent: *\r\rDisallow: /a\r\nDisallow: /b", "/b", False),
}


@pytest.mark.parametrize(("text", "path", "allowed"), DECISIONS.values(), ids=DECISIONS)
def test_a_robots_txt_decides_on_a_path(text: str, path: str, allowed: bool) -> None:
    assert read_robots(200, text.encode(), "fetchstash/1.0 (+x)").allows(path) is allowed


@pytest.mark.parametrize(
    ("status", "allowed"), [(200, False), (204, False), (404, True), (410, True), (503, False)]
)
def test_the_status_decides_whether_there_are_rules(status: int, allowed: bool) -> None:
    assert read_robots(status, b"User-agent: *\nDisallow: /", "x").allows("/a") is allowed


HOSTILE = {
    "agents times rules": b"useragent:x\n" * 20_000 + b"Allow:/\n" * 30_000,
    "everyone times rules": b"useragent:*\n" * 20_000 + b"Allow:/\n" * 30_000,
    "groups": b"useragent:*\nAllow:/\n" * 20_000,
    "many rules": b"useragent:*\n" + b"".join(b"Allow:/%d\n" % n for n in range(40_000)),
    "one rule of stars": b"useragent:*\nAllow:/" + b"*a" * 250_000,
    "characters to encode": b"useragent:*\nAllow:/" + "ツ".encode() * 150_000,
}


@pytest.mark.long
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_the_rules_that_are_kept_are_no_larger_than_their_text_encoded(body: bytes) -> None:
    robots = read_robots(200, body, "fetchstash")
    assert robots.size_bytes < 3 * MAX_BYTES
    assert robots.allows("/" + "a" * 8_000)


@given(st.binary(max_size=300), st.text("/a*$%?", max_size=20))
def test_any_robots_txt_is_read(body: bytes, path: str) -> None:
    assert read_robots(200, b"user-agent: *\nallow: " + body, "x").allows(path) in (True, False)


NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("Sat, 21 Nov 2026 12:01:30 GMT", 90),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0),
        ("Saturday, 21-Nov-26 12:00:10 GMT", 10),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("9" * 400, 315_360_000),
        ("Sat, 21 Nov 99999 12:00:10 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, seconds: int | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@given(st.text(max_size=60))
def test_any_retry_after_is_read_or_nothing(value: str) -> None:
    seconds = retry_after_seconds(value, NOW)
    assert seconds is None or 0 <= seconds <= 315_360_000


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_temporary_failure_is_retried_after_a_growing_wait(status: int) -> None:
    waits = [wait_after_status(status, {}, n, 60, NOW, jitter=lambda: 1.0) for n in range(3)]
    assert waits == [0.5, 1.0, None]


@pytest.mark.parametrize("status", [200, 301, 304, 400, 401, 403, 404, 410, 500, 501])
def test_a_permanent_failure_is_not_retried(status: int) -> None:
    assert wait_after_status(status, {"retry-after": "1"}, 0, 60, NOW) is None


def test_retry_after_is_obeyed_once_and_within_half_of_what_is_left() -> None:
    assert wait_after_status(503, {"retry-after": "7"}, 0, 60, NOW) == 7
    assert wait_after_status(503, {"retry-after": "30"}, 0, 60, NOW) == 30
    assert wait_after_status(503, {"retry-after": "31"}, 0, 60, NOW) is None
    assert wait_after_status(503, {"retry-after": "7"}, 1, 60, NOW) is None


def test_jitter_spreads_the_wait_over_its_upper_half() -> None:
    assert wait_after_failure(1, 60, jitter=lambda: 0.0) == 0.5
    assert wait_after_failure(1, 60, jitter=lambda: 1.0) == 1.0


def test_no_wait_goes_past_the_deadline() -> None:
    assert wait_after_failure(0, 0.1) is None


@pytest.mark.parametrize(
    ("text", "delay", "sitemaps"),
    [
        ("User-agent: *\nCrawl-delay: 2.5\nDisallow: /a", 2.5, ()),
        ("User-agent: *\nCrawl-delay: 9\n\nUser-agent: fetchstash\nAllow: /", 0, ()),
        ("User-agent: a\nUser-agent: fetchstash\nCrawl-delay: 3\nDisallow:", 3, ()),
        ("User-agent: *\nCrawl-delay: -1\nCrawl-delay: inf\nCrawl-delay: 1e9", 0, ()),
        ("Sitemap: /a\nUser-agent: x\nDisallow: /\nsitemap : http://b/c", 0, ("/a", "http://b/c")),
    ],
    ids=["everyone", "ours without", "ours", "no number", "sitemaps"],
)
def test_who_reads_a_site_learns_the_delay_of_its_group_and_all_sitemaps(
    text: str, delay: float, sitemaps: tuple[str, ...]
) -> None:
    rules = read_robots(200, text.encode(), "fetchstash/1.0")
    assert (rules.delay, tuple(rules.sitemaps.splitlines())) == (delay, sitemaps)


async def test_a_fetch_within_an_address_sends_nothing_to_where_a_redirect_leads_out(
    site: Site, fetch: Fetch
) -> None:
    site.put("/docs/in", status=302, headers={"Location": "/docs/b?x=/../out"})
    site.put("/docs/b?x=/../out", b"b")
    for name, there in {
        "up": "/out",
        "dots": "/docs/../out",
        "host": "http://localhost:1/docs/",
    }.items():
        site.put(f"/docs/{name}", status=302, headers={"Location": there})
        with pytest.raises(Refused, match="leads out of the site"):
            await fetch(site.url(f"/docs/{name}"), within=site.url("/docs/"))
    assert (await fetch(site.url("/docs/in"), within=site.url("/docs/"))).size_bytes == 1
    assert "/out" not in site.asked

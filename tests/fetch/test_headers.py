"""Headers: those of the operator for an origin, file names, and what a stored answer is worth."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from fetchstash.errors import BadArgument, HttpError
from fetchstash.fetch import (
    Cached,
    Fetched,
    FetchLimits,
    HttpFetcher,
    age_seconds,
    is_fresh,
    may_keep,
    origin_headers,
)
from tests.fetch.sending import Answers, Make
from tests.loopback import Site

pytestmark = [pytest.mark.anyio, pytest.mark.whole]
SECRET = "Bearer 5up3rs3cr3t"
ORIGIN = "https://api.example.org"

REFUSED: Mapping[str, tuple[str, str, str]] = {
    "no scheme": ("api.example.org", "authorization", "is no origin"),
    "another scheme": ("ftp://api.example.org", "authorization", "is no origin"),
    "a path": (f"{ORIGIN}/v1", "authorization", "is no origin"),
    "a query": (f"{ORIGIN}/?a=b", "authorization", "is no origin"),
    "a user name": ("https://me@api.example.org", "authorization", "is no origin"),
    "every host": ("https://*", "authorization", "is no origin"),
    "a name with a blank": (ORIGIN, "x y", "is no name of a header"),
    "a name with a line end": (ORIGIN, "x\r\ny", "is no name of a header"),
    **{
        name: (ORIGIN, name, "fetchstash sets itself")
        for name in (
            "Host",
            "content-length",
            "Connection",
            "Keep-Alive",
            "Proxy-Authorization",
            "TE",
            "Trailer",
            "Transfer-Encoding",
            "Upgrade",
            "Accept-Encoding",
            "If-None-Match",
            "Range",
        )
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_invalid_header_of_an_origin_is_refused_without_its_value(name: str) -> None:
    origin, header, words = REFUSED[name]
    with pytest.raises(BadArgument, match=words) as error:
        HttpFetcher(FetchLimits(headers={origin: {header: SECRET}}))
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("value", ["", " x", "x ", "a\r\nb: c", "a\x00b", "é"])
def test_a_value_that_could_end_the_header_is_refused(value: str) -> None:
    with pytest.raises(BadArgument, match="no header value"):
        origin_headers({ORIGIN: {"authorization": value}})


def test_one_origin_in_two_spellings_is_refused() -> None:
    tables = {ORIGIN: {"a": "1"}, "HTTPS://API.example.org:443/": {"b": "2"}}
    with pytest.raises(BadArgument, match="twice"):
        origin_headers(tables)


def test_limits_that_are_printed_show_no_header() -> None:
    assert SECRET not in repr(FetchLimits(headers={ORIGIN: {"authorization": SECRET}}))


class Recorder:
    """Pages that note which Authorization they were asked with."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.got: list[tuple[str, str | None]] = []

    def page(self, path: str, body: str = "page", status: int = 200, **headers: str) -> None:
        def answer(request: BaseHTTPRequestHandler) -> None:
            self.got.append((path, request.headers["Authorization"]))
            request.send_response(status)
            for name, value in {"Content-Type": "text/html", **headers}.items():
                request.send_header(name, value)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body.encode())

        self.site.put(path, script=answer)


async def fetched(site: Site, make: Make, folder: Path, path: str) -> Fetched:
    """Fetch a path of http://127.0.0.1, whose headers are set; http://localhost has none."""
    hosts = (f"127.0.0.1:{site.port}", f"localhost:{site.port}")
    headers = {f"http://127.0.0.1:{site.port}": {"Authorization": SECRET}}
    fetcher = make(allow_hosts=hosts, headers=headers, respect_robots=True)
    url = path if path.startswith("http") else site.url(path)
    return await fetcher.fetch(url, folder)


async def test_they_go_to_their_origin_and_within_it_and_not_with_robots_txt(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    recorder = Recorder(site)
    recorder.page("/robots.txt", "User-agent: *\nAllow: /")
    recorder.page("/a", status=302, Location="/b")
    recorder.page("/b")
    await fetched(site, fetcher, tmp_path, "/a")
    assert recorder.got == [("/robots.txt", None), ("/a", SECRET), ("/b", SECRET)]


async def test_they_do_not_go_to_another_origin_nor_back_from_one(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    recorder = Recorder(site)
    recorder.page("/a", status=302, Location=f"http://localhost:{site.port}/b")
    recorder.page("/b", status=307, Location=site.url("/c"))
    recorder.page("/c", "<meta http-equiv=refresh content='0;url=/d'>")
    recorder.page("/d")
    page = await fetched(site, fetcher, tmp_path, "/a")
    assert recorder.got == [("/a", SECRET), ("/b", None), ("/c", None)]
    assert page.left_origin
    recorder.got.clear()
    headers = {f"http://127.0.0.1:{site.port}": {"Authorization": SECRET}}
    again = fetcher(allow_hosts=("127.0.0.1",), headers=headers)
    there = replace(page, final_url=f"http://localhost:{site.port}/c")  # which is not exempted
    await again.fetch(site.url("/d"), tmp_path, after=there)
    assert recorder.got == [("/d", None)]


async def test_a_server_that_is_asked_first_cannot_choose_what_they_open(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    recorder = Recorder(site)
    recorder.page("/a", status=302, Location=site.url("/b"))
    recorder.page("/b")
    await fetched(site, fetcher, tmp_path, f"http://localhost:{site.port}/a")
    assert recorder.got == [("/a", None), ("/b", None)]


async def test_an_error_that_echoes_them_is_kept_without_them(
    site: Site, fetcher: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder(site)
    recorder.page("/a", f"you sent {SECRET}", status=403)
    with caplog.at_level(logging.DEBUG), pytest.raises(HttpError) as error:
        await fetched(site, fetcher, tmp_path, "/a")
    assert error.value.excerpt == "you sent …"
    recorder.page("/b", status=401)
    with pytest.raises(HttpError, match="does not take the login that the operator set"):
        await fetched(site, fetcher, tmp_path, "/b")
    recorder.page("/c", status=302, Location=f"http://localhost:{site.port}/b")
    with pytest.raises(HttpError, match="asks for a login"):
        await fetched(site, fetcher, tmp_path, "/c")
    assert SECRET not in caplog.text


DISPOSITIONS = {
    "plain": ('attachment; filename="report.pdf"', "report.pdf"),
    "token": ("attachment; filename=report.pdf", "report.pdf"),
    "inline": ('inline; filename="a b.txt"', "a b.txt"),
    "extended": ("attachment; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
    "extended goes first": (
        "attachment; filename=\"x.txt\"; filename*=UTF-8'en'%e2%82%ac.txt",
        "€.txt",
    ),
    "extended in Latin-1": ("attachment; filename*=iso-8859-1''%A3.txt", "£.txt"),
    "extended in an unknown charset": (
        "attachment; filename=x.txt; filename*=koi8-r''%A3.txt",
        "x.txt",
    ),
    "quoted characters": (r'attachment; filename="a\"b.txt"', 'a"b.txt'),
    "semicolon in quotes": ('attachment; filename="a;b.txt"', "a;b.txt"),
    "upper case": ('ATTACHMENT; FILENAME="x"', "x"),
    "none": ("attachment", ""),
    "first of two": ('attachment; filename="a"; filename="b"', "a"),
}


@pytest.fixture
def http(fetcher: Make) -> HttpFetcher:
    return fetcher()


async def name_under(site: Site, http: HttpFetcher, folder: Path, disposition: str) -> str:
    """Return the name of what comes with this header."""
    url = site.put("/x.bin", b"x", headers={"Content-Disposition": disposition})
    return (await http.fetch(url, folder)).name


@pytest.mark.parametrize("kind", ["thread+json", "film+html; charset=utf-8"])
async def test_no_server_claims_a_media_type_of_ours(
    site: Site, http: HttpFetcher, tmp_path: Path, kind: str
) -> None:
    claimed = site.put("/x", b"{}", f"Application/vnd.fetchstash.{kind}")
    fetched = await http.fetch(claimed, tmp_path)
    assert fetched.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(("header", "name"), DISPOSITIONS.values(), ids=DISPOSITIONS)
async def test_content_disposition_gives_the_name(
    site: Site, http: HttpFetcher, tmp_path: Path, header: str, name: str
) -> None:
    # That of the path where the header has none.
    expected = name.replace('"', "_") or "x.bin"
    assert await name_under(site, http, tmp_path, header) == expected


@pytest.mark.parametrize(
    ("given_name", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\x\\y.txt", "y.txt"),
        ("..", ""),
        (".", ""),
        ("a\x00b\r\nc", "ab c"),
        ("a:b|c", "a_b_c"),
        ("  ", ""),
    ],
)
async def test_a_name_has_no_folders_and_no_control_characters(
    site: Site, http: HttpFetcher, tmp_path: Path, given_name: str, safe: str
) -> None:
    header = f"attachment; filename*=UTF-8''{quote(given_name, safe='')}"
    assert await name_under(site, http, tmp_path, header) == (safe or "x.bin")


async def test_a_long_name_keeps_its_extension(
    site: Site, http: HttpFetcher, tmp_path: Path
) -> None:
    name = await name_under(site, http, tmp_path, f"attachment; filename={'a' * 500}.pdf")
    assert len(name) == 200
    assert name.endswith("a.pdf")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/x/report%20final.pdf?v=1", "report final.pdf"),
        ("/x/", "x"),
        ("/", "a.test"),
        ("/%2e%2e%2f%2e%2e", "a.test"),
    ],
)
async def test_the_path_or_else_the_host_gives_the_name_if_no_header_does(
    site: Site, tmp_path: Path, path: str, name: str
) -> None:
    site.put(path, b"x")
    limits = FetchLimits(allow_hosts=("a.test",), respect_robots=False)
    http = HttpFetcher(limits, resolver=Answers("127.0.0.1"))
    fetched = await http.fetch(f"http://a.test:{site.port}{path}", tmp_path)
    await http.aclose()
    assert fetched.name == name


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=300), st.booleans())
async def test_any_header_gives_a_name_that_stays_in_its_folder(
    site: Site, http: HttpFetcher, tmp_path: Path, text: str, encoded: bool
) -> None:
    plain = "".join(char for char in text if char.isprintable() and char <= "\xff")
    value = f"*=UTF-8''{quote(text, errors='replace')}" if encoded else f"={plain}"
    name = await name_under(site, http, tmp_path, f"attachment; filename{value}")
    assert 0 < len(name) <= 200
    assert not set(name) & set('/\\\x00\n\r<>:"|?*')
    assert name not in {".", ".."}


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


async def test_the_validators_become_conditions(ask: Ask) -> None:
    assert await ask(Cached(datetime.now(UTC))) == {}
    assert await ask(None) == {}
    cached = Cached(datetime.now(UTC), etag='"abc"', last_modified="Sat, 21 Nov 2026 12:00:00 GMT")
    assert await ask(cached) == {
        "If-None-Match": '"abc"',
        "If-Modified-Since": "Sat, 21 Nov 2026 12:00:00 GMT",
    }


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


async def test_a_validator_that_would_break_the_request_is_left_out(ask: Ask) -> None:
    cached = Cached(datetime.now(UTC), etag='"a"\r\nHost: x', last_modified="é")
    assert await ask(cached) == {}

"""Cookies of one fetch, and those of a file that the operator names for an origin."""

import json
import logging
from collections.abc import AsyncGenerator, Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fetchstash.errors import BadArgument, FetchFailed, HttpError
from fetchstash.fetch import FetchLimits, HttpFetcher
from fetchstash.fetch._cookies import (
    MAX_COOKIES,
    MAX_COOKIES_OF_A_DOMAIN,
    MAX_HEADER_BYTES,
    Jar,
    cookie_date,
)
from fetchstash.text.urls import parse
from tests.fetch.sending import Make, content
from tests.loopback import Site
from tests.public import fetcher_of, proxy_to

pytestmark = [pytest.mark.anyio, pytest.mark.whole]
NOW = 1_800_000_000.0
SECRET = "s3cr3t-s3ss10n"


def sent(field: str, setter: str, asked: str, *more: str, seconds: float = 0) -> str:
    """Return the Cookie header for ``asked`` after ``setter`` set ``field`` and ``more``."""
    jar = Jar()
    jar.take([field, *more], parse(setter, 9_999), NOW)
    return jar.header(parse(asked, 9_999), NOW + seconds)


WWW = "https://www.shop.co.uk/a/b/c?x=/d"
SHOP, A, PAGES = "https://www.shop.co.uk", "https://a.org", "https://github.io"
SCOPES = {
    "host alone": ("k=v", WWW, SHOP + "/a/b/", "k=v"),
    "no sub-domain of it": ("k=v", WWW, "https://x.www.shop.co.uk/a/b/", ""),
    "nor its parent": ("k=v", WWW, "https://shop.co.uk/a/b/", ""),
    "another port": ("k=v", WWW, "https://www.shop.co.uk:8443/a/b/", "k=v"),
    "its domain": ("k=v; Domain=.Shop.co.uk; Path=/", WWW, "https://a.b.shop.co.uk/", "k=v"),
    "a name that ends like it": ("k=v; domain=shop.co.uk; path=/", WWW, "https://ashop.co.uk", ""),
    "a public suffix": ("k=v; domain=co.uk; path=/", WWW, "https://other.co.uk/", ""),
    "a private one": ("k=v; domain=github.io", "https://me.github.io", "https://x.github.io", ""),
    "a suffix that nobody listed": ("k=v; domain=corp", "https://a.corp", "https://a.corp", ""),
    "a suffix that is the host": ("k=v; domain=github.io", PAGES, PAGES, "k=v"),
    "and no host below it": ("k=v; domain=github.io", PAGES, "https://a.github.io", ""),
    "another site": ("k=v; domain=evil.org", WWW, "https://evil.org/", ""),
    "longer": ("k=v; domain=x.www.shop.co.uk", WWW, "https://x.www.shop.co.uk/", ""),
    "an empty domain": ("k=v; domain=; path=/", WWW, SHOP + "/", "k=v"),
    "a dot behind": ("k=v; domain=shop.co.uk.; path=/", WWW, SHOP + "/", ""),
    "no domain at all": ("k=v; domain=[; path=/", WWW, SHOP + "/", ""),
    "an address": ("k=v; domain=1.2.3.4", "https://1.2.3.4", "https://1.2.3.4", "k=v"),
    "a part of one": ("k=v; domain=3.4", "https://1.2.3.4", "https://1.2.3.4", ""),
    "in letters of any script": (
        "k=v; domain=BÜCHER.de; path=/",
        "https://a.xn--bcher-kva.de",
        "https://bücher.de",
        "k=v",
    ),
    "the folder": ("k=v", WWW, SHOP + "/a/b", "k=v"),
    "not beside it": ("k=v", WWW, SHOP + "/a/bc", ""),
    "a path": ("k=v; Path=/x", WWW, SHOP + "/x/y", "k=v"),
    "a path with a slash": ("k=v; Path=/x/", WWW, SHOP + "/x", ""),
    "no path": ("k=v; Path=x", WWW, SHOP + "/a/b/z", "k=v"),
    "secure": ("k=v; Secure; Path=/", WWW, "http://www.shop.co.uk/", ""),
    "secure, kept secure": ("k=v; Secure; Path=/", WWW, SHOP + "/", "k=v"),
    "secure over plain HTTP": ("k=v; Secure", "http://a.org", A, ""),
    "for other sites, not secure": ("k=v; SameSite=None", A, A, ""),
    "for other sites, secure": ("k=v; SameSite=None; Secure", A, A, "k=v"),
    "Secure by name": ("__Secure-k=v", A, A, ""),
    "Secure indeed": ("__Secure-k=v; Secure", A, A, "__Secure-k=v"),
    "Host by name": ("__host-k=v; Secure; Path=/; Domain=a.org", A, A, ""),
    "Host without a path": ("__Host-k=v; Secure", A, A, ""),
    "Host indeed": ("__Host-k=v; Secure; Path=/", A, A, "__Host-k=v"),
    "a prefix without a name": ("__Host-k; Secure; Path=/", A, A, ""),
    "no name": ("v", A, A, "v"),
    "an empty name": ("=v", A, A, "v"),
    "an empty value": ("k=", A, A, "k="),
    "nothing": ("=; Path=/", A, A, ""),
    "an equals sign": (" k = a=b ", A, A, "k=a=b"),
    "a line end": ("k=a\r\nX: b", A, A, ""),
    "too long": ("k=" + "v" * 4_096, A, A, ""),
    "as long as may be": ("k=" + "v" * 4_095, A, A, "k=" + "v" * 4_095),
    "an overlong attribute": ("k=v; Path=/" + "x" * 1_024, A, A, "k=v"),
    "spent": ("k=v; Max-Age=0", A, A, ""),
    "spent by date": ("k=v; Expires=1 Jan 1970 00:00:00", A, A, ""),
    "max-age before expires": ("k=v; Max-Age=9; Expires=1 Jan 1970 00:00:00", A, A, "k=v"),
    "no date": ("k=v; Expires=soon; Max-Age=x", A, A, "k=v"),
}


@pytest.mark.parametrize(("field", "setter", "asked", "header"), SCOPES.values(), ids=SCOPES)
def test_a_cookie_goes_where_it_belongs_and_nowhere_else(
    field: str, setter: str, asked: str, header: str
) -> None:
    assert sent(field, setter, asked) == header


def test_a_cookie_is_replaced_taken_back_and_ends_and_longer_paths_come_first() -> None:
    here = "https://a.org/x/y"
    assert sent("a=1; Path=/", here, here, "b=2", "a=3; Path=/", "c=4; Path=/") == "b=2; a=3; c=4"
    assert sent("a=1", here, here, "a=; Max-Age=0") == ""
    assert sent("a=1; Max-Age=10", here, here, seconds=11) == ""


@pytest.mark.whole
@pytest.mark.parametrize("host", ["a.org", "www.a.org"])
@pytest.mark.parametrize("rest", ["Path=/", "Path=/; Domain=a.org", "Path=/x"])
def test_plain_http_replaces_no_secure_cookie(host: str, rest: str) -> None:
    jar = Jar()
    jar.take(["k=safe; Secure; Path=/; Domain=a.org"], parse("https://www.a.org/", 99), NOW)
    jar.take([f"k=evil; {rest}"], parse(f"http://{host}/", 99), NOW)
    assert jar.header(parse(f"https://{host}/x", 99), NOW) == "k=safe"


def test_a_jar_has_bounds() -> None:
    jar = Jar()
    for host in ("a", "b", "c"):
        fields = [f"{host}{number}=v; Path=/" for number in range(60)]
        jar.take(fields, parse(f"https://{host}.org/", 99), NOW)
    assert len(jar.values()) == MAX_COOKIES
    last = jar.header(parse("https://c.org/", 99), NOW).split("; ")
    assert last == [f"c{number}=v" for number in range(10, 60)]
    assert len(last) == MAX_COOKIES_OF_A_DOMAIN
    jar.take([f"x{number}={'v' * 4_000}" for number in range(9)], parse("https://d.org/", 99), NOW)
    assert 4_000 < len(jar.header(parse("https://d.org/", 99), NOW)) <= MAX_HEADER_BYTES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777),
        ("6 november 1994 8:49:37", 784_111_777),
        ("08:49:37 6 Nov 94 and more", 784_111_777),
        ("Fri, 01 Jan 0069 00:00:00", 3_124_224_000),
        ("01 Jan 69 00:00:00", 3_124_224_000),
        ("31 Feb 2020 00:00:00", None),
        ("01 Jan 2020 24:00:00", None),
        ("01 Jan 1600 00:00:00", None),
        ("01 Jan 2020", None),
        ("", None),
    ],
)
def test_a_date_is_read_as_browsers_read_it(text: str, expected: float | None) -> None:
    assert cookie_date(text) == expected


Answer = Callable[[str, str], tuple[int, dict[str, str], str]]


def asks(site: Site, paths: str, answer: Answer, got: list[tuple[str, str]]) -> None:
    """Answer each of ``paths`` by host and Cookie header, and note both."""

    def script(request: BaseHTTPRequestHandler) -> None:
        request.close_connection = True
        cookie, host = request.headers.get("Cookie", ""), request.headers["Host"].partition(":")[0]
        got.append((host + request.path, cookie))
        status, headers, body = answer(host + request.path, cookie)
        request.send_response(status)
        for name, value in headers.items():
            for line in value.split("\n"):
                request.send_header(name, line)
        request.send_header("Content-Length", str(len(body.encode())))
        request.end_headers()
        request.wfile.write(body.encode())

    for path in paths.split():
        site.put(path, script=script)


@pytest.fixture
async def public(site: Site) -> AsyncGenerator[HttpFetcher]:
    """A fetcher for which every name leads to the site, which is a public one."""
    with proxy_to(site) as proxy:
        http = fetcher_of(FetchLimits(proxy=proxy))
        yield http
        await http.aclose()


async def test_a_redirect_that_wants_its_cookie_back_ends_at_the_article_and_no_fetch_knows_another(
    site: Site, public: HttpFetcher, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(place: str, cookie: str) -> tuple[int, dict[str, str], str]:
        if "/robots.txt" in place:
            return 200, {"Set-Cookie": "robot=1; Path=/"}, "user-agent: *\nallow: /"
        if place == "news.example/a" and "seen=" in cookie:
            return 200, {"Set-Cookie": f"late={SECRET}"}, "the article"
        if place == "gate.news.example/":
            own = "own=1; Expires=Sun, 06 Nov 2094 08:49:37 GMT"
            cookies = f"seen={SECRET}; Domain=news.example; Path=/\n{own}"
            return 302, {"Set-Cookie": cookies, "Location": "http://news.example/a"}, ""
        return 302, {"Location": "http://gate.news.example/"}, ""

    got: list[tuple[str, str]] = []
    asks(site, "/robots.txt /a /", answer, got)
    caplog.set_level(logging.DEBUG)
    for _ in range(2):
        got.clear()
        fetched = await public.fetch("http://news.example/a", tmp_path)
        assert content(fetched) == b"the article"
        assert [entry for entry in got if "robots" not in entry[0]] == [
            ("news.example/a", ""),
            ("gate.news.example/", ""),
            ("news.example/a", f"seen={SECRET}"),
        ]
        assert not any(cookie for place, cookie in got if "robots" in place)
        shown = f"{fetched}{fetched.headers}{fetched.cookies}"
        assert SECRET not in shown + caplog.text
        assert "set-cookie" not in fetched.headers


async def test_a_cookie_goes_to_no_other_site_and_to_the_page_that_a_page_leads_to(
    site: Site, public: HttpFetcher, tmp_path: Path
) -> None:
    def answer(place: str, cookie: str) -> tuple[int, dict[str, str], str]:
        if place == "a.example/":
            headers = {"Set-Cookie": "k=v; Path=/\nj=v; Domain=example"}
            return 302, headers | {"Location": "http://b.example/"}, ""
        if place == "b.example/":
            headers = {"Set-Cookie": "l=v"}
            return 302, headers | {"Location": "http://a.example/end"}, ""
        return 404 if "robots" in place else 200, {}, "<meta http-equiv=refresh content='0;/next'>"

    got: list[tuple[str, str]] = []
    asks(site, "/robots.txt / /end /next", answer, got)
    page = await public.fetch("http://a.example/", tmp_path)
    await public.fetch("/next", tmp_path, after=page)
    assert [entry for entry in got if "robots" not in entry[0]] == [
        ("a.example/", ""),
        ("b.example/", ""),
        ("a.example/end", "k=v"),
        ("a.example/next", "k=v"),
    ]


async def test_an_error_page_that_echoes_a_cookie_is_shown_without_it(
    site: Site, public: HttpFetcher, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(place: str, cookie: str) -> tuple[int, dict[str, str], str]:
        if "/robots" in place or cookie:
            return 404, {}, f"no such page for {cookie}"
        return 302, {"Set-Cookie": f"k={SECRET}; Path=/", "Location": "/b"}, ""

    asks(site, "/robots.txt /a /b", answer, [])
    caplog.set_level(logging.DEBUG)
    with pytest.raises(HttpError) as error:
        await public.fetch("http://a.example/a", tmp_path)
    assert error.value.excerpt == "no such page for k=…"
    assert SECRET not in caplog.text + str(error.value.details)


def netscape(*lines: tuple[str, ...]) -> str:
    return "# Netscape HTTP Cookie File\n\n" + "".join("\t".join(line) + "\n" for line in lines)


def cookie(name: str, domain: str = "127.0.0.1", expires: str = "0") -> tuple[str, ...]:
    below = "TRUE" if domain.startswith(".") else "FALSE"
    return domain, below, "/", "FALSE", expires, name, SECRET


def playwright(*cookies: dict[str, object]) -> str:
    base = {"path": "/", "expires": -1, "secure": False, "httpOnly": True, "sameSite": "Lax"}
    return json.dumps({"cookies": [base | cookie for cookie in cookies], "origins": []})


FILES = {
    "Netscape": netscape(
        cookie("one"),
        ("#HttpOnly_127.0.0.1", *cookie("two")[1:]),
        cookie("old", expires="1700000000"),
        cookie("other", ".example.org"),
    ),
    "Playwright": playwright(
        {"name": "one", "value": SECRET, "domain": "127.0.0.1"},
        {"name": "two", "value": SECRET, "domain": "127.0.0.1", "expires": 99_999_999_999.5},
        {"name": "old", "value": SECRET, "domain": "127.0.0.1", "expires": 1_700_000_000},
        {"name": "tls", "value": SECRET, "domain": "127.0.0.1", "secure": True},
        {"name": "other", "value": SECRET, "domain": ".example.org"},
    ),
}


def private(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return f"file:{path}"


@pytest.mark.parametrize("kind", FILES)
async def test_cookies_of_a_file_go_to_their_origin_alone_and_are_never_shown(
    kind: str, site: Site, fetcher: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = f"http://localhost:{site.port}"

    def answer(place: str, _: str) -> tuple[int, dict[str, str], str]:
        to = {"127.0.0.1/a": "/b", "127.0.0.1/b": f"{other}/c", "localhost/c": site.url("/d")}
        if place.endswith("/robots.txt"):
            return 404, {}, ""
        status = 302 if place in to else 403
        return status, {"Location": to.get(place, ""), "Set-Cookie": "one=new; Path=/"}, SECRET

    got: list[tuple[str, str]] = []
    asks(site, "/robots.txt /a /b /c /d", answer, got)
    origin = site.url("/")[:-1]
    limits = {"headers": {origin: {"cookie": private(tmp_path / "jar", FILES[kind])}}}
    hosts = (f"127.0.0.1:{site.port}", f"localhost:{site.port}")
    caplog.set_level(logging.DEBUG)
    http = fetcher(allow_hosts=hosts, respect_robots=True, **limits)
    with pytest.raises(HttpError):
        await http.fetch(site.url("/a"), tmp_path)
    assert [entry for entry in got if "robots" not in entry[0]] == [
        ("127.0.0.1/a", f"one={SECRET}; two={SECRET}"),
        ("127.0.0.1/b", f"one=new; two={SECRET}"),
        ("localhost/c", ""),
        ("127.0.0.1/d", "one=new"),  # which this fetch was given itself
    ]
    assert not any(sent for place, sent in got if "robots" in place)
    with pytest.raises(HttpError) as error:
        await http.fetch(site.url("/d"), tmp_path)
    assert error.value.excerpt == "…"
    assert SECRET not in caplog.text + repr(FetchLimits(headers=limits["headers"]))


BROKEN = {
    "words": ("no cookies at all", "is no file of cookies (line 1)"),
    "six fields": ("a\tb\tc\td\te\tf", "is no file of cookies (line 1)"),
    "other JSON": ('{"a": 1}', "is no file of cookies"),
    "a cookie without a name": ('{"cookies": [{"value": "x"}]}', "cookies (cookie 1)"),
    "a line end": (playwright({"name": "a", "value": "b\nc", "domain": "x"}), "(cookie 1)"),
    "cut JSON": ('{"cookies": [', "is no file of cookies"),
    "nothing for it": (FILES["Netscape"].replace("127.0.0.1", "a.test"), "has no cookie for 127"),
    "too much": ("#" * (2**20 + 1), "is larger than 1 MiB"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_file_that_holds_no_cookies_is_named_in_one_line(fault: str, tmp_path: Path) -> None:
    text, words = BROKEN[fault]
    headers = {"http://127.0.0.1": {"Cookie": private(tmp_path / "jar", text)}}
    with pytest.raises(BadArgument) as error:
        HttpFetcher(FetchLimits(headers=headers))
    assert words in error.value.what
    assert error.value.what.startswith('fetch.headers."http://127.0.0.1".cookie names')
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o601])
def test_a_file_that_others_may_open_is_refused(mode: int, tmp_path: Path) -> None:
    named = private(tmp_path / "jar", FILES["Netscape"])
    (tmp_path / "jar").chmod(mode)
    with pytest.raises(BadArgument, match=r"is open to other users\. Run chmod 600"):
        HttpFetcher(FetchLimits(headers={"http://127.0.0.1": {"cookie": named}}))


@pytest.mark.parametrize(
    ("path", "words"),
    [("jar", "no absolute path"), ("/no/jar", "cannot be read"), ("/", "cannot be read")],
)
def test_a_path_that_names_no_file_is_refused(path: str, words: str) -> None:
    with pytest.raises(BadArgument, match=words):
        HttpFetcher(FetchLimits(headers={"http://127.0.0.1": {"cookie": f"file:{path}"}}))


async def test_a_file_is_read_again_when_it_changes_and_its_faults_are_the_operators(
    site: Site, fetcher: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    got: list[tuple[str, str]] = []
    asks(site, "/a", lambda _place, _cookie: (200, {}, "x"), got)
    named = private(tmp_path / "jar", netscape(cookie("first")))
    http = fetcher(headers={site.url("/"): {"cookie": named}})
    await http.fetch(site.url("/a"), tmp_path)
    private(tmp_path / "jar", netscape(cookie("second")))
    await http.fetch(site.url("/a"), tmp_path)
    private(tmp_path / "jar", netscape(cookie("third", expires="1700000000")))
    await http.fetch(site.url("/a"), tmp_path)
    assert [header for _, header in got] == [f"first={SECRET}", f"second={SECRET}", ""]
    assert "have expired: export them again" in caplog.text
    (tmp_path / "jar").unlink()
    with pytest.raises(FetchFailed, match="cannot be read") as error:
        await http.fetch(site.url("/a"), tmp_path)
    assert str(tmp_path) not in error.value.line()
    assert str(tmp_path) in caplog.text

"""Request headers that the operator sets for an origin: what is refused, and where they go."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fetchstash.errors import BadArgument, HttpError
from fetchstash.fetch import Fetched, FetchLimits, HttpFetcher, origin_headers
from tests.fetch.sending import Make
from tests.loopback import Site

pytestmark = pytest.mark.anyio
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
            "Host", "content-length", "Connection", "Keep-Alive", "Proxy-Authorization", "TE",
            "Trailer", "Transfer-Encoding", "Upgrade", "Accept-Encoding", "If-None-Match", "Range",
        )
    },
}  # fmt: skip


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
    assert SECRET not in caplog.text

"""robots.txt, concurrency, rate and retries."""

import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import anyio
import pytest

from fetchstash.errors import FetchFailed, HttpError, RobotsRefused
from tests.fetch.sending import Make, sends
from tests.loopback import Site

pytestmark = pytest.mark.anyio


async def test_a_server_that_is_busy_is_asked_again_and_then_answers(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    answers = [
        b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ]

    def script(handler: BaseHTTPRequestHandler) -> None:
        sends(answers.pop(0))(handler)

    url = site.put("/busy", script=script)
    assert (await fetcher().fetch(url, tmp_path)).size_bytes == 2


async def test_a_retry_after_beyond_the_deadline_is_an_error_with_its_seconds(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    url = site.put("/busy", status=429, headers={"Retry-After": "3600"})
    with pytest.raises(HttpError, match="3600 s") as failed:
        await fetcher().fetch(url, tmp_path)
    assert failed.value.details["retry_after_seconds"] == 3600
    assert len(site.asked) == 1


async def test_robots_txt_is_asked_once_and_obeyed_on_every_hop(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    site.put(
        "/robots.txt",
        b"User-agent: fetchstash\nDisallow: /private\n\nUser-agent: *\nDisallow: /\n",
        "text/plain",
    )
    public, private = site.put("/public", b"x"), site.put("/private/x", b"x")
    hop = site.put("/hop", status=302, headers={"Location": "/private/x"})
    http = fetcher(respect_robots=True)
    await http.fetch(public, tmp_path)
    with pytest.raises(RobotsRefused, match=r"robots\.txt of 127\.0\.0\.1 forbids"):
        await http.fetch(private, tmp_path)
    with pytest.raises(RobotsRefused, match=r"site that 127\.0\.0\.1 redirected to forbids"):
        await http.fetch(hop, tmp_path)
    await http.fetch(site.url("/robots.txt"), tmp_path)
    assert site.asked == ["/robots.txt", "/public", "/hop", "/robots.txt"]


async def test_ten_fetches_of_one_site_ask_robots_txt_once(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    site.put("/robots.txt", b"", "text/plain")
    urls = [site.put(f"/{number}", b"x") for number in range(10)]
    http = fetcher(respect_robots=True)
    async with anyio.create_task_group() as tasks:
        for url in urls:
            tasks.start_soon(http.fetch, url, tmp_path)
    assert site.asked.count("/robots.txt") == 1


async def test_a_robots_txt_that_fails_with_5xx_allows_nothing_for_a_while(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    site.put("/robots.txt", status=500)
    http, url = fetcher(respect_robots=True), site.put("/x", b"x")
    for _ in range(2):
        with pytest.raises(RobotsRefused, match="is unavailable, which forbids every page"):
            await http.fetch(url, tmp_path)
    assert site.asked == ["/robots.txt"]
    await fetcher(respect_robots=False).fetch(url, tmp_path)


async def test_a_robots_txt_that_leads_inside_is_not_followed(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    site.put("/robots.txt", status=302, headers={"Location": "http://10.0.0.1/robots.txt"})
    await fetcher(respect_robots=True).fetch(site.put("/x", b"x"), tmp_path)


async def test_requests_to_one_host_keep_to_the_concurrency(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    here = most = 0

    def script(handler: BaseHTTPRequestHandler) -> None:
        nonlocal here, most
        here += 1
        most = max(most, here)
        time.sleep(0.03)
        here -= 1
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(handler)

    http = fetcher(per_host_concurrency=2)
    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(http.fetch, site.put(f"/{number}", script=script), tmp_path)
    assert most <= 2


async def test_requests_to_one_host_keep_to_the_rate(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    http = fetcher(per_host_rate=20)
    began = time.monotonic()
    for number in range(4):
        await http.fetch(site.put(f"/{number}", b"x"), tmp_path)
    assert time.monotonic() - began >= 3 / 20


@pytest.mark.slow
async def test_a_missing_server_fails_after_its_retries(fetcher: Make, tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="cannot be reached"):
        await fetcher().fetch("http://127.0.0.1:9/", tmp_path)

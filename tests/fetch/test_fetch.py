"""A fetch as a whole, against a real server on loopback: what comes back, what is kept, and what is left behind."""

import asyncio
import gzip
import hashlib
import logging
import ssl
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
import trustme

from fetchstash.errors import FetchFailed, FetchstashError, HttpError, Refused, RobotsRefused, StoreError, TimedOut, TooLarge
from fetchstash.fetch import Cached, FetchLimits, HttpFetcher
from tests.loopback import Site

pytestmark = pytest.mark.anyio
LOCAL = ("127.0.0.1",)
Make = Callable[..., HttpFetcher]


@pytest.fixture
async def fetcher() -> AsyncGenerator[Make]:
    """Make fetchers that may go to loopback, and close them in the end."""
    made: list[HttpFetcher] = []

    def make(**limits: object) -> HttpFetcher:
        made.append(HttpFetcher(FetchLimits(**({"allow_hosts": LOCAL, "respect_robots": False} | limits))))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        await one.aclose()


def sends(*parts: bytes, pause: float = 0, times: int = 1) -> Callable[[BaseHTTPRequestHandler], None]:
    """Return a script that sends ``parts`` as they are, the last ``times`` times over, and closes the connection."""

    def script(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        try:
            for part in (*parts[:-1], *(parts[-1] for _ in range(times))):
                handler.connection.sendall(part)
                time.sleep(pause)
        except OSError:
            pass  # the client had enough

    return script


async def test_a_body_comes_back_as_a_private_file_with_its_facts(site: Site, fetcher: Make, tmp_path: Path) -> None:
    url = site.put("/docs/read%20me.txt?token=abc", b"hello", "text/plain", headers={"X-Two": "a"})
    fetched = await fetcher().fetch(url, tmp_path)
    assert fetched.path is not None
    assert fetched.path.parent == tmp_path
    assert fetched.path.read_bytes() == b"hello"
    assert fetched.status == 200
    assert fetched.headers["content-type"] == "text/plain"
    assert (fetched.size_bytes, fetched.sha256) == (5, hashlib.sha256(b"hello").hexdigest())
    assert (fetched.name, fetched.incomplete, fetched.not_modified) == ("read me.txt", "", False)
    assert fetched.url == fetched.final_url == url
    assert fetched.masked_url == fetched.masked_final_url == url.replace("abc", "***")
    if sys.platform != "win32":
        assert stat.S_IMODE(fetched.path.stat().st_mode) == 0o600


async def test_a_request_says_truthfully_who_asks_and_sends_nothing_else_about_anybody(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    seen: dict[str, str] = {}

    def script(handler: BaseHTTPRequestHandler) -> None:
        seen.update(handler.headers)
        sends(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")(handler)

    url = site.put("/x", script=script)
    one = fetcher()
    await one.fetch(url, tmp_path)
    await one.fetch(url, tmp_path)
    assert set(seen) == {"Host", "User-Agent", "Accept", "Accept-Encoding"}
    assert seen["User-Agent"].startswith("fetchstash/")
    assert seen["Accept"].startswith("text/markdown")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_to_the_document(site: Site, fetcher: Make, tmp_path: Path, status: int) -> None:
    site.put("/end?key=s", b"there")
    url = site.put("/begin", status=status, headers={"Location": "/end?key=s"})
    fetched = await fetcher().fetch(url, tmp_path)
    assert fetched.final_url == site.url("/end?key=s")
    assert fetched.masked_final_url == site.url("/end?key=***")
    assert fetched.size_bytes == 5


@pytest.mark.parametrize(
    "location",
    ["http://localhost/", "http://10.0.0.1/", "http://[::1]/", "//169.254.169.254/", "ftp://127.0.0.1/", "http://a@b.org/"],
)
async def test_a_redirect_to_where_nobody_may_go_is_refused(site: Site, fetcher: Make, tmp_path: Path, location: str) -> None:
    url = site.put("/begin", status=302, headers={"Location": location})
    with pytest.raises(Refused):
        await fetcher().fetch(url, tmp_path)
    assert list(tmp_path.iterdir()) == []


async def test_redirects_end_after_their_limit(site: Site, fetcher: Make, tmp_path: Path) -> None:
    url = site.put("/round", status=302, headers={"Location": "/round"})
    with pytest.raises(FetchFailed, match="more than 3 redirects"):
        await fetcher(max_redirects=3).fetch(url, tmp_path)
    assert len(site.asked) == 4


async def test_a_4xx_is_an_error_with_its_status_and_a_short_excerpt_that_is_not_in_the_line(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    url = site.put("/gone", gzip.compress(b"<p>no\n\x1b[31m such page</p>" * 500), status=404, headers={"Content-Encoding": "gzip"})
    with pytest.raises(HttpError) as failed:
        await fetcher().fetch(url, tmp_path)
    assert failed.value.line().startswith("[http_error] 127.0.0.1 answered 404 Not Found. ")
    assert failed.value.details["status"] == 404
    assert failed.value.details["excerpt"].startswith("<p>no")
    assert len(failed.value.details["excerpt"]) <= 500
    assert "such page" not in failed.value.line()
    assert list(tmp_path.iterdir()) == []


async def test_a_server_that_is_busy_is_asked_again_and_then_answers(site: Site, fetcher: Make, tmp_path: Path) -> None:
    answers = [b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"]

    def script(handler: BaseHTTPRequestHandler) -> None:
        sends(answers.pop(0))(handler)

    url = site.put("/busy", script=script)
    assert (await fetcher().fetch(url, tmp_path)).size_bytes == 2


async def test_a_wait_longer_than_the_deadline_is_told_as_seconds(site: Site, fetcher: Make, tmp_path: Path) -> None:
    url = site.put("/busy", status=429, headers={"Retry-After": "3600"})
    with pytest.raises(HttpError, match="3600 s") as failed:
        await fetcher().fetch(url, tmp_path)
    assert failed.value.details["retry_after_seconds"] == 3600
    assert len(site.asked) == 1


async def test_what_came_of_a_short_body_is_kept_and_marked(site: Site, fetcher: Make, tmp_path: Path) -> None:
    url = site.put("/short", script=sends(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"))
    fetched = await fetcher().fetch(url, tmp_path)
    assert fetched.path is not None
    assert fetched.path.read_bytes() == b"only this"
    assert fetched.incomplete == "the connection closed before its end"


INCOMPLETE = {
    "chunked, cut off": (b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n9\r\nwor", "closed before its end"),
    "chunked, broken": (b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\nworld", "chunked framing is broken"),
    "gzip, cut off": (b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello" * 1000)[:-9], "gzip coding that ends too soon"),
    "gzip, broken": (
        b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello") + gzip.compress(b"")[:10] + b"\x07" * 20,
        "gzip coding that is broken",
    ),
    "coding unknown": (b"Content-Encoding: aes128gcm\r\n\r\nhello", "unknown content coding"),
}


@pytest.mark.parametrize(("answer", "reason"), INCOMPLETE.values(), ids=INCOMPLETE)
async def test_a_body_that_is_not_whole_is_never_passed_off_as_whole(
    site: Site, fetcher: Make, tmp_path: Path, answer: bytes, reason: str
) -> None:
    url = site.put("/broken", script=sends(b"HTTP/1.1 200 OK\r\n" + answer))
    fetched = await fetcher().fetch(url, tmp_path)
    assert fetched.path is not None
    assert fetched.path.read_bytes().startswith(b"hello")
    assert reason in fetched.incomplete


async def test_a_body_of_which_nothing_came_is_a_failure(site: Site, fetcher: Make, tmp_path: Path) -> None:
    url = site.put("/none", script=sends(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nno gzip at all"))
    with pytest.raises(FetchFailed, match="gzip coding that is broken"):
        await fetcher().fetch(url, tmp_path)
    assert list(tmp_path.iterdir()) == []


TOO_LARGE = {
    "announced": b"Content-Length: 999999999\r\n\r\n",
    "as sent": b"\r\n" + b"x" * 20_001,
    "after decoding": b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(bytes(50_001)),
    "between two codings": b"Content-Encoding: gzip, gzip\r\n\r\n" + gzip.compress(gzip.compress(b"") * 3_000),
    "header": b"X-Long: " + b"a" * 70_000 + b"\r\n\r\n",
    "many headers": b"".join(b"X-%d: a\r\n" % number for number in range(9_000)) + b"\r\n",
}


@pytest.mark.parametrize("answer", TOO_LARGE.values(), ids=TOO_LARGE)
async def test_more_than_a_limit_allows_is_an_error_and_leaves_no_file(
    site: Site, fetcher: Make, tmp_path: Path, answer: bytes
) -> None:
    url = site.put("/large", script=sends(b"HTTP/1.1 200 OK\r\n" + answer))
    with pytest.raises(TooLarge):
        await fetcher(max_wire_bytes=20_000, max_decoded_bytes=50_000).fetch(url, tmp_path)
    assert list(tmp_path.iterdir()) == []


async def test_endless_interim_responses_count_as_one_header(site: Site, fetcher: Make, tmp_path: Path) -> None:
    url = site.put("/hints", script=sends(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", times=100_000))
    with pytest.raises(TooLarge, match="header"):
        await fetcher().fetch(url, tmp_path)


async def test_interim_responses_before_the_answer_are_read_over(site: Site, fetcher: Make, tmp_path: Path) -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    url = site.put("/hints", script=sends(hint * 2 + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    assert (await fetcher().fetch(url, tmp_path)).size_bytes == 2


SLOW = {
    "no answer": (b"",),
    "slow header": (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
}


@pytest.mark.parametrize("parts", SLOW.values(), ids=SLOW)
async def test_a_server_that_does_not_answer_runs_into_the_deadline(
    site: Site, fetcher: Make, tmp_path: Path, parts: tuple[bytes, ...]
) -> None:
    url = site.put("/slow", script=sends(*parts, pause=0.05, times=20))
    began = time.monotonic()
    with pytest.raises(TimedOut, match=r"within 0\.3 s"):
        await fetcher(deadline_seconds=0.3).fetch(url, tmp_path)
    assert time.monotonic() - began < 5
    assert list(tmp_path.iterdir()) == []


async def test_what_came_by_the_deadline_is_kept_and_marked(site: Site, fetcher: Make, tmp_path: Path) -> None:
    url = site.put("/slow", script=sends(b"HTTP/1.1 200 OK\r\n\r\n", b"drop ", pause=0.05, times=40))
    fetched = await fetcher(deadline_seconds=0.3).fetch(url, tmp_path)
    assert fetched.path is not None
    assert fetched.path.read_bytes().startswith(b"drop drop ")
    assert fetched.incomplete == "the deadline passed before its end"


async def test_cancelling_closes_the_socket_at_once_and_leaves_no_file(site: Site, fetcher: Make, tmp_path: Path) -> None:
    begun, closed = threading.Event(), threading.Event()

    def script(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nbeginning")
        begun.set()
        handler.connection.settimeout(5)
        if handler.connection.recv(1) == b"":
            closed.set()

    url = site.put("/endless", script=script)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fetcher().fetch, url, tmp_path)
        await anyio.to_thread.run_sync(begun.wait, 5)
        await anyio.sleep(0.05)  # into the body
        tasks.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(closed.wait, 0.5)
    assert list(tmp_path.iterdir()) == []


async def test_progress_counts_up_to_the_whole_and_not_too_often(site: Site, fetcher: Make, tmp_path: Path) -> None:
    reports: list[tuple[int, int | None]] = []
    url = site.put("/big", bytes(3_000_000), "application/octet-stream")
    await fetcher().fetch(url, tmp_path, progress=lambda done, total: reports.append((done, total)))
    assert reports[-1] == (3_000_000, 3_000_000)
    assert reports == sorted(set(reports))
    assert len(reports) < 30


async def test_tiny_chunks_end_and_do_not_hold_up_the_loop(site: Site, fetcher: Make, tmp_path: Path) -> None:
    url = site.put(
        "/tiny", script=sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n" * 60_000 + b"0\r\n\r\n")
    )
    turns: list[float] = []

    async def take_turns() -> None:
        while True:
            turns.append(time.monotonic())
            await anyio.sleep(0.005)

    incomplete = ""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_turns)
        incomplete = (await fetcher().fetch(url, tmp_path)).incomplete
        tasks.cancel_scope.cancel()
    assert "tiny chunks" in incomplete
    # A loop that does not yield stands still for more than half a second here.
    assert max(later - sooner for sooner, later in pairwise(turns)) < 0.4


async def test_a_stored_answer_that_has_not_changed_is_not_sent_again(site: Site, fetcher: Make, tmp_path: Path) -> None:
    seen: list[str | None] = []

    def script(handler: BaseHTTPRequestHandler) -> None:
        seen.append(handler.headers["If-None-Match"])
        sends(b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nCache-Control: max-age=9\r\n\r\n')(handler)

    url = site.put("/same", script=script)
    fetched = await fetcher().fetch(url, tmp_path, cached=Cached(datetime.now(UTC), etag='"a"'))
    assert (fetched.not_modified, fetched.path, fetched.status) == (True, None, 304)
    assert fetched.headers["cache-control"] == "max-age=9"
    assert seen == ['"a"']
    with pytest.raises(HttpError):
        await fetcher().fetch(url, tmp_path)


async def test_robots_txt_is_asked_once_and_obeyed_on_every_hop(site: Site, fetcher: Make, tmp_path: Path) -> None:
    site.put("/robots.txt", b"User-agent: fetchstash\nDisallow: /private\n\nUser-agent: *\nDisallow: /\n", "text/plain")
    public, private = site.put("/public", b"x"), site.put("/private/x", b"x")
    hop = site.put("/hop", status=302, headers={"Location": "/private/x"})
    one = fetcher(respect_robots=True)
    await one.fetch(public, tmp_path)
    for url in (private, hop):
        with pytest.raises(RobotsRefused, match=r"robots\.txt of 127\.0\.0\.1 forbids"):
            await one.fetch(url, tmp_path)
    await one.fetch(site.url("/robots.txt"), tmp_path)
    assert site.asked == ["/robots.txt", "/public", "/hop", "/robots.txt"]


async def test_ten_fetches_of_one_site_ask_robots_txt_once(site: Site, fetcher: Make, tmp_path: Path) -> None:
    site.put("/robots.txt", b"", "text/plain")
    urls = [site.put(f"/{number}", b"x") for number in range(10)]
    one = fetcher(respect_robots=True)
    async with anyio.create_task_group() as tasks:
        for url in urls:
            tasks.start_soon(one.fetch, url, tmp_path)
    assert site.asked.count("/robots.txt") == 1


async def test_a_robots_txt_that_fails_with_5xx_allows_nothing_for_a_while(site: Site, fetcher: Make, tmp_path: Path) -> None:
    site.put("/robots.txt", status=500)
    one, url = fetcher(respect_robots=True), site.put("/x", b"x")
    for _ in range(2):
        with pytest.raises(RobotsRefused, match="cannot be had at present"):
            await one.fetch(url, tmp_path)
    assert site.asked == ["/robots.txt"]
    await fetcher(respect_robots=False).fetch(url, tmp_path)


async def test_a_robots_txt_that_leads_inside_is_not_followed(site: Site, fetcher: Make, tmp_path: Path) -> None:
    site.put("/robots.txt", status=302, headers={"Location": "http://10.0.0.1/robots.txt"})
    await fetcher(respect_robots=True).fetch(site.put("/x", b"x"), tmp_path)


async def test_so_many_requests_at_a_time_go_to_one_host(site: Site, fetcher: Make, tmp_path: Path) -> None:
    here = most = 0

    def script(handler: BaseHTTPRequestHandler) -> None:
        nonlocal here, most
        here += 1
        most = max(most, here)
        time.sleep(0.03)
        here -= 1
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(handler)

    one = fetcher(per_host_concurrency=2)
    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(one.fetch, site.put(f"/{number}", script=script), tmp_path)
    assert most <= 2


async def test_so_many_requests_a_second_go_to_one_host(site: Site, fetcher: Make, tmp_path: Path) -> None:
    one = fetcher(per_host_rate=20)
    began = time.monotonic()
    for number in range(4):
        await one.fetch(site.put(f"/{number}", b"x"), tmp_path)
    assert time.monotonic() - began >= 3 / 20


async def test_a_server_that_is_not_there_fails_after_its_retries(fetcher: Make, tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="cannot be reached"):
        await fetcher().fetch("http://127.0.0.1:9/", tmp_path)


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"HTTP/9.9 abc\r\n\r\n"])
async def test_an_answer_that_is_no_http_fails(site: Site, fetcher: Make, tmp_path: Path, answer: bytes) -> None:
    with pytest.raises(FetchFailed, match="no HTTP"):
        await fetcher().fetch(site.put("/odd", script=sends(answer)), tmp_path)


@pytest.fixture
def secure_site() -> Generator[tuple[int, trustme.CA]]:
    """Serve over TLS on loopback, with a certificate of an authority that nobody knows."""
    authority = trustme.CA()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sends(f"HTTP/1.1 200 OK\r\n\r\n{self.headers['Host']}".encode())(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a client that does not trust us hangs up

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)  # pyright: ignore[reportUnknownMemberType] -- pyOpenSSL is not here
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server.server_address[1], authority
    server.shutdown()
    server.server_close()
    thread.join(5)


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    secure_site: tuple[int, trustme.CA], fetcher: Make, tmp_path: Path
) -> None:
    with pytest.raises(FetchFailed, match="certificate of localhost is not valid"):
        await fetcher(allow_hosts=("localhost",)).fetch(f"https://localhost:{secure_site[0]}/", tmp_path)


async def test_the_certificate_is_checked_for_the_name_and_not_for_the_address_that_was_dialled(
    secure_site: tuple[int, trustme.CA], fetcher: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, authority = secure_site
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    one = fetcher(allow_hosts=("localhost", "127.0.0.1"))
    fetched = await one.fetch(f"https://localhost:{port}/", tmp_path)
    assert fetched.path is not None
    assert fetched.path.read_text() == f"localhost:{port}"
    with pytest.raises(FetchFailed, match=r"certificate of 127\.0\.0\.1 is not valid"):
        await one.fetch(f"https://127.0.0.1:{port}/", tmp_path)


async def test_no_log_line_holds_a_secret_of_the_url(
    site: Site, fetcher: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        await fetcher().fetch(site.put("/x?api_key=s3cret", b"x"), tmp_path)
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("path", ["/404?api_key=s3cret", "/round?api_key=s3cret"])
async def test_no_error_holds_a_secret_of_the_url(site: Site, fetcher: Make, tmp_path: Path, path: str) -> None:
    site.put("/round?api_key=s3cret", status=302, headers={"Location": "/round?api_key=s3cret"})
    with pytest.raises(FetchstashError) as failed:
        await fetcher().fetch(site.url(path), tmp_path)
    assert "s3cret" not in failed.value.line() + str(failed.value.details)


def test_importing_the_room_imports_no_http_library() -> None:
    heavy = "{'httpx2', 'httpcore2', 'hishel', 'protego', 'idna', 'brotli', 'ifaddr', 'h11'}"
    program = f"import sys, fetchstash.fetch; print(sorted({heavy} & set(sys.modules)))"
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, env={"PYTHONPATH": root}
    )
    assert done.stdout.strip() == "[]"


async def test_a_task_that_is_cancelled_from_outside_anyio_leaves_no_file_either(site: Site, fetcher: Make, tmp_path: Path) -> None:
    url = site.put("/endless", script=sends(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 100_000, times=10_000))
    one = fetcher()
    for wait in (0.0, 0.02, 0.05, 0.1):
        task = asyncio.create_task(one.fetch(url, tmp_path))
        await asyncio.sleep(wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert list(tmp_path.iterdir()) == []


async def test_three_content_codings_are_more_than_are_undone(site: Site, fetcher: Make, tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="3 content codings"):
        await fetcher().fetch(site.put("/x", b"x", headers={"Content-Encoding": "gzip, gzip, gzip"}), tmp_path)


async def test_a_folder_that_is_not_there_is_told(site: Site, fetcher: Make, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No file can be made"):
        await fetcher().fetch(site.put("/x", b"x"), tmp_path / "nowhere")

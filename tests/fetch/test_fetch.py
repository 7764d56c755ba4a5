"""A fetch as a whole, against a real server on loopback: what comes back, and what is refused."""

import gzip
import hashlib
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Generator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import trustme

from fetchstash import fetch
from fetchstash.errors import BadArgument, FetchFailed, FetchstashError, HttpError
from fetchstash.fetch import Cached, certificate_fault
from tests.fetch.sending import OK, Fetch, content, raw, sends
from tests.loopback import Quiet, Site
from tests.tls import serving_tls

pytestmark = pytest.mark.anyio
Patch = pytest.MonkeyPatch


async def test_a_body_comes_back_as_a_private_file_with_its_facts(
    site: Site, fetch: Fetch, tmp_path: Path
) -> None:
    url = site.put("/docs/read%20me.txt?token=abc", b"hello", "text/plain", headers={"X-Two": "a"})
    fetched = await fetch(url)
    assert fetched.path is not None
    assert fetched.path.parent == tmp_path
    assert content(fetched) == b"hello"
    assert fetched.status == 200
    assert fetched.headers["content-type"] == "text/plain"
    assert (fetched.size_bytes, fetched.sha256) == (5, hashlib.sha256(b"hello").hexdigest())
    assert (fetched.name, fetched.incomplete, fetched.not_modified) == ("read me.txt", "", False)
    assert fetched.url == fetched.final_url == url
    assert fetched.masked_url == fetched.masked_final_url == url.replace("abc", "***")
    if sys.platform != "win32":
        assert stat.S_IMODE(fetched.path.stat().st_mode) == 0o600


async def test_a_request_names_fetchstash_and_sends_nothing_else_about_its_user(
    site: Site, fetch: Fetch
) -> None:
    seen: dict[str, str] = {}

    def script(handler: BaseHTTPRequestHandler) -> None:
        seen.update(handler.headers)
        sends(OK + b"Set-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")(handler)

    url = site.put("/x", script=script)
    for _ in range(2):
        await fetch(url)
    assert set(seen) == {"Host", "User-Agent", "Accept", "Accept-Encoding"}
    assert seen["User-Agent"].startswith("fetchstash/")
    assert seen["Accept"].startswith("text/markdown")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_to_the_document(
    site: Site, fetch: Fetch, status: int
) -> None:
    site.put("/end?key=s", b"there")
    url = site.put("/begin", status=status, headers={"Location": "/end?key=s"})
    fetched = await fetch(url)
    assert fetched.final_url == site.url("/end?key=s")
    assert fetched.masked_final_url == site.url("/end?key=***")
    assert fetched.size_bytes == 5


async def test_redirects_end_after_their_limit(site: Site, fetch: Fetch) -> None:
    url = site.put("/round", status=302, headers={"Location": "/round"})
    with pytest.raises(FetchFailed, match="more redirects than 3"):
        await fetch(url, max_redirects=3)
    assert len(site.asked) == 4


async def test_a_4xx_is_an_error_with_its_status_and_a_short_excerpt_that_is_not_in_the_line(
    site: Site, fetch: Fetch, tmp_path: Path
) -> None:
    page = gzip.compress(b"<p>no\n\x1b[31m such page</p>" * 500)
    url = site.put("/gone", page, status=404, headers={"Content-Encoding": "gzip"})
    with pytest.raises(HttpError) as failed:
        await fetch(url)
    assert failed.value.line().startswith("[http_error] 127.0.0.1 answered 404 Not Found. ")
    assert failed.value.details["status"] == 404
    assert failed.value.excerpt.startswith("no such page no")
    assert len(failed.value.excerpt) <= 300
    assert failed.value.source == url
    assert "excerpt" not in failed.value.details
    assert "such page" not in failed.value.line()
    assert list(tmp_path.iterdir()) == []


async def test_a_stored_answer_that_has_not_changed_is_not_sent_again(
    site: Site, fetch: Fetch
) -> None:
    seen: list[str | None] = []
    ports = set[int]()

    def script(handler: BaseHTTPRequestHandler) -> None:
        seen.append(handler.headers["If-None-Match"])
        ports.add(handler.client_address[1])
        handler.protocol_version, handler.close_connection = "HTTP/1.1", False
        handler.send_response(304)
        handler.send_header("Cache-Control", "max-age=9")
        handler.end_headers()

    url = site.put("/same", script=script)
    fetched = await fetch(url, cached=Cached(datetime.now(UTC), etag='"a"'))
    assert (fetched.not_modified, fetched.path, fetched.status) == (True, None, 304)
    assert fetched.headers["cache-control"] == "max-age=9"
    await fetch(url, cached=Cached(datetime.now(UTC), etag='"a"'))
    assert (seen, len(ports)) == (['"a"', '"a"'], 1)  # over the connection that was kept
    with pytest.raises(HttpError):
        await fetch(url)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"SSH-2.0-OpenSSH_9.9\r\n", "speaks SSH, no HTTP"),
        (b"220 mail.test ESMTP\r\n", "speaks FTP or SMTP, no HTTP"),
        (b"\x15\x03\x01\x00\x02\x02", "speaks TLS. Write https://"),
        (b"<html>", "is no HTTP"),
        (b"HTTP/9.9 abc\r\n\r\n", "is no HTTP"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "is no HTTP"),
    ],
)
async def test_an_answer_without_http_gives_an_error_that_names_its_protocol(
    site: Site, fetch: Fetch, answer: bytes, words: str
) -> None:
    with pytest.raises(FetchFailed, match=words):
        await fetch(raw(site, answer))


async def test_no_log_line_holds_a_secret_of_the_url(
    site: Site, fetch: Fetch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        await fetch(site.put("/x?api_key=s3cret", b"x"))
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("path", ["/404", "/round"])
async def test_no_error_holds_a_secret_of_the_url(site: Site, fetch: Fetch, path: str) -> None:
    site.put("/round?api_key=s3cret", status=302, headers={"Location": "/round?api_key=s3cret"})
    with pytest.raises(FetchstashError) as failed:
        await fetch(site.url(f"{path}?api_key=s3cret"))
    assert "s3cret" not in failed.value.line() + str(failed.value.details)


@pytest.fixture
def secure_site() -> Generator[tuple[int, trustme.CA]]:
    """Serve over TLS on loopback, with a certificate of an authority that nobody knows."""

    class Handler(Quiet):
        def do_GET(self) -> None:
            sends(OK + f"\r\n{self.headers['Host']}".encode())(self)

    with serving_tls(Handler) as served:
        yield served


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    secure_site: tuple[int, trustme.CA], fetch: Fetch
) -> None:
    with pytest.raises(
        FetchFailed, match=r"certificate of localhost is of an issuer that .*fetch\.ca_file"
    ):
        await fetch(f"https://localhost:{secure_site[0]}/", allow_hosts=("localhost",))


@pytest.mark.parametrize("by", ["SSL_CERT_FILE", "fetch.ca_file"])
async def test_the_certificate_is_checked_for_the_name_and_not_for_the_address_that_was_dialled(
    by: str, secure_site: tuple[int, trustme.CA], fetch: Fetch, tmp_path: Path, monkeypatch: Patch
) -> None:
    port, authority = secure_site
    authority.cert_pem.write_to_path(path := str(tmp_path / "ca.pem"))
    trusted = {"ca_file": path} if by == "fetch.ca_file" else {}
    if not trusted:
        monkeypatch.setenv(by, path)
    hosts = ("localhost", "127.0.0.1")
    fetched = await fetch(f"https://localhost:{port}/", allow_hosts=hosts, **trusted)
    assert content(fetched).decode() == f"localhost:{port}"
    with pytest.raises(FetchFailed, match=r"certificate of 127\.0\.0\.1 is for names") as failed:
        await fetch(f"https://127.0.0.1:{port}/", allow_hosts=hosts, **trusted)
    assert "ca_file" not in str(failed.value)  # its issuer is trusted, its name is another


async def test_a_plain_server_at_an_https_url_gives_an_error_about_tls(
    site: Site, fetch: Fetch
) -> None:
    with pytest.raises(FetchFailed, match=r"does not speak TLS.*write http://"):
        await fetch(site.url("/x").replace("http:", "https:"))


@pytest.mark.parametrize(
    ("variable", "pem", "words"),
    [
        ("SSL_CERT_FILE", None, "cannot be read: No such file"),
        ("SSL_CERT_FILE", "no certificate", "holds no certificates in PEM format"),
        ("SSL_CERT_DIR", None, "cannot be read: No such file"),
        ("fetch.ca_file", None, "cannot be read: No such file"),
        ("fetch.ca_file", "no certificate", "holds no certificates in PEM format"),
    ],
)
async def test_certificates_that_cannot_be_read_are_one_clear_line(
    variable: str, pem: str | None, words: str, fetch: Fetch, tmp_path: Path, monkeypatch: Patch
) -> None:
    path = tmp_path / "ca.pem"
    if pem is not None:
        path.write_text(pem)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    ca_file = str(path) if variable == "fetch.ca_file" else ""
    if not ca_file:
        monkeypatch.setenv(variable, str(path))
    assert certificate_fault(ca_file).startswith(f"{variable} is {path}, which {words}")
    with pytest.raises(BadArgument, match=words):
        await fetch("https://127.0.0.1:8443/", ca_file=ca_file)


def test_certificates_that_can_be_read_have_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    assert certificate_fault() == ""


@pytest.mark.slow
def test_importing_the_room_imports_no_http_library() -> None:
    heavy = "{'httpx2', 'httpcore2', 'hishel', 'idna', 'brotli', 'ifaddr', 'h11'}"
    program = f"import sys, fetchstash.fetch; print(sorted({heavy} & set(sys.modules)))"
    home = str(Path(fetch.__file__).parents[2])  # the checkout's, or the one that is installed
    command = [sys.executable, "-P", "-c", program]
    environment = os.environ | {"PYTHONPATH": home}
    assert subprocess.check_output(command, text=True, env=environment).strip() == "[]"

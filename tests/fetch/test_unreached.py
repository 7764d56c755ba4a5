"""What is told of a server that cannot be reached or trusted, and the way out."""

import errno
import os
import socket
import ssl
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpcore2
import pytest
import trustme

from fetchstash.errors import FetchFailed, FetchstashError, HttpError, as_method
from fetchstash.fetch import FetchLimits, unused_proxy
from fetchstash.fetch._addresses import Interfaces, plain
from fetchstash.fetch._guard import Guard
from fetchstash.fetch._policy import Policy
from fetchstash.render import as_tool
from fetchstash.text.urls import parse
from tests.fetch.sending import Make, sends
from tests.fetch.test_guard import Network, Resolver
from tests.loopback import Quiet, Site
from tests.tls import serving_tls

pytestmark = pytest.mark.anyio

PAST, COMING = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
HOSTS = ("localhost", "127.0.0.1")
_UNKNOWN = "is of an issuer that is not known here"
_TRUST = "the operator can set fetch.ca_file"
VARIABLES = [f"{kind}_proxy" for kind in ("http", "https", "all", "no")]


class Page(Quiet):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()


@pytest.fixture(autouse=True)
def no_proxy_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, *map(str.upper, VARIABLES), "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("fetchstash.fetch._responses._FIRST_WAIT_SECONDS", 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ca.pem"


def told(error: FetchstashError) -> str:
    return error.line(as_tool)


def usual(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("localhost")


def expired(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("localhost", not_before=PAST, not_after=PAST.replace(day=2))


def not_yet(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("localhost", not_before=COMING, not_after=COMING.replace(day=2))


def of_another(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("elsewhere.example")


def of_a_stranger(_: trustme.CA) -> trustme.LeafCert:
    return trustme.CA().issue_cert("localhost")


@pytest.mark.parametrize(
    ("certificate", "host", "words"),
    [
        (expired, "localhost", "of localhost has expired. Look for the document on another"),
        (not_yet, "localhost", "of localhost is not valid yet. The operator can check the clock"),
        (of_another, "localhost", "of localhost is for other names. Check the spelling"),
        (usual, "127.0.0.1", "is for names, not for this address. Write the name of the host"),
        (of_a_stranger, "localhost", f"{_UNKNOWN}, or the server leaves"),
        (of_a_stranger, "localhost", f"If the issuer is your own network's, {_TRUST}."),
    ],
)
async def test_a_certificate_that_is_not_accepted_says_why_and_the_way_out(
    certificate: Callable[[trustme.CA], trustme.LeafCert],
    host: str,
    words: str,
    fetcher: Make,
    file: Path,
) -> None:
    with serving_tls(Page, certificate) as (port, authority):
        authority.cert_pem.write_to_path(str(file))
        http = fetcher(allow_hosts=HOSTS, ca_file=str(file))
        with pytest.raises(FetchFailed) as failed:
            await http.fetch(f"https://{host}:{port}/", file.parent)
    assert words in told(failed.value)
    assert (_TRUST in told(failed.value)) is (_UNKNOWN in told(failed.value))


async def test_a_self_signed_certificate_is_called_so(fetcher: Make, file: Path) -> None:
    authority = trustme.CA()

    def itself(context: ssl.SSLContext) -> None:
        authority.private_key_pem.write_to_path(str(file))
        authority.cert_pem.write_to_path(str(file), append=True)
        context.load_cert_chain(file)

    with serving_tls(Page, configure=itself) as (port, _), pytest.raises(FetchFailed) as failed:
        await fetcher(allow_hosts=HOSTS).fetch(f"https://localhost:{port}/", file.parent)
    assert f"is self-signed: nobody vouches for it. If it is your own network's, {_TRUST}" in told(
        failed.value
    )


def old(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
async def test_a_server_of_old_versions_of_tls_is_called_so(fetcher: Make, tmp_path: Path) -> None:
    with serving_tls(Page, configure=old) as (port, _), pytest.raises(FetchFailed) as failed:
        await fetcher(allow_hosts=HOSTS).fetch(f"https://localhost:{port}/", tmp_path)
    assert "could be made: it speaks only old versions of TLS" in told(failed.value)


async def test_plain_http_to_a_server_of_tls_leads_to_https(fetcher: Make, tmp_path: Path) -> None:
    with serving_tls(Page) as (port, _), pytest.raises(FetchFailed) as failed:
        await fetcher(allow_hosts=HOSTS).fetch(f"http://localhost:{port}/", tmp_path)
    assert "If this port speaks TLS, write https:// in the URL." in told(failed.value)


@pytest.mark.parametrize(
    "body",
    [
        "<center>The plain HTTP request was sent to HTTPS port</center>",
        "Client sent an HTTP request to an HTTPS server.\n",
        "Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />",
    ],
    ids=["nginx", "Go", "Apache"],
)
async def test_a_server_of_tls_that_answers_plain_http_leads_to_https_at_any_port(
    body: str, site: Site, fetcher: Make, tmp_path: Path
) -> None:
    answer = f"HTTP/1.1 400 Bad Request\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    url = site.put("/", script=sends(answer.encode()))
    with pytest.raises(HttpError) as failed:
        await fetcher().fetch(url, tmp_path)
    assert "This is a port for TLS: write https:// in the URL." in told(failed.value)


@pytest.fixture
def closed_port() -> Generator[int]:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        yield closed.getsockname()[1]


@pytest.mark.parametrize(
    ("name", "no_proxy", "is_told"),
    [
        ("HTTP_PROXY", "", True),
        ("http_proxy", "elsewhere.example", True),
        ("ALL_PROXY", "", True),
        ("all_proxy", "", True),
        ("all_proxy", "localhost, 127.0.0.1", False),
        ("all_proxy", "*", False),
        ("https_proxy", "", False),
    ],
)
async def test_a_proxy_of_the_environment_that_would_be_used_is_told_beside_the_other_advice(
    name: str,
    no_proxy: str,
    closed_port: int,
    fetcher: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_told: bool,
) -> None:
    monkeypatch.setenv(name, "http://joe:s3cret@proxy.example:3128")
    if no_proxy:
        monkeypatch.setenv("no_proxy", no_proxy)
    with pytest.raises(FetchFailed) as failed:
        await fetcher().fetch(f"http://127.0.0.1:{closed_port}/", tmp_path)
    line = told(failed.value)
    assert "cannot be reached. Check the URL, or try again later." in line
    hint = f"{name} is set here and not used: the operator can set fetch.proxy."
    assert (hint in line) is is_told
    assert failed.value.details["unreached"]
    if is_told:
        (call,) = failed.value.calls
        assert "{'fetch.proxy': 'http://proxy.example:3128'}" in as_method(call)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("http://proxy.example", "http://proxy.example:80"),
        ("https://a:b@[::1]:3128/", "https://[::1]:3128"),
        ("socks5://joe:s3cret@proxy.example:1080", "http://HOST:PORT"),
        ("http://a:s3cret", "http://HOST:PORT"),
    ],
)
def test_a_proxy_of_the_environment_is_named_without_its_login(
    value: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    assert unused_proxy(FetchLimits()) == ("ALL_PROXY", shown)
    assert unused_proxy(FetchLimits(proxy="http://a:1")) == ("", "")


async def test_a_proxy_that_is_gone_is_not_called_a_page_that_is_gone(
    closed_port: int, fetcher: Make, tmp_path: Path
) -> None:
    http = fetcher(proxy=f"http://127.0.0.1:{closed_port}")
    with pytest.raises(FetchFailed) as failed:
        await http.fetch("http://127.0.0.1:8080/", tmp_path)
    assert told(failed.value) == (
        "[fetch_failed] The proxy cannot be reached. Tell the operator to check fetch.proxy."
    )


async def test_a_proxy_s_certificate_is_not_called_the_page_s(
    fetcher: Make, tmp_path: Path
) -> None:
    with serving_tls(Page) as (port, _):
        http = fetcher(proxy=f"https://127.0.0.1:{port}")
        with pytest.raises(FetchFailed) as failed:
            await http.fetch("http://127.0.0.1:8080/", tmp_path)
    assert "No secure connection to the proxy could be made." in told(failed.value)
    assert "check fetch.proxy and fetch.ca_file" in told(failed.value)


class NoRoute(Network):
    """A machine on which a connection ends as its kernel says."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    async def connect_tcp(
        self, host: str, port: int, *_: Any, **__: Any
    ) -> httpcore2.AsyncNetworkStream:
        self.dialled.append(f"{host} {port}")
        cause = OSError(self.number, os.strerror(self.number))
        raise httpcore2.ConnectError(str(cause)) from cause


@pytest.mark.parametrize(
    ("answers", "number", "is_told"),
    [
        ("2606:4700::1111", errno.ENETUNREACH, True),
        ("2606:4700::1111 2606:4700::1112", errno.EADDRNOTAVAIL, True),
        ("2606:4700::1111 93.184.216.34", errno.ENETUNREACH, False),
        ("93.184.216.34", errno.ENETUNREACH, False),
        ("2606:4700::1111", errno.ECONNREFUSED, False),
    ],
)
async def test_a_host_of_ipv6_alone_is_told_where_there_is_none(
    answers: str, number: int, *, is_told: bool
) -> None:
    resolver = Resolver([plain(address) for address in answers.split()])
    policy = Policy.of(FetchLimits())
    guard = Guard(policy, resolver, Interfaces(), 65_536, network=NoRoute(number))
    with pytest.raises((FetchFailed, httpcore2.ConnectError)) as failed:
        await guard.tunnel(parse("http://example.org/", 2_000))
    error = failed.value
    assert isinstance(error, FetchFailed) is is_told
    if isinstance(error, FetchFailed):
        assert "example.org has IPv6 addresses alone, and there is no IPv6 here." in told(error)
        assert "the operator can set fetch.proxy" in told(error)

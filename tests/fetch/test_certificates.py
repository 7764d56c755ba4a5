"""TLS: the certificate is of the name that was asked for, and somebody vouches for it."""

from collections.abc import Generator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import trustme

from fetchstash.errors import BadArgument, FetchFailed
from fetchstash.fetch import certificate_fault
from tests.fetch.sending import Fetch, Make, sends
from tests.loopback import Site
from tests.tls import serving_tls

pytestmark = pytest.mark.anyio


@pytest.fixture
def secure_site() -> Generator[tuple[int, trustme.CA]]:
    """Serve over TLS on loopback, with a certificate of an authority that nobody knows."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sends(f"HTTP/1.1 200 OK\r\n\r\n{self.headers['Host']}".encode())(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    with serving_tls(Handler) as served:
        yield served


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    secure_site: tuple[int, trustme.CA], fetch: Fetch
) -> None:
    with pytest.raises(FetchFailed, match="certificate of localhost is not valid"):
        await fetch(f"https://localhost:{secure_site[0]}/", allow_hosts=("localhost",))


async def test_the_certificate_is_checked_for_the_name_and_not_for_the_address_that_was_dialled(
    secure_site: tuple[int, trustme.CA],
    fetcher: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port, authority = secure_site
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    http = fetcher(allow_hosts=("localhost", "127.0.0.1"))
    fetched = await http.fetch(f"https://localhost:{port}/", tmp_path)
    assert fetched.path is not None
    assert fetched.path.read_text() == f"localhost:{port}"
    with pytest.raises(FetchFailed, match=r"certificate of 127\.0\.0\.1 is not valid"):
        await http.fetch(f"https://127.0.0.1:{port}/", tmp_path)


async def test_a_plain_server_at_an_https_url_gives_an_error_about_tls(
    site: Site, fetch: Fetch
) -> None:
    with pytest.raises(FetchFailed, match=r"does not speak TLS.*write http://"):
        await fetch(site.url("/x").replace("http:", "https:"))


@pytest.mark.parametrize(
    ("variable", "content", "words"),
    [
        ("SSL_CERT_FILE", None, "cannot be read: No such file"),
        ("SSL_CERT_FILE", "no certificate", "holds no certificates in PEM format"),
        ("SSL_CERT_DIR", None, "cannot be read: No such file"),
    ],
)
async def test_certificates_that_cannot_be_read_are_one_clear_line(
    variable: str,
    content: str | None,
    words: str,
    fetch: Fetch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv(variable, str(path))
    assert certificate_fault().startswith(f"{variable} is {path}, which {words}")
    with pytest.raises(BadArgument, match=words):
        await fetch("https://127.0.0.1:8443/")


def test_certificates_that_can_be_read_have_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    assert certificate_fault() == ""

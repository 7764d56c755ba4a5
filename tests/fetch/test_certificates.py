"""TLS: the certificate is of the name that was asked for, and somebody vouches for it."""

import ssl
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from fetchstash.errors import FetchFailed
from tests.fetch.sending import Make, sends

pytestmark = pytest.mark.anyio


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
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
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
        await fetcher(allow_hosts=("localhost",)).fetch(
            f"https://localhost:{secure_site[0]}/", tmp_path
        )


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

"""A site over TLS on loopback, with a certificate that nobody knows."""

import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import trustme

from tests.loopback import serving

Issue = Callable[[trustme.CA], trustme.LeafCert]
Configure = Callable[[ssl.SSLContext], None]


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that does not trust us hangs up


@contextmanager
def serving_tls(
    handler: type[BaseHTTPRequestHandler],
    issue: Issue = lambda authority: authority.issue_cert("localhost"),
    configure: Configure = lambda _: None,
) -> Generator[tuple[int, trustme.CA]]:
    """Serve as ``localhost``; yield the port, and the authority that issued the certificate."""
    authority = trustme.CA()
    server = _Server(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issue(authority).configure_cert(context)  # pyright: ignore[reportUnknownMemberType] -- pyOpenSSL is not here
    configure(context)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    with serving(server) as port:
        yield port, authority

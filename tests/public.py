"""A site on loopback as a public one: under a name, behind a proxy, exempted by nobody."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address

from fetchstash.fetch import Address, FetchLimits, HttpFetcher
from tests.loopback import Site

NAME = "http://site.example"
_ADDRESS = IPv4Address("93.184.215.14")
"""Of a public network. Nothing is sent there: the proxy leads to the site."""


class _Names:
    async def look_up(self, host: str) -> list[Address]:
        assert host.endswith(".example")
        return [_ADDRESS]


def fetcher_of(limits: FetchLimits) -> HttpFetcher:
    """Return a fetcher for which every name is public. ``limits`` have the proxy."""
    return HttpFetcher(limits, resolver=_Names())


@contextmanager
def proxy_to(site: Site) -> Generator[str]:
    """Run a proxy whose tunnels all lead to ``site``; yield its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener, site.port), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket, port: int) -> None:
    with suppress(OSError):  # the listener was closed
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_tunnel, args=(client, port), daemon=True).start()


def _tunnel(client: socket.socket, port: int) -> None:
    with client, socket.create_connection(("127.0.0.1", port)) as server:
        head = b""
        while b"\r\n\r\n" not in head and (data := client.recv(4096)):
            head += data
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        back = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
        back.start()
        _pass_on(client, server)
        back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

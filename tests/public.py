"""A site on loopback as a public one: under a name, behind a proxy; and answers from a table."""

import hashlib
import json
import socket
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from fetchstash.errors import FetchFailed
from fetchstash.fetch import Address, Fetched, FetchLimits, HttpFetcher
from fetchstash.system.processes import new_file
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


class Recorded:
    """A fetcher that answers from a table and reaches nothing.

    A body is bytes, HTML as a string, or JSON as any other value; with it may come header fields.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def fetch(
        self, url: str, folder: Path, *, after: Fetched | None = None, **_: Any
    ) -> Fetched:
        url = urljoin(after.final_url, url) if after else url
        self.asked.append(url)
        if url not in self.answers:
            raise FetchFailed("Nothing is reached.", "Look elsewhere.")
        answer = self.answers[url]
        body: Any = answer
        more: Mapping[str, str] = {}
        if isinstance(answer, tuple):
            body, more = cast("tuple[Any, Mapping[str, str]]", answer)
        kind = "text/html; charset=utf-8" if isinstance(body, str) else "application/json"
        if isinstance(body, bytes):
            kind, data = "application/octet-stream", body
        else:
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
        path = new_file(folder, "recorded-")
        path.write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        source = after.url if after else url
        headers = {"content-type": kind, **more}
        now = datetime.now(UTC)
        name = urlsplit(url).path.rpartition("/")[2]
        return Fetched(path, source, url, source, url, 200, headers, len(data), digest, now, name)

    async def site_rules(self, url: str) -> tuple[float, Sequence[str]]:
        self.asked.append(urljoin(url, "/robots.txt"))
        return 0.0, ()

    async def check(self, url: str, final_url: str = "") -> None:
        pass

    async def aclose(self) -> None:
        pass

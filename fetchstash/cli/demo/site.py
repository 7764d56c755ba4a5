"""A small web site on loopback, for the demonstration, the tests and the benchmarks."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from fetchstash.cli.demo.content import NEEDLES, Document, Needle, documents

__all__ = ["NEEDLES", "Document", "Needle", "Site", "documents"]

_HEAD_SECONDS = 10


class Site:
    """``async with Site() as site:`` serves documents at ``site.url(path)``, 404 for unknown paths.

    Every answer closes its connection. Without ``pages``, serves those of the demonstration.
    """

    def __init__(self, pages: Mapping[str, Document] | None = None) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        if self._pages is None:
            self._pages = await asyncio.to_thread(documents)
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server
        self._server.close()
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server
        return int(self._server.sockets[0].getsockname()[1])

    def url(self, path: str) -> str:
        """Return the URL of ``path``, which begins with a slash."""
        return f"http://127.0.0.1:{self.port}{path}"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request (RFC 9112), GET or HEAD; give up on a client that is slow or gone."""
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
            assert self._pages is not None
            document = self._pages.get(urlsplit(target).path)
            status = "200 OK" if document else "404 Not Found"
            document = document or Document("text/plain", b"There is no such page.\n")
            lines = (
                f"HTTP/1.1 {status}",
                f"Content-Type: {document.media_type}",
                f"Content-Length: {len(document.body)}",
                "Connection: close\r\n\r\n",
            )
            writer.write("\r\n".join(lines).encode("latin-1"))
            writer.write(b"" if method == "HEAD" else document.body)
            await writer.drain()
        # EOFError and ValueError: a head that is cut short, too long or none.
        except (OSError, ValueError, EOFError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

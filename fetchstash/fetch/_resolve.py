"""Look names up in threads of their own, so that a dead name server delays no other look-up."""

import socket
import threading
from typing import Protocol

import anyio
import anyio.from_thread
import anyio.lowlevel

from fetchstash.errors import FetchFailed, Refused
from fetchstash.fetch._addresses import Address, plain
from fetchstash.fetch._url import Target

_TIMEOUT_SECONDS = 10
# getaddrinfo cannot be interrupted: a thread lives on after its caller has given up.
_MAX_THREADS = 128
_MAX_ADDRESSES = 64  # all are vetted; the largest sites have some twenty


class Resolver(Protocol):
    """Looks up names."""

    async def look_up(self, host: str) -> list[Address]:
        """Return all addresses of ``host``, at least one, best first.

        Raises FetchFailed and Refused.
        """
        ...


async def addresses_of(target: Target, resolver: Resolver) -> list[Address]:
    """Return the addresses that ``target`` leads to; a numeric one needs no look-up."""
    if target.address is not None:
        return [plain(target.host)]
    return await resolver.look_up(target.host)


class SystemResolver:
    """The system's resolver: hosts file, name servers and all."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(_MAX_THREADS)

    async def look_up(self, host: str) -> list[Address]:
        """Return all addresses of ``host``.

        Raises FetchFailed if there are none within 10 s, and Refused if there are more than 64.
        """
        lookup = _Lookup(host, self._limiter)
        with anyio.move_on_after(_TIMEOUT_SECONDS):
            await self._limiter.acquire_on_behalf_of(lookup)
            await lookup.run()
        if len(lookup.addresses) > _MAX_ADDRESSES:
            what = f"{host} leads to {len(lookup.addresses)} addresses, too many to check."
            raise Refused(what, "Look for the document elsewhere.", rule="address", host=host)
        if lookup.addresses:
            return lookup.addresses
        if lookup.error in {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", None)}:
            raise FetchFailed(
                f"There is no address for the name {host}.",
                "Check the spelling, or look for the document elsewhere.",
            )
        raise FetchFailed(f"No name server answered for {host}.", "Try again later.")


class _Lookup:
    """One look-up in a daemon thread, which does not delay the end of the interpreter."""

    def __init__(self, host: str, limiter: anyio.CapacityLimiter) -> None:
        self._host = host
        self._limiter = limiter
        self._done = anyio.Event()
        self.addresses: list[Address] = []
        self.error: int | None = None

    async def run(self) -> None:
        token = anyio.lowlevel.current_token()
        thread = threading.Thread(
            target=self._look_up, args=(token,), name=f"look-up of {self._host}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # no more threads
            self._finish()
        await self._done.wait()

    def _look_up(self, token: anyio.lowlevel.EventLoopToken) -> None:
        try:
            # Bytes keep Python's own IDNA codec out: the host is in its final form.
            answers = socket.getaddrinfo(self._host.encode("ascii"), None, type=socket.SOCK_STREAM)
            self.addresses = list(dict.fromkeys(plain(str(answer[4][0])) for answer in answers))
        except socket.gaierror as error:
            self.error = error.errno
        except (OSError, UnicodeError, ValueError):
            self.error = socket.EAI_FAIL
        try:
            anyio.from_thread.run_sync(self._finish, token=token)
        except RuntimeError:  # the loop has ended meanwhile, and nobody waits
            return

    def _finish(self) -> None:
        self._limiter.release_on_behalf_of(self)
        self._done.set()

"""Count the requests in flight: bound them, and let them end before the process does."""

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fetchstash.errors import Busy
from fetchstash.service._replies import reply

MAX_CALLS = 512
"""Requests that are handled at a time by one process."""


class Calls:
    """Passes requests on while there is room, and none once it drains."""

    def __init__(self, app: ASGIApp, grace_seconds: float) -> None:
        self._app = app
        self._grace_seconds = grace_seconds
        self._running: set[anyio.CancelScope] = set()
        self._ended = anyio.Event()
        self.is_draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 503."""
        if self.is_draining or len(self._running) >= MAX_CALLS:
            await self._unavailable(scope, receive, send)
            return
        has_begun = False

        async def begin(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        with anyio.CancelScope() as running:
            self._running.add(running)
            try:
                await self._app(scope, receive, begin)
            finally:
                self._running.remove(running)
                self._ended.set()
        if running.cancelled_caught and not has_begun:
            await self._unavailable(scope, receive, send)

    async def drain(self) -> None:
        """Take no more requests, and return when those in flight have ended.

        What has not ended within the grace is cancelled.
        """
        self.is_draining = True
        with anyio.move_on_after(self._grace_seconds):
            await self._wait()
        for running in self._running:
            running.cancel()
        await self._wait()

    async def _wait(self) -> None:
        while self._running:
            self._ended = anyio.Event()
            await self._ended.wait()

    async def _unavailable(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = "is shutting down" if self.is_draining else f"handles {MAX_CALLS} requests already"
        error = Busy(f"This server {state}.", "Try again in a second.")
        headers = {"retry-after": "1", "connection": "close"}
        await reply(503, error, headers=headers)(scope, receive, send)

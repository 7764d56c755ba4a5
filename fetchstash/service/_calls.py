"""Count the requests in flight: bound them, and let them end before the process does."""

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send

from fetchstash.errors import Busy
from fetchstash.service._replies import reply

MAX_CALLS = 256
"""Requests that are handled at a time by one process."""


class Calls:
    """Passes requests on while there is room, and none once it drains."""

    def __init__(self, app: ASGIApp, grace_seconds: float) -> None:
        self._app = app
        self._grace_seconds = grace_seconds
        self._running = 0
        self._none_running = anyio.Event()
        self.is_draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 503."""
        if self.is_draining or self._running >= MAX_CALLS:
            await self._unavailable(scope, receive, send)
            return
        self._running += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running -= 1
            if not self._running:
                self._none_running.set()

    async def drain(self) -> None:
        """Take no more requests, and return when those in flight ended or the grace is over."""
        self.is_draining = True
        if self._running:
            self._none_running = anyio.Event()
            with anyio.move_on_after(self._grace_seconds):
                await self._none_running.wait()

    async def _unavailable(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = "is shutting down" if self.is_draining else f"handles {MAX_CALLS} requests already"
        error = Busy(f"This server {state}.", "Try again in a second.")
        headers = {"retry-after": "1", "connection": "close"}
        await reply(503, error, headers=headers)(scope, receive, send)

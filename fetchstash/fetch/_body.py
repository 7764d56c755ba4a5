"""Read a body from its connection into a spool, in batches, without blocking the event loop."""

import time
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from fetchstash.fetch._coding import BrokenCoding
from fetchstash.fetch._contract import FetchLimits, Progress
from fetchstash.fetch._spool import Spool, too_large

if TYPE_CHECKING:
    from fetchstash.fetch._exchange import Exchange

PAST_DEADLINE = "the deadline passed before its end"
_BATCH_BYTES = 256 * 1024  # enough to be worth one trip to a worker thread
_SMALL_CHUNK_BYTES = 16 * 1024
_LAST_WRITE_SECONDS = 0.2
_PROGRESS_SECONDS = 0.1


class BodyReader:
    """Reads one body. ``incomplete`` is the reason why it is not whole, "" while it is."""

    def __init__(
        self,
        exchange: "Exchange",
        spool: Spool,
        limits: FetchLimits,
        threads: anyio.CapacityLimiter,
        turn: AbstractAsyncContextManager[object],
    ) -> None:
        """Read from ``exchange`` into ``spool`` while ``turn`` is held; ``threads`` do the work."""
        self._turn = turn
        self._exchange = exchange
        self._spool = spool
        self._max_wire = limits.max_wire_bytes
        self._threads = threads
        self._batch: list[bytes] = []
        self._batched = 0
        self.incomplete = ""

    async def read(self, deadline: float, progress: Progress | None) -> None:
        """Read to the end, the ``deadline`` (the event loop's clock) or a fault, into the spool.

        Raises TooLarge above a limit, and StoreError where the disk is full.
        """
        from fetchstash.fetch._exchange import BrokenBody  # noqa: PLC0415 -- it imports httpcore2

        report = _Reporter(progress, self._exchange)
        try:
            with anyio.move_on_at(deadline) as scope:
                async with self._turn:
                    await self._read_all(report)
                    await self._write()
            if scope.cancelled_caught:
                self.incomplete = PAST_DEADLINE
                with anyio.move_on_after(_LAST_WRITE_SECONDS):
                    await self._write()
        except BrokenBody as broken:
            self.incomplete = str(broken)
            await self._write_what_came()
        except BrokenCoding as broken:
            self.incomplete = f"it {broken}"
        report.last()

    async def _read_all(self, report: "_Reporter") -> None:
        async for chunk in self._exchange.chunks():
            if self._exchange.received > self._max_wire:
                raise too_large("wire", self._max_wire)
            self._batch.append(chunk)
            self._batched += len(chunk)
            if self._batched >= _BATCH_BYTES:
                await self._write()
            report.now_and_then()

    async def _write(self) -> None:
        """Decode and write the batch in a thread, in short calls, so that it can be cancelled."""
        if self._batch:
            # Join small chunks only: joining large ones would copy the whole body once more.
            batch = (
                [b"".join(self._batch)]
                if self._batched < _SMALL_CHUNK_BYTES * len(self._batch)
                else self._batch
            )
            self._batch, self._batched = [], 0
            more = await anyio.to_thread.run_sync(
                partial(self._spool.put, batch), limiter=self._threads
            )
            while more:
                more = await anyio.to_thread.run_sync(self._spool.go_on, limiter=self._threads)

    async def _write_what_came(self) -> None:
        try:
            await self._write()
        except BrokenCoding as broken:
            self.incomplete = f"it {broken}"


class _Reporter:
    """Calls ``progress`` at most ten times a second, and once at the end."""

    def __init__(self, progress: Progress | None, exchange: "Exchange") -> None:
        self._progress = progress
        self._exchange = exchange
        self._reported_at = time.monotonic()
        self._reported = -1

    def now_and_then(self) -> None:
        now = time.monotonic()
        if now - self._reported_at >= _PROGRESS_SECONDS:
            self._reported_at = now
            self.last()

    def last(self) -> None:
        if self._progress is not None and self._reported != self._exchange.received:
            self._reported = self._exchange.received
            self._progress(self._reported, self._exchange.announced)


async def read_beginning(exchange: "Exchange", max_bytes: int, deadline: float) -> bytes:
    """Return the first ``max_bytes`` of a body as sent, or what came by the ``deadline``."""
    from fetchstash.fetch._exchange import BrokenBody  # noqa: PLC0415 -- it imports httpcore2

    body = bytearray()
    with anyio.move_on_at(deadline), suppress(BrokenBody):
        async for chunk in exchange.chunks():
            body += chunk
            if len(body) >= max_bytes:
                break
    return bytes(body[:max_bytes])

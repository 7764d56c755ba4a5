"""Read a body from its connection into a spool, in batches, without blocking the event loop."""

import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from fetchstash.errors import FetchstashError
from fetchstash.fetch._coding import BrokenCoding
from fetchstash.fetch._contract import Progress
from fetchstash.fetch._limits import FetchLimits
from fetchstash.fetch._spool import Spool, too_large

if TYPE_CHECKING:
    from fetchstash.fetch._exchange import Exchange

PAST_DEADLINE = "the deadline passed before its end"
_BATCH_BYTES = 512 * 1024  # enough to be worth one trip to a worker thread
_SMALL_CHUNK_BYTES = 16 * 1024
_LAST_WRITE_SECONDS = 0.2
_PROGRESS_SECONDS = 0.1
_THREADS = 4
_DECODING = 3  # one thread is left for bodies that are small or not encoded
_WINDOWS = 16


class Workers:
    """What the bodies of one fetcher share: threads, and memory and disk for decoding.

    A batch that grows large takes a turn at ``decoding`` until it is written: bombs reach their
    limit one after the other, and not all at once. A decoder of br or zstd holds up to 16 MiB, two
    if chained: a body of several batches holds one of the ``windows`` from its first to its last.
    So a slow body keeps no other waiting, unless both are large and encoded in that way.
    """

    def __init__(self) -> None:
        self.threads = anyio.CapacityLimiter(_THREADS)
        self.windows = anyio.Semaphore(_WINDOWS)
        self.decoding = anyio.Semaphore(_DECODING)


@dataclass(frozen=True, slots=True)
class _Batch:
    chunks: list[bytes]
    is_last: bool


class BodyReader:
    """Reads one body. ``incomplete`` is the reason why it is not whole, "" while it is."""

    def __init__(
        self, exchange: "Exchange", spool: Spool, limits: FetchLimits, workers: Workers
    ) -> None:
        """Read from ``exchange`` into ``spool``; ``workers`` do the work."""
        self._exchange = exchange
        self._spool = spool
        self._max_wire = limits.max_wire_bytes
        self._workers = workers
        self._chunks: list[bytes] = []
        self._size = 0
        self._fault: FetchstashError | BrokenCoding | None = None
        self._is_received = self._is_written = False
        self.incomplete = ""

    async def read(self, deadline: float, progress: Progress | None) -> None:
        """Read to the end, the ``deadline`` (the event loop's clock) or a fault, into the spool.

        One batch is decoded, hashed and written while the next one is received. Raises TooLarge
        above a limit, and StoreError where the disk is full.
        """
        report = _Reporter(progress, self._exchange)
        batches, received = anyio.create_memory_object_stream[_Batch](0)
        async with anyio.create_task_group() as tasks:
            tasks.cancel_scope.deadline = deadline + _LAST_WRITE_SECONDS
            tasks.start_soon(self._write_all, received)
            async with batches:
                with anyio.move_on_at(deadline):
                    await self._receive_all(batches, report)
                await self._send(batches, is_last=True)
        if isinstance(self._fault, FetchstashError):
            raise self._fault
        if self._fault:
            self.incomplete = f"it {self._fault}"
        elif not self._is_received or not self._is_written:
            self.incomplete = self.incomplete or PAST_DEADLINE
        report.last()

    async def _receive_all(
        self, batches: MemoryObjectSendStream[_Batch], report: "_Reporter"
    ) -> None:
        from fetchstash.fetch._exchange import BrokenBody  # noqa: PLC0415 -- it imports httpcore2

        try:
            async for chunk in self._exchange.chunks():
                if self._exchange.received > self._max_wire:
                    self._fault = too_large("wire", self._max_wire)
                if self._fault:
                    return
                self._chunks.append(chunk)
                self._size += len(chunk)
                if self._size >= _BATCH_BYTES:
                    await self._send(batches, is_last=False)
                report.now_and_then()
            self._is_received = True
        except BrokenBody as broken:
            self.incomplete = str(broken)

    async def _send(self, batches: MemoryObjectSendStream[_Batch], *, is_last: bool) -> None:
        """Hand what was received to the writer, unless it has stopped."""
        # Join small chunks only: joining large ones would copy the whole body once more.
        is_small = self._size < _SMALL_CHUNK_BYTES * len(self._chunks)
        chunks = [b"".join(self._chunks)] if is_small else self._chunks
        self._chunks, self._size = [], 0
        # Cancelled at the deadline, a batch would be lost. The writer ends soon after that.
        with anyio.CancelScope(shield=True), suppress(anyio.BrokenResourceError):
            await batches.send(_Batch(chunks, is_last))

    async def _write_all(self, batches: MemoryObjectReceiveStream[_Batch]) -> None:
        async with batches, AsyncExitStack() as held:
            holds_window = False
            async for batch in batches:
                if self._spool.needs_window and not holds_window and not batch.is_last:
                    await held.enter_async_context(self._workers.windows)
                    holds_window = True
                try:
                    await self._write(batch.chunks)
                except (FetchstashError, BrokenCoding) as fault:
                    self._fault = fault
                    return
            self._is_written = True

    async def _write(self, chunks: list[bytes]) -> None:
        """Decode and write a batch in a thread, in short calls, so that it can be cancelled."""
        threads = self._workers.threads
        more = await anyio.to_thread.run_sync(partial(self._spool.put, chunks), limiter=threads)
        if more:
            async with self._workers.decoding:
                while more:
                    more = await anyio.to_thread.run_sync(self._spool.go_on, limiter=threads)


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

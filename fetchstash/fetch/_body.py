"""Read a body from its connection into a private file, in batches, off the event loop.

It is decoded in bounded steps and hashed as it is written.
"""

import hashlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from http import HTTPStatus
from io import FileIO
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from fetchstash.errors import FetchstashError, StoreError, TooLarge
from fetchstash.fetch._coding import BrokenCoding, Decoder, codings, decoders
from fetchstash.fetch._contract import FetchLimits, Progress
from fetchstash.fetch._responses import PAST_DEADLINE, nothing_came

if TYPE_CHECKING:
    from fetchstash.fetch._exchange import Exchange

# Real text compresses to a hundredth at best; zeros to a thousandth and less.
_MAX_GROWTH = 250
_GROWTH_UNASKED = 32 * 2**20
_PIECES_AT_FIRST = 16
_PIECES_A_CALL = 64  # of 64 KiB: a call takes some 10 ms, so that a fetch can be cancelled

_BATCH_BYTES = 2 * 2**20  # enough to be worth one trip to a worker thread
_SMALL_CHUNK_BYTES = 16 * 1024
_LAST_WRITE_SECONDS = 0.2
_PROGRESS_SECONDS = 0.1
_THREADS = 4
_DECODING = 3  # one thread is left for bodies that are small or not encoded
_WINDOWS = 16
FIRST_PART = "only its first {:,} bytes{} were taken, the most that one body may have"
_UNKNOWN_CODING = "it has an unknown content coding and is kept as sent"

Batch = tuple[list[bytes], bool]
"""Received chunks, and whether they are the last."""


class BrokenBody(Exception):
    """The body did not come to its end. Its text is half a sentence."""


class Spool:
    """One new file, decoded by ``stages``. ``size`` and ``hash`` are of the decoded bytes.

    ``full`` says that more came than a body may have: what is behind the limit is left out.

    ``put``, ``go_on`` and ``discard`` block: call them in a worker thread. A lock protects the
    file, because a task can be cancelled while its thread still writes: it is then discarded.
    """

    def __init__(self, folder: Path, stages: Sequence[Decoder], max_decoded_bytes: int) -> None:
        self.path: Path | None = None
        self._folder = folder
        self.size = 0
        self.full = False
        self._stages = stages
        self.needs_window = any(stage.has_large_window for stage in stages)
        self._produced = [0] * len(stages)
        self._taken = 0
        self._max = max_decoded_bytes
        self.hash = hashlib.sha256()
        self._pending: Iterator[bytes] = iter(())
        self._file: FileIO | None = None
        self._lock = Lock()
        self._discarded = False

    def put(self, batch: Sequence[bytes]) -> bool:
        """Begin to write a batch; return whether ``go_on`` has more to write.

        Raises like ``go_on``.
        """
        with self._lock:
            if self.path is None and not self._discarded:
                self._open()
            self._taken += sum(map(len, batch))
            self._pending = iter(batch)
            for number, stage in enumerate(self._stages):
                self._pending = self._bounded(number, stage, self._pending)
        return self.go_on(_PIECES_AT_FIRST)

    def go_on(self, pieces: int = _PIECES_A_CALL) -> bool:
        """Write some 4 MiB more; return whether more is left.

        Raises TooLarge for a bomb, BrokenCoding if the bytes cannot be decoded, StoreError if the
        disk is full.
        """
        with self._lock:
            for _ in range(pieces):
                piece = next(self._pending, None)
                if piece is None or self._file is None:
                    return False
                if self.size + len(piece) > self._max:
                    piece, self.full = piece[: self._max - self.size], True
                    self._pending = iter(())
                self.hash.update(piece)
                try:
                    view = memoryview(piece)
                    while view:
                        view = view[self._file.write(view) :]
                except OSError as error:
                    what = f"The body could not be written: {error.strerror}."
                    raise StoreError(what, "Make space on the disk.") from None
                self.size += len(piece)
            return True

    def finish(self, *, whole: bool) -> None:
        """Close the file. Raises BrokenCoding if the body is ``whole`` and its coding is not.

        All is written by now, so it waits for nothing.
        """
        with self._lock:
            self._close()
            if whole:
                for stage in self._stages:
                    stage.finish()

    def discard(self) -> None:
        """Close and remove the file for good."""
        with self._lock:
            self._discarded = True
            self._close()
            if self.path is not None:
                self.path.unlink(missing_ok=True)

    def _open(self) -> None:
        """Create the file, 0600, in the folder. Raises StoreError."""
        try:
            descriptor, name = tempfile.mkstemp(prefix="fetch-", dir=self._folder)
        except OSError as error:
            what = f"No file can be made in {self._folder}: {error.strerror}."
            raise StoreError(what, "Check the folder and the space on its disk.") from None
        self.path, self._file = Path(name), FileIO(descriptor, "wb")

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _bounded(self, number: int, stage: Decoder, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Decode one coding. The limits hold for each stage: the next one may drop its output."""
        for piece in chain.from_iterable(map(stage.feed, pieces)):
            self._produced[number] += len(piece)
            if self._produced[number] > self._max + len(piece):  # and another coding drops it
                what = f"The body has more than {self._max} bytes between its content codings."
                raise TooLarge(what, "Fetch another document.")
            if self._produced[number] > max(_GROWTH_UNASKED, self._taken * _MAX_GROWTH):
                what = f"The body grows more than {_MAX_GROWTH}-fold when it is decoded."
                raise TooLarge(what, "Fetch another document.")
            yield piece


class Workers:
    """The threads, memory and disk that the bodies of one fetcher share for decoding.

    A batch that grows large takes a turn at ``decoding`` until it is written: bombs reach their
    limit one after the other, and not all at once. A decoder of br or zstd holds up to 16 MiB, two
    if chained: a body of several batches holds one of the ``windows`` from its first to its last.
    So a slow body keeps no other waiting, unless both are large and encoded in that way.
    """

    def __init__(self) -> None:
        self.threads = anyio.CapacityLimiter(_THREADS)
        self.windows = anyio.Semaphore(_WINDOWS)
        self.decoding = anyio.Semaphore(_DECODING)


class BodyReader:
    """Reads one body. ``incomplete`` is the reason why it is not whole, "" while it is."""

    def __init__(
        self, exchange: "Exchange", spool: Spool, limits: FetchLimits, workers: Workers
    ) -> None:
        """Read from ``exchange`` into ``spool``; ``workers`` do the work."""
        self._exchange = exchange
        self._pieces = exchange.chunks()
        self._spool = spool
        self._max_wire = limits.max_wire_bytes
        self._workers = workers
        self._chunks: list[bytes] = []
        self._size = 0
        self._fault: FetchstashError | BrokenCoding | None = None
        self._is_received = self._is_written = False
        self._reported, self._reported_at = -1, time.monotonic()
        self.incomplete = ""

    async def read(self, deadline: float, progress: Progress | None) -> None:
        """Read to the end, a limit, the ``deadline`` (the event loop's clock) or a fault.

        One batch is decoded, hashed and written while the next one is received. Raises TooLarge
        for a bomb, and StoreError where the disk is full.
        """
        has_more = False
        with anyio.move_on_at(deadline):
            has_more = await self._receive(progress)
        if has_more:
            batches, received = anyio.create_memory_object_stream[Batch](0)
            async with anyio.create_task_group() as tasks:
                tasks.cancel_scope.deadline = deadline + _LAST_WRITE_SECONDS
                tasks.start_soon(self._write_all, received)
                async with batches:
                    with anyio.move_on_at(deadline):
                        while has_more:
                            await self._send(batches, is_last=False)
                            has_more = await self._receive(progress)
                    await self._send(batches, is_last=True)
        else:
            with anyio.move_on_at(deadline + _LAST_WRITE_SECONDS):
                self._is_written = await self._write(self._batch())
        if isinstance(self._fault, FetchstashError):
            raise self._fault
        if self._spool.full:
            self.incomplete = FIRST_PART.format(self._spool.size, "")
        elif self._fault:
            self.incomplete = f"it {self._fault}"
        elif not self._is_received or not self._is_written:
            self.incomplete = self.incomplete or PAST_DEADLINE
        self._report(progress, 0)

    async def _receive(self, progress: Progress | None) -> bool:
        """Receive one batch; return True if it is full, False if the body has ended."""
        try:
            async for chunk in self._pieces:
                if self._fault or self._spool.full:
                    return False
                over = self._exchange.received - self._max_wire
                if over > 0:
                    self._chunks.append(chunk[:-over])
                    self.incomplete = FIRST_PART.format(self._max_wire, " as sent")
                    return False
                self._chunks.append(chunk)
                self._size += len(chunk)
                self._report(progress, _PROGRESS_SECONDS)
                if self._size >= _BATCH_BYTES:
                    return True
            self._is_received = True
        except BrokenBody as broken:
            self.incomplete = str(broken)
        return False

    def _report(self, progress: Progress | None, after_seconds: float) -> None:
        """Call ``progress`` if more was received and its last call is long enough ago."""
        now, received = time.monotonic(), self._exchange.received
        if progress and received != self._reported and now - self._reported_at >= after_seconds:
            self._reported, self._reported_at = received, now
            progress(received, self._exchange.announced)

    def _batch(self) -> list[bytes]:
        """Return what was received since the last batch."""
        # Join small chunks only: joining large ones would copy the whole body once more.
        is_small = self._size < _SMALL_CHUNK_BYTES * len(self._chunks)
        chunks = [b"".join(self._chunks)] if is_small else self._chunks
        self._chunks, self._size = [], 0
        return chunks

    async def _send(self, batches: MemoryObjectSendStream[Batch], *, is_last: bool) -> None:
        """Hand what was received to the writer, unless it has stopped."""
        # Cancelled at the deadline, a batch would be lost. The writer ends soon after that.
        with anyio.CancelScope(shield=True), suppress(anyio.BrokenResourceError):
            await batches.send((self._batch(), is_last))

    async def _write_all(self, batches: MemoryObjectReceiveStream[Batch]) -> None:
        async with batches, AsyncExitStack() as held:
            holds_window = False
            async for chunks, is_last in batches:
                if self._spool.needs_window and not holds_window and not is_last:
                    await held.enter_async_context(self._workers.windows)
                    holds_window = True
                if not await self._write(chunks) or self._spool.full:
                    return
            self._is_written = True

    async def _write(self, chunks: list[bytes]) -> bool:
        """Decode and write a batch in a thread; return whether that succeeded.

        The calls are short, so that it can be cancelled.
        """
        threads = self._workers.threads
        try:
            more = await anyio.to_thread.run_sync(partial(self._spool.put, chunks), limiter=threads)
            if more:
                async with self._workers.decoding:
                    while more:
                        more = await anyio.to_thread.run_sync(self._spool.go_on, limiter=threads)
        except (FetchstashError, BrokenCoding) as fault:
            self._fault = fault
            return False
        return True


async def spool_body(
    exchange: "Exchange",
    folder: Path,
    limits: FetchLimits,
    workers: Workers,
    deadline: float,
    progress: Progress | None,
) -> tuple[Spool, str]:
    """Read a body into a new file in ``folder``; return that, and why it is not whole, or "".

    Raises TooLarge for a bomb, StoreError, and FetchFailed or TimedOut where nothing of it came,
    and then leaves no file.
    """
    applied = codings(exchange.headers.get("content-encoding", ""))
    try:
        stages = decoders(applied or ())
    except BrokenCoding as broken:
        raise nothing_came(exchange.target, f"it {broken}", limits) from None
    spool = Spool(folder, stages, limits.max_decoded_bytes)
    in_thread = partial(anyio.to_thread.run_sync, limiter=workers.threads)
    try:
        reader = BodyReader(exchange, spool, limits, workers)
        await reader.read(deadline, progress)
        incomplete = reader.incomplete or (_UNKNOWN_CODING if applied is None else "")
        try:
            spool.finish(whole=not incomplete)
        except BrokenCoding as broken:
            incomplete = f"it {broken}"
        if exchange.status == HTTPStatus.PARTIAL_CONTENT:  # unasked for (RFC 9110, 15.3.7)
            incomplete = incomplete or "the server sent only a part of it"
        if incomplete and not spool.size:
            raise nothing_came(exchange.target, incomplete, limits)  # noqa: TRY301 -- see below
    except BaseException:
        with anyio.CancelScope(shield=True):  # whatever went wrong, no file stays
            await in_thread(spool.discard)
        raise
    if not spool.size:
        incomplete = f"the server answered {exchange.phrase} and sent no content"
    return spool, incomplete


async def read_beginning(exchange: "Exchange", max_bytes: int, deadline: float) -> bytes:
    """Return the first ``max_bytes`` of a body as sent, or those received by the ``deadline``."""
    body = bytearray()
    with anyio.move_on_at(deadline), suppress(BrokenBody):
        async for chunk in exchange.chunks():
            body += chunk
            if len(body) >= max_bytes:
                break
    return bytes(body[:max_bytes])

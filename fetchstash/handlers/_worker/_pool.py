"""The Extractor: a few worker processes, started when needed and ended when idle."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fetchstash.errors import Busy, FetchstashError, Internal, TooLarge
from fetchstash.handlers._contract import (
    NO_HINTS,
    Decision,
    Extraction,
    ExtractLimits,
    Hints,
    PartRequest,
    PartText,
    Picture,
)
from fetchstash.handlers._worker import _answers as answers
from fetchstash.handlers._worker._checks import member
from fetchstash.handlers._worker._frames import ProtocolError
from fetchstash.handlers._worker._process import Worker, WorkerDied
from fetchstash.handlers._worker._room import Room

WORKERS = 2
IDLE_SECONDS = 60
# How long a job waits for a free worker, in jobs that take all their time.
WAIT_JOBS = 3
NO_DECISION = Decision("unknown_binary", "", "", "fallback", (), mismatch=False)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An extraction, and which plugin failed at it and why ("" if none)."""

    extraction: Extraction
    plugin_failure: str = ""


class WorkerPool:
    """Runs handlers in at most ``workers`` processes, each held to ``limits`` for each job.

    It belongs to the event loop that first uses it. Processes that had nothing to do for
    ``idle_seconds`` are ended.
    """

    def __init__(
        self,
        limits: ExtractLimits | None = None,
        *,
        workers: int = WORKERS,
        idle_seconds: float = IDLE_SECONDS,
        folder: Path | None = None,
    ) -> None:
        self._limits = limits or ExtractLimits()
        self._folder = folder
        self._idle_seconds = idle_seconds
        self._free = asyncio.Semaphore(workers)
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None

    async def extract(
        self,
        source: Path,
        decision: Decision,
        hints: Hints,
        folder: Path,
        *,
        seconds: float | None = None,
    ) -> Extraction:
        """Read ``source`` (see Extractor). Where a plugin fails a built-in format takes over."""
        limits = self._limits
        if seconds is not None:
            limits = replace(limits, wall_seconds=min(limits.wall_seconds, seconds))
        attempt = await self._extract(source, decision, hints, folder, limits)
        if not attempt.plugin_failure:
            return attempt.extraction
        without = replace(limits, plugins=())
        extraction = (await self._extract(source, decision, hints, folder, without)).extraction
        note = f"plugin {attempt.plugin_failure}"
        if extraction.text is None and not extraction.extraction_error:
            extraction = replace(extraction, extraction_error=note)
        return replace(extraction, notes=(f"{note}; a built-in format took over",))

    async def plugins(self) -> list[answers.PluginReport]:
        """Return what is known of the packages that bring formats. Raises Busy or Internal."""
        reports = await self._plugins(())
        enabled = [report for name in self._limits.plugins for report in await self._plugin(name)]
        named = {report.package for report in enabled}
        reports = [*enabled, *(report for report in reports if report.package not in named)]
        return sorted(reports, key=lambda report: report.package)

    async def _plugin(self, name: str) -> list[answers.PluginReport]:
        """Return the report of one enabled package; a worker of its own loads it."""
        try:
            return [r for r in await self._plugins((name,)) if r.words or r.failure]
        except WorkerDied as error:
            return [answers.PluginReport(name, "", str(error))]

    async def _plugins(self, names: tuple[str, ...]) -> list[answers.PluginReport]:
        job = self._job("plugins", Path(), NO_DECISION, NO_HINTS)
        job["limits"] |= {"plugins": names}
        async with self._worker(None) as worker:
            last = await worker.job(job, self._limits.wall_seconds, _no_report)
            if "found" not in last:
                raise answers.failure(last)
            return answers.plugins(member(last, "found"))

    async def part(self, decision: Decision, request: PartRequest) -> PartText | Picture:
        """Read one part of a document (see Extractor)."""
        named = {
            name: getattr(request, name) for name in ("path", "unit", "start", "end", "render")
        }
        job = self._job("part", request.source, decision, request.hints) | {"request": named}
        try:
            async with self._worker(request.source) as worker:
                try:
                    last = await worker.job(job, self._limits.wall_seconds, _no_report)
                except WorkerDied as error:
                    await worker.gone()
                    next_step = "Ask for a smaller part, or read its text."
                    raise TooLarge(f"That part could not be read: {error}.", next_step) from error
                if "found" not in last:
                    raise answers.failure(last)
                return answers.part(member(last, "found"))
        except ProtocolError as error:
            raise Internal("A worker sent what is no answer.", "Try again.") from error

    @property
    def unconfined(self) -> list[str]:
        """What this system lacks to confine the workers that were started, as sentences."""
        return sorted({lack for worker in self._all for lack in worker.unconfined})

    async def aclose(self) -> None:
        """End all workers."""
        self._closed = True
        if self._timer:
            self._timer.cancel()
        for worker in self._all:
            worker.kill()
        await asyncio.gather(*(worker.gone() for worker in self._all))

    async def _extract(
        self, source: Path, decision: Decision, hints: Hints, folder: Path, limits: ExtractLimits
    ) -> "_Attempt":
        text = _new_file(folder)
        kept = False
        pieces = answers.Pieces()
        try:
            try:
                extraction, failure = await self._extract_in_worker(
                    source, decision, hints, text, limits, pieces
                )
            except ProtocolError:
                failure = "its reader sent what is no answer"
                extraction = Extraction(None, "", extraction_error=failure)
            if failure and limits.plugins and (pieces.plugin or not pieces.handler):
                if not pieces.loaded:  # not tried again: each document would wait for it
                    self._limits = replace(self._limits, plugins=())
                names = pieces.plugin or ", ".join(limits.plugins)
                return _Attempt(extraction, f"{names}: {failure}")
            kept = extraction.text is not None
            return _Attempt(extraction)
        finally:
            if not kept:
                with contextlib.suppress(OSError):  # Windows keeps what a dying worker has open
                    text.unlink()

    async def _extract_in_worker(
        self,
        source: Path,
        decision: Decision,
        hints: Hints,
        text: Path,
        limits: ExtractLimits,
        pieces: answers.Pieces,
    ) -> tuple[Extraction, str]:
        """Return the extraction, and why the handler failed if it did."""
        job = self._job("extract", source, decision, hints)
        job |= {"text": str(text), "limits": asdict(limits)}
        async with self._worker(source) as worker:
            try:
                last = await worker.job(job, limits.wall_seconds, pieces.add)
                if "done" not in last:
                    error = answers.failure(last).what
                    return Extraction(None, pieces.handler, extraction_error=error), error
                measured = await asyncio.to_thread(answers.measure, text, pieces)
                done = member(last, "done")
                extraction = answers.extraction(text, done, pieces, measured)
                return extraction, extraction.extraction_error if done.get("raised") else ""
            except WorkerDied as error:
                await worker.gone()  # until then it may still write
                measured = await asyncio.to_thread(answers.measure, text, pieces)
                return answers.remains(text, pieces, measured, str(error)), str(error)

    def _job(self, do: str, source: Path, decision: Decision, hints: Hints) -> dict[str, Any]:
        return {
            "do": do,
            "source": str(source),
            "decision": asdict(decision),
            "hints": asdict(hints),
            "limits": asdict(self._limits),
        }

    @contextlib.asynccontextmanager
    async def _worker(self, source: Path | None) -> AsyncGenerator[Worker]:
        """Lend a worker that can read ``source``; wait at most as long as WAIT_JOBS jobs may take.

        It is killed on any exception.
        """
        try:
            async with asyncio.timeout(WAIT_JOBS * self._limits.wall_seconds):
                await self._free.acquire()
        except TimeoutError:
            raise Busy(
                "All workers are busy with other documents.", "Try again in a minute."
            ) from None
        try:
            worker = self._take_idle(source) or await self._start(source)
            try:
                yield worker
            except FetchstashError:
                raise  # a proper answer: the worker is fine
            except BaseException:
                worker.kill()
                raise
            finally:
                self._give_back(worker)
        finally:
            self._free.release()

    def _take_idle(self, source: Path | None) -> Worker | None:
        """Return an idle worker that can read ``source``, and end one that cannot in its place."""
        while self._idle:
            worker = self._idle.pop()
            if worker.alive and (source is None or worker.room.lend(source)):
                return worker
            worker.end()
        return None

    async def _start(self, source: Path | None) -> Worker:
        if self._closed:
            raise Internal("The workers have ended.", "Start the program again.")
        room = Room(self._folder)
        if source is not None and not room.lend(
            source
        ):  # on another file system, or another user's
            room.readable = (source,)
        worker = await Worker.start(room)
        self._all = {w for w in self._all if w.alive} | {worker}
        if self._closed:  # in the meantime
            worker.end()
        return worker

    def _give_back(self, worker: Worker) -> None:
        if worker.fit and not self._closed:
            self._idle.append(worker)
        else:
            worker.end()
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._end_idle)

    def _end_idle(self) -> None:
        while self._idle:
            self._idle.pop().end()


def _no_report(_frame: dict[str, Any]) -> None:
    """Ignore a report: an answer about a part needs none."""


def _new_file(folder: Path) -> Path:
    # Not in a thread: one would finish after its task was cancelled, and leave the file.
    fd, name = tempfile.mkstemp(prefix="text-", dir=folder)  # 0600
    os.close(fd)
    return Path(name)

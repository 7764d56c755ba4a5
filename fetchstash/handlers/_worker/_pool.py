"""The Extractor: a few worker processes, started when needed and ended when idle."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fetchstash.errors import Busy, Call, FetchstashError, Internal, TooLarge
from fetchstash.handlers._contract import (
    NO_HINTS,
    Decision,
    Extraction,
    Hints,
    PagesRead,
    PageText,
    PartRequest,
    PartText,
    Picture,
)
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._registry import package_name
from fetchstash.handlers._worker import _answers as answers
from fetchstash.handlers._worker._process import Room, Worker, WorkerDied
from fetchstash.handlers._worker._protocol import PluginReport, ProtocolError, Values
from fetchstash.system import telemetry
from fetchstash.system.processes import new_file

T = TypeVar("T")

WORKERS = 2
IDLE_SECONDS = 60
WAIT_JOBS = 3  # how long a job waits for a free worker, in jobs that take all their time
OCR_PATIENCE = 5
"""A page for OCR is bounded by its CPU time: on a busy machine ten seconds of it take minutes."""
NO_ANSWER = "its reader sent what is no answer"
NO_DECISION = Decision("unknown_binary", "", "", "fallback", (), mismatch=False)
_log = logging.getLogger("fetchstash.handlers")


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
        niceness: int = 0,
    ) -> None:
        limits = limits or ExtractLimits()
        self._limits = replace(limits, plugins=tuple(map(package_name, limits.plugins)))
        self._reports: dict[str, PluginReport] = {}
        self._looking = asyncio.Lock()
        self._folder = folder
        self._niceness = niceness
        self._idle_seconds = idle_seconds
        self._free = asyncio.Semaphore(workers)
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._closed = False
        self._says_unconfined = False
        self._timer: asyncio.TimerHandle | None = None
        self._preparing: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Start a worker for the next job, unless one is idle or no more may run."""
        is_coming = self._preparing and not self._preparing.done()
        if not (is_coming or self._idle or self._free.locked()):
            self._preparing = asyncio.create_task(self._prepare())

    async def _prepare(self) -> None:
        async with self._free:
            with contextlib.suppress(FetchstashError, OSError):  # the job meets the same, and tells
                worker = await self._start(None, None)
                worker.preload()
                self._keep(worker)

    async def extract(
        self,
        source: Path,
        decision: Decision,
        hints: Hints,
        folder: Path,
        *,
        seconds: float | None = None,
        on_page: PagesRead | None = None,
    ) -> Extraction:
        """Read ``source`` (see Extractor). If a plugin fails, a built-in format takes over."""
        turned_off = await self._look_at_plugins()
        limits = self._limits
        if seconds is not None:
            limits = replace(limits, wall_seconds=min(limits.wall_seconds, seconds))
        job = self._job("extract", source, decision, hints, limits)
        extraction, failure = await self._extract(job, source, decision, folder, limits, on_page)
        if not failure:
            return replace(extraction, notes=(*extraction.notes, *turned_off))
        limits = replace(limits, plugins=())
        job["limits"]["plugins"] = ()
        extraction, _ = await self._extract(job, source, decision, folder, limits, on_page)
        note = f"plugin {failure}"
        if extraction.text is None and not extraction.extraction_error:
            extraction = replace(extraction, extraction_error=note)
        return replace(extraction, notes=(f"{note}; a built-in format took over", *turned_off))

    async def _extract(
        self,
        job: dict[str, Any],
        source: Path,
        decision: Decision,
        folder: Path,
        limits: ExtractLimits,
        on_page: PagesRead | None,
    ) -> tuple[Extraction, str]:
        """Return the extraction, and which plugin failed at it and why ("" if none)."""
        text = new_file(folder, "text-")
        brought = {name: self._reports[name].formats for name in limits.plugins}
        extraction = Extraction(None, "", extraction_error=NO_ANSWER)
        failure, kept = NO_ANSWER, False
        try:
            most = answers.most_bytes(source, limits.max_chars)  # one stat: a thread takes longer
            pieces = answers.Pieces(brought, most, on_page)
            with contextlib.suppress(ProtocolError):
                async with self._worker(source, text) as worker:
                    extraction, failure = await _run(
                        worker, job, limits.wall_seconds, text, source, decision, pieces
                    )
            if failure and limits.plugins and (pieces.plugin or not pieces.handler):
                # Else each document would wait for it. A worker that has read a document before
                # could blame any plugin.
                if pieces.new_worker and not pieces.loaded and pieces.plugin:
                    self._turn_off(pieces.plugin, failure)
                names = pieces.plugin or ", ".join(limits.plugins)
                return extraction, f"{names}: {failure}"
            kept = extraction.text is not None
            return extraction, ""
        finally:
            if not kept:
                with contextlib.suppress(OSError):  # Windows keeps what a dying worker has open
                    text.unlink()

    async def part(self, decision: Decision, request: PartRequest) -> PartText | Picture:
        """Read one part of a document (see Extractor)."""
        await self._look_at_plugins()
        names = ("path", "unit", "start", "end", "render")
        job = self._job("part", request.source, decision, request.hints, self._limits)
        job["request"] = {name: getattr(request, name) for name in names}
        most = self._limits.preview.max_image_size_bytes
        return await self._answer(
            request.source, job, lambda answer: answers.part(answer, most), request
        )

    async def read_page(self, decision: Decision, source: Path, page: int) -> PageText:
        """Read the text of a page by OCR (see PageReader)."""
        job = self._job("ocr", source, decision, NO_HINTS, self._limits)
        job["page"] = page
        job["limits"]["wall_seconds"] *= OCR_PATIENCE
        return await self._answer(source, job, answers.page)

    async def _answer(
        self,
        source: Path,
        job: dict[str, Any],
        read: Callable[[Values], T],
        request: PartRequest | None = None,
    ) -> T:
        """Return what a worker answers. Raises TooLarge, Internal, and what the handler raises."""
        try:
            async with self._worker(source) as worker:
                try:
                    last = await worker.job(job, job["limits"]["wall_seconds"])
                except WorkerDied as error:
                    await worker.gone()
                    next_step = "Ask for a smaller part, or read its text."
                    raise TooLarge(f"That part could not be read: {error}.", next_step) from error
                if "found" not in last:
                    raise answers.failure(last, request)
                return read(Values(last["found"]))
        except ProtocolError as error:
            next_step = "Ask for another part, or read its text."
            raise Internal("A worker sent what is no answer.", next_step) from error

    async def plugins(self) -> list[PluginReport]:
        """Return what is known of the packages that bring formats. Raises Busy or Internal."""
        await self._look_at_plugins()
        installed = {report.package: report for report in await self._ask_plugins()}
        return [report for _, report in sorted((installed | self._reports).items())]

    async def _look_at_plugins(self) -> list[str]:
        """Look once at what each enabled plugin brings, and turn off those that end a worker.

        Return a note for each that was turned off now.
        """
        notes: list[str] = []
        async with self._looking:
            for name in [name for name in self._limits.plugins if name not in self._reports]:
                try:
                    reports = await self._ask_plugins(name)
                    self._reports |= {r.package: r for r in reports if r.package == name}
                except (WorkerDied, ProtocolError) as error:
                    notes.append(self._turn_off(name, str(error) or NO_ANSWER))
        return notes

    async def _ask_plugins(self, *names: str) -> list[PluginReport]:
        """Ask a new worker, because one that has read a document could say anything."""
        limits = replace(self._limits, plugins=names)
        job = self._job("plugins", Path(), NO_DECISION, NO_HINTS, limits)
        async with self._worker(None, new=True) as worker:
            last = await worker.job(job, limits.wall_seconds)
            if "found" not in last:
                raise WorkerDied(answers.failure(last).what)
            return answers.plugins(Values(last["found"]))

    def _turn_off(self, name: str, reason: str) -> str:
        """Leave a plugin out from now on, and say so in the log; return a note."""
        self._reports[name] = PluginReport(name, failure=reason, ended=True)
        kept = tuple(plugin for plugin in self._limits.plugins if plugin != name)
        self._limits = replace(self._limits, plugins=kept)
        note = f"plugin {name}: {reason}; it is off until the next start"
        _log.warning("%s. `fetchstash doctor` tries it again.", note)
        return note

    @property
    def unconfined(self) -> list[str]:
        """What this system lacks to confine the workers that were started, as sentences."""
        return sorted({lack for worker in self._all for lack in worker.unconfined})

    async def aclose(self) -> None:
        """End all workers."""
        self._closed = True
        if self._timer:
            self._timer.cancel()
        if self._preparing:
            self._preparing.cancel()
            await asyncio.wait([self._preparing])
        for worker in self._all:
            worker.kill()
        await asyncio.gather(*(worker.gone() for worker in self._all))

    def end_idle(self) -> None:
        """End the workers that have nothing to do."""
        while self._idle:
            self._idle.pop().end()

    @staticmethod
    def _job(
        do: str, source: Path, decision: Decision, hints: Hints, limits: ExtractLimits
    ) -> dict[str, Any]:
        # Copies of one level: asdict copies each value, which took a tenth of a small page's time.
        asked = {
            name: {item.name: getattr(values, item.name) for item in fields(values)}
            for name, values in (("decision", decision), ("hints", hints), ("limits", limits))
        }
        asked["limits"]["preview"] = asdict(limits.preview)
        return {"do": do, "source": str(source), **asked}

    @contextlib.asynccontextmanager
    async def _worker(
        self, source: Path | None, text: Path | None = None, *, new: bool = False
    ) -> AsyncGenerator[Worker]:
        """Lend a worker that can read ``source``; wait at most as long as WAIT_JOBS jobs may take.

        It writes to ``text``. ``new``: one that has done no job. It is killed on any exception.
        """
        telemetry.adjust("queue", 1, queue="workers")
        try:
            if self._preparing and not self._preparing.done():
                await asyncio.wait([self._preparing])
            with telemetry.timed("wait", queue="workers"):
                async with asyncio.timeout(WAIT_JOBS * self._limits.wall_seconds):
                    await self._free.acquire()
        except TimeoutError:
            what = "All workers are busy with other documents."
            raise Busy(what, "Try again in a minute.") from None
        finally:
            telemetry.adjust("queue", -1, queue="workers")
        try:
            if new and self._idle:  # two would be one more than may run
                self._idle.pop().end()
            worker = None if new else await self._take_idle(source, text)
            worker = worker or await self._start(source, text)
            try:
                yield worker
            except FetchstashError:
                raise  # a proper answer: the worker is fine
            except BaseException:
                worker.kill()
                raise
            finally:
                self._keep(worker)
        finally:
            self._free.release()

    def _keep(self, worker: Worker) -> None:
        """Keep a worker for another job if it is fit, and end those that are idle for long."""
        if worker.fit and not self._closed:
            self._idle.append(worker)
        else:
            worker.end()
        if self._timer:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._idle_seconds, self.end_idle)

    async def _take_idle(self, source: Path | None, text: Path | None) -> Worker | None:
        """Return an idle worker that can read ``source``, and end one that cannot in its place."""
        while self._idle:
            worker, lent = self._idle.pop(), False
            try:
                lent = worker.alive and await asyncio.to_thread(worker.room.lend, source, text)
            finally:
                if not lent:
                    worker.end()
            if lent:
                return worker
        return None

    async def _start(self, source: Path | None, text: Path | None) -> Worker:
        """Start a worker. Raises Internal, also where it must be confined and cannot be."""
        if self._closed:
            raise Internal("The workers have ended.", "Start the program again.")
        room = Room(self._folder)
        if source is not None and not room.lend(source, text):
            room.readable = (source,)  # on another file system, or not ours
            room.lend(source, text)
        worker = await Worker.start(room, self._niceness, self._limits.plugins)
        self._all = {w for w in self._all if w.alive} | {worker}  # so that aclose waits for it
        await worker.ready()
        lacks, confine = worker.unconfined, self._limits.confine
        if lacks and not self._says_unconfined:
            self._says_unconfined = True
            telemetry.event("worker.unconfined", lacks=lacks, confine=confine)
        if lacks and confine == "required":
            worker.end()
            what = f"This system cannot confine a reader of documents: {lacks[0]}."
            allow = Call("setting", {"name": "extract.confine", "value": "auto"})
            raise Internal(what, "{}.", allow)
        if self._closed:  # in the meantime
            worker.end()
        return worker


async def _run(
    worker: Worker,
    job: dict[str, Any],
    seconds: float,
    text: Path,
    source: Path,
    decision: Decision,
    pieces: answers.Pieces,
) -> tuple[Extraction, str]:
    """Return the extraction, and why the handler failed if it did. Raises ProtocolError."""
    pieces.new_worker = worker.jobs == 0
    try:
        last = await worker.job(job, seconds, pieces.add)
        if "done" not in last:
            error = answers.failure(last).what
            return Extraction(None, pieces.handler, extraction_error=error), error
        lines = await worker.take_text(pieces.bytes, partial(answers.measure, text, pieces, source))
        done = Values(last["done"])
        extraction = answers.extraction(text, done, decision, pieces, lines)
        return extraction, extraction.extraction_error if done.data.get("raised") else ""
    except WorkerDied as died:
        error = str(died)
        if not await worker.gone(pieces.bytes):
            return Extraction(None, pieces.handler, extraction_error=error), error
        lines = await asyncio.to_thread(answers.measure, text, pieces, source)
        return answers.remains(text, decision, pieces, lines, error), error

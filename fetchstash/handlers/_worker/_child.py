"""The worker process: reads jobs from its pipe and answers in frames until the pipe ends.

Started by the server as ``python -P -m fetchstash.handlers._worker._child``. Hostile bytes are read
in here, under limits; nothing but data leaves. It has neither the server's standard streams nor its
secrets. A text is cleaned, cut and written part by part; each report goes out after its bytes were
written, so that what was reported is in the file whatever happens next. Of a text that is the
document itself, byte for byte, nothing is written.
"""

import base64
import gc
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from fetchstash.errors import FetchstashError
from fetchstash.handlers import _registry
from fetchstash.handlers._contract import (
    MAX_LEFT_OUT,
    Decision,
    Extracted,
    Hints,
    Part,
    PartRequest,
    Picture,
)
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._reasons import Cause, Reason
from fetchstash.handlers._worker import _plugins, _protocol as protocol
from fetchstash.handlers._worker._confine import confine, is_worn_out, job_limits, limit_process
from fetchstash.text import PreviewLimits, clip
from fetchstash.text.hygiene import clean, clean_encoded, clean_line
from fetchstash.text.tokens import Counter, preload

Send = Callable[[dict[str, Any]], None]

_COPY_BYTES = 2**20

GC_THRESHOLDS = 100_000, 50, 100
"""A document is one tree that lives until it is read: collecting often took a fifth of the time."""


@dataclass(slots=True)
class TextWriter:
    """Writes one text to the file descriptor ``fd``. ``max_chars`` None keeps it whole.

    ``source`` is the document as long as the text is its beginning, byte for byte.
    """

    fd: int
    send: Send
    max_chars: int | None
    source: BinaryIO | None = None
    chars: int = 0
    newlines: int = 0
    bytes: int = 0
    removed: int = 0
    full: bool = False
    blank_pages: int = 0
    outline_room: int = protocol.MAX_HEADINGS
    counter: Counter = field(default_factory=Counter)

    def write(self, part: Part) -> None:
        """Write one part; if it does not fit, its beginning, and set ``full``."""
        cleaned, data = clean_encoded(part.text)
        text, rows = cleaned.text, part.rows
        self.removed += cleaned.removed
        if self.max_chars is not None and self.chars + len(text) > self.max_chars:
            self.full = True
            cut = text[: self.max_chars - self.chars]
            rows = max(0, rows - (_lines(text) - _lines(cut)))
            text, data = cut, cut.encode("utf-8")
            if not text:
                return
        newlines = text.count("\n")
        lines = newlines + (not text.endswith("\n"))
        standing = [h for h in part.headings if h.unit != "lines" or h.start <= newlines + 1]
        headings = [
            replace(h, start=h.start + self.newlines) if h.unit == "lines" else h
            for h in standing[: self.outline_room]
        ]
        self.outline_room -= len(headings)
        if self.source is None or self.source.read(len(data)) != data:
            if self.source is not None:  # write what was its beginning until now
                self.source.seek(0)
                for start in range(0, self.bytes, _COPY_BYTES):
                    _write_all(self.fd, self.source.read(min(_COPY_BYTES, self.bytes - start)))
                self.source = None
            _write_all(self.fd, data)
        frame = {
            "bytes": self.bytes + len(data),
            "is_source": self.source is not None,
            "chars": self.chars + len(text),
            "starts_page": part.starts_page,
            "headings": protocol.headings_json(headings),
            "table": None
            if part.table is None
            else clip(clean_line(part.table), protocol.MAX_TITLE),
            "columns": part.columns,
            # Rows end the part, one a line: this is the first one's line in the whole text.
            "first_row_line": self.newlines + lines - rows + 1,
            "rows": rows,
        }
        self.blank_pages += part.blank
        self.bytes += len(data)
        self.chars += len(text)
        self.newlines += newlines
        self.counter.add(text)
        self.send({"piece": frame})


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def main() -> None:
    """Serve jobs until the server closes the pipe or a job leaves this process in doubt."""
    arguments = sys.argv[1:]
    if sys.platform == "win32":
        from fetchstash.handlers._worker._windows import restricted  # noqa: PLC0415 - Windows alone

        arguments = restricted(arguments)
    # The pipe moves to other descriptors, because libraries print and read.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the server, which closes the pipe
    room, server, plugins, *readable = arguments
    if sys.platform == "linux":
        from fetchstash.handlers._worker._linux import end_with  # noqa: PLC0415 - Linux alone

        end_with(int(server))
    limit_process()
    in_place = _plugins.locate(tuple(filter(None, plugins.split(","))))
    missing = confine(Path(room), [*map(Path, readable), *in_place])
    gc.set_threshold(*GC_THRESHOLDS)

    def send(frame: dict[str, Any]) -> None:
        if frame.get("sound") and is_worn_out():
            frame["sound"] = False
        _write_all(answers, protocol.encode(frame))

    send({"ready": os.getpid(), "missing": missing})
    while (job := protocol.read_frame(requests)) is not None:
        if job["do"] == "preload":
            preload()
            continue
        if not run(job, send):
            return
        gc.collect()
        gc.freeze()  # the modules and tables that stay: looking at them took longer than a page


def run(job: dict[str, Any], send: Send) -> bool:
    """Do one job and send its last frame; return whether this process may take another."""
    try:
        decision, hints, limits = _read_job(job)
        with job_limits(limits.memory_mb, limits.cpu_seconds, limits.wall_seconds):
            if job["do"] == "plugins":
                send({"found": {"plugins": _plugins.report(limits.plugins)}, "sound": True})
                return True
            for name in limits.plugins:
                send({"plugin": name})
                _plugins.load(name)
            if limits.plugins:
                send({"loaded": True})
            source = Path(job["source"])
            if job["do"] == "extract":
                choice = _plugins.choose(decision, hints, source, limits.plugins)
                return read(choice, source, hints, limits, send, Path(job["text"]))
            choice = _plugins.choose(decision, hints, None, limits.plugins)
            if job["do"] == "ocr":
                send({"found": page(choice, source, job["page"]), "sound": True})
                return True
            request = PartRequest(**job["request"], source=source, hints=hints, limits=limits)
            send({"found": part(choice, request), "sound": True})
    except BaseException as error:  # noqa: BLE001 - also pyo3's PanicException and SystemExit
        if isinstance(error, _plugins.PluginError):
            send({"plugin": error.package})
        excerpt = error.excerpt if isinstance(error, FetchstashError) else ""
        shown = clip(clean(excerpt).text, protocol.MAX_LINE)
        send({"failed": _cause(error).to_json(), "excerpt": shown, "sound": _is_sound(error)})
        return _is_sound(error)
    return True


def read(
    choice: _plugins.Choice,
    source: Path,
    hints: Hints,
    limits: ExtractLimits,
    send: Send,
    text: Path,
) -> bool:
    """Extract a document by the format that was chosen for it; return as ``extract`` does."""
    declared, decision = choice.format, choice.decision
    if choice.package:
        send({"plugin": choice.package, "format": choice.number})
    handler = _registry.handler_of(declared)
    send({"handler": handler.name})
    hints = replace(hints, media_type=decision.media_type)
    extracted = handler.extract(source, hints, limits)
    extracted.learn(media_type=extracted.facts.media_type or decision.media_type)
    most = None if declared.is_text else limits.max_chars
    with source.open("rb") as document:
        return extract(extracted, text, most, send, document)


def extract(
    extracted: Extracted,
    text: Path,
    max_chars: int | None,
    send: Send,
    source: BinaryIO | None = None,
) -> bool:
    """Write the text to its file and send the facts; return whether this process is sound."""
    if extracted.parts is None:
        send({"done": _facts(extracted), "sound": True})
        return True
    sound, raised = True, False
    fd = os.open(text, os.O_WRONLY | getattr(os, "O_BINARY", 0))

    def report(frame: dict[str, Any]) -> None:
        send({"piece": frame["piece"] | {"page_count": extracted.facts.pages}})

    writer = TextWriter(fd, report, max_chars, source)
    try:
        for part in extracted.parts:
            writer.write(part)
            if writer.full:
                break
    except BaseException as error:  # noqa: BLE001 - as above; text and facts so far are kept
        sound, raised = _is_sound(error), True
        extracted.learn(extraction_truncated=writer.chars > 0)
        extracted.fail(_cause(error))
    finally:
        os.close(fd)
    if writer.full:
        extracted.learn(extraction_truncated=True)
        if not extracted.cause:
            extracted.fail(Reason.CUT_AT_LIMIT.cause(chars=max_chars or 0))
    if writer.blank_pages:
        extracted.learn(pages_without_text=writer.blank_pages)
    extracted.learn(hidden_removed=extracted.facts.hidden_removed + writer.removed)
    done = _facts(extracted)
    if sound:
        counted = writer.counter.result()
        done |= {"tokens": counted.tokens, "tokens_exact": counted.exact}
    has_text = bool(writer.chars or not extracted.cause)
    send({"done": done | {"has_text": has_text, "raised": raised}, "sound": sound})
    return sound


def part(choice: _plugins.Choice, request: PartRequest) -> dict[str, Any]:
    """Return the part that was asked for as JSON. Raises what the handler raises."""
    try:
        answer = _registry.read_part(_registry.handler_of(choice.format), request)
    except FetchstashError:
        raise
    except Exception:
        if not choice.package:
            raise
        # A plugin failed: the built-in format answers, if there is one.
        built_in = _registry.format_of(choice.decision)
        answer = _registry.read_part(_registry.handler_of(built_in), request)
    if isinstance(answer, Picture):
        data = base64.b64encode(answer.data).decode("ascii")
        size = {"width": answer.width, "height": answer.height}
        return {"picture": data, "media_type": answer.media_type, **size}
    text, most = answer.text, protocol.MAX_PART_TEXT
    return {"text": clean(text[:most]).text, "total": answer.total, "cut": len(text) > most}


def page(choice: _plugins.Choice, source: Path, number: int) -> dict[str, Any]:
    """Return the text that OCR reads on a page as JSON. Raises NoText where there is none."""
    from fetchstash.handlers import _ocr  # noqa: PLC0415 - for the worker of OCR alone

    raster = getattr(_registry.handler_of(choice.format), "raster", None)
    if raster is None:
        raise Reason.NO_OCR.error()
    reading = _ocr.read(raster(source, number, _ocr.MAX_EDGE))
    text = clip(clean(reading.text).text, protocol.MAX_PART_TEXT)
    return {"text": text, "confidence": round(1_000 * reading.confidence)}


def _read_job(job: dict[str, Any]) -> tuple[Decision, Hints, ExtractLimits]:
    decision = Decision(**(job["decision"] | {"evidence": tuple(job["decision"]["evidence"])}))
    preview = PreviewLimits(**job["limits"]["preview"])
    plugins = tuple(job["limits"]["plugins"])
    limits = ExtractLimits(**job["limits"] | {"preview": preview, "plugins": plugins})
    hints = Hints(**job["hints"])
    charset = hints.charset or decision.charset
    return decision, replace(hints, charset=charset, media_type=decision.media_type), limits


def _facts(extracted: Extracted) -> dict[str, Any]:
    sample = clean(extracted.preview.sample).text
    preview = asdict(extracted.preview) | {
        "text": clip(clean(extracted.preview.text).text, protocol.MAX_PREVIEW),
        "sample": sample if len(sample) <= protocol.MAX_PREVIEW else "",
    }
    cause = extracted.cause.to_json() if extracted.cause else None
    told = {"cause": cause, "preview": preview, "left_out_text": _kept(extracted.left_out)}
    return protocol.facts_json(extracted.facts) | told


def _kept(left_out: str) -> str:
    """Return the left-out text, cleaned; "" if it is too much to keep."""
    if len(left_out) > MAX_LEFT_OUT:
        return ""
    kept = clean(left_out).text
    return kept if len(kept) <= MAX_LEFT_OUT else ""


def _cause(error: BaseException) -> Cause:
    """Return the cause of a failure: of foreign exceptions only their class."""
    if isinstance(error, FetchstashError):
        return protocol.cause_of(error)
    if isinstance(error, _plugins.PluginError):
        return error.cause
    if isinstance(error, MemoryError):
        return Reason.MEMORY.cause()
    if isinstance(error, RecursionError):
        return Reason.DEPTH.cause()
    if isinstance(error, ModuleNotFoundError):
        return Reason.LIBRARY.cause(library=str(error.name).partition(".")[0])
    return Reason.FAILED.cause(error=type(error).__name__)


def _is_sound(error: BaseException) -> bool:
    """Return whether the process may go on: only if the failure was foreseen.

    A document at which a library failed may have done more than that.
    """
    return isinstance(error, FetchstashError | _plugins.PluginError | ModuleNotFoundError)


if __name__ == "__main__":
    main()

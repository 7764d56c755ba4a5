"""Record events, counters and spans in OpenTelemetry and in a local log.

Names and attributes are facts about content (kinds, sizes, codes, references), never content, and
the caller masks URLs in them. Telemetry never fails its caller.

OpenTelemetry is used through its API alone, and only if something in the process has imported it
already: an installed SDK has. An event belongs to the current span; without one it becomes a span
of no length. What is counted and timed has the names of ``INSTRUMENTS`` there.

The log is a file of JSON lines, 0600, each with ``time`` (UTC), ``kind`` (event, count or span),
``name`` and ``attributes``; a count has its ``n``, a span its ``seconds``. A file that has reached
half of the limit replaces ``NAME.1``, so that both files together stay within the limit. Several
processes may share a log. A process has one log, unless ``logging_to`` names another for a task.
"""

import functools
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from fetchstash.errors import FetchstashError
from fetchstash.system.linelog import LineLog

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Tracer, TracerProvider

Plain = str | bool | int | float
"""The types of an attribute, or of the items of its list. None is left out."""

# Longer strings are cut: an identifier is short, and a long string may be content.
MAX_ATTRIBUTE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Instrument:
    """An instrument of OpenTelemetry: its name there, its unit (UCUM) and its meaning.

    ``kind``: a counter (``count``), a level (``adjust``) or a time (``duration``, ``span``).
    """

    kind: Literal["counter", "level", "time"]
    name: str
    unit: str
    meaning: str


# The bounds that OpenTelemetry advises for times in seconds, and two more for slow documents.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60)

_TIMES = {
    "http_request": ("http.server.request.duration", "HTTP requests, by route and status"),
    "call": ("mcp.server.operation.duration", "Requests of MCP, by method, tool and error"),
    "fetch": ("fetchstash.fetch.duration", "Fetches, redirects included"),
    "render": ("fetchstash.render.duration", "Pages in the browser"),
    "extract": ("fetchstash.extract.duration", "Conversions to text, by kind of document"),
    "wait": ("fetchstash.queue.wait.duration", "Waiting for a turn, by queue"),
    "store": ("fetchstash.store.duration", "Operations of the store"),
    "bucket": ("fetchstash.bucket.duration", "Requests to a bucket, retries included"),
    "clean_up": ("fetchstash.cleanup.duration", "Clean-up turns, one for each tenant and hour"),
}
_LEVELS = {
    "http_active": ("http.server.active_requests", "{request}", "Requests that are being answered"),
    "queue": ("fetchstash.queue.length", "{call}", "Calls that wait for a turn, by queue"),
}
_COUNTERS = {
    "bytes_in": ("fetchstash.fetched", "By", "Bodies that were fetched"),
    "connections": (
        "fetchstash.fetch.connections",
        "{connection}",
        "Connections opened, refused by a rule of fetch.*, or failed",
    ),
    "bytes_out": ("fetchstash.results", "By", "Texts of the results of tools"),
    "cache": ("fetchstash.cache.lookups", "{lookup}", "Fetches, by the use of the stored copy"),
    "extracted_chars": ("fetchstash.extracted_characters", "{character}", "Extracted text"),
    "refusals": ("fetchstash.errors", "{call}", "Calls that ended with an error, by its code"),
    "worker_kills": ("fetchstash.worker.kills", "{process}", "Workers that died at work"),
    "quota_refusals": ("fetchstash.quota.refusals", "{call}", "Calls over a quota, by tenant"),
    "evictions": (
        "fetchstash.store.evictions",
        "{artifact}",
        "Artifacts that went before their dates, by the limit of the store",
    ),
    "cleaned": (
        "fetchstash.cleanup.removed",
        "{item}",
        "Artifacts and files that clean-up turns removed, by the reason",
    ),
    "token_rejections": ("fetchstash.token.rejections", "{request}", "Rejected tokens, by reason"),
    "audit_failures": ("fetchstash.audit.failures", "{line}", "Lines that the audit log lost"),
}
INSTRUMENTS: Mapping[str, Instrument] = {
    **{name: Instrument("time", kind, "s", text) for name, (kind, text) in _TIMES.items()},
    **{name: Instrument("level", *rest) for name, rest in _LEVELS.items()},
    **{name: Instrument("counter", *rest) for name, rest in _COUNTERS.items()},
}
"""What is measured, by its name here."""


def configure(event_log: str | Path | None, max_bytes: int) -> None:
    """Write events to the file ``event_log`` (None or "": to none), at most ``max_bytes``.

    Does nothing within ``logging_to``, which is stronger.
    """
    global _event_log  # noqa: PLW0603 - one log for the process, as OpenTelemetry has one provider
    if _task_log.get() is None:
        _event_log = _log_at(event_log, max_bytes)


@contextmanager
def logging_to(event_log: str | Path | None, max_bytes: int) -> Generator[None]:
    """Send the events of this task and its child tasks to another log (None: to none).

    For a process that serves several tenants.
    """
    token = _task_log.set((_log_at(event_log, max_bytes),))
    try:
        yield
    finally:
        _task_log.reset(token)


@contextmanager
def exporting(
    meters: "MeterProvider | None" = None, tracers: "TracerProvider | None" = None
) -> Generator[None]:
    """Record to these providers of OpenTelemetry in place of the process's own."""
    before = _meters, _tracers
    _set_providers(meters or _meters, tracers or _tracers)
    try:
        yield
    finally:
        _set_providers(*before)


def event(name: str, **attributes: Any) -> None:
    """Record that something happened or was decided."""
    tracer, log = current_tracer(), _log()
    if tracer is None and log is None:
        return
    plain = _plain(attributes)
    if tracer is not None:
        with suppress(Exception):
            _record_event(tracer, name, plain)
    if log is not None:
        log.append(_record("event", name, plain))


def count(name: str, n: int = 1, **attributes: Any) -> None:
    """Add ``n``, at least 0, to the counter ``name``."""
    log, measured = _log(), _measured()
    if log is None and not measured:
        return
    plain = _plain(attributes)
    if measured:
        with suppress(Exception):
            _load_instrument("counter", name).add(n, plain)
    if log is not None:
        log.append(_record("count", name, plain, n=n))


def adjust(name: str, n: int, **attributes: Any) -> None:
    """Add ``n`` to the level ``name``, which goes up and down. The event log has no levels."""
    if _measured():
        with suppress(Exception):
            _load_instrument("level", name).add(n, _plain(attributes))


Time = tuple[str, float, dict[str, Any]]
"""A time that was taken: the name of its histogram, the seconds, and its attributes."""

_collected: list[Time] | None = None


@contextmanager
def collecting() -> Generator[list[Time]]:
    """Collect the times of this process meanwhile, for another one that records them."""
    global _collected  # noqa: PLW0603 - threads of the body take times, too
    _collected = times = list[Time]()
    try:
        yield times
    finally:
        _collected = None


def duration(name: str, seconds: float, **attributes: Any) -> None:
    """Record a time in the histogram ``name``. The event log has spans alone."""
    if _collected is not None:
        _collected.append((name, seconds, attributes))
    if _measured():
        with suppress(Exception):
            _load_instrument("time", name).record(seconds, _plain(attributes))


@contextmanager
def timed(name: str, **attributes: Any) -> Generator[None]:
    """Record in the histogram ``name`` how long the body takes, and an error as ``span`` does."""
    started = time.perf_counter()
    try:
        yield
    except BaseException as error:
        attributes["error.type"] = _error_type(error)
        raise
    finally:
        duration(name, time.perf_counter() - started, **attributes)


@contextmanager
def span(name: str, **attributes: Any) -> Generator[None]:
    """Record how long the body takes, as a span and in the histogram ``name``.

    An exception passes through. Its code or type is recorded as ``error.type``, never its text.
    """
    tracer, log = current_tracer(), _log()
    if tracer is None and log is None and not _measured():
        yield
        return
    plain = _plain(attributes)
    started = time.perf_counter()
    with nullcontext() if tracer is None else _recorded(tracer, name, plain):
        try:
            yield
        except BaseException as error:
            plain["error.type"] = _error_type(error)
            raise
        finally:
            seconds = time.perf_counter() - started
            duration(name, seconds, **plain)
            if log is not None:
                log.append(_record("span", name, plain, seconds=round(seconds, 6)))


@contextmanager
def _recorded(tracer: "Tracer", name: str, plain: dict[str, Any]) -> Generator[None]:
    """Record the body as a span, without the SDK's record of exceptions: it may quote content."""
    from opentelemetry import trace  # noqa: PLC0415 - see current_tracer

    with tracer.start_as_current_span(
        name, attributes=plain, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield
        except BaseException as error:
            current.set_attribute("error.type", _error_type(error))
            current.set_status(trace.StatusCode.ERROR)
            raise


def _error_type(error: BaseException) -> str:
    return error.code if isinstance(error, FetchstashError) else type(error).__name__


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return ``attributes`` in types that OpenTelemetry and JSON accept."""
    plain: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, list | tuple | set | frozenset):
            plain[name] = [_scalar(item) for item in cast("Iterable[Any]", value)]
        elif value is not None:
            plain[name] = _scalar(value)
    return plain


def _scalar(value: Any) -> Plain:
    if isinstance(value, bool | int | float):
        return value
    return str(value)[:MAX_ATTRIBUTE_CHARS].encode("utf-8", "replace").decode("utf-8")


def current_tracer() -> "Tracer | None":
    """Return the tracer, None if the process exports no spans."""
    # Being the first to import it would cost 30 ms.
    if _tracers is None and ("opentelemetry.trace" not in sys.modules or _is_idle()):
        return None
    return _load_tracer()


def _is_idle() -> bool:
    """Return whether no provider was set: mcp imports the API, and its spans lead nowhere then."""
    from opentelemetry import trace  # noqa: PLC0415 - see current_tracer

    return isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _measured() -> bool:
    return _meters is not None or "opentelemetry.metrics" in sys.modules


@functools.cache
def _load_tracer() -> "Tracer":
    from opentelemetry import trace  # noqa: PLC0415 - see current_tracer

    return trace.get_tracer("fetchstash", tracer_provider=_tracers)


@functools.cache
def _load_instrument(kind: str, name: str) -> Any:
    """Return the counter, level or histogram ``name`` of the provider in use."""
    from opentelemetry import metrics  # noqa: PLC0415 - see current_tracer

    meter = metrics.get_meter("fetchstash", meter_provider=_meters)
    known = INSTRUMENTS.get(name) or Instrument("counter", f"fetchstash.{name}", "", "")
    described = known.name, known.unit, known.meaning
    match kind:
        case "counter":
            return meter.create_counter(*described)
        case "level":
            return meter.create_up_down_counter(*described)
        case _:
            return meter.create_histogram(*described, explicit_bucket_boundaries_advisory=SECONDS)


def _set_providers(meters: "MeterProvider | None", tracers: "TracerProvider | None") -> None:
    global _meters, _tracers
    _meters, _tracers = meters, tracers
    _load_tracer.cache_clear()
    _load_instrument.cache_clear()


def _record_event(tracer: "Tracer", name: str, plain: dict[str, Any]) -> None:
    from opentelemetry import trace  # noqa: PLC0415 - see current_tracer

    current = trace.get_current_span()
    if current.is_recording():
        current.add_event(name, plain)
    else:
        tracer.start_span(name, attributes=plain).end()


def _record(kind: str, name: str, plain: dict[str, Any], **measured: float) -> dict[str, Any]:
    return {"time": now(), "kind": kind, "name": name, **measured, "attributes": plain}


def now() -> str:
    """Return the time as the logs have it: UTC, RFC 3339."""
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1_000)
    return f"{_second(seconds)}.{milliseconds:03}+00:00"


@functools.lru_cache(2)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _log_at(path: str | Path | None, max_bytes: int) -> LineLog | None:
    return LineLog(Path(path), max_bytes) if path else None


def _log() -> LineLog | None:
    own = _task_log.get()
    return _event_log if own is None else own[0]


_event_log: LineLog | None = None
_task_log: ContextVar[tuple[LineLog | None] | None] = ContextVar("_task_log", default=None)
_meters: "MeterProvider | None" = None
_tracers: "TracerProvider | None" = None

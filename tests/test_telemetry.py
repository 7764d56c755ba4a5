"""Events, counters and spans: in OpenTelemetry and in the log; neither fails its caller."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fetchstash.errors import Refused
from fetchstash.system import telemetry
from fetchstash.system.linelog import MOST_OPEN, LineLog, append
from fetchstash.system.processes import is_gone, kill, processors, remove_tree

DECISION = {
    "artifact_ref": "art_abc",
    "content_kind": "pdf",
    "decided_by": "magic",
    "evidence": ["%PDF-"],
    "shadow": False,
}


@pytest.fixture(scope="session")
def exporters() -> tuple[InMemorySpanExporter, InMemoryMetricReader]:
    """The SDK takes one provider for the life of a process."""
    spans, readings = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([readings]))
    return spans, readings


@pytest.fixture
def spans(
    exporters: tuple[InMemorySpanExporter, InMemoryMetricReader],
) -> Iterator[InMemorySpanExporter]:
    yield exporters[0]
    exporters[0].clear()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "logs" / "events.jsonl"
    telemetry.configure(path, 100_000)
    yield path
    telemetry.configure(None, 0)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_event_belongs_to_the_span_that_it_happens_in(spans: InMemorySpanExporter) -> None:
    with telemetry.span("fetch", host="example.org"):
        telemetry.event("ingest.decision", **DECISION)
    [span] = spans.get_finished_spans()
    assert (span.name, dict(span.attributes or {})) == ("fetch", {"host": "example.org"})
    [event] = span.events
    assert event.name == "ingest.decision"
    assert dict(event.attributes or {}) == {**DECISION, "evidence": ("%PDF-",)}


def test_an_event_outside_of_any_span_is_a_span_of_its_own(spans: InMemorySpanExporter) -> None:
    telemetry.event("overflow.rule_id", rule="openai-1")
    [span] = spans.get_finished_spans()
    assert (span.name, dict(span.attributes or {})) == ("overflow.rule_id", {"rule": "openai-1"})


def test_spans_nest(spans: InMemorySpanExporter) -> None:
    with telemetry.span("outer"), telemetry.span("inner"):
        pass
    inner, outer = spans.get_finished_spans()
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id


def test_an_error_is_recognised_by_its_code_and_not_by_its_text(
    spans: InMemorySpanExporter, log: Path
) -> None:
    with pytest.raises(Refused), telemetry.span("fetch"):
        raise Refused("secret-host is private.", "Ask another.")
    with pytest.raises(KeyError), telemetry.span("fetch"):
        raise KeyError("secret")
    assert [(span.attributes or {})["error.type"] for span in spans.get_finished_spans()] == [
        "refused",
        "KeyError",
    ]
    assert [span.status.status_code for span in spans.get_finished_spans()] == [
        trace.StatusCode.ERROR
    ] * 2
    assert not any("secret" in span.to_json() for span in spans.get_finished_spans())
    assert [line["attributes"]["error.type"] for line in lines(log)] == ["refused", "KeyError"]
    assert "secret" not in log.read_text()


def points_of(readings: InMemoryMetricReader) -> dict[str, Any]:
    """Return the points of each metric."""
    data = readings.get_metrics_data()
    assert data
    metrics = data.resource_metrics[0].scope_metrics[0].metrics
    return {metric.name: metric.data.data_points for metric in metrics}


def test_counters_add_up_by_their_attributes(
    exporters: tuple[InMemorySpanExporter, InMemoryMetricReader],
) -> None:
    telemetry.count("bytes_in", 100)
    telemetry.count("bytes_in", 23)
    telemetry.count("refusals", code="robots")
    found = points_of(exporters[1])
    assert [(point.value, dict(point.attributes)) for point in found["fetchstash.fetched"]] == [
        (123, {})
    ]
    assert [(point.value, dict(point.attributes)) for point in found["fetchstash.errors"]] == [
        (1, {"code": "robots"})
    ]


def test_the_log_is_json_lines_that_only_we_can_read(log: Path) -> None:
    telemetry.event("ingest.decision", **DECISION, declared_type=None)
    telemetry.count("bytes_out", 7, cache="hit")
    with telemetry.span("fetch", host="example.org"):
        pass
    event, count, span = lines(log)
    assert event.pop("time").endswith("+00:00")
    assert count.pop("time") <= span.pop("time")
    assert span.pop("seconds") >= 0
    assert event == {"kind": "event", "name": "ingest.decision", "attributes": DECISION}
    assert count == {"kind": "count", "name": "bytes_out", "n": 7, "attributes": {"cache": "hit"}}
    assert span == {"kind": "span", "name": "fetch", "attributes": {"host": "example.org"}}
    if os.name != "nt":
        assert stat.S_IMODE(log.stat().st_mode) == 0o600
        assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700


def test_long_odd_and_unprintable_attributes_are_shortened(log: Path) -> None:
    telemetry.event(
        "odd",
        path=Path("a"),
        text="x" * 10_000,
        surrogate="\ud800",
        items=(1, Path("b")),
        number=1.5,
    )
    line = lines(log)[0]["attributes"]
    assert line["text"] == "x" * telemetry.MAX_ATTRIBUTE_CHARS
    assert (line["path"], line["surrogate"], line["items"], line["number"]) == (
        "a",
        "?",
        [1, "b"],
        1.5,
    )


def test_the_log_and_the_one_before_it_stay_within_the_limit_together(log: Path) -> None:
    for number in range(5_000):
        telemetry.event("filler", number=number)
    kept = [log.with_name("events.jsonl.1"), log]
    assert 50_000 < sum(path.stat().st_size for path in kept) <= 100_000
    assert sorted(path.name for path in log.parent.iterdir()) == ["events.jsonl", "events.jsonl.1"]
    numbers = [line["attributes"]["number"] for path in kept for line in lines(path)]
    assert numbers == list(range(numbers[0], 5_000))


async def _write(name: str, log: Path | None) -> None:
    with telemetry.logging_to(log, 100_000):
        telemetry.configure(f"{log}.other", 100_000)
        await anyio.lowlevel.checkpoint()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_one_event, name)


async def _one_event(name: str) -> None:
    telemetry.event(name)


@pytest.mark.anyio
async def test_tasks_write_to_logs_of_their_own(log: Path, tmp_path: Path) -> None:
    async with anyio.create_task_group() as tasks:
        for name in ("a", "b", "none"):
            tasks.start_soon(_write, name, None if name == "none" else tmp_path / name)
    telemetry.event("process")
    names = {
        path: [line["name"] for line in lines(path)]
        for path in tmp_path.iterdir()
        if path.is_file()
    }
    assert names == {tmp_path / "a": ["a"], tmp_path / "b": ["b"]}
    assert [line["name"] for line in lines(log)] == ["process"]


def test_providers_of_a_service_take_what_the_process_would_get(
    exporters: tuple[InMemorySpanExporter, InMemoryMetricReader],
) -> None:
    exporters[0].clear()
    spans, readings = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    with telemetry.exporting(MeterProvider([readings]), tracers):
        with telemetry.span("extract", content_kind="pdf"):
            telemetry.adjust("queue", 2)
        telemetry.adjust("queue", -1)
        telemetry.duration("wait", 0.2)
        with pytest.raises(Refused), telemetry.timed("store", operation="put"):
            raise Refused("secret", "")
    telemetry.adjust("queue", 7)
    assert [span.name for span in spans.get_finished_spans()] == ["extract"]
    assert not exporters[0].get_finished_spans()
    points = {name: of_metric[0] for name, of_metric in points_of(readings).items()}
    assert points["fetchstash.queue.length"].value == 1
    assert points["fetchstash.queue.wait.duration"].sum == 0.2
    assert points["fetchstash.queue.wait.duration"].explicit_bounds == telemetry.SECONDS
    assert dict(points["fetchstash.extract.duration"].attributes) == {"content_kind": "pdf"}
    error = {"operation": "put", "error.type": "refused"}
    assert dict(points["fetchstash.store.duration"].attributes) == error


@pytest.mark.slow
def test_threads_and_processes_share_a_log_without_breaking_a_line(log: Path) -> None:
    program = "from pathlib import Path; from fetchstash.system import telemetry; import sys\n"
    program += "telemetry.configure(Path(sys.argv[1]), 10_000_000)\n"
    program += "for n in range(500): telemetry.event('other', n=n)"
    telemetry.configure(log, 10_000_000)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-P", "-c", program, str(log)], env=env) as other:
        with ThreadPoolExecutor(4) as pool:
            for n in range(500):
                pool.submit(telemetry.event, "mine", n=n)
        assert other.wait(60) == 0
    names = [line["name"] for line in lines(log)]
    assert (names.count("mine"), names.count("other")) == (500, 500)


@pytest.mark.skipif(os.name == "nt", reason="no pipes in the file system")
def test_a_log_that_cannot_be_written_fails_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        for place in ("file/below", "link", "pipe", "s", ".", "\0"):
            telemetry.configure(tmp_path / place, 1_000)
            telemetry.event("lost")
            telemetry.count("lost")
            with telemetry.span("lost"):
                pass
    telemetry.configure(None, 0)
    assert (tmp_path / "file").read_text() == "kept"


def test_a_line_larger_than_the_log_is_left_out(tmp_path: Path) -> None:
    telemetry.configure(tmp_path / "small", 300)
    telemetry.event("large", text="x" * 300)
    telemetry.event("small")
    telemetry.configure("", 0)
    assert [line["name"] for line in lines(tmp_path / "small")] == ["small"]


def test_a_failing_sdk_fails_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("exporter")

    monkeypatch.setattr(telemetry, "_record_event", fail)
    monkeypatch.setattr(telemetry, "_load_instrument", fail)
    telemetry.event("told")
    telemetry.count("told")


@pytest.mark.slow
def test_telemetry_without_a_listener_imports_no_module() -> None:
    program = """
import sys
from fetchstash.system import telemetry
telemetry.event("a", b=1); telemetry.count("c")
telemetry.adjust("e", 1); telemetry.duration("f", 0.1)
with telemetry.span("d"): pass
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-P", "-c", program], check=True, env=env, timeout=60)


# --- Logs that stay open: rotated, moved, deleted, forked and replaced under the writer.


def numbers(path: Path) -> list[int]:
    """Return what was written to a log."""
    return [json.loads(line)["n"] for line in path.read_text().splitlines()]


def open_files() -> int:
    """Return how many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_a_log_is_opened_once_and_few_logs_stay_open(tmp_path: Path) -> None:
    before = open_files()
    for n in range(3 * MOST_OPEN):
        for _ in range(2):
            LineLog(tmp_path / f"{n}", 1_000).append({"n": n})
    assert open_files() <= before + MOST_OPEN
    assert all(numbers(tmp_path / f"{n}") == [n, n] for n in range(3 * MOST_OPEN))


def test_a_log_goes_on_in_a_new_file_where_its_own_was_moved_or_removed(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    log = LineLog(folder / "log", 1_000)
    log.append({"n": 0})
    log.path.rename(folder / "moved")
    log.append({"n": 1})
    folder.rename(tmp_path / "elsewhere")
    log.append({"n": 2})
    log.path.unlink()
    log.append({"n": 3})
    other = folder / "other"
    other.write_text('{"n":4}\n')
    other.replace(log.path)
    log.append({"n": 5})
    assert numbers(log.path) == [4, 5]
    assert numbers(tmp_path / "elsewhere" / "log") == [1]
    assert numbers(tmp_path / "elsewhere" / "moved") == [0]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_in_the_place_of_an_open_log_is_not_followed(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "log", 1_000)
    log.append({"n": 0})
    log.path.rename(tmp_path / "target")
    log.path.symlink_to(tmp_path / "target")
    log.append({"n": 1})
    with pytest.raises(OSError, match=r".+"):
        append(log.path, b"{}\n")
    assert numbers(tmp_path / "target") == [0]


def test_threads_lose_and_break_no_line_while_the_log_is_moved(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "log", 10**6)
    with ThreadPoolExecutor(4) as pool:
        for n in range(400):
            pool.submit(log.append, {"n": n})
            if n % 40 == 20 and log.path.exists():
                log.path.rename(tmp_path / f"log-{n}")
    written = [n for path in tmp_path.iterdir() for n in numbers(path)]
    assert sorted(written) == list(range(400))


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no fork")
def test_a_forked_process_writes_to_the_log_of_its_parent(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "log", 1_000)
    log.append({"n": 0})
    child = os.fork()
    if child == 0:
        log.append({"n": 1})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    log.append({"n": 2})
    assert numbers(log.path) == [0, 1, 2]


# --- Folders are removed however deep they are, and processors are those of the container.


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links are POSIX's")
def test_links_are_removed_and_not_followed_and_closed_folders_are_opened(tmp_path: Path) -> None:
    folder, kept = tmp_path / "folder", tmp_path / "kept"
    (folder / "closed").mkdir(parents=True)
    kept.mkdir()
    (kept / "file").write_text("x")
    (folder / "closed" / "link").symlink_to(kept)
    (folder / "closed" / "file").touch()
    (folder / "closed").chmod(0o300)
    remove_tree(folder)
    assert list(tmp_path.iterdir()) == [kept]
    assert os.listdir(kept) == ["file"]  # noqa: PTH208 - names alone


def test_a_folder_that_is_missing_is_no_fault(tmp_path: Path) -> None:
    remove_tree(tmp_path / "missing")


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are of Linux")
@pytest.mark.parametrize(
    ("cpu_max", "expected"),
    [
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("10000 100000\n", 1),
        ("0 0\n", 1),
        ("max 100000\n", 64),
        ("6400000 50000\n", 64),
        ("", 64),
        ("nonsense\n", 64),
        (None, 64),
    ],
)
def test_a_container_has_the_processors_that_its_group_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpu_max: str | None, expected: int
) -> None:
    def all_64(_: int) -> set[int]:
        return set(range(64))

    monkeypatch.setattr(os, "sched_getaffinity", all_64)
    file = tmp_path / "cpu.max"
    if cpu_max is not None:
        file.write_text(cpu_max)
    assert processors(file) == expected


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows reaps no process")
async def test_a_process_that_has_ended_is_left_to_the_loop_which_warns_otherwise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(20):  # on Python 3.11 a thread of the loop may be the first all the same
        process = await asyncio.create_subprocess_exec("true", stdin=PIPE, stdout=PIPE)
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        kill(process)
        assert await is_gone(process)
    assert caplog.messages == []

import threading
import time
from collections.abc import Callable

import anyio
import pytest

from fetchstash.store import _threads

pytestmark = pytest.mark.anyio


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The rests of scans on a machine of two processors, in seconds."""
    taken: list[float] = []

    class Cancelled(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            taken.append(timeout or 0)
            return super().wait(0)

    monkeypatch.setattr(_threads, "Event", Cancelled)
    monkeypatch.setattr(_threads, "processors", lambda: 2)
    return taken


def work(cancelled: Callable[[], bool]) -> None:
    """Work for three milliseconds of a processor."""
    end = time.thread_time() + 0.003
    while time.thread_time() < end:
        pass
    assert not cancelled()


async def test_scans_that_run_together_rest_so_that_they_leave_a_processor_free(
    rests: list[float],
) -> None:
    threads = _threads.Threads()
    both = threading.Barrier(2)

    def together(cancelled: Callable[[], bool]) -> None:
        both.wait(30)
        work(cancelled)
        both.wait(30)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(threads.scan, together)
        tasks.start_soon(threads.scan, together)
    assert len(rests) == 2
    assert all(0.003 <= rest <= 0.05 for rest in rests)


async def test_a_scan_that_runs_alone_does_not_rest(rests: list[float]) -> None:
    await _threads.Threads().scan(work)
    assert not rests

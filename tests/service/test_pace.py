"""The pace: one tenant alone is never held back, two begin their requests one by one."""

import asyncio
from typing import Any

import pytest

from fetchstash.errors import Busy
from fetchstash.service import _pace
from fetchstash.service._pace import Pace

pytestmark = pytest.mark.anyio


class Requests:
    """Requests that last until they are ended."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.begun: list[str] = []
        self._tasks: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = {}

    async def come(self, tenant: str, *names: str) -> None:
        for name in names:
            end = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._run(tenant, name, end)), end
        await self.settle()

    async def _run(self, tenant: str, name: str, end: asyncio.Event) -> None:
        async with self.pace.request(tenant):
            self.begun.append(name)
            await end.wait()

    async def end(self, name: str) -> None:
        self._tasks[name][1].set()
        await self.settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name][0].cancel()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async def end_all(self) -> None:
        for task, end in self._tasks.values():
            end.set()
            await task


@pytest.fixture
def never_passes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no request be taken for one that waits."""
    monkeypatch.setattr(_pace, "_BEGUN_SECONDS", 1_000)


async def test_a_tenant_that_is_alone_is_never_held_back(never_passes_on: None) -> None:
    requests = Requests(Pace(100))
    await requests.come("a", *"1234")
    assert requests.begun == ["1", "2", "3", "4"]
    await requests.end_all()


async def test_beside_another_a_tenants_requests_begin_one_after_the_other(
    never_passes_on: None,
) -> None:
    requests = Requests(Pace(100))
    await requests.come("a", "a1")
    await requests.come("b", "b1", "b2", "b3")
    assert requests.begun == ["a1", "b1"]
    await requests.come("a", "a2", "a3")
    assert requests.begun == ["a1", "b1", "a2"]
    await requests.end("b1")
    assert requests.begun == ["a1", "b1", "a2", "b2"]
    await requests.end_all()
    assert sorted(requests.begun) == ["a1", "a2", "a3", "b1", "b2", "b3"]


async def test_a_request_that_waits_for_something_else_lets_the_next_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_pace, "_BEGUN_SECONDS", 0)
    requests = Requests(Pace(100))
    await requests.come("a", "a1")
    await requests.come("b", "b1", "b2")
    while "b2" not in requests.begun:  # noqa: ASYNC110 - a timer of the loop
        await asyncio.sleep(0)
    await requests.end_all()


async def test_while_the_loop_is_late_the_next_does_not_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_pace, "_BEGUN_SECONDS", 0)
    monkeypatch.setattr(_pace, "_LATE_SECONDS", -1_000)  # always
    requests = Requests(Pace(100))
    await requests.come("a", "a1")
    await requests.come("b", "b1", "b2")
    assert requests.begun == ["a1", "b1"]
    monkeypatch.setattr(_pace, "_LATE_SECONDS", 1_000)
    await requests.end_all()


async def test_a_request_that_is_cancelled_in_line_does_not_keep_its_place(
    never_passes_on: None,
) -> None:
    requests = Requests(Pace(100))
    await requests.come("a", "a1")
    await requests.come("b", "b1", "b2", "b3")
    await requests.cancel("b2")
    await requests.end("b1")
    assert requests.begun == ["a1", "b1", "b3"]
    await requests.cancel("b3")
    await requests.come("b", "b4")
    assert requests.begun[-1] == "b4"
    await requests.end("b4")
    await requests.end("a1")


async def test_a_tenant_with_too_many_requests_is_busy_and_another_is_not() -> None:
    pace = Pace(2)
    async with pace.request("a"), pace.request("a"):
        with pytest.raises(Busy) as busy:
            pace.check("a")
        pace.check("b")
    pace.check("a")
    assert busy.value.details["retry_after_seconds"] == 1


async def test_refusals_leave_one_by_one_and_few_of_them_through_the_protocol(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    pace = Pace(2)
    full = [await pace.refused("a") for _ in range(60)]
    assert full.count(True) == 1
    assert slept[0] == 0
    assert max(slept) == pytest.approx(1, abs=0.1)
    assert len(slept) < len(full), "the rest waits for nothing"
    assert await pace.refused("b")


async def test_the_tenant_with_more_requests_than_another_is_the_greedy_one() -> None:
    pace = Pace(100)
    async with pace.request("a"), pace.request("a"):
        assert not pace.is_greedy("a"), "it is alone"
        async with pace.request("b"):
            assert pace.is_greedy("a")
            assert not pace.is_greedy("b")
            async with pace.request("b"):
                assert not pace.is_greedy("a")
        assert not pace.is_greedy("a")
    assert not pace.is_greedy("c")


async def test_a_greedy_tenant_lets_the_loop_go_between_two_of_its_requests(
    never_passes_on: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = Requests(Pace(100))
    later: list[Any] = []

    def call_later(seconds: float, *call: Any) -> None:
        assert 0 < seconds <= 1_000
        later.append(call)

    await requests.come("a", "a1")
    await requests.come("b", "b1", "b2", "b3")
    with monkeypatch.context() as patched:
        patched.setattr(asyncio.get_running_loop(), "call_later", call_later)
        await requests.end("b1")
    assert requests.begun == ["a1", "b1"]
    [(pass_on, *arguments)] = later
    pass_on(*arguments)
    await requests.settle()
    assert requests.begun == ["a1", "b1", "b2"]
    await requests.end_all()

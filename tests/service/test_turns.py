"""FairLimiter and queue: who asks for many waits for itself."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any

import anyio
import pytest
from hypothesis import given, strategies as st

from fetchstash.errors import Busy
from fetchstash.service import _fair
from fetchstash.service._fair import FairLimiter, RequestQueue

pytestmark = pytest.mark.anyio


class Line:
    """Calls that hold a slot until they are let go."""

    def __init__(self, turns: FairLimiter, part: float = 1) -> None:
        self.turns = turns
        self.part = part
        self.running: list[str] = []
        self.served: list[str] = []
        self.refused: list[Busy] = []
        self._ends: list[tuple[str, anyio.Event]] = []

    async def call(self, who: str, patience: float = 1_000) -> None:
        end = anyio.Event()
        tenant, _, person = who.partition("/")
        try:
            async with self.turns.slot(tenant, patience=patience, person=person, part=self.part):
                self.running.append(who)
                self.served.append(who)
                self._ends.append((who, end))
                await end.wait()
                self.running.remove(who)
        except Busy as busy:
            self.refused.append(busy)

    async def end_first(self, who: str = "") -> None:
        """End the call that began first, of anybody or of who."""
        ends = next(end for end in self._ends if who in ("", end[0]))
        self._ends.remove(ends)
        ends[1].set()
        await settle()


async def settle() -> None:
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


async def test_a_tenant_never_has_all_slots() -> None:
    line = Line(FairLimiter("slots", 3, 2))
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(line.call, "flood")
        await settle()
        assert line.running == ["flood", "flood"]
        tasks.start_soon(line.call, "quiet")
        await settle()
        assert line.running == ["flood", "flood", "quiet"]
        tasks.cancel_scope.cancel()


async def test_a_free_slot_goes_to_the_tenant_that_has_the_fewest_and_then_in_turn() -> None:
    line = Line(FairLimiter("slots", 2, 2))
    async with anyio.create_task_group() as tasks:
        for tenant in ("a", "a", "a", "a", "b", "b", "c"):
            tasks.start_soon(line.call, tenant)
            await settle()
        for _ in range(7):
            await line.end_first()
    assert line.served == ["a", "a", "b", "a", "c", "b", "a"]


async def test_a_line_that_is_full_is_busy_for_its_tenant_alone() -> None:
    line = Line(FairLimiter("slots", 2, 1, waiting=2))
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(line.call, "flood")
        await settle()
        tasks.start_soon(line.call, "quiet")
        await settle()
        assert line.running == ["flood", "quiet"]
        tasks.cancel_scope.cancel()
    [busy] = line.refused
    assert busy.details["retry_after_seconds"] >= 1
    assert f"Try again in {busy.details['retry_after_seconds']} s." in busy.line()


async def test_a_call_waits_no_longer_than_its_patience_and_leaves_the_line() -> None:
    line = Line(FairLimiter("slots", 1, 1))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(line.call, "a")
        await settle()
        await line.call("a", 0.001)
        await line.call("b", 0.001)
        assert len(line.refused) == 2
        tasks.start_soon(line.call, "b")
        await line.end_first()
        assert line.running == ["b"]
        await line.end_first()


async def test_a_tenant_may_have_fewer_slots_of_its_own() -> None:
    turns = FairLimiter("slots", 4, 3)
    async with turns.slot("a", 1), turns.slot("b", 2), turns.slot("b", 2):
        for tenant, most in (("a", 1), ("b", 2)):
            with pytest.raises(Busy):
                async with turns.slot(tenant, most, patience=0.001):
                    pass
        async with turns.slot("c"):
            pass


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["begin", "cancel", "end"]), st.sampled_from("abc")), max_size=40
    )
)
async def test_slots_are_never_lost_and_never_more_than_there_are(
    steps: list[tuple[str, str]],
) -> None:
    line = Line(FairLimiter("slots", 2, 1))
    scopes: list[anyio.CancelScope] = []

    async def call(tenant: str, scope: anyio.CancelScope) -> None:
        with scope:
            await line.call(tenant)
        if scope.cancelled_caught and tenant in line.running:
            line.running.remove(tenant)

    async with anyio.create_task_group() as tasks:
        for step, tenant in steps:
            if step == "begin":
                scopes.append(anyio.CancelScope())
                tasks.start_soon(call, tenant, scopes[-1])
            elif step == "cancel" and scopes:
                scopes.pop(0).cancel()
            await settle()
            assert len(line.running) <= 2
            assert len(set(line.running)) == len(line.running)
        for scope in scopes:
            scope.cancel()
    async with line.turns.slot("a", patience=0), line.turns.slot("b", patience=0):
        pass


@asynccontextmanager
async def request(queue: RequestQueue, tenant: str, person: str = "") -> AsyncGenerator[None]:
    with queue.request(tenant, person) as begin:
        await begin(False, nullcontext)
        yield


class Requests:
    """Requests that last until they are ended."""

    def __init__(self) -> None:
        self.queue = RequestQueue(100)
        self.begun: list[str] = []
        self._tasks: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = {}

    async def come(self, tenant: str, *names: str) -> None:
        for name in names:
            end = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._run(tenant, name, end)), end
        await self.settle()

    async def _run(self, tenant: str, name: str, end: asyncio.Event) -> None:
        tenant, _, person = tenant.partition("/")
        with self.queue.request(tenant, person) as begin:
            await begin(name.startswith("long"), nullcontext)
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
            with suppress(asyncio.CancelledError):  # of a request that was cancelled
                await task


@pytest.fixture
async def requests(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Requests]:
    """Let no request be taken for one that waits."""
    monkeypatch.setattr(_fair, "_BEGUN_SECONDS", 1_000)
    it = Requests()
    yield it
    await it.end_all()


async def test_of_a_tenant_that_is_alone_a_few_requests_begin_at_a_time_in_order(
    requests: Requests,
) -> None:
    few = _fair.AT_ONCE
    names = [f"{number}" for number in range(few + 3)]
    await requests.come("a", *names)
    assert requests.begun == names[:few]
    for number in range(3):
        await requests.end(names[number])
        assert requests.begun == names[: few + number + 1]


async def test_beside_another_a_tenants_requests_begin_one_after_the_other(
    requests: Requests,
) -> None:
    await requests.come("a", "a1")
    await requests.come("b", "b1", "b2", "b3")
    assert requests.begun == ["a1", "b1"]
    await requests.come("a", "a2", "a3")
    assert requests.begun == ["a1", "b1"]
    await requests.end("a1")
    assert requests.begun == ["a1", "b1", "a2"]
    await requests.end("b1")
    assert requests.begun == ["a1", "b1", "a2", "b2"]
    await requests.end_all()
    assert sorted(requests.begun) == ["a1", "a2", "a3", "b1", "b2", "b3"]


async def test_requests_of_one_person_do_not_begin_before_those_of_another(
    requests: Requests,
) -> None:
    await requests.come("a/ada", *"1234")
    assert requests.begun == ["1", "2", "3", "4"], "a person that is alone"
    await requests.come("a/ada", *"567890")
    await requests.come("a/bob", "b1", "b2")
    for ended in "123":
        await requests.end(ended)
    assert requests.begun[4:] == [], "beside another, one of a tenant begins at a time"
    for ended, next_one in (("4", "5"), ("5", "b1"), ("b1", "6"), ("6", "b2"), ("b2", "0")):
        await requests.end(ended)
        assert requests.begun[-1] == next_one, "in turn, and a few, once one is alone"
    await requests.end_all()
    assert not requests.queue.is_greedy("a")


async def test_a_long_request_lets_short_ones_pass_for_a_while(
    requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = _fair.AT_ONCE
    await requests.come("a", *(f"{number}" for number in range(few)), "long 1", "short 1")
    monkeypatch.setattr(_fair, "LATER_SECONDS", 0)
    await requests.come("a", "long 2", "short 2")
    for number in range(few):
        await requests.end(f"{number}")
    assert requests.begun[few:] == ["short 1", "long 2", "short 2", "long 1"]


async def test_a_long_request_begins_at_once_where_none_waits(requests: Requests) -> None:
    await requests.come("a", "long")
    assert requests.begun == ["long"]


async def test_a_person_leaves_the_others_a_slot_and_who_has_the_fewest_is_next() -> None:
    line = Line(FairLimiter("slots", 9, 4), part=0.5)
    async with anyio.create_task_group() as tasks:
        for who in ["a/ada"] * 4 + ["a/bob"] * 2:
            tasks.start_soon(line.call, who)
            await settle()
        assert line.running == ["a/ada"] * 3 + ["a/bob"]
        for ended, next_one in (("a/ada", "a/bob"), ("a/bob", "a/ada")):
            await line.end_first(ended)
            assert line.served[-1] == next_one
        tasks.cancel_scope.cancel()


async def test_a_request_that_waits_for_something_else_lets_the_next_begin(
    requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_fair, "_BEGUN_SECONDS", 0)
    await requests.come("a", "a1")
    await requests.come("b", "b1", "b2")
    while "b2" not in requests.begun:  # noqa: ASYNC110 - a timer of the loop
        await asyncio.sleep(0)


async def test_while_the_loop_is_late_the_next_does_not_begin(
    requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_fair, "_BEGUN_SECONDS", 0)
    monkeypatch.setattr(_fair, "_LATE_SECONDS", -1_000)  # always
    await requests.come("a", "a1")
    await requests.come("b", "b1", "b2")
    assert requests.begun == ["a1", "b1"]
    monkeypatch.setattr(_fair, "_LATE_SECONDS", 1_000)


async def test_a_request_that_is_cancelled_in_line_does_not_keep_its_place(
    requests: Requests,
) -> None:
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
    queue = RequestQueue(4)
    async with request(queue, "a", "ada"), request(queue, "a", "ada"), request(queue, "a", "ada"):
        queue.check("a", "ada")
        with pytest.raises(Busy, match="3 of your calls"):
            queue.check("a", "ada", 0.5)
        queue.check("a", "bob", 0.5)
    queue = RequestQueue(2)
    async with request(queue, "a"), request(queue, "a"):
        with pytest.raises(Busy) as busy:
            queue.check("a")
        queue.check("b")
    queue.check("a")
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
    queue = RequestQueue(2)
    full = [await queue.refused("a") for _ in range(60)]
    assert full.count(True) == 1
    assert slept[0] == 0
    assert max(slept) == pytest.approx(1, abs=0.1)
    assert len(slept) < len(full), "the rest waits for nothing"
    assert await queue.refused("b")


async def test_the_tenant_with_more_requests_than_another_is_the_greedy_one() -> None:
    queue = RequestQueue(100)
    async with request(queue, "a"), request(queue, "a"):
        assert not queue.is_greedy("a"), "it is alone"
        async with request(queue, "b"):
            assert queue.is_greedy("a")
            assert not queue.is_greedy("b")
            async with request(queue, "b"):
                assert not queue.is_greedy("a")
        assert not queue.is_greedy("a")
    assert not queue.is_greedy("c")


async def test_a_greedy_tenant_lets_the_loop_go_between_two_of_its_requests(
    requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
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

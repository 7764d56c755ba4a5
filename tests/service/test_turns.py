"""Turns: who asks for many waits for itself."""

from types import SimpleNamespace

import anyio
import pytest
from hypothesis import given, strategies as st

from fetchstash.errors import Busy
from fetchstash.service import _turns
from fetchstash.service._turns import Turns

pytestmark = pytest.mark.anyio


class Line:
    """Calls that hold a slot until they are let go."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.running: list[str] = []
        self.served: list[str] = []
        self.refused: list[Busy] = []
        self._ends: list[tuple[str, anyio.Event]] = []

    async def call(self, tenant: str, patience: float = 1_000) -> None:
        end = anyio.Event()
        try:
            async with self.turns.turn(tenant, patience=patience):
                self.running.append(tenant)
                self.served.append(tenant)
                self._ends.append((tenant, end))
                await end.wait()
                self.running.remove(tenant)
        except Busy as busy:
            self.refused.append(busy)

    async def end_first(self) -> None:
        self._ends.pop(0)[1].set()
        await settle()


async def settle() -> None:
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


async def test_a_tenant_never_has_all_slots() -> None:
    line = Line(Turns("slots", 3, 2))
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
    line = Line(Turns("slots", 2, 2))
    async with anyio.create_task_group() as tasks:
        for tenant in ("a", "a", "a", "a", "b", "b", "c"):
            tasks.start_soon(line.call, tenant)
            await settle()
        for _ in range(7):
            await line.end_first()
    assert line.served == ["a", "a", "b", "a", "c", "b", "a"]


async def test_a_line_that_is_full_is_busy_for_its_tenant_alone() -> None:
    line = Line(Turns("slots", 2, 1, waiting=2))
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
    line = Line(Turns("slots", 1, 1))
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
    turns = Turns("slots", 4, 3)
    async with turns.turn("a", 1), turns.turn("b", 2), turns.turn("b", 2):
        for tenant, most in (("a", 1), ("b", 2)):
            with pytest.raises(Busy):
                async with turns.turn(tenant, most, patience=0.001):
                    pass
        async with turns.turn("c"):
            pass


@pytest.mark.parametrize("greedy", [True, False])
async def test_the_work_of_a_greedy_tenant_rests(
    monkeypatch: pytest.MonkeyPatch, greedy: bool
) -> None:
    now = 0.0
    slept: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: now, sleep=slept.append)
    monkeypatch.setattr(_turns, "time", clock)
    turns = Turns("slots", 1, 1, is_greedy=lambda tenant: greedy and tenant == "flood")
    async with turns.turn("flood") as rest:
        rest()
        assert not slept, "it has not worked yet"
        now += 0.002
        rest()
        assert slept == ([0.008] if greedy else [])
        now += 60.0  # a piece that took long
        rest()
        assert max(slept, default=0) <= 0.02


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["begin", "cancel", "end"]), st.sampled_from("abc")), max_size=40
    )
)
async def test_slots_are_never_lost_and_never_more_than_there_are(
    steps: list[tuple[str, str]],
) -> None:
    line = Line(Turns("slots", 2, 1))
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
    async with line.turns.turn("a"), line.turns.turn("b"):
        pass

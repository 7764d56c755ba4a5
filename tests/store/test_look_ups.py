"""Look-ups in the thread of a store, which end each for itself."""

import threading
from collections.abc import Callable
from contextvars import ContextVar

import anyio
import pytest

from fetchstash.errors import StoreError, UnknownRef
from fetchstash.store._threads import LookUps

pytestmark = pytest.mark.anyio

_caller: ContextVar[str] = ContextVar("_caller")


async def together(*works: Callable[[], object]) -> list[object]:
    """Return what each work returned or raised, all begun in one turn of the loop."""
    look_ups, outcomes = LookUps(), dict[int, object]()

    async def run(number: int, work: Callable[[], object]) -> None:
        _caller.set(f"caller {number}")
        try:
            outcomes[number] = await look_ups.run(work)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            outcomes[number] = error

    async with anyio.create_task_group() as tasks:
        for number, work in enumerate(works):
            tasks.start_soon(run, number, work)
    look_ups.close()
    return [outcomes[number] for number in range(len(works))]


async def test_look_ups_share_a_thread_that_is_not_the_loops() -> None:
    threads = await together(*[threading.get_ident] * 5)
    assert len(set(threads)) == 1
    assert threading.get_ident() not in threads


async def test_each_look_up_runs_in_the_context_of_its_caller() -> None:
    assert await together(_caller.get, _caller.get) == ["caller 0", "caller 1"]


async def test_an_error_is_raised_to_its_own_caller_alone() -> None:
    def unknown() -> None:
        raise UnknownRef("There is none.", "Fetch.")

    def missing() -> None:
        raise FileNotFoundError(2, "No such file", "blob")

    one, two, three = await together(unknown, missing, lambda: "here")
    assert isinstance(one, UnknownRef)
    assert isinstance(two, StoreError)
    assert three == "here"


async def test_a_cancelled_look_up_waits_for_its_end() -> None:
    look_ups, began, may_end = LookUps(), threading.Event(), threading.Event()
    ended: list[bool] = []

    def work() -> None:
        began.set()
        ended.append(may_end.wait(30))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look_ups.run, work)
        await anyio.to_thread.run_sync(began.wait, 30)
        tasks.cancel_scope.cancel()
        may_end.set()
    look_ups.close()
    assert ended == [True]


async def test_a_call_that_is_cancelled_already_looks_nothing_up() -> None:
    look_ups, looked = LookUps(), list[bool]()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await look_ups.run(lambda: looked.append(True))
    await look_ups.run(lambda: None)
    look_ups.close()
    assert not looked

"""Look-ups: reads of the catalogue that take some microseconds each, in a thread of their own."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial
from typing import Any, TypeVar

from anyio import CancelScope, lowlevel

from fetchstash.store._disk import translate_errors

T = TypeVar("T")

_Work = Callable[[], Any]
_Outcome = tuple[Any, BaseException | None]
"""What work returned, or what it raised."""


class LookUps:
    """Runs look-ups one after another in one thread, those of one turn of the event loop together.

    A thread gives the interpreter up whenever it asks the disk, and has to wait until the event
    loop gives it back. In threads of their own, look-ups would wait for each other, too.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "look-ups")
        self._begun: list[tuple[_Work, Context, asyncio.Future[_Outcome]]] = []

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in a thread. Errors of disk and SQLite become StoreError or Busy.

        A call that is cancelled waits for its end all the same: it may open a file.
        """
        await lowlevel.checkpoint_if_cancelled()
        loop = asyncio.get_running_loop()
        if not self._begun:
            loop.call_soon(self._submit, loop)
        ended: asyncio.Future[_Outcome] = loop.create_future()
        self._begun.append((work, copy_context(), ended))
        with CancelScope(shield=True):
            await ended
        value, error = ended.result()
        if error:
            raise error
        result: T = value
        return result

    def close(self) -> None:
        """End the thread once it has no work."""
        self._thread.shutdown(wait=False)

    def _submit(self, loop: asyncio.AbstractEventLoop) -> None:
        begun, self._begun = self._begun, []
        outcomes = loop.run_in_executor(
            self._thread, lambda: [_outcome(work, context) for work, context, _ in begun]
        )
        outcomes.add_done_callback(partial(_tell, [ended for _, _, ended in begun]))


def _outcome(work: _Work, context: Context) -> _Outcome:
    try:
        with translate_errors():
            return context.run(work), None
    except BaseException as error:  # noqa: BLE001 - its caller raises it
        return None, error


def _tell(
    callers: Sequence["asyncio.Future[_Outcome]"], outcomes: "asyncio.Future[list[_Outcome]]"
) -> None:
    for ended, outcome in zip(callers, outcomes.result(), strict=True):
        if not ended.cancelled():
            ended.set_result(outcome)

"""Look-ups: reads of the catalogue that take some microseconds each, in a thread of their own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from anyio import CancelScope, lowlevel

from fetchstash.store._disk import translate_errors

T = TypeVar("T")


class LookUps:
    """Runs look-ups one after another in one thread.

    A thread gives the interpreter up whenever it asks the disk, and has to wait until the event
    loop gives it back. In threads of their own, look-ups would wait for each other, too.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "look-ups")

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in the thread. Errors of disk and SQLite become StoreError or Busy.

        A call that is cancelled waits for its end all the same: it may open a file.
        """
        await lowlevel.checkpoint_if_cancelled()

        def translated() -> T:
            with translate_errors():
                return work()

        loop = asyncio.get_running_loop()
        ended = loop.run_in_executor(self._thread, copy_context().run, translated)
        with CancelScope(shield=True):
            await ended
        return ended.result()

    def close(self) -> None:
        """End the thread once it has no work."""
        self._thread.shutdown(wait=False)

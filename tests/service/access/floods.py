"""A flood of unknown tokens while whoever knows them does not answer."""

import anyio

from fetchstash.errors import Busy
from fetchstash.service.access import Rejected, Verifier


async def turned_away(
    tokens: Verifier, stranger: str, known: str, answers: anyio.Event
) -> tuple[int, set[str]]:
    """Send ``stranger`` a thousand times; return how many were turned away before ``answers``.

    And the reasons for which the others were rejected after. ``known`` is verified meanwhile.
    """
    reasons = set[str]()
    away = meanwhile = 0

    async def guess() -> None:
        nonlocal away
        try:
            await tokens.verify(stranger)
        except Rejected as rejected:
            reasons.add(rejected.reason)
        except Busy:
            away += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(1_000):
            tasks.start_soon(guess)
        await anyio.wait_all_tasks_blocked()
        meanwhile = away
        await tokens.verify(known)
        answers.set()
    assert away == meanwhile
    return meanwhile, reasons

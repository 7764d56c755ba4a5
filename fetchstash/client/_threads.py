"""Work on large histories goes to a thread, so that the event loop stays free."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fetchstash.client._shapes import is_collection, is_mapping

LARGE_CHARS, LARGE_VALUES = 200_000, 50_000
"""A history with more text or more values is compacted in a thread."""

Result = TypeVar("Result")


def is_large(value: Any) -> bool:
    """Return whether a history holds more than ``LARGE_CHARS`` of text, and look no further."""
    chars, values, waiting = 0, 0, [value]
    while waiting and chars <= LARGE_CHARS and values <= LARGE_VALUES:
        current = waiting.pop()
        values += 1
        if isinstance(current, str | bytes):
            chars += len(current)
        elif is_mapping(current):
            waiting += current.values()
        elif is_collection(current):
            waiting += current
    return bool(waiting) or chars > LARGE_CHARS


async def off_loop(function: Callable[..., Result], *args: Any, large: bool) -> Result:
    """Return ``function(*args)``, called in a thread if ``large`` and the loop is asyncio's."""
    if large and _in_asyncio():
        return await asyncio.to_thread(function, *args)
    return function(*args)


def _in_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True

"""Helpers around the machine and Python: telemetry, processes, folders, lazy imports."""

import gc
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")

SMALL_BYTES = 2**19
"""What is done with so few bytes of a file is done before a thread has begun."""


async def run_short(size: int, work: Callable[[], T], small: int = SMALL_BYTES) -> T:
    """Run work on a file of ``size`` bytes: directly if that is small, else in a thread."""
    if 0 < size <= small:
        return work()
    from anyio.to_thread import run_sync  # noqa: PLC0415 - the client has no third-party module

    return await run_sync(work)


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package (PEP 562).

    ``modules`` has the names of each of its modules, with blanks between them.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        collects = gc.isenabled()
        gc.disable()  # modules stay: to look through them, time and again, took a 20th of a start
        try:
            value = getattr(import_module(f"{package}.{homes[name]}"), name)
        finally:
            if collects:
                gc.enable()
        setattr(sys.modules[package], name, value)
        return value

    return get

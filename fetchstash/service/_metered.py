"""A store whose operations are timed."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, cast

from fetchstash.store import ArtifactStore
from fetchstash.system import telemetry

_READS = ("get", "list", "open_artifact", "open_text", "search")
_TIMED = frozenset((*_READS, "put", "replace_text", "touch", "delete", "gc"))


def metered(store: ArtifactStore) -> ArtifactStore:
    """Return the store with each operation timed as ``store``, by its name."""
    return cast("ArtifactStore", _Metered(store))


class _Metered:
    """Passes everything on. Not one method for each of the Protocol: they would all be alike."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if name in _TIMED:  # once: then the wrapper is found without this method
            attribute = _timed(name, attribute)
            setattr(self, name, attribute)
        return attribute


def _timed(name: str, operation: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(operation)
    async def run(*arguments: Any, **options: Any) -> Any:
        with telemetry.timed("store", operation=name):
            return await operation(*arguments, **options)

    return run

"""Bugs that the torture must find: its control."""

from collections.abc import Callable, Mapping

BUGS: Mapping[str, Callable[[], None]] = {}


def plant(bug: str) -> None:
    """Put a bug into this process."""
    BUGS[bug]()

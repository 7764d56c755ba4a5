"""Plain JSON data, told apart: what comes from outside has no types until it is looked at."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether this is a JSON object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether this is a JSON array."""
    return isinstance(value, list)


def is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether this has keys."""
    return isinstance(value, Mapping)


def is_collection(value: Any) -> TypeGuard[Iterable[Any]]:
    """Return whether this holds several values, and no keys."""
    return isinstance(value, list | tuple | set | frozenset)


def an_object(value: Any) -> dict[str, Any]:
    """Return the object that this is, an empty one if it is none."""
    return value if is_object(value) else {}


def a_string(value: Any) -> str:
    """Return the string that this is, "" if it is none."""
    return value if isinstance(value, str) else ""


def objects(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of an array with their indexes; of anything else nothing."""
    for index, item in enumerate(value if is_list(value) else ()):
        if is_object(item):
            yield index, item

"""Read values whose types nobody has checked: what JSON, YAML, TOML and other programs give.

One place says what counts as an object or an array of JSON, so that a wrong type from outside is
an empty value or a plain question, never an AttributeError far from where it came in.
"""

from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value is an object of JSON, a mapping of YAML or a table of TOML."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Return whether a value is an array of JSON, TOML or YAML."""
    return isinstance(value, list)


def as_object(value: object) -> dict[str, Any]:
    """Return an object itself, not a copy; an empty one for anything else."""
    return value if is_object(value) else {}


def as_array(value: object) -> list[Any]:
    """Return an array itself, not a copy; an empty one for anything else."""
    return value if is_array(value) else []


def as_objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in an array, not copied; [] for anything else."""
    return [item for item in as_array(value) if is_object(item)]

"""Checks plain data against the TypedDicts of an SDK, as strictly as these are written."""

import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeGuard, Union, cast, get_args, get_origin, get_type_hints


def fault(value: Any, hint: Any) -> str:
    """Return what is wrong with ``value``, "" if it is of the type ``hint``."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in {Any, object}:
        return ""
    if _is_typeddict(hint):
        return _fault_of_fields(value, hint)
    if origin in {Union, types.UnionType}:
        faults = [fault(value, option) for option in args]
        return "" if "" in faults else f"none of {len(args)} types: {min(faults, key=len)}"
    if origin is Literal:
        return "" if value in args else f"{value!r:.60} is not one of {args}"
    if hint is None or hint is types.NoneType:
        return "" if value is None else f"{value!r:.60} is not None"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "" if isinstance(value, dict) else f"{value!r:.60} is no object"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        if not _is_list(value):
            return f"{value!r:.60} is no array"
        return next((said for item in value if (said := fault(item, args[0]))), "")
    if origin is not None:  # Required, Annotated and the like
        return fault(value, args[0])
    return "" if isinstance(value, hint) else f"{value!r:.60} is no {hint.__name__}"


def _fault_of_fields(value: Any, hint: Any) -> str:
    if not isinstance(value, dict):
        return f"{value!r:.60} is no {hint.__name__}"
    value = cast("dict[str, Any]", value)
    fields = get_type_hints(hint)
    missing = hint.__required_keys__ - value.keys()
    unknown = value.keys() - fields.keys()
    if missing or unknown:
        return f"{hint.__name__}: missing {sorted(missing)}, unknown {sorted(unknown)}"
    return next(
        (
            f"{hint.__name__}.{key}: {said}"
            for key in value
            if (said := fault(value[key], fields[key]))
        ),
        "",
    )


def tags(union: Any, key: str = "type") -> set[str]:
    """Return the values that ``key`` may have in the TypedDicts of a union."""
    found: set[str] = set()
    for option in get_args(union):
        if _is_typeddict(option):
            found.update(str(tag) for tag in _literals(get_type_hints(option).get(key)))
        else:
            found |= tags(option, key)
    return found


def _literals(hint: Any) -> list[Any]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [tag for inner in get_args(hint) for tag in _literals(inner)]


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether this is a list, of what nobody has checked yet."""
    return isinstance(value, list)


def _is_typeddict(hint: Any) -> bool:
    """Return whether this is a TypedDict, of typing or of typing_extensions."""
    return hasattr(hint, "__required_keys__")

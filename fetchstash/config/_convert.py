"""Read one value of a setting, and word what is wrong with one."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from fetchstash.config._keys import Key
from fetchstash.errors import BadArgument, did_you_mean


def advice(wrong: str, known: Iterable[str]) -> str:
    """Return the nearest known name as a question, else where to look."""
    return did_you_mean(wrong, known) or "Check its name in docs/configuration.md."


_BOOLEANS = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}


def convert(key: Key, raw: Any, origin: str) -> Any:
    """Return the value of ``raw``: a string from outside, a value from TOML, or a list of these.

    Raises BadArgument for an invalid value.
    """
    items: list[Any] = [raw]
    if key.kind is tuple:
        items = list(cast("Sequence[Any]", raw)) if isinstance(raw, (list, tuple)) else [None]
    try:
        values = tuple(_scalar(key.item or key.kind, item) for item in items)
    except ValueError:
        what = f"{key.path} is {raw!r} ({origin})."
        raise BadArgument(what, f"It must be {_expected(key)}.") from None
    for value in values:
        what = f"{key.path} is {value!r} ({origin})."
        if not _within(key, value):
            raise BadArgument(what, f"It must be {_expected(key)}.")
        if key.choices and value not in key.choices:
            question = did_you_mean(str(value), key.choices)
            raise BadArgument(what, f"It must be {_expected(key)}. {question}".strip())
    return values if key.kind is tuple else values[0]


def _scalar(kind: type, raw: Any) -> Any:
    """Return ``raw`` as a bool, int, float or str. Raises ValueError if it is not one."""
    if kind is str and isinstance(raw, str):
        return raw
    if kind is bool:
        known = raw if isinstance(raw, bool) else _BOOLEANS.get(str(raw).lower())
        if known is not None:
            return known
    elif not isinstance(raw, bool) and (
        isinstance(raw, (str, int)) or (kind is float and isinstance(raw, float))
    ):
        return kind(raw)
    raise ValueError(raw)


def _within(key: Key, value: Any) -> bool:
    """Return whether a number is within the key's bounds; other values have none, NaN fails."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return True
    return (key.low is None or value >= key.low) and (key.high is None or value <= key.high)


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def _expected(key: Key) -> str:
    words = _WORDS[key.kind] if key.item is None else f"a list, each item {_WORDS[key.item]}"
    if key.choices:
        return f"one of {', '.join(key.choices)}"
    if key.low is not None and key.high is not None:
        return f"{words}, {key.low:g} to {key.high:_.0f}"
    return f"{words}, at least {key.low:g}" if key.low is not None else words

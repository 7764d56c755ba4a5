"""JSON of others: a value of the wrong shape counts as missing."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

# JSON has no NaN and no Infinity (RFC 8259, section 6); null is what JSON.stringify makes of them.
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)


def as_value(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError, RecursionError."""
    return _DECODER.decode(text)


def as_object(value: object) -> dict[str, Any]:
    """Return a JSON object as a dict of its own, {} for anything else."""
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def as_list(value: object) -> Sequence[Any]:
    """Return a JSON array, () for anything else."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def as_objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of a JSON array, the very same ones."""
    return [cast("dict[str, Any]", item) for item in as_list(value) if isinstance(item, dict)]


def meta_of(message: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the ``_meta`` of parameters or of a result."""
    return as_object((message or {}).get("_meta"))


def as_line(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line of JSON. Raises TypeError for a value that stands in a file."""
    try:
        text = json.dumps(message, ensure_ascii=False, allow_nan=False)
    except ValueError:  # a number such as 1e999, which Python reads as infinite
        text = json.dumps(as_value(json.dumps(message)), ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"

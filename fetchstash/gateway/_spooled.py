"""Values that were too long to hold: files in the place of strings and of structured content."""

from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fetchstash.errors import TooLarge
from fetchstash.gateway._json import as_value


@dataclass(frozen=True, slots=True)
class Spooled:
    """A value that was too long to hold: a file with a string's text, or with JSON.

    ``chars`` is the length of the text; of JSON it is the number of bytes.
    """

    path: Path
    chars: int
    is_json: bool = False


HELD_CHARS = 2**24
"""What may be read back of the values of one message."""


def read_back(value: Any) -> Any:
    """Return a JSON value with the spooled values in it read, and remove their files.

    Raises TooLarge if they have more than ``HELD_CHARS`` together.
    """
    left = HELD_CHARS

    def read(value: Any) -> Any:
        nonlocal left
        if isinstance(value, Spooled):
            left -= value.chars
            if left < 0:
                raise TooLarge("The message is too long.", "Ask for less.")
            text = value.path.read_text(encoding="utf-8")
            return as_value(text) if value.is_json else text
        if isinstance(value, list):
            return list(map(read, cast("Sequence[Any]", value)))
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            return {name: read(item) for name, item in items}
        return value

    try:
        return read(value)
    except (OSError, ValueError, RecursionError):
        raise TooLarge("The message cannot be read.", "Ask for less.") from None
    finally:
        drop_spooled(value)


def drop_spooled(value: Any) -> None:
    """Remove the files of the spooled values in a JSON value."""
    if isinstance(value, Spooled):
        with suppress(OSError):
            value.path.unlink(missing_ok=True)
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, Any]", value).values():
            drop_spooled(item)
    elif isinstance(value, list):
        for item in cast("Sequence[Any]", value):
            drop_spooled(item)


def filled(value: Any, mark: str, spooled: MutableMapping[str, Spooled]) -> Any:
    """Return a JSON value with the spooled values in place of their names, and take them out.

    All the names begin with ``mark``.
    """
    if not spooled:
        return value
    if isinstance(value, str):
        return spooled.pop(value, value) if value.startswith(mark) else value
    if isinstance(value, list):
        return [filled(item, mark, spooled) for item in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {name: filled(item, mark, spooled) for name, item in items}
    return value

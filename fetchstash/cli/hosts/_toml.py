"""The servers in the TOML file of a host. Imports tomlkit, which keeps comments and forms."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Item, Table

from fetchstash.cli.hosts._file import Malformed
from fetchstash.cli.hosts._servers import Entry, only_tables


class TomlServers:
    """The servers in the tables ``[SECTION.NAME]``. Raises Malformed."""

    def __init__(self, text: str, path: list[str]) -> None:
        self.text = text
        (self._section,) = path

    @property
    def entries(self) -> dict[str, Entry]:
        """The entries as they are now, by the servers' names."""
        return only_tables(_parsed(self.text).unwrap().get(self._section))

    def source(self, name: str, keys: Iterable[str]) -> str:
        """Return keys of an entry as TOML, with the comments behind them."""
        table, kept = _parsed(self.text)[self._section][name], tomlkit.document()
        for key in keys:
            kept.add(key, tomlkit.item(table[key]))
        return kept.as_string()

    def values(self, source: str) -> Entry:
        """Return what ``source`` returned, with its comments; none if it was changed since."""
        try:
            document = tomlkit.parse(source)
        except TOMLKitError:
            return {}
        return {key: tomlkit.item(document[key]) for key in document}

    def change(self, name: str, removed: Iterable[str], put: Entry) -> None:
        """Take keys out of an entry, and set others."""
        for key, value in put.items():
            if isinstance(value, dict):
                self._edit(name, partial(_delete, key=key))
            self._edit(name, partial(_set, key=key, value=value))
        for key in removed:
            self._edit(name, partial(_delete, key=key))

    def _edit(self, name: str, edit: Callable[[Any], object]) -> None:
        """Change one key of an entry: tomlkit miscounts a table in several parts after a change."""
        document = _parsed(self.text)
        edit(document[self._section][name])
        text = cast("str", document.as_string())
        if 0 < self.text.count("\n") == self.text.count("\r\n"):
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        self.text = text


def _parsed(text: str) -> Any:
    """Return a document of tomlkit, whose types tell little: each item may be of any kind."""
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise Malformed(f"it is no TOML ({error})") from None


def _delete(table: Any, *, key: str) -> None:
    table.pop(key, None)


def _set(table: Any, *, key: str, value: Any) -> None:
    """Set a key of a table; what stays of a value before keeps its comments."""
    before = table.get(key)
    if isinstance(value, Table) and not isinstance(table, Table):
        value = value.unwrap()  # a table of its own would take the keys that follow it
    if isinstance(value, Item):
        table[key] = value
    elif isinstance(value, list) and isinstance(before, list):
        _set_items(table, key, cast("list[str]", before), cast("list[str]", value))
    elif isinstance(value, dict):
        table[key] = tomlkit.inline_table()
        table[key].update(value)
    else:
        table[key] = value


def _set_items(table: Any, key: str, array: list[str], items: list[str]) -> None:
    """Set the items of an array. Those at its end that stay keep their comments."""
    more = len(items) - len(array)
    if more >= 0 and items[more:] == array:
        for place in range(more):
            array.insert(place, items[place])
    elif more < 0 and array[-more:] == items:
        for _ in range(-more):
            del array[0]
    else:
        table[key] = items

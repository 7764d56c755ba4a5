"""The servers in a host's settings file, and changes of an entry that leave all else as it is."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast

from fetchstash.cli.hosts._hosts import CommandHost, FileHost
from fetchstash.cli.hosts._jsonc import part_at, value_at, with_value, without_value

Entry = Mapping[str, Any]


class Servers(Protocol):
    """The servers of one section of a settings file. Their text is never shown: it holds keys."""

    @property
    def text(self) -> str:
        """The text of the file as it is now."""
        ...

    @property
    def entries(self) -> dict[str, Entry]:
        """The entries as they are now, by the servers' names."""
        ...

    def source(self, name: str, keys: Iterable[str]) -> str:
        """Return keys of an entry as the file writes them."""
        ...

    def values(self, source: str) -> Entry:
        """Return what ``source`` returned as values again; none if it was changed since."""
        ...

    def change(self, name: str, removed: Iterable[str], put: Entry) -> None:
        """Take keys out of an entry, and set others."""
        ...


class JsonServers:
    """The servers in JSON with comments, under a path of keys. Raises Malformed."""

    def __init__(self, text: str, path: list[str]) -> None:
        # Claude Code's file has megabytes of other things: they are read once.
        self._part = part = part_at(text, path)
        self._before, self._after = text[: part.start], text[part.end :]
        self._section = text[part.start : part.end]

    @property
    def text(self) -> str:
        """The text of the file as it is now."""
        return self._before + self._section + self._after

    @property
    def entries(self) -> dict[str, Entry]:
        """The entries as they are now, by the servers' names."""
        return only_tables(value_at(self._section, []))

    def source(self, name: str, keys: Iterable[str]) -> str:
        """Return keys of an entry as JSON."""
        entry = self.entries[name]
        return json.dumps({key: entry[key] for key in keys})

    def values(self, source: str) -> Entry:
        """Return what ``source`` returned as values again; none if it was changed since."""
        try:
            return as_table(json.loads(source))
        except ValueError:
            return {}

    def change(self, name: str, removed: Iterable[str], put: Entry) -> None:
        """Take keys out of an entry, and set others; comments beside them stay."""
        for key in removed:
            self._section = without_value(self._section, [name, key])
        for key, value in put.items():
            self._section = with_value(self._section, [name, key], value, self._part)


def servers_of(host: FileHost | CommandHost, text: str, path: list[str]) -> Servers:
    """Return the servers under a path of keys in the text of a host's file. Raises Malformed."""
    if host.name != "codex":
        return JsonServers(text, path)
    from fetchstash.cli.hosts._toml import TomlServers  # noqa: PLC0415 - imports tomlkit

    return TomlServers(text, path)


def as_table(value: object) -> dict[str, Any]:
    """Return a table of a settings file, an empty one for any other value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def only_tables(section: object) -> dict[str, Entry]:
    """Return the members of a section that are tables, as the entries of servers are."""
    members = as_table(section)
    return {name: members[name] for name in members if isinstance(members[name], dict)}

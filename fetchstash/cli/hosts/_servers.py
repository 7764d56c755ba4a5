"""The hosts that start fetchstash, and the servers in the settings file of each, JSON or TOML."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any, Literal, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable, Item, Table

from fetchstash.cli.hosts._files import Malformed, part_at, value_at, with_value, without_value
from fetchstash.text.untyped import as_object, is_array


@dataclass(frozen=True, slots=True)
class Environment:
    """The system as ``sys.platform`` names it, the home folder and the environment variables."""

    system: str = sys.platform
    home: Path = field(default_factory=Path.home)
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def settings(self) -> Path:
        """Return the folder in which programs of this system keep their settings."""
        if self.system == "win32":
            return self.folder("APPDATA", self.home / "AppData" / "Roaming")
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        return self.xdg()

    def xdg(self) -> Path:
        """Return the folder of the XDG base directory specification."""
        return self.folder("XDG_CONFIG_HOME", self.home / ".config")

    def folder(self, variable: str, default: Path) -> Path:
        """Return the absolute folder that a variable names, else ``default``."""
        named = Path(self.variables.get(variable, ""))
        return named if named.is_absolute() else default


def _zed(env: Environment) -> Path:  # keeps to XDG on macOS, too
    folder = env.settings() / "Zed" if env.system == "win32" else env.xdg() / "zed"
    return folder / "settings.json"


@dataclass(frozen=True, slots=True)
class Host:
    """A host: its settings file, and the key in it that holds the servers.

    A host with a ``program`` has a command of its own that adds a server and removes it. ``extra``
    is what else an entry has in its file.
    """

    name: str
    title: str
    file: Callable[[Environment], Path]
    section: str = "mcpServers"
    extra: Mapping[str, str] = field(default_factory=dict[str, str])
    program: str = ""
    scope: tuple[str, ...] = ()
    separator: tuple[str, ...] = ("--",)
    hint: str = ""
    file_format: Literal["json", "toml"] = "json"
    patience: Mapping[str, int] = field(default_factory=dict[str, int])
    """What lets a gateway wait for slow servers, where the host gives up sooner by itself."""

    def is_here(self, env: Environment) -> bool:
        """Return whether the host is on this machine: its program, or the folder of its file."""
        return bool(which(self.program)) if self.program else self.file(env).parent.is_dir()

    def entry(self, start: list[str]) -> dict[str, object]:
        """Return what stands in the file for a server that is started like this."""
        return {**self.extra, "command": start[0], "args": start[1:]}

    def add(self, server: str, start: list[str]) -> list[str]:
        """Return the command line that adds a server."""
        return [self.program, "mcp", "add", *self.scope, server, *self.separator, *start]

    def remove(self, server: str) -> list[str]:
        """Return the command line that removes it."""
        return [self.program, "mcp", "remove", *self.scope, server]


_ALLOW = (
    'To let it work without asking, add "mcp__fetchstash" to permissions.allow in '
    "~/.claude/settings.json."
)
_HOSTS = (
    Host(
        "claude-code",
        "Claude Code",
        lambda env: env.folder("CLAUDE_CONFIG_DIR", env.home) / ".claude.json",
        program="claude",
        scope=("-s", "user"),
        hint=_ALLOW,
    ),
    Host(
        "codex",
        "Codex",
        lambda env: env.folder("CODEX_HOME", env.home / ".codex") / "config.toml",
        section="mcp_servers",
        file_format="toml",
        program="codex",
        patience={"startup_timeout_sec": 30},
    ),
    Host(
        "gemini",
        "Gemini CLI",
        lambda env: env.folder("GEMINI_CLI_HOME", env.home) / ".gemini" / "settings.json",
        program="gemini",
        scope=("-s", "user"),
        separator=(),
    ),
    Host(
        "claude-desktop",
        "Claude Desktop",
        lambda env: env.settings() / "Claude" / "claude_desktop_config.json",
    ),
    Host("cursor", "Cursor", lambda env: env.home / ".cursor" / "mcp.json"),
    Host(
        "vscode",
        "VS Code",
        lambda env: env.settings() / "Code" / "User" / "mcp.json",
        section="servers",
        extra={"type": "stdio"},
    ),
    Host("windsurf", "Windsurf", lambda env: env.home / ".codeium/windsurf/mcp_config.json"),
    Host("zed", "Zed", _zed, section="context_servers"),
)
HOSTS: Mapping[str, Host] = {host.name: host for host in _HOSTS}


Entry = Mapping[str, Any]


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
        return _only_tables(value_at(self._section, []))

    def source(self, name: str, keys: Iterable[str]) -> Any:
        """Return some keys of an entry as the text of JSON."""
        entry = self.entries[name]
        return {key: entry[key] for key in keys}

    def values(self, source: Any) -> Entry:
        """Return the values of an entry that ``source`` returned; {} if it was changed since."""
        return as_object(source)

    def add(self, name: str, entry: Entry) -> None:
        """Add a server after the others."""
        self._section = with_value(self._section, [name], dict(entry), self._part)

    def remove(self, name: str) -> None:
        """Take a server out, and the comments on it."""
        self._section = without_value(self._section, [name])

    def change(self, name: str, removed: Iterable[str], put: Entry) -> None:
        """Take keys out of an entry, and set others; comments beside them stay."""
        for key in removed:
            self._section = without_value(self._section, [name, key])
        for key, value in put.items():
            self._section = with_value(self._section, [name, key], value, self._part)


class TomlServers:
    """The same in the tables ``[SECTION.NAME]`` of TOML. Raises Malformed."""

    def __init__(self, text: str, path: list[str]) -> None:
        self.text = text
        (self._section,) = path

    @property
    def entries(self) -> dict[str, Entry]:
        """The entries as they are now, by the servers' names."""
        return _only_tables(_parsed(self.text).unwrap().get(self._section))

    def source(self, name: str, keys: Iterable[str]) -> Any:
        """Return keys of an entry as TOML, with the comments behind them."""
        table, kept = _parsed(self.text)[self._section][name], tomlkit.document()
        for key in keys:
            kept.add(key, tomlkit.item(table[key]))
        return kept.as_string()

    def values(self, source: Any) -> Entry:
        """Return what ``source`` returned, with its comments; none if it was changed since."""
        try:
            document = tomlkit.parse(str(source))
        except TOMLKitError:
            return {}
        return {key: tomlkit.item(document[key]) for key in document}

    def add(self, name: str, entry: Entry) -> None:
        """Add a server after the others."""
        document = _parsed(self.text)
        section = document[self._section]
        is_inline = isinstance(section, InlineTable)
        section[name] = tomlkit.inline_table() if is_inline else tomlkit.table()
        self._take(document)
        self.change(name, (), entry)

    def remove(self, name: str) -> None:
        """Take a server out, and the comments on it."""
        document = _parsed(self.text)
        del document[self._section][name]
        self._take(document)

    def change(self, name: str, removed: Iterable[str], put: Entry) -> None:
        """Take keys out of an entry, and set others."""
        for key, value in put.items():
            if isinstance(value, dict):
                self._set(name, key)
            self._set(name, key, value)
        for key in removed:
            self._set(name, key)

    def _set(self, name: str, key: str, value: Any = None) -> None:
        """Set one key of an entry, None to take it out.

        The text is read anew for each: tomlkit miscounts a table in several parts after a change.
        """
        document = _parsed(self.text)
        table = document[self._section][name]
        if value is None:
            table.pop(key, None)
        else:
            _set(table, key, value)
        self._take(document)

    def _take(self, document: Any) -> None:
        """Store the text of a document, with its former line ends."""
        text = cast("str", document.as_string())
        if 0 < self.text.count("\n") == self.text.count("\r\n"):
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        self.text = text


def _parsed(text: str) -> Any:
    """Parse TOML with tomlkit; the result is typed Any, because each item may be of any kind."""
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise Malformed(f"it is no TOML ({error})") from None


def _set(table: Any, key: str, value: Any) -> None:
    """Set a key of a table; the unchanged parts of the earlier value keep their comments."""
    before = table.get(key)
    if isinstance(value, Table) and not isinstance(table, Table):
        value = value.unwrap()  # a table of its own would take the keys that follow it
    if isinstance(value, list) and isinstance(before, list) and not isinstance(value, Item):
        _set_items(table, key, cast("list[str]", before), cast("list[str]", value))
    elif isinstance(value, dict) and not isinstance(value, Item):
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
        del array[:-more]
    else:
        table[key] = items


Servers = JsonServers | TomlServers


def servers_of(host: Host, text: str, path: list[str]) -> Servers:
    """Return the servers under a path of keys in the text of a host's file. Raises Malformed.

    Their text is never shown: it holds keys.
    """
    return TomlServers(text, path) if host.file_format == "toml" else JsonServers(text, path)


def _only_tables(section: object) -> dict[str, Entry]:
    """Return the members of a section that are tables, as the entries of servers are."""
    members = as_object(section)
    return {name: members[name] for name in members if isinstance(members[name], dict)}


def args_of(entry: Entry) -> list[str] | None:
    """Return the arguments of an entry's command, None if they are no list of texts."""
    args = entry.get("args", [])
    words = args if is_array(args) else [None]
    texts = [word for word in words if isinstance(word, str)]
    return texts if len(texts) == len(words) else None


def own_words(entry: Entry) -> list[str] | None:
    """Return the arguments of an entry that starts fetchstash, None for any other."""
    program, args = Path(str(entry.get("command", ""))), args_of(entry) or []
    match program.stem:
        case "fetchstash":
            return args
        case "run" if program.parent.name == "scripts":
            return args
        case "uvx" if "fetchstash" in args:
            return args[args.index("fetchstash") + 1 :]
        case _:
            return None

"""Hosts, a row each, and the registration of fetchstash with them."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from fetchstash.cli.hosts._files import Change, change_file, with_value, without_value
from fetchstash.cli.hosts._servers import Entry, Servers, servers_of
from fetchstash.errors import BadArgument, StoreError


@dataclass(frozen=True, slots=True)
class Place:
    """Whose settings: the system as ``sys.platform`` names it, the home folder, the environment."""

    system: str = sys.platform
    home: Path = field(default_factory=Path.home)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def settings(self) -> Path:
        """Return the folder in which programs of this system keep their settings."""
        if self.system == "win32":
            return self.named("APPDATA", self.home / "AppData" / "Roaming")
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        return self.xdg()

    def xdg(self) -> Path:
        """Return the folder of the XDG base directory specification."""
        return self.named("XDG_CONFIG_HOME", self.home / ".config")

    def named(self, variable: str, otherwise: Path) -> Path:
        """Return the absolute folder that a variable names, else another."""
        named = Path(self.environment.get(variable, ""))
        return named if named.is_absolute() else otherwise


@dataclass(frozen=True, slots=True)
class FileHost:
    """A host whose servers stand in a JSON file, under the key ``section``."""

    name: str
    title: str
    section: str
    extra: Mapping[str, str] = field(default_factory=dict[str, str])

    def file(self, place: Place) -> Path:
        """Return the file of this host."""
        match self.name:
            case "claude-desktop":
                return place.settings() / "Claude" / "claude_desktop_config.json"
            case "cursor":
                return place.home / ".cursor" / "mcp.json"
            case "vscode":
                return place.settings() / "Code" / "User" / "mcp.json"
            case "windsurf":
                return place.home / ".codeium" / "windsurf" / "mcp_config.json"
            case _:  # Zed keeps to XDG on macOS, too
                folder = place.settings() / "Zed" if place.system == "win32" else None
                return (folder or place.xdg() / "zed") / "settings.json"

    def entry(self, start: list[str]) -> dict[str, object]:
        """Return what stands in the file for a server that is started like this."""
        return {**self.extra, "command": start[0], "args": start[1:]}


@dataclass(frozen=True, slots=True)
class CommandHost:
    """A host whose own command adds a server and removes it, under ``section`` of its file."""

    name: str
    title: str
    program: str
    scope: tuple[str, ...] = ()
    separator: tuple[str, ...] = ("--",)
    hint: str = ""
    section: str = "mcpServers"

    def file(self, place: Place) -> Path:
        """Return the file that the host's command writes to."""
        match self.name:
            case "claude-code":
                return place.named("CLAUDE_CONFIG_DIR", place.home) / ".claude.json"
            case "gemini":
                return place.named("GEMINI_CLI_HOME", place.home) / ".gemini" / "settings.json"
            case _:
                return place.named("CODEX_HOME", place.home / ".codex") / "config.toml"

    def entry(self, start: list[str]) -> dict[str, object]:
        """Return what the command writes for a server that is started like this."""
        return {"command": start[0], "args": start[1:]}

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

HOSTS: Mapping[str, FileHost | CommandHost] = {
    host.name: host
    for host in (
        CommandHost("claude-code", "Claude Code", "claude", ("-s", "user"), hint=_ALLOW),
        CommandHost("codex", "Codex", "codex", section="mcp_servers"),
        CommandHost("gemini", "Gemini CLI", "gemini", ("-s", "user"), ()),
        FileHost("claude-desktop", "Claude Desktop", "mcpServers"),
        FileHost("cursor", "Cursor", "mcpServers"),
        FileHost("vscode", "VS Code", "servers", {"type": "stdio"}),
        FileHost("windsurf", "Windsurf", "mcpServers"),
        FileHost("zed", "Zed", "context_servers"),
    )
}


def start_command() -> list[str]:
    """Return the command line that starts the server, by absolute paths.

    A host that was started from a desktop has not the PATH of a terminal.
    """
    return [*_program(), "serve"]


def _program() -> list[str]:
    root = Path(__file__).parents[3]
    run = root / "scripts" / ("run.cmd" if os.name == "nt" else "run")
    if run.exists() and root in Path(sys.prefix).parents:
        return [str(run)]
    uvx = shutil.which("uvx")
    if uvx and _is_temporary(Path(sys.prefix)):
        source = _source()
        return [uvx, *(["--from", source] if source else []), "fetchstash"]
    beside = shutil.which("fetchstash", path=sysconfig.get_path("scripts"))
    return [beside or shutil.which("fetchstash") or str(Path(sys.argv[0]).absolute())]


def _is_temporary(prefix: Path) -> bool:
    """Return whether an environment is uvx's, which `uv cache clean` deletes."""
    return any(part.startswith(("archive-v", "environments-v")) for part in prefix.parts)


def _source() -> str:
    """Return where the package was installed from, "" for a registry (PEP 610)."""
    try:
        text = distribution("fetchstash").read_text("direct_url.json") or "{}"
    except PackageNotFoundError:
        return ""
    origin: dict[str, Any] = json.loads(text)
    url = str(origin.get("url", ""))
    if vcs := origin.get("vcs_info"):
        return f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    parts = urlsplit(url)
    return url2pathname(parts.path) if parts.scheme == "file" else url


NAME = "fetchstash"
"""The name of the server in every host."""

_PRESENT = ("already exists",)
_MISSING = ("no mcp server named", "not found in user settings")


def snippet(host: FileHost, start: list[str]) -> str:
    """Return the JSON that the host's file has for the server."""
    return json.dumps({host.section: {NAME: host.entry(start)}}, indent=2, ensure_ascii=False)


def add_line(host: CommandHost, start: list[str]) -> str:
    """Return the command line by which the host adds the server."""
    words = host.add(NAME, start)
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def register(host: FileHost | CommandHost, start: list[str], place: Place) -> str:
    """Add the server to a host, or bring it up to date there; all else stays.

    Raises BadArgument, Busy or StoreError, and then nothing was changed.
    """
    file, has_entry = host.file(place), False

    def edit(text: str) -> str:
        nonlocal has_entry
        servers = servers_of(host, text, [host.section])
        entry = servers.entries.get(NAME)
        has_entry = entry is not None
        if entry is not None:
            return _renewed(servers, entry, host, start)
        if isinstance(host, FileHost):
            return with_value(text, [host.section, NAME], host.entry(start))
        return text

    if isinstance(host, FileHost) or file.exists():
        change = change_file(file, edit, by_hand="add the entry by hand: --print shows it")
        if change.changed:
            line = f"Registered with {host.title} in {file}{kept(change)}."
            return f"{line} Restart {host.title} to use it."
        if has_entry:
            return f"{host.title} has it already: nothing was changed in {file}."
    assert isinstance(host, CommandHost)
    said = _run(host, host.add(NAME, start), _PRESENT, f"{host.title} has it already")
    return "\n".join(part for part in (said, host.hint) if part)


def _renewed(servers: Servers, entry: Entry, host: FileHost | CommandHost, start: list[str]) -> str:
    """Return the text with the entry of this program started as it is now."""
    if not isinstance(entry.get("command"), str):
        what = f"{host.title} has a server {NAME} already, which it does not start by a command."
        raise BadArgument(what, "Nothing was changed. Take it out first: --remove.")
    own = host.entry(start)
    args: Any = entry.get("args")
    if isinstance(args, list) and args[: len(start) - 1] == own["args"]:
        own["args"] = args  # with flags that somebody added after ours
    put = {key: value for key, value in own.items() if entry.get(key) != value}
    servers.change(NAME, (), put)
    return servers.text


def unregister(host: FileHost | CommandHost, place: Place) -> str:
    """Remove the server from a host. Raises BadArgument, Busy or StoreError."""
    missing = f"{host.title} does not have it: nothing was removed"
    if isinstance(host, CommandHost):
        return _run(host, host.remove(NAME), _MISSING, missing)
    file = host.file(place)
    if not file.exists():
        return f"{missing}."
    path = [host.section, NAME]
    by_hand = "take the entry out by hand"
    change = change_file(file, lambda text: without_value(text, path), by_hand=by_hand)
    if not change.changed:
        return f"{missing}."
    return f"Removed from {host.title} in {file}{kept(change)}."


def kept(change: Change) -> str:
    """Return where a file is kept as it was before a change, "" if there was none."""
    return f" (as it was before: {change.backup})" if change.backup else ""


def _run(host: CommandHost, command: list[str], known: tuple[str, ...], meaning: str) -> str:
    """Run the command of the host; one of ``known`` in its words means: nothing to do."""
    program = shutil.which(host.program)
    if program is None:
        raise BadArgument(
            f"The command {host.program} is not on PATH.",
            f"Install {host.title}, or run this where it is: {shlex.join(command)}",
        )
    done = subprocess.run(  # noqa: S603 - no word of it is from outside
        [program, *command[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        cwd=Path.home(),
    )
    said = done.stdout.strip()
    if any(words in said.lower() for words in known):
        return f"{meaning}. (`{shlex.join(command)}`)"
    if done.returncode:
        raise StoreError(f"`{shlex.join(command)}` failed: {said[-500:]}.", "Mend that, try again.")
    return "\n".join(part for part in (f"$ {shlex.join(command)}", said) if part)

"""The hosts that start fetchstash, a row each."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which


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

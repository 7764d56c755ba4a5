"""The hosts: where each keeps its servers, or which command of its own adds one."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


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

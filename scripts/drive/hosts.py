"""The hosts as npm has them: installed, registered as docs/install.md says, and asked."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.drive.loopback import Loopback
from scripts.drive.scenes import SLICE, Limits
from scripts.drive.speech import GATEWAY, Step
from scripts.drive.tools import CACHE, ROOT, node_program, uv_program


@dataclass(frozen=True, slots=True)
class Host:
    """A host: its tool of tools.toml and its program, and how ``register`` calls it."""

    name: str
    tool: str
    program: str
    limits: Limits
    model: str = ""

    @property
    def home(self) -> Path:
        """The folder in which it is installed."""
        return CACHE / self.tool

    @property
    def folder(self) -> Path:
        """The folder of its programs."""
        return self.home / "node_modules" / ".bin"

    def command(self, api: str, *, trusting: bool = False) -> list[str]:
        """Return the command line that asks it one thing, with its model at ``api``."""
        match self.program:
            case "claude":
                return ["claude", "-p", "Go on."]
            case "gemini":
                return ["gemini", "-p", "Go on.", "--approval-mode", "yolo"]
            case _:
                provider = f'name="x",base_url="{api}/v1",wire_api="responses",env_key="KEY"'
                flags = ["-c", 'model_provider="x"', "-c", f"model_providers.x={{{provider}}}"]
                flags += ["-m", self.model] if self.model else []
                flags += ["--dangerously-bypass-approvals-and-sandbox"] if trusting else []
                return ["codex", "exec", "--skip-git-repo-check", *flags, "Go on."]

    def environment(self, home: Path, api: str, extra: Sequence[Path] = ()) -> dict[str, str]:
        """Return all of its environment: nothing of ours gets through."""
        node = Path(shutil.which("node") or "/usr/bin/node").parent
        path = [self.folder, *extra, node, "/usr/local/bin", "/usr/bin", "/bin"]
        return {
            "HOME": str(home),
            "PATH": os.pathsep.join(map(str, path)),
            "TERM": "dumb",
            "KEY": "none",
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": api,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": api,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    def furnish(self, home: Path) -> None:
        """Write what its user has set before: how to log in, and which tools are allowed."""
        if self.program == "claude":
            rule = re.search(r"`(\{\"permissions\".*?\})`", install_page())
            assert rule
            settings = json.loads(rule[1])
            settings["permissions"]["allow"] += [f"mcp__{GATEWAY}"]
            write(home / ".claude" / "settings.json", json.dumps(settings))
        if self.program == "gemini":
            settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
            write(home / ".gemini" / "settings.json", json.dumps(settings))


# Codex: 10,000 tokens of four bytes each, the frame and two lines of its own included.
CODEX = Limits(38_000, in_bytes=True)
HOSTS: Mapping[str, Host] = {
    host.name: host
    for host in (
        Host("claude-code", "claude-code", "claude", Limits(SLICE)),
        Host("codex", "codex", "codex", CODEX),
        # A model that calls tools by themselves, after a search, and not from JavaScript.
        Host("codex gpt-5.5", "codex", "codex", CODEX, "gpt-5.5"),
        Host("gemini", "gemini", "gemini", Limits(38_000)),
    )
}


def install_page() -> str:
    """Return the text of docs/install.md."""
    return (ROOT / "docs" / "install.md").read_text(encoding="utf-8")


def write(file: Path, text: str) -> None:
    """Write a file, and its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def install(host: Host) -> str:
    """Install a host if it is not there, and return its version, "" if it cannot be had."""
    program = node_program(host.tool, host.program)
    if program is None:
        return ""
    done = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=False, timeout=180
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def uv_folder() -> Path | None:
    """Return the folder of uvx, installed if it is not there; None if it cannot be had."""
    uv = uv_program()
    return Path(uv).parent if uv else None


SECONDS = 180
"""What a conversation may take."""
STARTS = 5
"""A host that did not wait for the server to start offers no tools: it is started again."""


class HostAtHome:
    """A host in a home of its own, and the scripted model that it speaks with."""

    def __init__(
        self, host: Host, loopback: Loopback, home: Path, programs: Sequence[Path] = ()
    ) -> None:
        self.host = host
        self.loopback = loopback
        self.home = home
        self.environment = host.environment(home, loopback.url(), programs)
        self.work = home / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        address = f"127.0.0.1:{loopback.port}"
        settings = f'[fetch]\nallow_hosts = ["{address}"]\nrespect_robots = false\n'
        write(home / ".config" / "fetchstash" / "fetchstash.toml", settings)
        write(home / ".config" / "uv" / "uv.toml", "system-certs = true\n")
        packages = home.parent / "uv-cache"  # for all homes, as a user's hosts share one
        packages.mkdir(exist_ok=True)
        (home / ".cache").mkdir()
        (home / ".cache" / "uv").symlink_to(packages)
        host.furnish(home)

    def run(self, command: list[str]) -> None:
        """Run a command of the registration."""
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS * 4,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{shlex.join(command)}: {done.stdout}{done.stderr}")

    def servers(self) -> dict[str, Any]:
        """Return the servers in the settings of the host."""
        if self.host.name == "codex":
            settings = tomllib.loads((self.home / ".codex" / "config.toml").read_text())
            return dict(settings["mcp_servers"])
        name = ".gemini/settings.json" if self.host.name == "gemini" else ".claude.json"
        return dict(json.loads((self.home / name).read_text())["mcpServers"])

    def start(self, *, trusting: bool = False) -> subprocess.Popen[bytes]:
        """Start a conversation. ``trusting``: tools that change things need no approval."""
        command = self.host.command(self.loopback.url(), trusting=trusting)
        program = str(self.host.folder / command[0])
        return subprocess.Popen(
            [program, *command[1:]],
            env=self.environment,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=(self.home / "output").open("wb"),
            stderr=subprocess.STDOUT,
        )

    def converse(self, steps: Sequence[Step], *, trusting: bool = False) -> None:
        """Have a conversation in which the model makes these calls, to its end."""
        for _ in range(STARTS):
            self.loopback.play(steps)
            process = self.start(trusting=trusting)
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if self.loopback.heard:
                return

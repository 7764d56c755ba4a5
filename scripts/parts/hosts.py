"""Drive real hosts against a scripted model, and check what reaches the model.

    scripts/ci hosts [--transcripts FOLDER] [HOST …]

Installs Claude Code, Codex and Gemini CLI from npm into the cache folder, registers the built
wheel in a temporary home exactly as README says, and has a scripted model on loopback call the
tools. Prints what reached the model of each result. Then each host is killed during a call, and
nothing of it may stay. Codex, its approvals bypassed, must not open a private host. Last, a fresh
clone is registered by `scripts/run register`, and the time to the first answer is taken. What
cannot be installed is skipped aloud. Exit code: how many failed.
"""

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from scripts.drive import processes
from scripts.drive.hosts import (
    HOSTS,
    ROOT,
    Host,
    install,
    npm_program,
    readme,
    uv_folder,
    write,
)
from scripts.drive.loopback import Loopback
from scripts.drive.scenes import PAGES, scenes
from scripts.drive.speech import WRAPPED, Step
from scripts.parts.packages import build_wheel

LAST_LINE = "ERROR payment refused: code E4711\n"
SECONDS = 180
"""What a conversation may take."""
STARTS = 3
"""A host that did not wait for the server to start offers no tools: it is started again."""


class Drive:
    """One host in a home of its own."""

    def __init__(self, host: Host, loopback: Loopback, home: Path, programs: Path | None) -> None:
        self.host = host
        self.loopback = loopback
        self.home = home
        self.environment = host.environment(home, loopback.url(), [programs] if programs else [])
        self.work = home / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        address = f"127.0.0.1:{loopback.port}"
        settings = f'[fetch]\nallow_hosts = ["{address}"]\nrespect_robots = false\n'
        write(home / ".config" / "fetchstash" / "fetchstash.toml", settings)
        write(home / ".config" / "uv" / "uv.toml", "system-certs = true\n")
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

    def entry(self, server: str) -> dict[str, Any]:
        """Return what the settings of Claude Code or Codex say of a server."""
        if self.host.name == "codex":
            settings = tomllib.loads((self.home / ".codex" / "config.toml").read_text())
            return dict(settings["mcp_servers"][server])
        settings = json.loads((self.home / ".claude.json").read_text())
        return dict(settings["mcpServers"][server])

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

    def register(self, wheel: Path) -> None:
        """Run README's line for this host, with the wheel where nothing is published yet."""
        start = f"uvx --from {wheel} fetchstash"
        (line,) = (
            line
            for line in readme().splitlines()
            if line.startswith(f"{self.host.program} mcp add")
        )
        try:
            self.run([*shlex.split(start), "--version"])
        except (RuntimeError, subprocess.TimeoutExpired):
            # A registry that does not answer once is asked again.
            self.run([*shlex.split(start), "--version"])
        self.run(shlex.split(line.replace("uvx fetchstash", start)))


def show_scenes(drive: Drive, transcripts: Path | None) -> int:
    """Play all scenes, print what reached the model, and return how many are at fault."""
    played = scenes(drive.loopback.url())
    begin = time.monotonic()
    drive.converse([scene.step for scene in played])
    print(f"--- {drive.host.name}: {time.monotonic() - begin:.1f} s", flush=True)
    failed = 0
    heard = drive.loopback.heard
    for number, scene in enumerate(played):
        if number >= len(heard):
            failed += 1
            print(f"FAILED  {scene.name}: nothing reached the model")
            continue
        result = heard[number]
        fault = scene.fault(result, drive.host.limits)
        failed += bool(fault)
        pictures = f", {' '.join(result.pictures)}" if result.pictures else ""
        size = f"{len(result.text):,} characters{pictures}"
        print(f"{'FAILED' if fault else 'ok':<6}  {scene.name}: {size}{fault and f': {fault}'}")
        if transcripts:
            name = f"{drive.host.name} {number + 1} {scene.name}".replace(" ", "-")
            write(transcripts / f"{name}.txt", result.text)
    if failed:
        print((drive.home / "output").read_text(errors="replace")[-3_000:])
    return failed + nothing_left(f"{drive.host.name}, after its end")


def kill_during_a_call(drive: Drive) -> int:
    """Kill the host while a page does not answer, and return whether something stays."""
    held = drive.loopback.held
    for _ in range(STARTS):
        drive.loopback.play([Step("fetch_content", {"url": drive.loopback.url("/held")})])
        process, end = drive.start(), time.monotonic() + SECONDS
        while not held.wait(0.1) and process.poll() is None and time.monotonic() < end:
            pass
        if held.is_set() or process.poll() is None:
            break
    if not held.is_set():
        print(f"FAILED  {drive.host.name}: it made no call that could be interrupted")
        processes.kill_those_of(drive.host.home)
        return 1
    processes.kill_those_of(drive.host.home)
    return nothing_left(f"{drive.host.name}, killed during a call")


def refuse_unattended(drive: Drive) -> int:
    """Fetch from a private host with approvals bypassed; return whether it was not refused.

    Codex accepts empty forms by itself then (seen with 0.169); on 127.0.0.2 nothing listens.
    """
    url = f"http://127.0.0.2:{drive.loopback.port}/short"
    drive.converse([Step("fetch_content", {"url": url})], trusting=True)
    text = "".join(result.text for result in drive.loopback.heard)
    failed = "[refused] " not in text
    name = f"{drive.host.name}, approvals bypassed: a private host is refused"
    print(f"{'FAILED' if failed else 'ok':<6}  {name}{failed * f': {text[:200]!r}'}", flush=True)
    return failed


def nothing_left(name: str) -> int:
    """Return whether processes stay, and say which."""
    left = processes.left_after(30)
    print(f"{'FAILED' if left else 'ok':<6}  {name}: {len(left)} processes stay", flush=True)
    for line in left.values():
        print(f"        {line[:200]}")
    return bool(left)


def show_wrapped(drive: Drive, wheel: Path, transcripts: Path | None) -> int:
    """Put other servers of the host behind the gateway by ``register --wrap``, as README says.

    Checks what reaches the model of them, and that ``--unwrap`` brings each back as it was.
    """
    data = drive.work  # the filesystem server reads what the host names as its roots
    (data / "app.log").write_text("".join(f"{n} all is well\n" for n in range(20_000)) + LAST_LINE)
    rows = "".join(f"<tr><td>Item {n}</td><td>{n}.95 EUR</td></tr>" for n in range(1_000))
    write(data / "prices.html", f"<title>Prices</title><table>{rows}</table>")
    chromium = shutil.which("chromium") or ""
    browser = ("--headless", "--isolated", "--no-sandbox", "--allow-unrestricted-file-access")
    servers: dict[str, tuple[str, str, list[str]]] = {
        "filesystem": (
            "@modelcontextprotocol/server-filesystem",
            "mcp-server-filesystem",
            [str(data)],
        ),
        "playwright": (
            "@playwright/mcp",
            "playwright-mcp",
            [*browser, "--executable-path", chromium],
        ),
    }
    page = {"url": (data / "prices.html").as_uri()}
    steps = {
        "filesystem": [
            Step("read_text_file", {"path": str(data / "app.log")}, WRAPPED),
            Step("artifact_search", {"query": "payment refused"}, WRAPPED),
        ],
        "playwright": [
            Step("browser_navigate", page, WRAPPED),
            Step("browser_snapshot", {}, WRAPPED),
            Step("artifact_search", {"query": "Item 777"}, WRAPPED),
        ],
    }
    answers = {"filesystem": LAST_LINE.strip(), "playwright": "777.95 EUR"}
    failed = 0
    register = shlex.split(f"uvx --from {wheel} fetchstash register {drive.host.name}")
    drive.run(drive.host.removing())
    for server, (package, program, words) in servers.items():
        path = npm_program(package, program)
        if path is None or (server == "playwright" and not chromium):
            print(f"SKIPPED: {drive.host.name} with {server}, which cannot be installed here")
            continue
        drive.run(drive.host.adding([path, *words], WRAPPED))
        bare = drive.entry(WRAPPED)
        drive.run([*register, "--wrap"])
        drive.converse(steps[server], trusting=True)
        heard = [result.text for result in drive.loopback.heard]
        behind = drive.entry(WRAPPED)
        drive.run([*register, "--unwrap"])
        fault = ""
        if "wrap" not in behind["args"] or drive.entry(WRAPPED) != bare:
            fault = "its entry was not wrapped, or not brought back"
        elif "[Preview: " not in "".join(heard):
            fault = "there is no preview"
        elif answers[server] not in "".join(heard[-1:]):
            fault = "the answer is not there"
        failed += bool(fault)
        sizes = ", ".join(f"{len(text):,}" for text in heard)
        print(
            f"{'FAILED' if fault else 'ok':<6}  {drive.host.name}, {server} behind the gateway:"
            f" {sizes} characters{fault and f': {fault}'}",
            flush=True,
        )
        for number, text in enumerate(heard if transcripts else (), 1):
            name = f"{drive.host.name} {server} {number}".replace(" ", "-")
            write(cast("Path", transcripts) / f"{name}.txt", text)
        drive.run(drive.host.removing(WRAPPED))
    return failed + nothing_left(f"{drive.host.name}, after the wrapped servers")


def time_a_fresh_clone(drives: list[Drive], folder: Path) -> int:
    """Clone, register with each host by `scripts/run register`, and time the first answers."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    failed = 0
    for drive in drives:
        begin = time.monotonic()
        drive.run([str(clone / "scripts" / "run"), "register", drive.host.name])
        registered = time.monotonic()
        drive.converse([scenes(drive.loopback.url())[0].step])
        answered = drive.loopback.first.is_set()
        first = drive.loopback.first_at - registered
        failed += not answered
        print(
            f"{'ok' if answered else 'FAILED':<6}  a fresh clone in {drive.host.name}: registered"
            f" after {registered - begin:.1f} s, the first result after {first:.1f} s more",
            flush=True,
        )
    return failed


def main() -> int:
    """Drive the hosts that are named, or all; return how many checks failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--transcripts", type=Path)
    parser.add_argument("hosts", nargs="*", choices=[*HOSTS, []], metavar="HOST")
    arguments = parser.parse_args()
    if sys.platform != "linux":
        print("SKIPPED: the processes that stay are counted on Linux alone")
        return 0
    versions = {name: install(HOSTS[name]) for name in arguments.hosts or HOSTS}
    for name, version in versions.items():
        print(f"{name}: {version or 'SKIPPED, npm cannot install it here'}")
    hosts = [HOSTS[name] for name, version in versions.items() if version]
    uvx = uv_folder()
    if uvx is None:
        print("SKIPPED: uvx, which README's lines use, cannot be installed here")
        return 0
    processes.adopt_orphans()
    failed = 0
    with tempfile.TemporaryDirectory() as name, Loopback(PAGES) as loopback:
        folder = Path(name)
        wheel = build_wheel(folder)
        for number, host in enumerate(hosts):
            drive = Drive(host, loopback, folder / f"home{number}", uvx)
            drive.register(wheel)
            failed += show_scenes(drive, arguments.transcripts)
            failed += kill_during_a_call(drive)
            failed += refuse_unattended(drive) if host.name == "codex" else 0
            # With gpt-5.5 Codex offers no more than its scripted search finds.
            if host.name in ("claude-code", "codex"):
                failed += show_wrapped(drive, wheel, arguments.transcripts)
        fresh = [
            Drive(host, loopback, folder / f"fresh{number}", None)
            for number, host in enumerate(hosts)
            if not host.model
        ]
        failed += time_a_fresh_clone(fresh, folder)
    return failed


if __name__ == "__main__":
    sys.exit(main())

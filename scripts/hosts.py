"""Drive real hosts against a scripted model, and check what reaches the model.

    scripts/hosts [--transcripts FOLDER] [HOST …]

Installs Claude Code, Codex and Gemini CLI from npm into the cache folder, registers the built
wheel in a temporary home exactly as README says, and has a scripted model on loopback call the
tools. Prints what reached the model of each result. Then each host is killed during a call, and
nothing of it may stay. Last, a fresh clone is registered by `scripts/run register`, and the time to
the first answer is taken. What cannot be installed is skipped aloud. Exit code: how many failed.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from scripts.drive import processes
from scripts.drive.hosts import HOSTS, ROOT, Host, install, readme, uv_folder, write
from scripts.drive.loopback import Loopback
from scripts.drive.scenes import PAGES, scenes
from scripts.drive.speech import Step
from scripts.packages import build_wheel

SECONDS = 60
"""What a conversation may take."""


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
            timeout=SECONDS * 3,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{shlex.join(command)}: {done.stdout}{done.stderr}")

    def start(self) -> subprocess.Popen[bytes]:
        """Start a conversation."""
        command = self.host.command(self.loopback.url())
        program = str(self.host.folder / command[0])
        return subprocess.Popen(
            [program, *command[1:]],
            env=self.environment,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=(self.home / "output").open("wb"),
            stderr=subprocess.STDOUT,
        )

    def register(self, wheel: Path) -> None:
        """Run README's line for this host, with the wheel where nothing is published yet."""
        start = f"uvx --from {wheel} fetchstash"
        (line,) = (
            line
            for line in readme().splitlines()
            if line.startswith(f"{self.host.program} mcp add")
        )
        self.run([*shlex.split(start), "--version"])
        self.run(shlex.split(line.replace("uvx fetchstash", start)))


def show_scenes(drive: Drive, transcripts: Path | None) -> int:
    """Play all scenes, print what reached the model, and return how many are at fault."""
    played = scenes(drive.loopback.url())
    drive.loopback.play([scene.step for scene in played])
    begin = time.monotonic()
    process = drive.start()
    try:
        process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
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
    drive.loopback.play([Step("fetch_content", {"url": drive.loopback.url("/held")})])
    drive.start()
    if not drive.loopback.held.wait(SECONDS):
        print(f"FAILED  {drive.host.name}: it made no call that could be interrupted")
        processes.kill_those_of(drive.host.home)
        return 1
    processes.kill_those_of(drive.host.home)
    return nothing_left(f"{drive.host.name}, killed during a call")


def nothing_left(name: str) -> int:
    """Return whether processes stay, and say which."""
    left = processes.left_after(10)
    print(f"{'FAILED' if left else 'ok':<6}  {name}: {len(left)} processes stay", flush=True)
    for line in left.values():
        print(f"        {line[:200]}")
    return bool(left)


def time_a_fresh_clone(drives: list[Drive], folder: Path) -> int:
    """Clone, register with each host by `scripts/run register`, and time the first answers."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    failed = 0
    for drive in drives:
        begin = time.monotonic()
        drive.run([str(clone / "scripts" / "run"), "register", drive.host.name])
        registered = time.monotonic()
        drive.loopback.play([scenes(drive.loopback.url())[0].step])
        process = drive.start()
        answered = drive.loopback.first.wait(SECONDS)
        first = time.monotonic() - registered
        process.wait(SECONDS)
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
        fresh = [
            Drive(host, loopback, folder / f"fresh{number}", None)
            for number, host in enumerate(hosts)
            if not host.model
        ]
        failed += time_a_fresh_clone(fresh, folder)
    return failed


if __name__ == "__main__":
    sys.exit(main())

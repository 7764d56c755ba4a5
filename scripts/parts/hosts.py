"""Drive real hosts against a scripted model, and check what reaches the model.

    scripts/ci hosts [--transcripts FOLDER] [HOST …]

Installs Claude Code, Codex and Gemini CLI by requirements, registers the built wheel in a
temporary home exactly as docs/install.md says, and has a scripted model on loopback call the tools.
Prints what reached the model of each result. Then each host is killed during a call, and
nothing of it may stay. Codex, its approvals bypassed, must not open a private host. Last, a fresh
clone is registered by `scripts/run register`, and the time to the first answer is taken. What
cannot be installed is skipped aloud. Exit code: how many failed.
"""

import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fetchstash.cli.hosts._servers import HOSTS as REGISTERED
from scripts.drive import processes
from scripts.drive.hosts import (
    HOSTS,
    SECONDS,
    STARTS,
    HostAtHome,
    install,
    install_page,
    uv_folder,
    write,
)
from scripts.drive.loopback import Loopback
from scripts.drive.programs import check, failures, options
from scripts.drive.scenes import PAGES, scenes
from scripts.drive.speech import GATEWAY, SERVER, Step
from scripts.drive.tools import ROOT, node_program
from scripts.parts.packages import build_wheel

LAST_LINE = "ERROR payment refused: code E4711\n"


def register(host: HostAtHome, wheel: Path) -> None:
    """Run the page's line for a host, with the wheel where nothing is published yet."""
    start = f"uvx --from {wheel} fetchstash"
    begin = f"{host.host.program} mcp add"
    (line,) = (line for line in install_page().splitlines() if line.startswith(begin))
    try:
        host.run([*shlex.split(start), "--version"])
    except (RuntimeError, subprocess.TimeoutExpired):
        # A registry that does not answer once is asked again.
        host.run([*shlex.split(start), "--version"])
    host.run(shlex.split(line.replace("uvx fetchstash", start)))


def show_scenes(host: HostAtHome, transcripts: Path | None) -> None:
    """Play all scenes, and print what reached the model."""
    name, before = host.host.name, len(failures)
    played = scenes(host.loopback.url())
    begin = time.monotonic()
    host.converse([scene.step for scene in played])
    print(f"--- {name}: {time.monotonic() - begin:.1f} s", flush=True)
    for number, scene in enumerate(played):
        if number >= len(host.loopback.heard):
            check(scene.name, "nothing reached the model")
            continue
        result = host.loopback.heard[number]
        pictures = f", {' '.join(result.pictures)}" if result.pictures else ""
        size = f"{len(result.text):,} characters{pictures}"
        check(f"{scene.name}: {size}", scene.fault(result, host.host.limits))
        if transcripts:
            file = f"{name} {number + 1} {scene.name}".replace(" ", "-")
            write(transcripts / f"{file}.txt", result.text)
    if len(failures) > before:
        print((host.home / "output").read_text(errors="replace")[-3_000:])
    check_nothing_left(f"{name}, after its end")


def kill_during_a_call(host: HostAtHome) -> None:
    """Kill the host while a page does not answer, and check that nothing stays."""
    held = host.loopback.held
    for _ in range(STARTS):
        host.loopback.play([Step("fetch_content", {"url": host.loopback.url("/held")})])
        process, end = host.start(), time.monotonic() + SECONDS
        while not held.wait(0.1) and process.poll() is None and time.monotonic() < end:
            pass
        if held.is_set() or process.poll() is None:
            break
    processes.kill_those_of(host.host.home)
    if not held.is_set():
        check(host.host.name, "it made no call that could be interrupted")
    else:
        check_nothing_left(f"{host.host.name}, killed during a call")


def refuse_unattended(host: HostAtHome) -> None:
    """Fetch from a private host with approvals bypassed, and check that it is refused.

    Codex accepts empty forms by itself then (seen with 0.169); on 127.0.0.2 nothing listens.
    """
    url = f"http://127.0.0.2:{host.loopback.port}/short"
    host.converse([Step("fetch_content", {"url": url})], trusting=True)
    text = "".join(result.text for result in host.loopback.heard)
    name = f"{host.host.name}, approvals bypassed: a private host is refused"
    check(name, "" if "[refused] " in text else repr(text[:200]))


def check_nothing_left(name: str) -> None:
    """Check that no process stays."""
    left = processes.left_after(30)
    check(f"{name}: {len(left)} processes stay", [line[:200] for line in left.values()])


def filter_tools(host: HostAtHome) -> None:
    """Let the host show its model one tool of the filesystem's, where it has a filter for that."""
    if host.host.name == "codex":
        settings = host.home / ".codex" / "config.toml"
        table = "[mcp_servers.filesystem]\n"
        line = 'enabled_tools = ["read_text_file"]\n'
        settings.write_text(settings.read_text().replace(table, table + line))
    elif host.host.name == "gemini":
        settings = host.home / ".gemini" / "settings.json"
        values = json.loads(settings.read_text())
        values["mcpServers"]["filesystem"]["includeTools"] = ["read_text_file"]
        settings.write_text(json.dumps(values, indent=2))


def show_wrapped(host: HostAtHome, wheel: Path, transcripts: Path | None) -> None:
    """Put other servers of the host behind the gateway by ``register --wrap``.

    Checks what reaches the model of them, and that ``--unwrap`` brings each back as it was.
    """
    data = host.work  # the filesystem server reads what the host names as its roots
    (data / "app.log").write_text("".join(f"{n} all is well\n" for n in range(20_000)) + LAST_LINE)
    rows = "".join(f"<tr><td>Item {n}</td><td>{n}.95 EUR</td></tr>" for n in range(1_000))
    write(data / "prices.html", f"<title>Prices</title><table>{rows}</table>")
    chromium = shutil.which("chromium") or ""
    browser = ("--headless", "--isolated", "--no-sandbox", "--allow-unrestricted-file-access")
    known: dict[str, tuple[str, str, list[str]]] = {
        "filesystem": ("servers", "mcp-server-filesystem", [str(data)]),
        "playwright": (
            "playwright-mcp",
            "playwright-mcp",
            [*browser, "--executable-path", chromium],
        ),
    }
    page = {"url": (data / "prices.html").as_uri()}
    steps = [
        Step("read_text_file", {"path": str(data / "app.log")}, GATEWAY),
        Step("artifact_search", {"query": "payment refused"}, GATEWAY),
        Step("browser_navigate", page, GATEWAY),
        Step("browser_snapshot", {}, GATEWAY),
        Step("artifact_search", {"query": "Item 777"}, GATEWAY),
    ]
    name, registered = host.host.name, REGISTERED[host.host.name]
    program = str(host.host.folder / host.host.program)
    register = shlex.split(f"uvx --from {wheel} fetchstash register {host.host.name}")
    host.run([program, *registered.remove(SERVER)[1:]])
    for server, (tool, of_server, words) in known.items():
        path = node_program(tool, of_server)
        if path is None or not chromium:
            print(f"SKIPPED: {name} with {server}, which cannot be installed here")
            return
        host.run([program, *registered.add(server, [path, *words])[1:]])
    filter_tools(host)
    bare = host.servers()
    host.run([*register, "--wrap"])
    behind = host.servers()
    host.converse(steps, trusting=True)
    heard = [result.text for result in host.loopback.heard]
    host.run([*register, "--unwrap"])
    fault = ""
    if list(behind) != [GATEWAY] or host.servers() != bare:
        fault = f"its servers were not wrapped, or not brought back: {list(behind)}"
    elif sum("[Preview: " in text for text in heard) < 2:
        fault = "there is no preview"
    elif LAST_LINE.strip() not in "".join(heard[1:2]) or "777.95 EUR" not in "".join(heard[-1:]):
        fault = "the answer is not there"
    sizes = ", ".join(f"{len(text):,}" for text in heard)
    check(f"{name}, two servers behind one gateway: {sizes} characters", fault)
    for number, text in enumerate(heard, 1):
        if transcripts:
            write(transcripts / f"{name} gateway {number}.txt".replace(" ", "-"), text)
    for server in known:
        host.run([program, *registered.remove(server)[1:]])
    check_nothing_left(f"{name}, after the wrapped servers")


def time_a_fresh_clone(hosts: list[HostAtHome], folder: Path) -> None:
    """Clone, register with each host by `scripts/run register`, and time the first answers."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    for host in hosts:
        begin = time.monotonic()
        host.run([str(clone / "scripts" / "run"), "register", host.host.name])
        registered = time.monotonic()
        host.converse([scenes(host.loopback.url())[0].step])
        first = host.loopback.first_at - registered
        name = f"a fresh clone in {host.host.name}: registered after {registered - begin:.1f} s"
        answered = host.loopback.first.is_set()
        check(f"{name}, the first result after {first:.1f} s more", not answered)


def main() -> int:
    """Drive the hosts that are named, or all; return how many checks failed."""
    chosen = options(__doc__, names=HOSTS, transcripts="")
    transcripts = Path(chosen.transcripts) if chosen.transcripts else None
    if sys.platform != "linux":
        print("SKIPPED: the processes that stay are counted on Linux alone")
        return 0
    versions = {name: install(HOSTS[name]) for name in chosen.names}
    for name, version in versions.items():
        print(f"{name}: {version or 'none'}")
    hosts = [HOSTS[name] for name, version in versions.items() if version]
    uvx = uv_folder()
    if uvx is None:
        return 0
    processes.adopt_orphans()
    with tempfile.TemporaryDirectory() as name, Loopback(PAGES) as loopback:
        folder = Path(name)
        wheel = build_wheel(folder)
        for number, host in enumerate(hosts):
            at_home = HostAtHome(host, loopback, folder / f"home{number}", [uvx])
            register(at_home, wheel)
            show_scenes(at_home, transcripts)
            kill_during_a_call(at_home)
            if host.name == "codex":
                refuse_unattended(at_home)
            # With gpt-5.5 Codex offers no more than its scripted search finds.
            if host.name in ("claude-code", "codex", "gemini"):
                show_wrapped(at_home, wheel, transcripts)
        fresh = [
            HostAtHome(host, loopback, folder / f"fresh{number}")
            for number, host in enumerate(hosts)
            if not host.model
        ]
        time_a_fresh_clone(fresh, folder)
    return len(failures)


if __name__ == "__main__":
    sys.exit(main())

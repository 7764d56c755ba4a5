"""Register fetchstash with a host, and take it out again."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import invalidate_caches
from importlib.metadata import PackageNotFoundError, distribution, requires
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from fetchstash.cli.hosts._files import change_file, with_value, without_value
from fetchstash.cli.hosts._servers import Entry, Environment, Host, Servers, servers_of
from fetchstash.errors import BadArgument, StoreError

BROWSER_FLAGS = ["--browser", "auto"]


def start_command(*, browser: bool = False) -> list[str]:
    """Return the command line that starts the server, by absolute paths.

    A host that was started from a desktop has not the PATH of a terminal. With ``browser`` it has
    the extra of that name where uvx makes the environment, and renders pages of scripts.
    """
    flags = BROWSER_FLAGS if browser else []
    root = Path(__file__).parents[3]
    run = root / "scripts" / ("run.cmd" if os.name == "nt" else "run")
    uvx = shutil.which("uvx")
    if run.exists() and root in Path(sys.prefix).parents:
        program = [str(run)]
    elif uvx and any(
        # An environment of uvx, which `uv cache clean` deletes.
        part.startswith(("archive-v", "environments-v"))
        for part in Path(sys.prefix).parts
    ):
        source = _source()
        if browser:  # PEP 508, with the extra
            parts = source and urlsplit(source)
            where = Path(source).as_uri() if parts and not parts.scheme else source
            source = f"fetchstash[browser] @ {where}" if source else "fetchstash[browser]"
        program = [uvx, *(["--from", source] if source else []), "fetchstash"]
    else:
        beside = shutil.which("fetchstash", path=sysconfig.get_path("scripts"))
        program = [beside or shutil.which("fetchstash") or str(Path(sys.argv[0]).absolute())]
    return [*program, "serve", *flags]


def add_browser(start: list[str]) -> Iterator[str]:
    """Install the browser's driver, unless uvx will; yield a line for each step.

    Raises StoreError where it cannot be installed.
    """
    from fetchstash.fetch import missing_chromium  # noqa: PLC0415 - the room is heavy

    if Path(start[0]).stem != "uvx" and find_spec("playwright") is None:
        wanted = [line.partition(";") for line in requires("fetchstash") or ()]
        packages = [name.strip() for name, _, extra in wanted if "'browser'" in extra]
        pip = [sys.executable, "-m", "pip", "install", "--quiet"]
        if find_spec("pip") is None and (uv := shutil.which("uv")):
            pip = [uv, "pip", "install", "--quiet", "--python", sys.executable]
        command = [*pip, *packages]
        yield f"$ {shlex.join(command)}"
        done = subprocess.run(  # noqa: S603 - no word of it is from outside
            command, stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode:
            what = "What drives a browser (the extra `browser`) could not be installed."
            raise StoreError(what, f"Run this yourself: {shlex.join(command)}")
        invalidate_caches()
    if lack := missing_chromium():
        yield f"{lack} Install Chromium or Google Chrome: it is used as soon as it is there."


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


def shown(host: Host, start: list[str]) -> str:
    """Return how to add the server by hand: the host's command line, or the JSON of its file."""
    if not host.program:
        return json.dumps({host.section: {NAME: host.entry(start)}}, indent=2, ensure_ascii=False)
    words = host.add(NAME, start)
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def register(host: Host, start: list[str], env: Environment) -> str:
    """Add the server to a host, or bring it up to date there; all else stays.

    Raises BadArgument, Busy or StoreError, and then nothing was changed.
    """
    file, has_entry = host.file(env), False

    def edit(text: str) -> str:
        nonlocal has_entry
        servers = servers_of(host, text, [host.section])
        entry = servers.entries.get(NAME)
        has_entry = entry is not None
        if entry is not None:
            return _renewed(servers, entry, host, start)
        return text if host.program else with_value(text, [host.section, NAME], host.entry(start))

    if not host.program or file.exists():
        kept = change_file(file, edit, by_hand="add the entry by hand: --print shows it")
        if kept is not None:
            line = f"Registered with {host.title} in {file}{kept}."
            return f"{line} Restart {host.title} to use it."
        if has_entry:
            return f"{host.title} has it already: nothing was changed in {file}."
    said = _run(host, host.add(NAME, start), _PRESENT, f"{host.title} has it already")
    return "\n".join(part for part in (said, host.hint) if part)


def _renewed(servers: Servers, entry: Entry, host: Host, start: list[str]) -> str:
    """Return the text with the entry of this program started as it is now."""
    if not isinstance(entry.get("command"), str):
        what = f"{host.title} has a server {NAME} already, which it does not start by a command."
        raise BadArgument(what, "Nothing was changed. Take it out first: --remove.")
    own = host.entry(start)
    args = cast("list[str]", entry["args"]) if isinstance(entry.get("args"), list) else []
    if "serve" in args:  # with flags that somebody added after ours
        end = start.index("serve")
        added = args[args.index("serve") + 1 :]
        flags = [] if "--browser" in added else start[end + 1 :]
        own["args"] = [*start[1 : end + 1], *added, *flags]
    put = {key: value for key, value in own.items() if entry.get(key) != value}
    servers.change(NAME, (), put)
    return servers.text


def unregister(host: Host, env: Environment) -> str:
    """Remove the server from a host. Raises BadArgument, Busy or StoreError."""
    missing = f"{host.title} does not have it: nothing was removed"
    if host.program:
        return _run(host, host.remove(NAME), _MISSING, missing)
    file, kept = host.file(env), None
    if file.exists():
        by_hand = "take the entry out by hand"
        path = [host.section, NAME]
        kept = change_file(file, lambda text: without_value(text, path), by_hand=by_hand)
    return f"{missing}." if kept is None else f"Removed from {host.title} in {file}{kept}."


def _run(host: Host, command: list[str], known: tuple[str, ...], meaning: str) -> str:
    """Run the host's command; output that contains one of ``known`` counts as success."""
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

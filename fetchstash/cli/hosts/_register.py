"""Register fetchstash with a host and undo it. Both return a line for the person who asked."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from fetchstash.cli.hosts._file import Change, change_file
from fetchstash.cli.hosts._hosts import CommandHost, FileHost, Place
from fetchstash.cli.hosts._jsonc import with_value, without_value
from fetchstash.cli.hosts._servers import Entry, Servers, servers_of
from fetchstash.errors import BadArgument, StoreError

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

"""Register fetchstash with a host and undo it. Both return a line for the person who asked."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from fetchstash.errors import BadArgument, StoreError
from fetchstash.hosts._file import Change, change_file
from fetchstash.hosts._hosts import CommandHost, FileHost, Place
from fetchstash.hosts._jsonc import value_at, with_value, without_value

NAME = "fetchstash"
"""The name of the server in every host."""


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
    if isinstance(host, CommandHost):
        return _run(host, host.add(NAME, start), "already exists", f"{host.title} has it already")
    path = [host.section, NAME]

    def edit(text: str) -> str:
        if not isinstance(value_at(text, path), dict):
            return with_value(text, path, host.entry(start))
        for key, value in host.entry(start).items():
            before: Any = value_at(text, [*path, key])
            # Flags that somebody added after ours stay.
            has_flags = isinstance(before, list) and before[: len(start) - 1] == value
            if not has_flags:
                text = with_value(text, [*path, key], value)
        return text

    file = host.file(place)
    change = change_file(file, edit, by_hand="add the entry by hand: --print shows it")
    if not change.changed:
        return f"{host.title} has it already: nothing was changed in {file}."
    return f"Registered with {host.title} in {file}{kept(change)}. Restart {host.title} to use it."


def unregister(host: FileHost | CommandHost, place: Place) -> str:
    """Remove the server from a host. Raises BadArgument, Busy or StoreError."""
    missing = f"{host.title} does not have it: nothing was removed"
    if isinstance(host, CommandHost):
        return _run(host, host.remove(NAME), "no mcp server named", missing)
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


def _run(host: CommandHost, command: list[str], known: str, meaning: str) -> str:
    """Run the command of the host; ``known`` in its words means that there is nothing to do."""
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
    if known in said.lower():
        return f"{meaning}. (`{shlex.join(command)}`)"
    if done.returncode:
        raise StoreError(f"`{shlex.join(command)}` failed: {said[-500:]}.", "Mend that, try again.")
    return "\n".join(part for part in (f"$ {shlex.join(command)}", said, host.hint) if part)

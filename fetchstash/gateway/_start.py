"""Start a wrapped server's process. Imports little: servers start while the rest is imported."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from fetchstash.config import WrappedServer, resolved, servers_of_file
from fetchstash.errors import BadArgument

if sys.platform == "win32":
    from asyncio.windows_utils import Popen  # its pipes suit the event loop
else:
    from subprocess import Popen

Process = Popen[bytes]
_OWN_VARIABLES = "FETCHSTASH_"
_RUNNERS = ("npx", "uvx", "uv", "bunx", "pipx", "run", "node", "python", "python3", "docker")


def start_early(words: Sequence[str]) -> dict[str, Process]:
    """Start the servers that the words behind ``wrap`` name; return their processes by name.

    What is wrong with a server, or with the words, is said by who reads them in full.
    """
    processes: dict[str, Process] = {}
    with suppress(BadArgument):
        for server in _servers_named(words):
            with suppress(OSError, BadArgument):
                if process := start(server):
                    processes[server.name] = process
    return processes


def _servers_named(words: Sequence[str]) -> Iterable[WrappedServer]:
    """Return the command behind ``--``, else servers of the settings file. Raises BadArgument.

    Returns none for words that are not understood here: click reads them, and says what is wrong.
    """
    own = words[: words.index("--")] if "--" in words else words
    program, names, file = words[len(own) + 1 :], list[str](), None
    rest = iter(own)
    for word in rest:
        option, equals, value = word.partition("=")
        if option in ("--server", "--config"):
            value = value if equals else next(rest, "")
            names, file = ([*names, value], file) if option == "--server" else (names, Path(value))
        elif word != "--with-fetch":
            return []
    if program:
        return [] if names else [server_of(program)]
    known = servers_of_file(file, os.environ)
    chosen = {name: known[name] for name in names or known if name in known}
    return [server for server in chosen.values() if server.command]


def server_of(program: Sequence[str]) -> WrappedServer:
    """Return a command as a server, called after its package or script, behind what runs it."""
    names = (Path(word).name.partition("@")[0] or Path(word).name for word in program)
    own = (name for name in names if name not in _RUNNERS and not name.startswith("-"))
    return WrappedServer(next(own, "server"), program[0], tuple(program[1:]))


def start(server: WrappedServer) -> Process | None:
    """Start a server's command, in a group of its own; None if there is no such command.

    It gets our environment without our own settings. Raises OSError, BadArgument.
    """
    inherited = {n: value for n, value in os.environ.items() if not n.startswith(_OWN_VARIABLES)}
    environment = inherited | resolved(server.name, server.env)
    program = shutil.which(server.command, path=environment.get("PATH"))
    if program is None:
        return None
    pipe = subprocess.PIPE
    return Popen(  # noqa: S603 - the user's own command
        [program, *server.args],
        env=environment,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        start_new_session=os.name != "nt",
    )


def stop(process: Process) -> None:
    """End a process that was started and never served, with its children."""
    if process.poll() is not None:
        return
    if sys.platform == "win32":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)

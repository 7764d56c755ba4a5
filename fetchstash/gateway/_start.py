"""Start a wrapped server's process. Imports little: servers start while the rest is imported."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

if sys.platform == "win32":
    from asyncio.windows_utils import Popen  # its pipes suit the event loop
else:
    from subprocess import Popen

Process = Popen[bytes]
_OWN_VARIABLES = "FETCHSTASH_"
_RUNNERS = ("npx", "uvx", "uv", "bunx", "pipx", "run", "node", "python", "python3", "docker")


def start_early(words: Sequence[str]) -> dict[str, Process]:
    """Start the servers that the arguments of ``wrap`` name; return their processes by name.

    What is wrong with a server, or with the words, is said by who reads them in full.
    """
    processes: dict[str, Process] = {}
    for name, command, variables, folder in _commands(words):
        with suppress(OSError):
            if process := start(command, variables, folder):
                processes[name] = process
    return processes


_Command = tuple[str, Sequence[str], Mapping[str, str], str]
"""A server's name, command line, variables and folder."""


def _commands(words: Sequence[str]) -> Iterator[_Command]:
    """Yield the command of the server behind ``--``, else of those of the settings.

    Yields none for words that are not understood here: click reads them, and says what is wrong.
    """
    own = words[: words.index("--")] if "--" in words else words
    program, names, file = words[len(own) + 1 :], dict[str, None](), ""
    rest = iter(own)
    for word in rest:
        option, equals, value = word.partition("=")
        if option not in ("--server", "--config", "--with-fetch"):
            return
        if option != "--with-fetch" and not equals:
            value = next(rest, "")
        if option == "--server":
            names[value] = None
        elif option == "--config":
            file = value
    if not program:
        yield from _commands_of_file(file, names)
    elif not names:
        yield name_of(program), program, {}, ""


def _commands_of_file(file: str, names: Mapping[str, None]) -> Iterator[_Command]:
    from pathlib import Path  # noqa: PLC0415 - a server behind -- starts without all of these

    from fetchstash.config import resolved, servers_of_file  # noqa: PLC0415 - as above
    from fetchstash.errors import BadArgument  # noqa: PLC0415 - as above

    with suppress(BadArgument):
        servers = servers_of_file(Path(file) if file else None, os.environ)
        for server in (servers[name] for name in names or servers if name in servers):
            with suppress(BadArgument):
                if server.command:
                    variables = resolved(server.name, server.env)
                    yield server.name, [server.command, *server.args], variables, server.cwd


def name_of(program: Sequence[str]) -> str:
    """Return a server's default name: its package or script, without the runner before it."""
    for word in map(os.path.basename, map(os.path.normpath, program)):
        name = word.partition("@")[0] or word
        if name not in _RUNNERS and not name.startswith("-"):
            return name
    return "server"


def start(command: Sequence[str], variables: Mapping[str, str], folder: str = "") -> Process | None:
    """Start a command in a folder, in a group of its own; None if there is none. Raises OSError.

    It gets our environment without our own settings, and ``variables``.
    """
    inherited = {n: value for n, value in os.environ.items() if not n.startswith(_OWN_VARIABLES)}
    environment = {**inherited, **variables}
    # As execvp(3) takes it: a path that begins with a dot is one from that folder.
    named = f"{folder}/{command[0]}" if folder and command[0][0] == "." else command[0]
    program = shutil.which(named, path=environment.get("PATH"))
    if program is None:
        return None
    pipe = subprocess.PIPE
    return Popen(  # noqa: S603 - the user's own command
        [program, *command[1:]],
        env=environment,
        cwd=folder or None,
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
        with suppress(OSError):  # it ended just now
            os.killpg(process.pid, signal.SIGKILL)

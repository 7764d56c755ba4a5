"""Start a wrapped server's process. Imports little: a server starts while the rest is imported."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

if sys.platform == "win32":
    from asyncio.windows_utils import Popen  # its pipes suit the event loop
else:
    from subprocess import Popen

Process = Popen[bytes]
OWN_VARIABLES = "FETCHSTASH_"


def start_named(words: Sequence[str]) -> Process | None:
    """Start the command that stands behind ``--`` in ``words``, if there is one.

    None, too, where it cannot be started: whoever tries again says why.
    """
    command = words[words.index("--") + 1 :] if "--" in words else ()
    try:
        return start(command, inherited()) if command else None
    except OSError:
        return None


def inherited() -> dict[str, str]:
    """Return our environment without our own settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OWN_VARIABLES)}


def start(words: Sequence[str], environment: Mapping[str, str]) -> Process | None:
    """Start a command, in a group of its own; None if there is none. Raises OSError."""
    program = shutil.which(words[0], path=environment.get("PATH"))
    if program is None:
        return None
    pipe = subprocess.PIPE
    return Popen(  # noqa: S603 - the user's own command
        [program, *words[1:]],
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

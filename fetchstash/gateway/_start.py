"""Start a wrapped server's process. Imports little: servers start while the rest is imported."""

import os
import shutil
import subprocess

import anyio
from anyio.abc import Process

from fetchstash.config import WrappedServer
from fetchstash.errors import ServerFailed
from fetchstash.text import clip


async def start(server: WrappedServer) -> Process:
    """Start a server's process, in a group of its own. Raises ServerFailed."""
    program = shutil.which(server.command, path=server.environment().get("PATH"))
    if program is None:
        what = f"{server.name}: there is no command {clip(server.command, 120)!r}."
        raise ServerFailed(what, "Correct it, or install the server.")
    try:
        return await anyio.open_process(
            [program, *server.args],
            env=server.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=os.name != "nt",
        )
    except OSError as error:
        what = f"{server.name} cannot be started: {error.strerror}."
        raise ServerFailed(what, "Correct its command.") from None

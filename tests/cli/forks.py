"""Run the command in forks of one process, which imported it once: most of a short command's time.

As a program it is that process: it takes orders from the socket that is its stdin.
"""

import gc
import importlib
import importlib.util
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from fetchstash.cli import commands, main
from fetchstash.text import tokens

_MODULES = """
fetchstash.fetch fetchstash.handlers fetchstash.render fetchstash.stash fetchstash.store
fetchstash.server.tools anyio._backends._asyncio httpcore2 httpx2 platformdirs re2
fetchstash.service.access fetchstash.service._serve
""".split()  # noqa: SIM905 - names read better so
_OF_EXTRAS = ("psycopg", "psycopg_pool", "obstore")
"""What a team's store needs, where it is installed."""
_SECONDS = 60


class Forks:
    """The process that forks, started when it is first asked."""

    def __init__(self) -> None:
        self._orders: socket.socket | None = None

    def run(
        self, words: Sequence[str], env: dict[str, str], cwd: Path, given: bytes
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the command with these words in pipes; on Windows as a process of its own."""
        if sys.platform == "win32":
            command = [shutil.which("fetchstash") or "fetchstash", *words]
            return subprocess.run(
                command, env=env, cwd=cwd, input=given, capture_output=True, check=False
            )
        orders = self._orders = self._orders or _started()
        pipes = [os.pipe() for _ in range(3)]  # stdin, stdout, stderr
        (stdin, feed), (out, stdout), (err, stderr) = pipes
        order = json.dumps({"words": list(words), "env": env, "cwd": str(cwd)}).encode()
        try:
            socket.send_fds(orders, [len(order).to_bytes(4, "big")], [stdin, stdout, stderr])
            orders.sendall(order)
        finally:
            for end in (stdin, stdout, stderr):
                os.close(end)
        with ThreadPoolExecutor(3) as threads:
            written = threads.submit(_feed, feed, given)
            texts = [threads.submit(_read, end) for end in (out, err)]
            try:
                code = int.from_bytes(_exactly(orders, 4), "big", signed=True)
            except BaseException:
                self._orders = None
                orders.close()
                raise
            written.result()
            return subprocess.CompletedProcess(words, code, *(text.result() for text in texts))


def _started() -> socket.socket:
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-P", __file__]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, stdin=theirs.fileno(), env=environment)
    process.returncode = 0  # it ends with this process, which waits for it no more
    theirs.close()
    ours.settimeout(_SECONDS)
    return ours


def _feed(end: int, data: bytes) -> None:
    try:
        with open(end, "wb") as pipe:
            pipe.write(data)
    except BrokenPipeError:
        pass  # the command read no further


def _read(end: int) -> bytes:
    with open(end, "rb") as pipe:
        return pipe.read()


def _exactly(orders: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = orders.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _serve() -> None:
    """Fork for each order. A child leaves this function, and runs the command."""
    orders = socket.socket(fileno=0)
    for name in (*_MODULES, *filter(importlib.util.find_spec, _OF_EXTRAS)):
        importlib.import_module(name)
    context = click.Context(commands)
    for name in commands.list_commands(context):
        commands.get_command(context, name)
    tokens.count("a word")  # reads the vocabulary
    gc.freeze()  # what a child collects is its own
    while True:
        head, files, _, _ = socket.recv_fds(orders, 4, 3)
        if not head:
            sys.exit()
        order = json.loads(_exactly(orders, int.from_bytes(head, "big")))
        child = os.fork()
        if child == 0:
            orders.detach()
            _become(order, files)
            return
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        orders.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))


def _become(order: dict[str, object], files: list[int]) -> None:
    """Take the streams, the environment, the folder and the words of an order."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(order["env"])  # type: ignore[call-overload]
    os.chdir(str(order["cwd"]))
    sys.argv = ["fetchstash", *order["words"]]  # type: ignore[misc]
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)))
    errors = io.BufferedWriter(io.FileIO(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(errors, errors="backslashreplace", line_buffering=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    _serve()
    main()

"""Run the command in a process of its own: in a pipe, or on a terminal of some width."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.cli.forks import Forks
from tests.loopback import Site

FETCHSTASH = shutil.which("fetchstash", path=str(Path(sys.executable).parent)) or "fetchstash"

_STYLES = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\")

_METER = re.compile(r"(?:\r\x1b\[K[^\r\n]*)*\r\x1b\[K")


def plain(shown: str) -> str:
    """Return what a terminal shows in the end, without colour and links."""
    return _STYLES.sub("", _METER.sub("", shown))


_TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvpe(sys.argv[1], sys.argv[1:], os.environ)
"""

LIFE_SECONDS = 120


def start_on_terminal(
    command: list[str], env: dict[str, str], folder: Path, columns: int = 80
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a program whose controlling terminal is a new one, so that ^C there is a signal.

    Return the process and the terminal's other end.
    """
    pty = pytest.importorskip("pty", reason="Windows has no pseudo-terminals of this kind")
    import fcntl
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", _TAKE_TERMINAL, *command],
        env=env,
        cwd=folder,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    end = threading.Timer(LIFE_SECONDS, process.kill)  # else a test would wait for ever
    end.daemon = True
    end.start()
    return process, leader


_forks = Forks()


class Terminal:
    """Runs commands with a store of their own, which may fetch from the test's site."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.env = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith("FETCHSTASH_") and name not in ("NO_COLOR", "COLUMNS")
            },
            "FETCHSTASH_STORE_FOLDER": str(folder / "store"),
            "FETCHSTASH_FETCH_ALLOW_HOSTS": f"127.0.0.1:{site.port}",
            "FETCHSTASH_FETCH_RESPECT_ROBOTS": "false",
            "XDG_CONFIG_HOME": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "TERM": "xterm-256color",
        }
        self.folder = folder

    def __call__(
        self, *arguments: str, code: int = 0, given: bytes | str = b""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a pipe, feed it ``given``, and check its exit code."""
        done = self.in_bytes(*arguments, code=code, given=given)
        texts = done.stdout.decode(), done.stderr.decode()
        return subprocess.CompletedProcess(done.args, done.returncode, *texts)

    def data(self, *arguments: str, code: int = 0) -> list[Any]:
        """Run a command in a pipe and return the objects that it prints, one a line."""
        lines = self(*arguments, "--json", code=code).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def ref(self, source: str) -> str:
        """Fetch a source and return its reference."""
        return str(self.data("fetch", source)[0]["artifact_ref"])

    def in_bytes(
        self, *arguments: str, code: int = 0, given: bytes | str = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Do the same, and return what it writes as bytes."""
        given = given.encode() if isinstance(given, str) else given
        done = _forks.run(arguments, self.env, self.folder, given)
        assert done.returncode == code, done.stderr
        assert b"Traceback" not in done.stderr
        return done

    def start(self, *arguments: str, columns: int = 80) -> tuple[subprocess.Popen[bytes], int]:
        """Start a command on a terminal of its own; return it and the terminal's other end."""
        return start_on_terminal([FETCHSTASH, *arguments], self.env, self.folder, columns)

    def on_terminal(self, *arguments: str, columns: int = 80, code: int = 0) -> str:
        """Run a command on a terminal and return what it is sent, colour and links included."""
        process, leader = self.start(*arguments, columns=columns)
        shown = read_all(leader)
        assert process.wait(60) == code, shown
        return shown


def read_all(leader: int) -> str:
    """Read what a terminal is sent until nobody holds it any more."""
    shown = b""
    try:
        while more := os.read(leader, 65_536):
            shown += more
    except OSError:  # how Linux says that
        pass
    os.close(leader)
    return shown.decode().replace("\r\n", "\n")

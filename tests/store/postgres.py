"""PostgreSQL for tests: a server of their own, on a socket in a temporary folder."""

import atexit
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

_BIN = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def _program(name: str) -> str:
    """Return the path of a program of PostgreSQL, "" if it is not installed."""
    return shutil.which(name) or next((str(b / name) for b in _BIN if (b / name).exists()), "")


class Server:
    """A server. ``stop`` and ``start`` let tests end it meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._as: list[str] = []
        if os.geteuid() == 0:  # initdb refuses root
            self._as = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]
            shutil.chown(folder, "postgres", "postgres")
        self._run(_program("initdb"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self, addresses: str = "") -> None:
        """Start it. It listens on its socket, and on these addresses."""
        options = f"-k {self.folder} -c listen_addresses={addresses} -c fsync=off"
        options += " -c max_connections=200"
        self._run(_program("pg_ctl"), "-w", "-o", options, "-l", f"{self.folder}/log", "start")

    def stop(self, mode: str = "immediate") -> None:
        """End it, at once if nothing else is asked for."""
        self._run(_program("pg_ctl"), "-w", "-m", mode, "stop")

    def freeze(self, number: int = signal.SIGSTOP) -> None:
        """Freeze all of its processes, as a machine that hangs would."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        with contextlib.suppress(ProcessLookupError):
            os.kill(first, number)
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for child in children:
            with contextlib.suppress(ProcessLookupError):  # a client left
                os.kill(int(child), number)

    def thaw(self) -> None:
        """Let it go on."""
        self.freeze(signal.SIGCONT)

    def new_database(self) -> str:
        """Return the address of an empty database."""
        import psycopg

        name = f"test_{secrets.token_hex(8)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def dump(self, url: str, file: Path) -> None:
        """Back a database up with PostgreSQL's own tool."""
        with file.open("wb") as out:
            subprocess.run([_program("pg_dump"), url], check=True, stdout=out, timeout=60)

    def restore(self, url: str, file: Path) -> None:
        """Restore a dump into an empty database."""
        words = [_program("psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f", str(file), url]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=60)

    def url(self, database: str) -> str:
        """Return the address of a database."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def _run(self, program: str, *words: str) -> None:
        command = [*self._as, program, "-D", str(self.folder / "data"), *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", timeout=60)


def new_server() -> Server:
    """Start a server that ends with this process; skip the test where there is none."""
    pytest.importorskip("psycopg", reason="psycopg is in the extra team")
    if "TESTS_WITHOUT_POSTGRESQL" in os.environ:
        pytest.skip("the quick tests start no PostgreSQL")
    if not _program("initdb") or not _program("pg_ctl"):
        pytest.skip("PostgreSQL is not installed")
    # A short path, as that of a socket must be, and one that the user postgres can follow.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    server = Server(folder)
    server.start()

    def end() -> None:
        with contextlib.suppress(subprocess.CalledProcessError):  # a test has ended it
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return server


@cache
def server() -> Server:
    """Return the server that the tests of this process share."""
    return new_server()

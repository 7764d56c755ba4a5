"""Ctrl-C leaves nothing behind, and what takes long shows itself on a terminal alone."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from select import select

import pytest

from tests.cli.terminal import FETCHSTASH, Terminal, plain, read_all
from tests.loopback import Site

pytestmark = pytest.mark.long

SECONDS = 60

# However fast or busy the machine is, it is still reading when ^C comes.
ENDLESS = """
import time
from fetchstash.handlers import Format

class Endless:
    name = "endless"

    def extract(self, source, hints, limits):
        while True:
            time.sleep(0.01)

FORMATS = Format(
    kind="text", word="endless", handler=Endless, media_types=("text/x-endless",),
    extensions=("endless",), is_text=True,
)
"""


@contextmanager
def interrupted(run: Terminal, shown: str, *arguments: str) -> Generator[None]:
    """Run a command on a terminal, press ^C once ``shown`` is there, and check what is left."""
    process, leader = run.start(*arguments)
    seen = ""
    while shown not in seen:
        ready, _, _ = select([leader], [], [], SECONDS)
        assert ready, f"{shown!r} was never shown: {seen!r}"
        seen += os.read(leader, 65_536).decode(errors="replace")
    os.write(leader, b"\x03")
    rest = read_all(leader)
    assert process.wait(SECONDS) == 130, seen + rest
    assert "Traceback" not in rest
    assert plain(rest).replace("^C", "").strip() == ""
    yield
    left = {path.name for path in run.folder.iterdir()} - {"store", "given.endless", "plugins"}
    assert left == set()
    assert list((run.folder / "store" / "spool").iterdir()) == []
    with pytest.raises(ProcessLookupError):  # no worker lives on in its group
        os.killpg(process.pid, 0)
    assert run("ls").stdout == ""
    run("doctor")


def test_ctrl_c_while_a_host_does_not_answer(run: Terminal, site: Site) -> None:
    def say_nothing(handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(1)  # returns when the client gives up

    url = site.put("/silent", script=say_nothing)
    with interrupted(run, "no answer yet, 0:01 of at most 0:45", "get", url, "-o", "out.txt"):
        pass


def test_ctrl_c_in_the_middle_of_a_body(run: Terminal, site: Site) -> None:
    def falter_half_way(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain")
        handler.send_header("Content-Length", str(2**21))
        handler.end_headers()
        handler.wfile.write(b"words\n" * (2**20 // 6))
        with suppress(OSError):
            while not select([handler.connection], [], [], 0.05)[0]:  # until the client gives up
                handler.wfile.write(b"words\n")

    url = site.put("/half", script=falter_half_way)
    with interrupted(run, "1.0 MB of 2.0 MB", "fetch", url, "-o", "out.txt"):
        pass


def test_ctrl_c_while_a_document_is_read(
    run: Terminal, install_plugin: Callable[[str, str], None]
) -> None:
    install_plugin("endless", ENDLESS)
    run.env |= {"PYTHONPATH": os.environ["PYTHONPATH"], "FETCHSTASH_EXTRACT_PLUGINS": "endless"}
    (run.folder / "given.endless").write_text("a line\n")
    with interrupted(run, "given.endless: reading", "get", "given.endless", "-o", "out.txt"):
        pass


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send to one process")
def test_a_pipe_shows_no_progress_and_an_interrupt_says_nothing(run: Terminal, site: Site) -> None:
    asked = threading.Event()

    def say_nothing(handler: BaseHTTPRequestHandler) -> None:
        asked.set()
        handler.rfile.read(1)

    url = site.put("/silent", script=say_nothing)
    with subprocess.Popen(
        [FETCHSTASH, "fetch", url],
        env=run.env,
        cwd=run.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert asked.wait(SECONDS)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=SECONDS) == (b"", b"")
        assert process.returncode == 130

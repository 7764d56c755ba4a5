"""Completion, in the shells themselves."""

import os
import re
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select

import pytest

from tests.cli.terminal import FETCHSTASH, Terminal, start_on_terminal
from tests.loopback import Site

pytestmark = pytest.mark.long

SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
SETUPS = {
    "bash": "PS1='ready> '; eval \"$(_FETCHSTASH_COMPLETE=bash_source fetchstash)\"; echo set'-'up",
    "zsh": "PS1='ready> '; autoload -Uz compinit; compinit -u -d zdump; "
    "eval \"$(_FETCHSTASH_COMPLETE=zsh_source fetchstash)\"; echo set'-'up",
    "fish": "function fish_prompt; echo -n 'ready> '; end; "  # without the folder, which is long
    "_FETCHSTASH_COMPLETE=fish_source fetchstash | source; echo set'-'up",
}
SECONDS = 40
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\\\)")
"""What shells send to colour and to move the cursor."""


class Shell:
    """A shell on a terminal of its own."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self.shown = ""

    def type(self, keys: str) -> None:
        """Type keys."""
        os.write(self._leader, keys.encode())

    def wait_for(self, text: str) -> None:
        """Read until ``text`` is shown after what was waited for before."""
        until = time.monotonic() + SECONDS
        seen = self.shown
        while text not in seen:
            ready, _, _ = select([self._leader], [], [], max(until - time.monotonic(), 0))
            assert ready, f"{text!r} was never shown: {seen!r}"
            seen += os.read(self._leader, 65_536).decode(errors="replace")
            seen = _STEERING.sub("", seen)
        self.shown = seen.partition(text)[2]


@contextmanager
def shell(name: str, run: Terminal) -> Generator[Shell]:
    """Start a shell whose PATH leads to the command, and turn completion on."""
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed; scripts/ci extras installs it")
    (run.folder / "home").mkdir()  # no project of its own
    path = f"{Path(FETCHSTASH).parent}{os.pathsep}{os.environ['PATH']}"
    env = run.env | {"PATH": path, "HOME": str(run.folder / "home"), "TERM": "xterm"}
    process, leader = start_on_terminal(SHELLS[name], env, run.folder)
    try:
        it = Shell(leader)
        it.type(SETUPS[name] + "\r")
        it.wait_for("set-up")
        yield it
    finally:
        process.kill()
        process.wait()
        with suppress(OSError):
            os.close(leader)


@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_completes_references_hosts_files_and_profiles(
    name: str, run: Terminal, site: Site
) -> None:
    url = site.put("/gauges.html", "<title>Tide gauges</title><p>words</p>")
    short, host = run.ref(url)[4:11], f"127.0.0.1:{site.port}"
    (run.folder / "harbour.txt").write_text("x")
    with shell(name, run) as it:
        for typed, completed in (
            ("fetchstash inf", "fetchstash info"),
            ("fetchstash get @", "fetchstash get @1"),
            (f"fetchstash info {short[:4]}", f"fetchstash info {short}"),
            (f"fetchstash get {url[:-9]}", f"fetchstash get {url}"),
            (f"fetchstash get {host[:-2]}", f"fetchstash get {host}"),
            ("fetchstash grep x harb", "fetchstash grep x harbour.txt"),
            ("fetchstash serve --profile claude-d", "fetchstash serve --profile claude-desktop"),
        ):
            it.type(f"{typed}\t")
            it.wait_for(completed)
            it.type("\x15")


def test_completion_is_silent_where_there_is_nothing(run: Terminal) -> None:
    run.env |= {"_FETCHSTASH_COMPLETE": "bash_complete", "COMP_WORDS": "fetchstash get @"}
    assert run().stdout == "file,@\n"
    assert not (run.folder / "store").exists()
    run.env["FETCHSTASH_STORE_FOLDR"] = "wrong"
    done = run()
    assert (done.stdout, done.stderr) == ("file,@\n", "")


def test_a_reference_is_offered_with_its_title(run: Terminal, site: Site) -> None:
    run("fetch", site.put("/a.html", "<title>Tide\x1b[2J gauges</title><p>words</p>"))
    run.env |= {"_FETCHSTASH_COMPLETE": "fish_complete", "COMP_WORDS": "fetchstash pin "}
    run.env["COMP_CWORD"] = ""
    assert run().stdout == "plain,@1\tTide gauges\n"

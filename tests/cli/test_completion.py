"""Completion, in the shells themselves."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select

import pytest

from tests.cli.terminal import FETCHSTASH, Terminal
from tests.loopback import Site

pytestmark = pytest.mark.slow

SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
SETUPS = {
    "bash": "PS1='ready> '; eval \"$(_FETCHSTASH_COMPLETE=bash_source fetchstash)\"; echo set'-'up",
    "zsh": "PS1='ready> '; autoload -Uz compinit; compinit -u -d zdump; "
    "eval \"$(_FETCHSTASH_COMPLETE=zsh_source fetchstash)\"; echo set'-'up",
    "fish": "_FETCHSTASH_COMPLETE=fish_source fetchstash | source; echo set'-'up",
}
SECONDS = 60


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
            if "\x1b[c" in seen or "\x1b[0c" in seen:  # fish asks what the terminal is
                self.type("\x1b[?1;2c")
                seen = seen.replace("\x1b[c", "").replace("\x1b[0c", "")
        self.shown = seen.partition(text)[2]


@contextmanager
def shell(name: str, run: Terminal) -> Generator[Shell]:
    """Start a shell whose PATH leads to the command, and turn completion on."""
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed; scripts/shells installs it")
    pty = pytest.importorskip("pty", reason="Windows has no pseudo-terminals of this kind")
    leader, follower = pty.openpty()
    path = f"{Path(FETCHSTASH).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        SHELLS[name],
        env=run.env | {"PATH": path, "HOME": str(run.folder), "TERM": "xterm"},
        cwd=run.folder,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
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
    facts = json.loads(run("fetch", url, "--json").stdout)
    short = facts["artifact_ref"][4:11]
    (run.folder / "harbour.txt").write_text("x")
    with shell(name, run) as it:
        for typed, completed in (
            ("fetchstash inf", "fetchstash info "),
            ("fetchstash get @", "@1"),
            (f"fetchstash info {short[:4]}", short),
            (f"fetchstash get http://127.0.0.1:{site.port}/g", "auges.html"),
            (f"fetchstash get 127.0.0.1:{str(site.port)[:3]}", str(site.port)[3:]),
            ("fetchstash grep x harb", "our.txt"),
            ("fetchstash serve --profile claude-d", "esktop"),
        ):
            it.type(typed + "\t")
            it.wait_for(completed if completed.startswith(typed) else typed)
            if not completed.startswith(typed):
                it.wait_for(completed.removeprefix(typed.rpartition(" ")[2]))
            it.type("\x03")


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
    assert run().stdout == "plain,@1\tTide gauges\n"

"""Every command line that the command suggests is one that its own parser takes."""

import ast
import os
import re
import shlex
import shutil
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select
from typing import Any

import click
import pytest

import fetchstash
from fetchstash.cli import as_command, commands
from fetchstash.config import KEYS
from fetchstash.errors import Call
from tests.cli.terminal import FETCHSTASH, Terminal, start_on_terminal
from tests.loopback import Site

_NAMES = "|".join(commands.commands)
LINE = re.compile(rf"\bfetchstash (?:{_NAMES})(?: (?:init|create|list|revoke)\b)?(?: --[\w-]+)*")
TEXTS = [
    path.read_text(encoding="utf-8") for path in Path(fetchstash.__file__).parent.rglob("*.py")
]
NODES = [
    node
    for text in TEXTS
    if "Call(" in text or LINE.search(text)
    for node in ast.walk(ast.parse(text))
]
SAMPLES: dict[str, Any] = {
    "ref": "art_a",
    "refs": ["art_a", "art_b"],
    "pattern": "-x",
    "query": "two words",
    "url": "https://example.org/?a=b&c",
    "path": "A heading",
    "unit": "pages",
    "target": "a b.bin",
    "start": 3,
    "end": 4,
    "page": 2,
    "offset": 5,
    "limit": 5,
    "max_results": 5,
    "max_chars": 500,
    "raw": True,
    "literal": True,
    "all_runs": True,
}
"""A value for each argument of a next step."""


def called() -> Iterator[Call]:
    """Go through the next steps that the package names, with a value for each argument."""
    for node in NODES:
        match node:
            case ast.Call(func=ast.Name("Call"), args=[ast.Constant(str(action)), *rest]):
                keys = rest[0].keys if rest and isinstance(rest[0], ast.Dict) else []
                names = [str(key.value) for key in keys if isinstance(key, ast.Constant)]
                if action not in ("setting", "repair"):
                    yield Call(action, {name: SAMPLES[name] for name in names})
            case _:
                pass


def written() -> Iterator[str]:
    """Go through the command lines in the package's own sentences."""
    documented = {
        id(node.body[0].value)
        for node in NODES
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in NODES:
        if isinstance(node, ast.Constant) and id(node) not in documented:
            yield from LINE.findall(str(node.value))


def take(line: str) -> None:
    """Parse a command line as the command does. Raises click.UsageError."""
    words = shlex.split(line)[1:]
    command: click.Command = commands
    context = click.Context(commands, info_name="fetchstash")
    while isinstance(command, click.Group) and words:
        name = words.pop(0)
        command = command.commands[name]
    # A mention may be without what the command is to work on.
    with suppress(click.MissingParameter, click.exceptions.NoArgsIsHelpError):
        command.make_context(command.name, words, parent=context)


CALLS = {as_command(call).strip("`"): call for call in called()}
LINES = sorted(set(written()))


def test_the_scan_finds_what_it_is_to_check() -> None:
    assert len(CALLS) >= 20
    assert {"fetchstash register --browser"} <= {*LINES}


@pytest.mark.parametrize("line", CALLS)
def test_a_next_step_is_a_line_that_the_command_takes(line: str) -> None:
    take(line)


@pytest.mark.parametrize("line", LINES)
def test_a_command_that_a_sentence_names_is_one_that_there_is(line: str) -> None:
    take(line)


@pytest.mark.parametrize(
    "key", [key for key in KEYS.values() if key.flag], ids=lambda key: key.path
)
def test_a_flag_that_would_help_is_one_that_the_command_takes(key: Any) -> None:
    value = {bool: False, tuple: ["a.test"]}.get(key.kind, 1)
    flag = re.fullmatch(
        r"add (.+) \(.+\)", as_command(Call("setting", {"name": key.path, "value": value}))
    )
    assert flag
    take(f"fetchstash fetch {flag[1]} https://example.org")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("slice --pages 5 @1", "slice --unit pages --start 5 --end 5 @1"),
        ("slice @1 --pages=5-7 --json", "slice --unit pages --start 5 --end 7 @1 --json"),
        ("slice @1 --from 5 --to 9", "slice --start 5 --end 9 @1"),
        ("slice @1 --start 10 --limit 5", "slice --end 14 @1 --start 10"),
        ("slice --section 'A heading' @1", "slice --path 'A heading' @1"),
        ("get --pages 3 @2 --folder x", "slice --unit pages --start 3 --end 3 @2 --folder x"),
        ("get @2 --start-index 500", "get --offset 500 @2"),
        ("fetch https://a.org --query tides", "fetch --focus tides https://a.org"),
        ("fetch --no-cache https://a.org", "fetch --refresh https://a.org"),
        ("grep x @2 --limit 5", "grep --max-matches 5 x @2"),
        ("grep --regex words @2", "grep words @2"),
        ("grep --fixed words @2", "grep --literal words @2"),
        ("grep --fixed -- --x @2", "grep --literal -- --x @2"),
        ("search --top 5 x", "search --max-results 5 x"),
        ("info --ref @2", "info @2"),
    ],
)
def test_an_option_of_another_program_is_answered_with_the_call_that_was_meant(
    wrong: str, right: str
) -> None:
    assert asked(wrong) == f"No such option '{option(wrong)}'. Did you mean `fetchstash {right}`?"
    take(f"fetchstash {right}")


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("ls --all", "'--all-runs'"),
        ("get --outputs x @1", "'--output'"),
        ("fetch --max 500 x", "'--max-chars'"),
        ("serve --alow-host x", "'--allow-host'"),
        ("ls --no-respect-robot", "'--no-respect-robots'"),
        ("slice --pages five @1", ""),
        ("slice --pages", ""),
        ("slice --start x --pages 5 @1", ""),
        ("grep --refs @1 -- -x", "'--refresh'"),
        ("grep --regex", ""),
        ("ls --page 5", ""),
        ("fetch a.org b.org --query", ""),
    ],
)
def test_a_wrong_option_is_told_those_that_are_spelt_like_it_and_none_of_other_commands(
    wrong: str, near: str
) -> None:
    question = f" Did you mean {near}?" if near else ""
    assert asked(wrong) == f"No such option '{option(wrong)}'.{question}"


def option(line: str) -> str:
    """Return the first option of a line that no command has."""
    words = (word.partition("=")[0] for word in line.split())
    return next(word for word in words if word.startswith("--") and word != "--start")


def asked(line: str) -> str:
    """Return what the command says of a wrong line."""
    with pytest.raises(click.UsageError) as raised:
        commands.main(shlex.split(line), prog_name="fetchstash", standalone_mode=False)
    return raised.value.format_message()


@pytest.mark.long
def test_a_next_step_names_the_store_that_the_command_was_told_to_take(run: Terminal) -> None:
    (run.folder / "a.txt").write_text("words\n")
    file = run.folder / "my settings.toml"
    file.write_text("[views]\n")
    places = ["--folder", str(run.folder / "other"), "--config", str(file)]
    run("fetch", "a.txt", *places)
    (line,) = re.findall(r"`fetchstash ([^`]+)`", run("get", "@9", *places, code=3).stderr)
    assert "a.txt" in run(*shlex.split(line)).stdout


# --- Completion, in the shells themselves.

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


@pytest.mark.long
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


@pytest.mark.long
def test_completion_is_silent_where_there_is_nothing(run: Terminal) -> None:
    run.env |= {"_FETCHSTASH_COMPLETE": "bash_complete", "COMP_WORDS": "fetchstash get @"}
    assert run().stdout == "file,@\n"
    assert not (run.folder / "store").exists()
    run.env["FETCHSTASH_STORE_FOLDR"] = "wrong"
    done = run()
    assert (done.stdout, done.stderr) == ("file,@\n", "")


@pytest.mark.long
def test_a_reference_is_offered_with_its_title(run: Terminal, site: Site) -> None:
    run("fetch", site.put("/a.html", "<title>Tide\x1b[2J gauges</title><p>words</p>"))
    run.env |= {"_FETCHSTASH_COMPLETE": "fish_complete", "COMP_WORDS": "fetchstash pin "}
    run.env["COMP_CWORD"] = ""
    assert run().stdout == "plain,@1\tTide gauges\n"

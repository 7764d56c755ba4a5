"""Help: short screens, each command with its own options."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from fetchstash.cli import Command, cells, commands
from tests.cli.terminal import Terminal, read_all

ROWS = 24


def helped(name: str, width: int) -> list[str]:
    """Return the lines that a command prints of itself."""
    command = commands.commands[name] if name else commands
    context = click.Context(
        command,
        info_name=f"fetchstash {name}".strip(),
        terminal_width=width,
        help_option_names=["-h", "--help"],
    )
    return command.get_help(context).splitlines()


@pytest.mark.parametrize("width", [60, 80, 160])
def test_all_commands_fit_one_screen(width: int) -> None:
    lines = helped("", width)
    assert len(lines) <= ROWS
    assert max(map(cells, lines)) <= width
    named = [line.split("  ")[1].split(", ") for line in lines if line.startswith("  ")]
    assert {name for names in named for name in names} == set(commands.commands)


@pytest.mark.parametrize("name", sorted(commands.commands))
def test_a_command_fits_one_screen_with_its_own_options(name: str) -> None:
    lines = helped(name, 80)
    assert len(lines) < ROWS
    assert max(map(cells, lines)) <= 80
    text = "\n".join(lines)
    for flag in ("--allow-host", "--max-artifacts", "--profile"):
        assert flag not in text


def with_examples() -> Iterator[Command]:
    for command in commands.commands.values():
        inner = command.commands.values() if isinstance(command, click.Group) else [command]
        yield from (item for item in inner if isinstance(item, Command) and item.epilog)


@pytest.mark.parametrize("command", [*with_examples()], ids=lambda command: command.name)
def test_an_example_of_the_help_is_a_line_that_the_command_takes(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("answer.md").write_text("It leaves at nine.\n")
    Path("audit.log").touch()
    with command.make_context("it", shlex.split(command.epilog or "")) as context:
        assert command.get_help(context).endswith(f"\nExample: it {command.epilog}")


def test_hosts_are_listed_once_in_the_help_of_register() -> None:
    usage, *lines = helped("register", 80)
    assert usage == "Usage: fetchstash register [OPTIONS] [HOST] [NAME]..."
    assert " ".join(" ".join(lines).split()).count("claude-desktop") == 1


def test_settings_have_a_screen_of_their_own_and_are_taken_by_every_command() -> None:
    with_settings = [
        command
        for command in commands.commands.values()
        if any("--allow-host" in option.opts for option in command.params)
    ]
    assert len(with_settings) >= 14
    for command in with_settings:
        assert isinstance(command, Command)
        assert any("--help-settings" in option.opts for option in command.own_options)


@pytest.mark.slow
def test_the_flags_of_the_settings_are_listed_when_asked_for(run: Terminal) -> None:
    text = run("get", "--help-settings").stdout
    for flag in ("--allow-host", "--max-artifacts", "--profile", "--config", "--all-runs"):
        assert f"  {flag}" in text
    assert "--offset" not in text


@pytest.mark.slow
def test_a_person_who_types_the_name_alone_gets_help_and_a_host_is_served(run: Terminal) -> None:
    process, leader = run.start()
    assert "Usage: fetchstash COMMAND" in read_all(leader)
    assert process.wait(30) == 0
    assert run().stdout == ""  # a host that closed its end at once
    assert "No such option" in run("--no-such-flag", code=2).stderr


@pytest.mark.slow
def test_an_interrupt_before_anything_began_is_told_by_the_exit_code(run: Terminal) -> None:
    process, leader = run.start("get", "-")
    seen = b""
    while b"Ctrl-D" not in seen:
        seen += os.read(leader, 1_000)
    os.write(leader, b"\x03")
    assert "Traceback" not in read_all(leader)
    assert process.wait(30) == 130

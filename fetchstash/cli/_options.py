"""Flags for the settings, from the table by which the environment and the file are read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from fetchstash.cli._complete import complete_hosts
from fetchstash.config import KEYS, Key, Settings, load
from fetchstash.store import ALL_RUNS

F = TypeVar("F", bound=Callable[..., Any])

_PREFIX = "setting__"


def setting_flags(command: F) -> F:
    """Add ``--config`` and the flags of the settings to a command."""
    for key in reversed(tuple(KEYS.values())):
        if key.flag:
            command = _option(key)(command)
    every_run = click.option(
        "--all-runs", is_flag=True, help="What every project fetched, not this folder's alone."
    )
    command = every_run(command)
    file = click.option(
        "--config", "config_file", type=click.Path(path_type=Path), help="Settings file."
    )
    return file(command)


def is_setting(parameter: click.Parameter) -> bool:
    """Return whether a parameter of a command is the flag of a setting: of every command."""
    name = parameter.name or ""
    return name.startswith(_PREFIX) or name in ("config_file", "all_runs")


def _option(key: Key) -> Callable[[F], F]:
    name = _PREFIX + key.path.replace(".", "__")
    if key.kind is bool:
        return click.option(
            f"--{key.flag}/--no-{key.flag}", name, default=None, help=f"{key.meaning}."
        )
    shown = "TEXT" if (key.item or key.kind) is str else "NUMBER"
    return click.option(
        f"--{key.flag}",
        name,
        multiple=key.kind is tuple,
        metavar=shown,
        help=f"{key.meaning}.",
        shell_complete=_completion(key),
    )


def _completion(key: Key) -> Callable[..., list[CompletionItem]] | None:
    """Return what completes a value: the choices of a setting, or hosts."""
    if key.name in ("allow_hosts", "allow_domains", "deny_domains"):
        return complete_hosts
    if not key.choices:
        return None

    def choices(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(choice) for choice in key.choices if choice.startswith(incomplete)]

    return choices


def take_settings(parameters: dict[str, Any], environment: dict[str, str]) -> Settings:
    """Take the flags out of a command's arguments and read the settings. Raises BadArgument."""
    file = parameters.pop("config_file", None)
    arguments: dict[str, Any] = {}
    if parameters.pop("all_runs", False):
        arguments["store.run"] = ALL_RUNS
    for name in [name for name in parameters if name.startswith(_PREFIX)]:
        value = parameters.pop(name)
        if value not in (None, ()):
            section, _, key = name.removeprefix(_PREFIX).partition("__")
            arguments[f"{section}.{key}"] = value
    return load(arguments, environment, file)

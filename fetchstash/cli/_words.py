"""Wording for a person: next steps as command lines, short references, ages."""

import re
import shlex
from datetime import UTC, datetime
from typing import Any

import click

from fetchstash.config import KEYS
from fetchstash.errors import Call

SHORT_REF_CHARS = 7
"""Of the 26 random characters of a reference. Ten thousand artifacts rarely share so many."""

_REF = re.compile("art_[a-z2-7]{26}")
_COMMANDS = {
    "read": "get",
    "fetch_site": "site",
    "list": "ls",
    "repair": "doctor --repair",
    "add_file": "fetch",
    "delete": "rm",
}
_UNITS = (("s", 1, 60), ("min", 60, 60), ("h", 3_600, 48), ("d", 86_400, 366))
_PLACES = (
    "config_file",
    "setting__store__url",
    "setting__store__folder",
    "setting__store__endpoint",
    "setting__store__region",
)
_POSITIONAL = ("pattern", "query", "url", "urls", "ref", "refs", "path")


def short_ref(ref: str) -> str:
    """Return a reference as it is shown and may be typed: its first characters."""
    return ref[4 : 4 + SHORT_REF_CHARS] if _REF.fullmatch(ref) else ref


def age(then: datetime, now: datetime | None = None) -> str:
    """Return how long ago, or how long from now, in one unit: "12 s", "5 min", "3 h", "6 d"."""
    ahead = (then - (now or datetime.now(UTC))).total_seconds()
    seconds = abs(ahead)
    for unit, length, most in _UNITS:
        # What is past is cut off, what is to come rounded: a fresh copy is kept for seven days.
        count = round(seconds / length) if ahead > 0 else int(seconds // length)
        if count < most:
            return f"{count} {unit}"
    return f"{seconds // 31_557_600:.0f} y"


def as_command(call: Call) -> str:
    """Word a next step for a terminal: a command line, or the flag and the key of a setting."""
    if call.action == "setting":
        return _setting(**call.arguments)
    line = command_line(call)
    return f"run `{line}`" if call.action == "repair" else f"`{line}`"


def command_line(call: Call, *, places: bool = True) -> str:
    """Return a call as a command line, with the flags of the store in use."""
    arguments = {name: value for name, value in call.arguments.items() if value is not None}
    action = call.action
    if action == "picture":
        action = "slice"
        page = arguments.pop("page", None)
        arguments |= {"start": page} if page else {}
        arguments["render"] = f"page-{page}.png" if page else "picture.png"
    if action == "export":
        action = "get"
        arguments = {"ref": arguments["ref"], "o": arguments.pop("target"), **arguments}
    positional = [name for name in _POSITIONAL if name in arguments]
    if action == "slice" and "path" in positional:
        positional.remove("path")
    if action == "search":
        refs = [*_items(arguments.pop("refs", ())), *_items(arguments.pop("ref", ()))]
        positional = ["query"] if "query" in arguments else []
        arguments |= {"in": refs} if refs else {}
    values = [short_ref(item) for name in positional for item in _items(arguments.pop(name))]
    flags: list[str] = []
    for name, value in arguments.items():
        flag = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        if value is True:
            flags.append(flag)
        elif value is not False:
            flags += [word for item in _items(value) for word in (flag, short_ref(item))]
    flags += _places(call) if places else []
    words = [*values, *flags]
    if any(value.startswith("-") for value in values):
        words = [*flags, "--", *values]
    return shlex.join(["fetchstash", *_COMMANDS.get(action, action).split(), *words])


def _places(call: Call) -> list[str]:
    """Return the running command's own flags for its settings file and store."""
    context = click.get_current_context(silent=True)
    names = {*_PLACES, "setting__store__run"} if call.action == "list" else {*_PLACES}
    if call.arguments.get("all_runs"):
        names.remove("setting__store__run")
    return [
        word
        for option in (context.command.params if context else ())
        if context and option.name in names
        if context.get_parameter_source(option.name) is click.core.ParameterSource.COMMANDLINE
        for word in (option.opts[0], str(context.params[option.name]))
    ]


def _setting(name: str, value: Any) -> str:
    flag = KEYS[name].flag
    if flag is None:
        return f"set {name} = {value!r} in the settings file"
    if value is False:
        return f"add --no-{flag} ({name})"
    if value is True:
        return f"add --{flag} ({name})"
    flags = " ".join(f"--{flag} {shlex.quote(item)}" for item in _items(value))
    return f"add {flags} ({name})"


def _items(value: Any) -> list[str]:
    return [str(value)] if isinstance(value, str | int | float) else [str(item) for item in value]

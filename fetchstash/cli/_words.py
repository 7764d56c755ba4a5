"""How a person at a terminal is told what to do next: as a command line."""

import shlex
from typing import Any

from fetchstash.config import KEYS
from fetchstash.errors import Call

_COMMANDS = {
    "read": "get",
    "list": "ls",
    "repair": "doctor --repair",
}
_POSITIONAL = ("pattern", "query", "url", "urls", "ref", "refs", "path")


def as_command(call: Call) -> str:
    """Word a next step for a terminal: a command line, or the flag and the key of a setting."""
    arguments = {name: value for name, value in call.arguments.items() if value is not None}
    if call.action == "setting":
        return _setting(**arguments)
    if call.action == "picture":  # a terminal shows no picture; the file holds it
        return f"`fetchstash get {arguments.get('ref', 'REF')} -o FILE --raw`"
    if call.action == "export":
        raw = " --raw" if arguments.get("raw") else ""
        return f"`fetchstash get {arguments['ref']} -o {shlex.quote(arguments['target'])}{raw}`"
    positional = [name for name in _POSITIONAL if name in arguments]
    if call.action == "slice" and "path" in positional:
        positional.remove("path")
    values = [item for name in positional for item in _items(arguments.pop(name))]
    flags: list[str] = []
    for name, value in arguments.items():
        flag = "--" + name.replace("_", "-")
        flags += [flag] if value is True else [flag, str(value)]
    words = [*values, *flags]
    if any(value.startswith("-") for value in values):
        words = [*flags, "--", *values]
    command = ["fetchstash", *_COMMANDS.get(call.action, call.action).split()]
    line = f"`{shlex.join([*command, *words])}`"
    return f"run {line}" if call.action == "repair" else line


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

"""Put the servers that a host has behind the gateway, in place, and bring them back."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from fetchstash.errors import BadArgument
from fetchstash.hosts._file import change_file
from fetchstash.hosts._hosts import CommandHost, FileHost, Place
from fetchstash.hosts._jsonc import value_at, with_value
from fetchstash.hosts._register import NAME

WRAPPED_ENTRY = "WRAPPED_ENTRY"
"""The variable with the entry of a server over HTTP as it was, so that it can be brought back."""

_URL_KEYS = ("url", "httpUrl", "serverUrl")
_PROGRAMS = ("fetchstash", "run", "uvx")
_CODEX_TABLE = re.compile(r'^\[mcp_servers\.(?:"([^"]+)"|([\w-]+))\]\s*(?:#.*)?$', re.MULTILINE)

Entry = dict[str, Any]


def wrap(
    host: FileHost | CommandHost, names: tuple[str, ...], start: list[str], place: Place
) -> str:
    """Put servers of a host behind ``fetchstash wrap``: those named, or all. Return a line.

    Raises BadArgument, Busy or StoreError, and then nothing was changed.
    """
    return _change(host, names, place, lambda entry: _wrapped(entry, start[:-1]), "Wrapped")


def unwrap(host: FileHost | CommandHost, names: tuple[str, ...], place: Place) -> str:
    """Bring servers back as they were: those named, or all. Return a line for the person."""
    return _change(host, names, place, _unwrapped, "Brought back")


def _change(
    host: FileHost | CommandHost,
    names: tuple[str, ...],
    place: Place,
    changed: Callable[[Entry], Entry | None],
    done: str,
) -> str:
    file, is_toml = _file(host, place)
    section = host.section if isinstance(host, FileHost) else "mcpServers"
    which: list[str] = []
    absent: list[str] = []

    def edit(text: str) -> str:
        found = _toml_servers(text) if is_toml else value_at(text, [section])
        servers = cast("Mapping[str, Entry]", found if isinstance(found, dict) else {})
        absent.extend(name for name in names if name not in servers)
        if absent:
            return text
        for name, entry in servers.items():
            if (names and name not in names) or name == NAME:
                continue
            if (new := changed(entry)) is None:
                continue
            if is_toml and "command" not in entry:
                if names:
                    raise BadArgument(f"{name} is a server over HTTP", "Wrap it by hand.")
                continue
            set_entry = _with_toml_entry if is_toml else _with_json_entry
            text = set_entry(text, section, name, new)
            which.append(name)
        return text

    if not file.exists():
        raise BadArgument(f"{host.title} has no settings file {file}.", "Add a server there first.")
    change = change_file(file, edit)
    if absent:
        raise BadArgument(f"There is no server {absent[0]!r} in {file}.", "Check the name.")
    if not change.changed:
        return f"{host.title} has no other server to change in {file}: nothing was changed."
    kept = f" (as it was before: {change.backup})" if change.backup else ""
    return f"{done} {', '.join(which)} in {file}{kept}. Restart {host.title} to use it."


def _file(host: FileHost | CommandHost, place: Place) -> tuple[Path, bool]:
    """Return the file with a host's servers, and whether it is TOML."""
    if isinstance(host, FileHost):
        return host.file(place), False
    match host.name:
        case "claude-code":
            return place.home / ".claude.json", False
        case "gemini":
            return place.home / ".gemini" / "settings.json", False
        case _:
            home = place.environment.get("CODEX_HOME")
            return (Path(home) if home else place.home / ".codex") / "config.toml", True


def _wrapped(entry: Entry, program: list[str]) -> Entry | None:
    """Return the entry of a server with the gateway in front, None if it cannot have one."""
    if _wrapped_words(entry) is not None:
        return None
    if isinstance(entry.get("command"), str):
        words = [entry["command"], *entry.get("args", [])]
        return {**entry, "command": program[0], "args": [*program[1:], "wrap", "--", *words]}
    url = next((entry[key] for key in _URL_KEYS if isinstance(entry.get(key), str)), None)
    if url is None or entry.get("type") == "sse":
        return None
    headers = cast("dict[str, str]", entry.get("headers") or entry.get("http_headers") or {})
    variables = {f"WRAP_HEADER_{number}": value for number, value in enumerate(headers.values())}
    # Other programs can read a command line, so no header's value stands there.
    flags = [
        word
        for name, variable in zip(headers, variables, strict=True)
        for word in ("--header", f"{name}=env:{variable}")
    ]
    environment = {**variables, WRAPPED_ENTRY: json.dumps(entry)}
    args = [*program[1:], "wrap", "--url", url, *flags]
    kind = {"type": "stdio"} if "type" in entry else {}
    return {**kind, "command": program[0], "args": args, "env": environment}


def _unwrapped(entry: Entry) -> Entry | None:
    """Return the entry of a server as it was, None if it has no gateway in front."""
    words = _wrapped_words(entry)
    if words is None:
        return None
    environment = cast("dict[str, str]", entry.get("env") or {})
    if WRAPPED_ENTRY in environment:
        return cast("Entry", json.loads(environment[WRAPPED_ENTRY]))
    return {**entry, "command": words[0], "args": words[1:]}


def _wrapped_words(entry: Entry) -> list[str] | None:
    """Return the words behind ``wrap`` in an entry, None if it is not wrapped."""
    args = cast("list[str]", entry.get("args") or [])
    command = Path(str(entry.get("command", ""))).stem
    if command not in _PROGRAMS or "wrap" not in args:
        return None
    behind = args[args.index("wrap") + 1 :]
    return behind[1:] if behind[:1] == ["--"] else behind if behind[:1] == ["--url"] else None


def _with_json_entry(text: str, section: str, name: str, new: Entry) -> str:
    return with_value(text, [section, name], new)


def _toml_servers(text: str) -> object:
    try:
        return tomllib.loads(text).get("mcp_servers")
    except tomllib.TOMLDecodeError as error:
        raise BadArgument(f"it is no TOML ({error})", "Correct it.") from None


def _with_toml_entry(text: str, _: str, name: str, new: Entry) -> str:
    """Return the text with ``command`` and ``args`` of one table set; all else stays.

    The result is read again, and refused if it says anything else than was meant.
    """
    start = next(
        (found.end() for found in _CODEX_TABLE.finditer(text) if name in found.groups()), None
    )
    if start is None:
        raise BadArgument(f"the table of {name} is written in another form", "Change it by hand.")
    following = re.search(r"^\[", text[start:], re.MULTILINE)
    end = start + following.start() if following else len(text)
    body = re.sub(r"^args\s*=\s*\[[^\]]*\][^\n]*\n?", "", text[start:end], flags=re.MULTILINE)
    body = re.sub(r"^command\s*=[^\n]*\n?", "", body, flags=re.MULTILINE)
    lines = f"\ncommand = {json.dumps(new['command'])}\nargs = {json.dumps(new['args'])}"
    changed = text[:start] + lines + (body if body.startswith("\n") else "\n" + body) + text[end:]
    expected = cast("dict[str, Entry]", _toml_servers(text))
    if _toml_servers(changed) != {**expected, name: new}:
        raise BadArgument(f"the table of {name} is written in another form", "Change it by hand.")
    return changed

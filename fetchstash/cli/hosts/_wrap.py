"""Put the servers that a host has behind the gateway, in place, and bring them back."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

from fetchstash.cli.hosts._files import Malformed, backups_of, change_file, value_at
from fetchstash.cli.hosts._hosts import Environment, Host
from fetchstash.cli.hosts._register import NAME
from fetchstash.cli.hosts._servers import Entry, Servers, as_table, servers_of
from fetchstash.config import ARTIFACT_TOOLS
from fetchstash.errors import BadArgument, did_you_mean

WRAPPED_ENTRY = "WRAPPED_ENTRY"
"""The variable with what the words of a wrapped entry do not tell of the entry before."""

_URL_VARIABLE = "WRAP_URL"
_URL_KEYS = ("url", "httpUrl", "serverUrl")
_HEADER_KEYS = ("headers", "http_headers", "env_http_headers", "bearer_token_env_var")
_LOGIN_KEYS = ("oauth", "oauth_resource", "scopes", "auth", "authProviderType", "headersHelper")
"""They say that the host itself logs in to a server, or runs a program for its headers."""

_REMOTE_KEYS = (*_URL_KEYS, *_HEADER_KEYS, *_LOGIN_KEYS)
_WRAPPED_KEYS = ("type", "command", "args", "env", "env_vars")
"""What an entry has of ours where the server before was one over HTTP."""

_FILTER_KEYS = ("enabled_tools", "includeTools")
"""They name the only tools of a server that Codex and Gemini CLI show their models."""

BACKUPS = 20
"""Backups of a file that are looked at, newest first."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """Keys to take out of an entry, and values to set in it."""

    removed: tuple[str, ...]
    put: Entry


_Decide = Callable[[Servers, str, Entry], _Edit | None]
"""What to do with an entry, by its name; None for nothing. Raises BadArgument to leave it alone."""


@dataclass
class _Outcome:
    """The text of a host's file after an edit, and what became of its servers."""

    text: str
    known: dict[str, None] = field(default_factory=dict[str, None])
    changed: dict[str, None] = field(default_factory=dict[str, None])
    refusals: dict[str, BadArgument] = field(default_factory=dict[str, BadArgument])


def wrap(host: Host, names: tuple[str, ...], start: list[str], env: Environment) -> str:
    """Put servers of a host behind ``fetchstash wrap``: those named, or all. Return lines.

    Raises BadArgument, Busy or StoreError, and then nothing was changed.
    """
    decide = partial(_decide_to_wrap, host, names, start[:-1])
    work = partial(_edited, host, names, decide)
    outcome, lines = _change(host, names, env, work, "Wrapped")
    if outcome.changed and host.name == "claude-code":
        lines += _permissions(outcome.changed, env)
    return "\n".join(lines)


def unwrap(host: Host, names: tuple[str, ...], env: Environment) -> str:
    """Bring servers back as they were: those named, or all. Return lines for the person.

    A file that nobody changed since gets its old bytes back.
    """
    work = partial(_unwrapped_text, host, names, host.file(env))
    _, lines = _change(host, names, env, work, "Brought back")
    return "\n".join(lines)


def _change(
    host: Host, names: tuple[str, ...], env: Environment, work: Callable[[str], _Outcome], done: str
) -> tuple[_Outcome, list[str]]:
    """Change a host's file; return what became of its servers, and lines for the person."""
    file = host.file(env)
    if not file.exists():
        raise BadArgument(f"{host.title} has no settings file {file}.", "Add a server there first.")
    outcome = _Outcome("")

    def edit(text: str) -> str:
        nonlocal outcome
        outcome = work(text)
        for name in names:
            if name not in outcome.known:
                next_step = did_you_mean(name, outcome.known) or "Check the name."
                raise BadArgument(f"There is no server {name!r} in {file}.", next_step)
            if refusal := outcome.refusals.get(name):
                what = f"{name} stays as it is: {refusal.what}."
                raise BadArgument(what, f"Nothing was changed. {refusal.next_step}")
        return outcome.text

    kept = change_file(file, edit, by_hand="change the entry by hand")
    line = f"{host.title} has no other server to change in {file}: nothing was changed."
    if kept is not None:
        changed = ", ".join(outcome.changed)
        line = f"{done} {changed} in {file}{kept}. Restart {host.title} to use it."
    refusals = outcome.refusals.items()
    left = (f"{name} stays as it is: {why.what}. {why.next_step}" for name, why in refusals)
    return outcome, [line, *left]


def _edited(host: Host, names: tuple[str, ...], decide: _Decide, text: str) -> _Outcome:
    """Return what becomes of a file whose entries are edited as ``decide`` says."""
    outcome = _Outcome(text)
    for path in _sections(host, text):
        servers = servers_of(host, outcome.text, path)
        for name, entry in servers.entries.items():
            outcome.known[name] = None
            if (names and name not in names) or name == NAME:
                continue
            try:
                decision = decide(servers, name, entry)
            except BadArgument as error:
                outcome.refusals[name] = error
                continue
            if decision:
                _apply(decision, servers, name, entry)
                outcome.changed[name] = None
        outcome.text = servers.text
    return outcome


def _decide_to_wrap(
    host: Host,
    names: tuple[str, ...],
    program: list[str],
    servers: Servers,
    name: str,
    entry: Entry,
) -> _Edit | None:
    """Return the edit that puts a server behind the gateway. Raises BadArgument to leave it."""
    edit = _wrapped(entry, program, host.title)
    if edit is None:
        return None
    if name not in names and _may_log_in(entry):
        reason = f"its settings have no token, so {host.title} may log in to it itself"
        raise BadArgument(reason, f"If it needs no login, name it: --wrap {name}.")
    shown = {key: [*entry[key], *ARTIFACT_TOOLS] for key in _FILTER_KEYS if entry.get(key)}
    edit = replace(edit, put={**edit.put, **shown})
    if not (edit.removed or shown or entry.get("args") == []):
        return edit
    before = [key for key in entry if key in (*_REMOTE_KEYS, *_WRAPPED_KEYS, *shown)]
    variables = as_table(edit.put.get("env", entry.get("env")))
    variables = {**variables, WRAPPED_ENTRY: servers.source(name, before)}
    return replace(edit, put={**edit.put, "env": variables})


def _unwrapped_text(host: Host, names: tuple[str, ...], file: Path, text: str) -> _Outcome:
    """Return what the file is without the gateway: as before to the byte, where that is known."""
    outcome = _edited(host, names, _unwrapped, text)
    programs = [
        [str(entry["command"]), *_before_wrap(entry)]
        for path in _sections(host, text)
        for name, entry in servers_of(host, text, path).entries.items()
        if name in outcome.changed
    ]
    for backup in backups_of(file)[:BACKUPS] if programs else ():
        with suppress(Malformed, BadArgument, UnicodeDecodeError, OSError):
            old, wrapped = backup.read_bytes().decode("utf-8"), tuple(outcome.changed)
            decide = partial(_decide_to_wrap, host, wrapped, programs[0])
            again = _edited(host, wrapped, decide, old)
            if again.text == text and again.changed.keys() == outcome.changed.keys():
                return replace(outcome, text=old)
    return outcome


def _before_wrap(entry: Entry) -> list[str]:
    """Return the words of a wrapped entry between its command and ``wrap``."""
    return list(takewhile(lambda word: word != "wrap", _args(entry) or []))


def _permissions(names: Iterable[str], env: Environment) -> list[str]:
    """Return a line for each server of which Claude Code allows single tools alone."""
    settings = env.folder("CLAUDE_CONFIG_DIR", env.home / ".claude") / "settings.json"
    try:
        permissions = as_table(value_at(settings.read_text(encoding="utf-8"), ["permissions"]))
    except (OSError, UnicodeDecodeError, Malformed):
        return []
    allowed = [str(rule) for rule in cast("list[object]", permissions.get("allow") or [])]
    return [
        f"Claude Code asks before each artifact tool of {name}: to allow them add "
        + ", ".join(f'"mcp__{name}__{tool}"' for tool in ARTIFACT_TOOLS)
        + f" to permissions.allow in {settings}."
        for name in names
        if any(rule.startswith(f"mcp__{name}__") for rule in allowed)
    ]


def _apply(edit: _Edit, servers: Servers, name: str, entry: Entry) -> None:
    """Change an entry in its file. The result is read again, and must say what was meant."""
    expected = {key: value for key, value in entry.items() if key not in edit.removed}
    expected |= edit.put
    servers.change(name, edit.removed, edit.put)
    if servers.entries.get(name) != expected:
        what = f"The entry of {name} is written in a form that cannot be changed safely."
        raise BadArgument(what, "Nothing was changed. Change it by hand.")


def _sections(host: Host, text: str) -> list[list[str]]:
    """Return the paths of keys under which a host's file has servers."""
    sections = [[host.section]]
    if host.name == "claude-code":  # `claude mcp add` without a scope adds to a project here
        projects = as_table(value_at(text, ["projects"]))
        filled = (name for name in projects if as_table(projects[name]).get("mcpServers"))
        sections += [["projects", name, "mcpServers"] for name in filled]
    return sections


def _wrapped(entry: Entry, program: list[str], title: str) -> _Edit | None:
    """Return the edit that puts the gateway in front; None for an entry of fetchstash itself."""
    if _own_words(entry) is not None:
        return None
    if entry.get("experimental_environment") == "remote":
        raise BadArgument(f"{title} starts it on another machine", "Leave it out.")
    command, args = entry.get("command"), _args(entry)
    if isinstance(command, str) and args is not None:
        words = [*program[1:], "wrap", "--", command, *args]
        return _Edit((), {"command": program[0], "args": words})
    url = next((entry[key] for key in _URL_KEYS if isinstance(entry.get(key), str)), None)
    if url is None:
        reason = "its entry has neither a command nor a URL that can be read"
        raise BadArgument(reason, "Leave it out, or write them as texts.")
    if (transport := entry.get("type")) in ("sse", "ws"):
        reason = f"its transport is {transport}, and the gateway has streamable HTTP alone"
        raise BadArgument(reason, "Give it a URL of streamable HTTP, or leave it out.")
    flags, variables, passed_on = _headers(entry)
    has_token = any(flag.lower().startswith("authorization=") for flag in flags)
    if not has_token and any(key in entry for key in _LOGIN_KEYS):
        reason = f"{title} logs in to it itself, and that login does not reach the gateway"
        raise BadArgument(reason, "Give it a token as a header, or leave it out.")
    put: dict[str, Any] = {"type": "stdio"} if "type" in entry else {}
    put |= {"command": program[0]}
    put["args"] = [*program[1:], "wrap", "--url", f"env:{_URL_VARIABLE}", *flags]
    put["env"] = {_URL_VARIABLE: url, **variables}
    if passed_on:
        put["env_vars"] = passed_on
    return _Edit(tuple(key for key in entry if key in _REMOTE_KEYS), put)


def _headers(entry: Entry) -> tuple[list[str], dict[str, str], list[str]]:
    """Return the flags for an entry's headers, variables to set for them, and those to pass on.

    Other programs can read a command line, so no value stands there.
    """
    values = as_table(entry.get("headers") or entry.get("http_headers"))
    variables = {f"WRAP_HEADER_{number}": value for number, value in enumerate(values.values())}
    named = as_table(entry.get("env_http_headers"))
    headers = [*zip(values, variables, strict=True), *named.items()]
    flags = [word for name, variable in headers for word in ("--header", f"{name}=env:{variable}")]
    passed_on = [*named.values()]
    if token := entry.get("bearer_token_env_var"):
        flags += ["--header", f"Authorization=Bearer env:{token}"]
        passed_on.append(token)
    return flags, variables, passed_on


def _may_log_in(entry: Entry) -> bool:
    """Return whether an entry says nothing of how the host gets into a server over HTTPS."""
    url = next((str(entry[key]) for key in _URL_KEYS if key in entry), "")
    is_open = "?" not in url and not any(entry.get(key) for key in _HEADER_KEYS)
    return "command" not in entry and url.startswith("https:") and is_open


def _unwrapped(servers: Servers, _: str, entry: Entry) -> _Edit | None:
    """Return the edit that brings an entry back; None for one without the gateway in front."""
    words = _own_words(entry)
    if words is None or words[:1] != ["wrap"]:
        return None
    source = as_table(entry.get("env")).get(WRAPPED_ENTRY)
    put = servers.values(source) if isinstance(source, str) else None
    if put:
        return _Edit(tuple(key for key in _WRAPPED_KEYS if key in entry and key not in put), put)
    if words[1:2] != ["--"] or len(words) == 2:
        reason = "it was put behind the gateway or changed by hand, so what it was is not known"
        raise BadArgument(reason, "Change it by hand.")
    _, _, command, *args = words
    if not args:
        return _Edit(("args",), {"command": command})
    return _Edit((), {"command": command, "args": args})


def _args(entry: Entry) -> list[str] | None:
    """Return the arguments of an entry's command, None if they are no list of texts."""
    args = entry.get("args", [])
    words = cast("list[object]", args) if isinstance(args, list) else [None]
    texts = [word for word in words if isinstance(word, str)]
    return texts if len(texts) == len(words) else None


def _own_words(entry: Entry) -> list[str] | None:
    """Return the words behind the program where an entry starts fetchstash, else None."""
    program, args = Path(str(entry.get("command", ""))), _args(entry) or []
    match program.stem:
        case "fetchstash":
            return args
        case "run" if program.parent.name == "scripts":
            return args
        case "uvx" if "fetchstash" in args:
            return args[args.index("fetchstash") + 1 :]
        case _:
            return None

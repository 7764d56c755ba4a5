"""Put the servers that a host has behind the gateway, and bring them back.

One gateway has them all, so that the artifact tools are there once. A server whose entry says more
than how it runs, or whose tools the host's own settings name, keeps its name: its gateway stands in
place. The gateway reads the entries that it replaced from a variable, and ``unwrap`` does, too.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from fetchstash.cli.hosts._files import Malformed, backups_of, change_file, value_at
from fetchstash.cli.hosts._register import BROWSER_FLAGS, NAME
from fetchstash.cli.hosts._servers import (
    Entry,
    Environment,
    Host,
    Servers,
    args_of,
    own_words,
    servers_of,
)
from fetchstash.config import (
    ARTIFACT_TOOLS,
    FILTER_KEYS,
    HEADER_KEYS,
    SERVERS_VARIABLE,
    URL_KEYS,
    filled_in,
    mapped,
)
from fetchstash.errors import BadArgument, did_you_mean
from fetchstash.text.untyped import as_array, as_object

GATEWAY = "gateway"
"""The name of the one gateway: a rule for ``fetchstash`` must not allow the tools of others."""

_LOGIN_KEYS = ("oauth", "oauth_resource", "scopes", "auth", "authProviderType", "headersHelper")
"""They say that the host itself logs in to a server, or runs a program for its headers."""

_TIMES = ("startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "timeout")
"""How long a host waits for a server: for one gateway as long as for the slowest behind it."""

_ENTRY_KEYS = ("type", "command", "args", "env")
_TOKEN_KEYS = ("env_http_headers", "bearer_token_env_var")
_FILTERS = (*FILTER_KEYS[0], *FILTER_KEYS[1])
_PLAIN_KEYS = (*_ENTRY_KEYS, "cwd", *URL_KEYS, "headers", "http_headers", *_FILTERS)
"""What a gateway reads in the host's place, for any number of servers side by side."""

_NEUTRAL = {"disabled": False, "enabled": True, "trust": False, "source": "custom"}
"""What says no more of a server than that it runs as any other."""

_CLAUDE_FILES = ("settings.json", "settings.local.json")

BACKUPS = 20
"""Backups of a file that are looked at, newest first."""


class _UnsafeForm(BadArgument):
    """After a change, the re-read file does not hold the intended values."""


@dataclass
class _Outcome:
    """The text of a host's file after an edit, and the result for each server."""

    text: str
    known: dict[str, None] = field(default_factory=dict[str, None])
    changed: dict[str, None] = field(default_factory=dict[str, None])
    refusals: dict[str, BadArgument] = field(default_factory=dict[str, BadArgument])
    apart: dict[str, str] = field(default_factory=dict[str, str])
    """Why a server keeps a gateway of its own."""


@dataclass(frozen=True)
class _Wrapping:
    """What ``register --wrap`` does: ``program`` is how the host starts fetchstash.

    ``rule`` says where else the host's settings name a server, "" for nowhere.
    """

    host: Host
    names: tuple[str, ...]
    program: list[str]
    each: bool
    rule: Callable[[str], str]

    def outcome(self, text: str) -> _Outcome:
        """Return the new text of a file. Raises BadArgument."""
        outcome = _Outcome(text)
        for path in _sections(self.host, text):
            servers = servers_of(self.host, outcome.text, path)
            together = self._wrapped(servers, outcome)
            text = servers.text
            try:
                self._put_together(servers, together)
            except _UnsafeForm:
                servers = servers_of(self.host, text, path)
                for name in together:
                    _wrap_alone(servers, name, self.program)
                    outcome.apart[name] = "the file is written in a form that takes no other server"
            outcome.text = servers.text
        return outcome

    def _wrapped(self, servers: Servers, outcome: _Outcome) -> list[str]:
        """Put a gateway in place of servers that keep one of their own; return the others."""
        together: list[str] = []
        for name, entry in servers.entries.items():
            outcome.known[name] = None
            if (self.names and name not in self.names) or own_words(entry) is not None:
                continue
            try:
                self._refuse(name, entry)
                why = "--each" if self.each else self.rule(name) or _more_than_a_command(entry)
                if why:
                    _wrap_alone(servers, name, self.program)
                    outcome.apart[name] = why
                else:
                    together.append(name)
                outcome.changed[name] = None
            except BadArgument as error:
                outcome.refusals[name] = error
        return together

    def _refuse(self, name: str, entry: Entry) -> None:
        """Raise BadArgument for a server that cannot be behind a gateway."""
        title = self.host.title
        if entry.get("experimental_environment") == "remote":
            raise BadArgument(f"{title} starts it on another machine", "Leave it out.")
        if isinstance(entry.get("command"), str) and args_of(entry) is not None:
            return
        if not any(isinstance(entry.get(key), str) for key in URL_KEYS):
            reason = "its entry has neither a command nor a URL that can be read"
            raise BadArgument(reason, "Leave it out, or write them as texts.")
        if (transport := entry.get("type")) in ("sse", "ws"):
            reason = f"its transport is {transport}, and the gateway has streamable HTTP alone"
            raise BadArgument(reason, "Give it a URL of streamable HTTP, or leave it out.")
        tables = (as_object(entry.get(key)) for key in HEADER_KEYS)
        headers = {header.lower() for table in tables for header in table}
        has_token = "bearer_token_env_var" in entry or "authorization" in headers
        if not has_token and any(key in entry for key in _LOGIN_KEYS):
            reason = f"{title} logs in to it itself, and that login does not reach the gateway"
            raise BadArgument(reason, "Give it a token as a header, or leave it out.")
        if name not in self.names and _may_log_in(entry):
            reason = f"its settings have no token, so {title} may log in to it itself"
            raise BadArgument(reason, f"If it needs no login, name it: --wrap {name}.")

    def _put_together(self, servers: Servers, names: list[str]) -> None:
        """Put one gateway in place of several servers, and of a plainly registered fetchstash."""
        entries = servers.entries
        before = _kept_by(entries.get(GATEWAY, {}))
        if names and GATEWAY in entries and not before:
            what = f"{self.host.title} has a server {GATEWAY}, which is the name of the gateway."
            raise BadArgument(what, "Rename it, or have one gateway for each server: --each.")
        own = entries.get(NAME, {})
        is_plain = own_words(own) in (["serve"], ["serve", *BROWSER_FLAGS])
        if names and is_plain and not self.rule(NAME) and not _more_than_a_command(own):
            names = [*names, NAME]
        if not before and len(names) == 1:  # there is nothing to share
            _wrap_alone(servers, names[0], self.program)
        elif names:
            sources = before | {name: servers.source(name, entries[name]) for name in names}
            _put_gateway(servers, self.host, self.program, sources)
            for name in names:
                _remove(servers, name)


def wrap(
    host: Host, names: tuple[str, ...], start: list[str], env: Environment, *, each: bool = False
) -> str:
    """Put servers of a host behind the gateway: those named, or all. Return lines.

    ``each``: behind one of its own. Raises BadArgument, Busy or StoreError, and then nothing was
    changed.
    """
    program = start[: start.index("serve")]

    def work(text: str) -> _Outcome:
        return _Wrapping(host, names, program, each, _rule_of(host, env, text)).outcome(text)

    outcome, lines = _change(host, names, env, work, "Wrapped")
    apart = {name: why for name, why in outcome.apart.items() if why != "--each"}
    lines += [f"{name} has a gateway of its own: {why}." for name, why in apart.items()]
    if host.name == "claude-code":
        lines += _permissions(outcome.apart, env, outcome.text)
    return "\n".join(lines)


def unwrap(host: Host, names: tuple[str, ...], env: Environment) -> str:
    """Restore wrapped servers: those named, or all. Return lines for the person.

    A file that nobody changed since gets its old bytes back.
    """
    work = partial(_unwrapped_text, host, names, env)
    return "\n".join(_change(host, names, env, work, "Brought back")[1])


def _change(
    host: Host, names: tuple[str, ...], env: Environment, work: Callable[[str], _Outcome], done: str
) -> tuple[_Outcome, list[str]]:
    """Change a host's file; return the result for each server, and lines for the person."""
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


def _wrap_alone(servers: Servers, name: str, program: list[str]) -> None:
    """Replace one server by a gateway; the entry's other keys stay."""
    entry = servers.entries[name]
    read = (*_PLAIN_KEYS, *_TOKEN_KEYS, *_LOGIN_KEYS)
    tokens = [*as_object(entry.get("env_http_headers")).values(), entry.get("bearer_token_env_var")]
    passed_on = [token for token in tokens if token]
    kept = [key for key in entry if key in read or (passed_on and key == "env_vars")]
    put = _entry_of(program, [], {name: servers.source(name, kept)})
    put |= {"type": "stdio"} if "type" in entry else {}
    if passed_on:  # Codex passes few variables on
        put["env_vars"] = [*entry.get("env_vars", ()), *passed_on]
    _apply(servers, name, [key for key in kept if key not in put], put)


def _put_gateway(
    servers: Servers, host: Host, program: list[str], sources: Mapping[str, Any]
) -> None:
    """Write the entry of the one gateway; ``sources`` holds the entries that it replaces."""
    entries = [servers.values(source) for source in sources.values()]
    flags = ["--with-fetch"] if NAME in sources else []
    put: dict[str, Any] = {**host.extra, **_entry_of(program, flags, sources), **host.patience}
    for key in _TIMES:
        times = [entry[key] for entry in entries if key in entry]
        put |= {key: max([*times, put.get(key, 0)])} if times else {}
    if NAME in sources:
        own = servers.values(sources[NAME])
        put["env"] |= as_object(own.get("env"))
        if BROWSER_FLAGS[0] in (args_of(own) or ()):
            put["env"]["FETCHSTASH_FETCH_BROWSER"] = BROWSER_FLAGS[1]
    if GATEWAY in servers.entries:
        _apply(servers, GATEWAY, [key for key in servers.entries[GATEWAY] if key not in put], put)
    else:
        _add(servers, GATEWAY, put)


def _entry_of(program: list[str], flags: list[str], sources: Mapping[str, Any]) -> dict[str, Any]:
    """Return a gateway's entry. Its command line holds no secret and no URL."""
    variables: dict[str, str] = {}

    def moved(value: Any) -> Any:
        """Move each text that the host may fill in (``${TOKEN}``) to a variable of its own."""
        if not (isinstance(value, str) and "$" in value):
            return value
        name = f"{SERVERS_VARIABLE}_{len(variables) + 1}"
        variables[name] = value
        return name

    # Codex, whose entries are texts of TOML, fills nothing in.
    kept = {
        name: source if isinstance(source, str) else mapped(source, moved)
        for name, source in sources.items()
    }
    listed = {SERVERS_VARIABLE: json.dumps(kept, ensure_ascii=False)}
    words = [*program[1:], "wrap", *flags]
    return {"command": program[0], "args": words, "env": {**listed, **variables}}


def _kept_by(entry: Entry) -> dict[str, Any]:
    """Return the sources of the servers that a gateway replaced, {} for any other entry."""
    variables = as_object(entry.get("env"))
    if (own_words(entry) or [""])[0] != "wrap":
        return {}
    try:
        sources = as_object(json.loads(variables.get(SERVERS_VARIABLE, "")))
    except (ValueError, TypeError):
        return {}
    return {name: filled_in(source, variables) for name, source in sources.items()}


def _unwrapped_text(host: Host, names: tuple[str, ...], env: Environment, text: str) -> _Outcome:
    """Return the settings file without gateways, byte for byte as it was if that was recorded."""
    outcome, program = _Outcome(text), list[str]()
    for path in _sections(host, text):
        servers = servers_of(host, outcome.text, path)
        for name, entry in servers.entries.items():
            sources = _kept_by(entry)
            outcome.known |= dict.fromkeys([name, *sources])
            chosen = [key for key in sources if not names or key in names or name in names]
            if chosen:
                program = [str(entry["command"]), *takewhile("wrap".__ne__, args_of(entry) or ())]
                _bring_back(servers, host, program, name, chosen)
                outcome.changed |= dict.fromkeys(key for key in chosen if key != NAME)
            elif not sources and (own_words(entry) or [""])[0] == "wrap":
                reason = "it was put behind the gateway or changed by hand, so what it was is"
                why = BadArgument(f"{reason} not known", "Change it by hand.")
                outcome.refusals |= {} if names and name not in names else {name: why}
        outcome.text = servers.text
    changed = tuple(outcome.changed)
    for backup in backups_of(host.file(env))[:BACKUPS] if changed else ():
        with suppress(Malformed, BadArgument, UnicodeDecodeError, OSError):
            old = backup.read_bytes().decode("utf-8")
            for each in (False, True):
                wrapping = _Wrapping(host, changed, program, each, _rule_of(host, env, old))
                again = wrapping.outcome(old)
                if again.text == text and again.changed.keys() == outcome.changed.keys():
                    return replace(outcome, text=old)
    return outcome


def _bring_back(
    servers: Servers, host: Host, program: list[str], gateway: str, chosen: list[str]
) -> None:
    """Restore the servers that a gateway replaced."""
    entry = servers.entries[gateway]
    sources = _kept_by(entry)
    if gateway in sources:  # in its place
        put = servers.values(sources[gateway])
        ours = [*_ENTRY_KEYS, *(["env_vars"] if any(key in put for key in _TOKEN_KEYS) else [])]
        _apply(servers, gateway, [key for key in ours if key in entry and key not in put], put)
        return
    left = {name: source for name, source in sources.items() if name not in chosen}
    if set(left) <= {NAME}:
        chosen, left = [*chosen, *left], {}
    for name in (name for name in sources if name in chosen):
        if name in servers.entries:
            what = f"There is another server {name} now."
            raise BadArgument(what, "Nothing was changed. Rename it first.")
        _add(servers, name, servers.values(sources[name]))
    if left:
        _put_gateway(servers, host, program, left)
    else:
        _remove(servers, gateway)


def _rule_of(host: Host, env: Environment, text: str) -> Callable[[str], str]:
    """Return a function that names the host's settings which refer to a server, "" for none."""
    if host.name == "gemini":
        listed = as_object(value_at(text, ["mcp"]))
        allowed, excluded = (listed.get(key) or () for key in ("allowed", "excluded"))
        listing = f"mcp.allowed or mcp.excluded of {host.title} name servers"
        return lambda name: listing if allowed or name in excluded else ""
    rules = [rule for _, rule in _claude_rules(env, text)] if host.name == "claude-code" else []
    naming = f"a permission of {host.title} names it"
    return lambda name: naming if any(_is_for(rule, name) for rule in rules) else ""


def _is_for(rule: str, server: str) -> bool:
    """Return whether a permission of Claude Code is for a server or its tools."""
    return rule == _rule(server) or rule.startswith(f"{_rule(server)}__")


def _rule(server: str) -> str:
    """Return the permission for all tools of a server."""
    return "mcp__" + re.sub("[^A-Za-z0-9_-]", "_", server)


def _claude_rules(env: Environment, text: str) -> Iterator[tuple[str, str]]:
    """Yield the permissions in the settings of Claude Code, the person's and its projects'."""
    homes = [env.folder("CLAUDE_CONFIG_DIR", env.home / ".claude")]
    homes += [Path(project, ".claude") for project in as_object(value_at(text, ["projects"]))]
    for file in (home / name for home in homes for name in _CLAUDE_FILES):
        with suppress(OSError, UnicodeDecodeError, Malformed):
            permissions = as_object(value_at(file.read_text(encoding="utf-8"), ["permissions"]))
            for kind in ("allow", "ask", "deny"):
                for rule in as_array(permissions.get(kind)):
                    yield kind, str(rule)


def _permissions(names: Iterable[str], env: Environment, text: str) -> Iterator[str]:
    """Yield a line for each server of which Claude Code allows single tools alone."""
    allowed = {rule for kind, rule in _claude_rules(env, text) if kind == "allow"}
    for name in names:
        own = _rule(name)
        missing = [rule for tool in ARTIFACT_TOOLS if (rule := f"{own}__{tool}") not in allowed]
        has_all = not missing or own in allowed or f"{own}__*" in allowed
        if not has_all and any(_is_for(rule, name) for rule in allowed):
            rules = ", ".join(f'"{rule}"' for rule in missing)
            asks = f"Claude Code asks before each artifact tool of {name}: to allow them add "
            yield f"{asks}{rules} to permissions.allow in its settings.json."


def _apply(servers: Servers, name: str, removed: Iterable[str], put: Entry) -> None:
    """Change an entry in its file."""
    expected = {key: item for key, item in servers.entries[name].items() if key not in removed}
    servers.change(name, removed, put)
    _check(name, servers.entries.get(name) == {**expected, **put})


def _add(servers: Servers, name: str, entry: Entry) -> None:
    """Add a server to its file."""
    expected = {**servers.entries, name: entry}
    servers.add(name, entry)
    _check(name, servers.entries == expected)


def _remove(servers: Servers, name: str) -> None:
    """Remove a server from its file; all others stay."""
    expected = {key: entry for key, entry in servers.entries.items() if key != name}
    servers.remove(name)
    _check(name, servers.entries == expected)


def _check(name: str, is_as_meant: bool) -> None:
    if not is_as_meant:
        what = f"The entry of {name} is written in a form that cannot be changed safely."
        raise _UnsafeForm(what, "Nothing was changed. Change it by hand.")


def _sections(host: Host, text: str) -> list[list[str]]:
    """Return the paths of keys under which a host's file has servers."""
    sections = [[host.section]]
    if host.name == "claude-code":  # `claude mcp add` without a scope adds to a project here
        projects = as_object(value_at(text, ["projects"]))
        filled = (name for name in projects if as_object(projects[name]).get("mcpServers"))
        sections += [["projects", name, "mcpServers"] for name in filled]
    return sections


def _more_than_a_command(entry: Entry) -> str:
    """Return the keys of an entry that a shared gateway cannot carry, "" if there are none."""
    known = (*_PLAIN_KEYS, *_TIMES)
    empty: tuple[Any, ...] = (None, "", [], {})
    more = [
        key
        for key, item in entry.items()
        if key not in known and item not in empty and item != _NEUTRAL.get(key)
    ]
    return f"its entry has {', '.join(more)}" if more else ""


def _may_log_in(entry: Entry) -> bool:
    """Return whether the host may log in to an HTTPS server by itself, as no header is set."""
    url = next((str(entry[key]) for key in URL_KEYS if key in entry), "")
    is_open = "?" not in url and not any(entry.get(key) for key in HEADER_KEYS)
    return url.startswith("https:") and is_open

"""The settings file: its tables, variables, and the servers of the gateway."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from fetchstash.errors import BadArgument, did_you_mean
from fetchstash.text.untyped import as_object, is_array, is_object

# A header may name its scheme first (RFC 9110, 11.4): the variable then has the token alone.
_REFERENCE = re.compile(r"((?:[A-Za-z]+ )?)env:(.*)", re.DOTALL)


def variable_of(value: str) -> str:
    """Return the name of the variable that ``value`` names, "" for any other value."""
    reference = _REFERENCE.fullmatch(value)
    return reference[2] if reference else ""


def from_environment(value: str, environment: Mapping[str, str]) -> str | None:
    """Resolve ``env:NAME`` in ``value``; return None if the variable is not set.

    ``Bearer env:NAME`` becomes the scheme and the variable's value.
    """
    reference = _REFERENCE.fullmatch(value)
    if reference is None:
        return value
    read = environment.get(reference[2])
    return None if read is None else reference[1] + read


CONFIG_VARIABLE = "FETCHSTASH_CONFIG"


def read_file(named: Path | None, environment: Mapping[str, str]) -> tuple[Path, dict[str, Any]]:
    """Return the path and the contents of the settings file, {} if the default one is missing.

    ``named`` is the file named by an argument. Raises BadArgument.
    """
    by_variable = environment.get(CONFIG_VARIABLE)
    path = named or (Path(by_variable) if by_variable else None)
    optional = path is None
    if path is None:
        import platformdirs  # noqa: PLC0415 - only where no file is named

        path = platformdirs.user_config_path("fetchstash", appauthor=False) / "fetchstash.toml"
    try:
        text = path.read_text(encoding="utf-8-sig")
        import tomllib  # noqa: PLC0415 - only where there is a file

        return path, tomllib.loads(text)
    except FileNotFoundError:
        if optional:
            return path, {}
        raise BadArgument(f"There is no settings file {path}.", "Name an existing one.") from None
    except OSError as error:
        what = f"The settings file {path} cannot be read: {error.strerror}."
        raise BadArgument(what, "Make it readable or name another.") from None
    except UnicodeDecodeError:
        what = f"The settings file {path} is not UTF-8."
        raise BadArgument(what, "Save it in that encoding.") from None
    except ValueError as error:  # TOMLDecodeError is one
        what = f"The settings file {path} is not TOML: {error}."
        raise BadArgument(what, "Correct that line.") from None


def tables(
    data: Mapping[str, Any], setting: str, key: str, origin: str
) -> dict[str, Mapping[str, Any]]:
    """Return the tables [setting.KEY] of the file by their keys."""
    found: Any = data
    for name in setting.split("."):
        found = as_object(found).get(name, {})
    if not is_object(found):
        shown = "no table" if setting == "fetch.headers" else repr(found)  # it may be a secret
        what = f"{setting} is {shown} ({origin})."
        raise BadArgument(what, f"It must be tables: [{setting}.{key}].")
    for name, values in found.items():
        if not isinstance(values, dict):
            what = f"{setting}.{name} is no table ({origin})."
            raise BadArgument(what, f"It must be a table: [{setting}.{key}].")
    return found


def headers_of(
    data: Mapping[str, Any], origin: str, environment: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return the request headers of the tables ``[fetch.headers."ORIGIN"]``.

    ``env:NAME`` reads the environment. No error shows a value.
    """
    headers: dict[str, dict[str, str]] = {}
    for site, values in tables(data, "fetch.headers", '"https://…"', origin).items():
        headers[site] = {}
        for name, value in values.items():
            setting = f'fetch.headers."{site}".{name}'
            if not isinstance(value, str):
                raise BadArgument(f"{setting} is no text ({origin}).", "Write it in quotes.")
            read = from_environment(value, environment)
            if read is None:
                variable = variable_of(value)
                what = f"{setting} reads the environment variable {variable}, which is not set."
                raise BadArgument(what, "Set it for the server, or take the header out.")
            headers[site][name] = read
    if not headers:
        return headers
    from fetchstash.fetch import OwnFields, origin_headers  # noqa: PLC0415 - few set any

    OwnFields(headers)  # reads files of cookies, to say now what is wrong with one
    return origin_headers(headers)


ARTIFACT_TOOLS = (
    "get_search_content",
    "artifact_grep",
    "artifact_slice",
    "artifact_search",
    "artifact_info",
)
"""The tools that read what is kept: those that a gateway shows, and a token of the scope "read"."""

THRESHOLD_CHARS = 10_000
CALL_SECONDS = 300.0
"""How long a server may be silent about a call: neither an answer nor progress."""

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|PRIVATE_?KEY", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WrappedServer:
    """A server to run behind fetchstash: either a command with its arguments, or a URL.

    ``env`` and ``headers`` may say ``env:NAME``, which reads our environment. ``cwd`` is the folder
    that a command runs in. ``tools`` are the only ones that are offered, if it names any, and those
    of ``hidden_tools`` are not. ``prefix`` is put before a name that another server has, too. A
    result over ``threshold`` characters becomes a preview; those of the tools named in
    ``leave_alone`` never do, and with ``leave_resources`` no resource. ``timeout`` is in seconds.
    The tools of ``no_artifacts`` ("*": all) get no text of an artifact for its reference.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    tools: tuple[str, ...] = ()
    hidden_tools: tuple[str, ...] = ()
    prefix: str = ""
    threshold: int = THRESHOLD_CHARS
    leave_alone: tuple[str, ...] = ()
    leave_resources: bool = False
    timeout: float = CALL_SECONDS
    no_artifacts: tuple[str, ...] = ()

    @property
    def own_prefix(self) -> str:
        """The prefix for a name that clashes. Models take no other characters in it."""
        return self.prefix or re.sub("[^A-Za-z0-9_-]", "_", self.name) + "_"

    def offers(self, tool: str) -> bool:
        """Return whether a tool may be listed and called."""
        return tool not in self.hidden_tools and (not self.tools or tool in self.tools)

    def secrets(self) -> tuple[str, ...]:
        """Return the values of ``env`` and ``headers``, which no log may show.

        With those of our variables that are named like secrets: the server inherits them.
        """
        inherited = [value for name, value in os.environ.items() if is_secret_name(name)]
        stated = [
            from_environment(value, os.environ) or ""
            for value in (*self.env.values(), *self.headers.values())
        ]
        # A log has lines, and a header's token may stand without its scheme.
        values = {piece for value in (*stated, *inherited) for piece in (value, *value.split())}
        return tuple(sorted((value for value in values if len(value) >= 8), key=len, reverse=True))


def is_secret_name(name: str) -> bool:
    """Return whether a variable or argument of this name holds a secret."""
    return bool(_SECRET_NAME.search(name))


def resolved(server: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return ``values`` with each ``env:NAME`` read. Raises BadArgument for one that is not set."""
    result: dict[str, str] = {}
    for name, value in values.items():
        read = from_environment(value, os.environ)
        if read is None:
            what = f"The variable {variable_of(value)}, which {server} reads, is not set."
            raise BadArgument(what, f"Set it, or write the value of {name} itself.")
        result[name] = read
    return result


def servers_of_file(file: Path | None, environment: Mapping[str, str]) -> dict[str, WrappedServer]:
    """Return the servers of the settings file, and read nothing else of it. Raises BadArgument."""
    source, data = read_file(file, environment)
    return wrapped_servers(data, f"file {source}", environment)


def wrapped_servers(
    data: Mapping[str, Any], origin: str, environment: Mapping[str, str]
) -> dict[str, WrappedServer]:
    """Return the servers of the tables ``[wrap.servers.NAME]``. Raises BadArgument.

    Where ``register --wrap`` took servers from a host, these are run in their place.
    """
    if SERVERS_VARIABLE in environment:
        return _servers_of_host(environment)
    servers = tables(data, "wrap.servers", "NAME", origin)
    return {name: _server(name, values, origin) for name, values in servers.items()}


SERVERS_VARIABLE = "FETCHSTASH_SERVERS"
"""Has the entries of the servers that ``register --wrap`` took out of a host's file, by name.

A text in them that the host fills in stands in a variable of its own, ``FETCHSTASH_SERVERS_1`` …,
because what it becomes may hold any character.
"""

URL_KEYS = ("url", "httpUrl", "serverUrl")
HEADER_KEYS = ("headers", "http_headers", "env_http_headers", "bearer_token_env_var")
FILTER_KEYS = (("enabled_tools", "includeTools"), ("disabled_tools", "excludeTools"))
"""The only tools of a server that Codex and Gemini CLI show, and those that they hide."""


def mapped(value: Any, change: Callable[[Any], Any], *, names: bool = False) -> Any:
    """Return a JSON value with ``change`` made to each value in it, and to its names if asked."""
    if is_array(value):
        return [mapped(item, change, names=names) for item in value]
    if is_object(value):
        return {
            change(name) if names else name: mapped(item, change, names=names)
            for name, item in value.items()
        }
    return change(value)


def filled_in(entry: Any, variables: Mapping[str, str]) -> Any:
    """Return a server's entry with the values of the environment variables that it refers to."""

    def text(value: Any) -> Any:
        is_name = isinstance(value, str) and value.startswith(f"{SERVERS_VARIABLE}_")
        return variables.get(value, value) if is_name else value

    return mapped(entry, text)


def _servers_of_host(environment: Mapping[str, str]) -> dict[str, WrappedServer]:
    try:
        entries = json.loads(environment[SERVERS_VARIABLE])
        for name, entry in entries.items():
            if isinstance(entry, str):  # of Codex, with its comments
                import tomllib  # noqa: PLC0415 - only where it is needed

                entries[name] = tomllib.loads(entry)
        return {
            name: _server(name, _values_of(filled_in(entry, environment)), SERVERS_VARIABLE)
            for name, entry in entries.items()
            if name != "fetchstash"  # which the gateway is itself
        }
    except (ValueError, TypeError, AttributeError):
        what = f"{SERVERS_VARIABLE} holds no servers that can be read."
        raise BadArgument(what, "Run fetchstash register HOST --unwrap, then --wrap.") from None


def _values_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a server as the entry of a host has it."""
    values = {key: entry[key] for key in ("command", "args", "env", "cwd") if entry.get(key)}
    if "command" not in values:
        values = {"url": next((entry[key] for key in URL_KEYS if key in entry), "")}
        stated: Mapping[str, str] = entry.get("headers") or entry.get("http_headers") or {}
        headers = dict(stated)
        named: Mapping[str, str] = entry.get("env_http_headers") or {}
        headers |= {header: f"env:{variable}" for header, variable in named.items()}
        if token := entry.get("bearer_token_env_var"):
            headers["Authorization"] = f"Bearer env:{token}"
        values |= {"headers": headers}
    for setting, keys in zip(("tools", "hidden_tools"), FILTER_KEYS, strict=True):
        for key in keys:
            values |= {setting: entry[key]} if entry.get(key) else {}
    return values


def _server(name: str, values: Mapping[str, Any], origin: str) -> WrappedServer:
    setting = f"wrap.servers.{name}"
    kinds = {item.name: item.type for item in fields(WrappedServer) if item.name != "name"}
    for key, value in values.items():
        if key not in kinds:
            what = f"There is no setting {setting}.{key} ({origin})."
            raise BadArgument(what, did_you_mean(key, kinds) or f"It has {', '.join(kinds)}.")
        if expected := _wrong(value, cast("str", kinds[key])):
            # The value may be a secret.
            what = f"{setting}.{key} has a wrong value ({origin})."
            raise BadArgument(what, f"It must be {expected}.")
    arguments: dict[str, Any] = {
        key: tuple(value) if is_array(value) else value for key, value in values.items()
    }
    server = WrappedServer(name, **arguments)
    if bool(server.command) == bool(server.url):
        raise BadArgument(f"{setting} needs a command or a url ({origin}).", "Give one of them.")
    if server.url and urlsplit(server.url).scheme not in ("http", "https"):
        raise BadArgument(f"{setting}.url is no http URL ({origin}).", "Correct it.")
    return server


def _wrong(value: Any, kind: object) -> str:
    """Return the expected type of a wrong value in words, "" if the value is right."""
    text = str(kind)
    if "Mapping" in text:
        table = value if is_object(value) else {"": None}
        ok, expected = all(isinstance(item, str) for item in table.values()), "a table of texts"
    elif "tuple" in text:
        items = value if is_array(value) else [None]
        ok, expected = all(isinstance(item, str) for item in items), "a list of texts"
    elif text in ("bool", "<class 'bool'>"):
        ok, expected = isinstance(value, bool), "true or false"
    elif text in ("int", "float", "<class 'int'>", "<class 'float'>"):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        ok, expected = number and value > 0, "a number over 0"
    else:
        ok, expected = isinstance(value, str), "a text"
    return "" if ok else expected

"""Read the settings: flags, environment, file, and tenants; write an example."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

from fetchstash.client import CompactionConfig, Policy
from fetchstash.config._keys import (
    AUTO,
    COUNTING_BYTES,
    DEFAULTS,
    KEYS,
    PROFILES,
    HttpLimits,
    IngestLimits,
    Key,
    OAuthLimits,
    QuotaLimits,
    TelemetryLimits,
    TenantRules,
    WrapLimits,
    profile_of,
)
from fetchstash.config._servers import (
    CONFIG_VARIABLE,
    SERVERS_VARIABLE,
    WrappedServer,
    headers_of,
    read_file,
    tables,
    wrapped_servers,
)
from fetchstash.errors import BadArgument, between, did_you_mean
from fetchstash.fetch import FetchLimits
from fetchstash.handlers import ExtractLimits
from fetchstash.store import StoreLimits, bucket_url, store_folder, store_of_tenant
from fetchstash.text import TRUNCATIONS, PreviewLimits, Truncation, ViewLimits


def advice(wrong: str, known: Iterable[str], prefix: str = "") -> str:
    """Return the nearest known name as a question, else where to look."""
    return did_you_mean(wrong, known, prefix) or "Check its name in docs/configuration.md."


_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def convert(key: Key, raw: Any, origin: str) -> Any:
    """Return the value of ``raw``: a string from outside, a value from TOML, or a list of these.

    Raises BadArgument for an invalid value.
    """
    items: list[Any] = [raw]
    if key.kind is tuple:
        items = list(cast("Sequence[Any]", raw)) if isinstance(raw, (list, tuple)) else [None]
    try:
        values = tuple(_scalar(key.item or key.kind, item) for item in items)
    except ValueError:
        what = f"{key.path} is {raw!r} ({origin})."
        raise BadArgument(what, f"It must be {_expected(key)}.") from None
    if key.item is int and not values:
        examples = ", ".join(map(str, key.default))
        what = f"{key.path} is empty ({origin})."
        raise BadArgument(what, f"Name one or more, such as {examples}, or take it out.")
    for value in values:
        what = f"{key.path} is {value!r} ({origin})."
        if not _within(key, value):
            raise BadArgument(what, f"It must be {_expected(key)}.")
        if key.choices and value not in key.choices:
            question = did_you_mean(str(value), key.choices)
            raise BadArgument(what, f"It must be {_expected(key)}. {question}".strip())
    return values if key.kind is tuple else values[0]


def _scalar(kind: type, raw: Any) -> Any:
    """Return ``raw`` as a bool, int, float or str. Raises ValueError if it is not one."""
    if kind is str:
        if isinstance(raw, str):
            return raw
    elif kind is bool:
        word = str(raw).lower()
        if word in (*_TRUE, *_FALSE):
            return word in _TRUE
    elif not isinstance(raw, bool) and (
        isinstance(raw, (str, int)) or (kind is float and isinstance(raw, float))
    ):
        return kind(raw)
    raise ValueError(raw)


def _within(key: Key, value: Any) -> bool:
    """Return whether a value is within the key's bounds: True if it is no number, False for NaN."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return True
    return (key.low is None or value >= key.low) and (key.high is None or value <= key.high)


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def _expected(key: Key) -> str:
    words = _WORDS[key.kind] if key.item is None else f"a list, each item {_WORDS[key.item]}"
    if key.choices:
        return f"one of {', '.join(key.choices)}"
    return words if key.low is None else f"{words}, {between(key.low, key.high)}"


_NAME = re.compile("[a-z0-9][a-z0-9-]{0,62}")
"""A name that is safe as a folder, in the key of a bucket and in a log."""

_OWN = {
    path: key
    for path, key in KEYS.items()
    if (key.section in ("fetch", "extract", "quota", "tenant") and path != "fetch.ask")
    or path in ("store.max_age_days", "store.max_total_bytes", "store.max_artifacts")
}
"""What may differ from tenant to tenant. Only ``tenant.delete`` changes the list of tools."""

_SECTIONS = tuple(dict.fromkeys(key.section for key in _OWN.values()))


@dataclass(frozen=True, slots=True)
class TenantTable:
    """The settings of one tenant that differ from those of all, and its request headers."""

    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    headers: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict[str, Mapping[str, str]], repr=False
    )


def tenant_tables(
    data: Mapping[str, Any], origin: str, environment: Mapping[str, str]
) -> dict[str, TenantTable]:
    """Return the tables ``[tenants.NAME]`` by name. Raises BadArgument, and shows no header."""
    tenants = tables(data, "tenants", "NAME", origin)
    return {name: _table(name, own, origin, environment) for name, own in tenants.items()}


def _table(
    name: str, sections: Mapping[str, Any], origin: str, environment: Mapping[str, str]
) -> TenantTable:
    setting = f"tenants.{name}"
    if not _NAME.fullmatch(name):
        what = f"{setting[:100]!r} is no name of a tenant ({origin})."
        raise BadArgument(what, "Use up to 63 of a-z, 0-9 and -, and no - at the beginning.")
    values: dict[str, Any] = {}
    for section, items in sections.items():
        if section not in _SECTIONS or not isinstance(items, dict):
            what = f"There is no table [{setting}.{section}] ({origin})."
            raise BadArgument(what, f"There are {', '.join(_SECTIONS)}.")
        for item, raw in cast("Mapping[str, Any]", items).items():
            path = f"{section}.{item}"
            if path == "fetch.headers":
                continue
            if path not in _OWN:
                raise _unknown(f"{setting}.{path}", path, origin)
            key = replace(_OWN[path], section=f"{setting}.{section}")
            values[path] = convert(key, raw, origin)
    try:
        headers = headers_of(sections, origin, environment)
    except BadArgument as error:
        raise BadArgument(f"{setting}: {error.what}", error.next_step) from None
    return TenantTable(values, headers)


def _unknown(setting: str, path: str, origin: str) -> BadArgument:
    if path in KEYS:
        what = f"{setting} cannot be set for one tenant ({origin})."
        return BadArgument(what, f"Set {path} for all.")
    return BadArgument(f"There is no setting {setting!r} ({origin}).", advice(path, _OWN))


_PREFIX = "FETCHSTASH_"
_OF_THE_FILE_ALONE = ("context.truncation", "fetch.headers", "wrap.servers")
_OUTPUT_VARIABLE = "MAX_MCP_OUTPUT_TOKENS"
_STORE_PLACES = {"store.url": "store.folder", "store.folder": "store.url"}


@dataclass(frozen=True, slots=True)
class Settings:
    """The limits of all packages.

    ``values`` maps each key to its value, ``origins`` to where that came from. ``client`` and
    ``history`` are for agents that use fetchstash.client, ``truncation`` holds the profiles of
    context_result. ``output_is_bounded``: the user bounds what Claude Code shows of a result, by
    its own MAX_MCP_OUTPUT_TOKENS. ``wrapped`` has the servers behind the gateway, ``tenants`` what
    differs for a tenant of a service, by name.
    """

    profile: str
    views: ViewLimits
    fetch: FetchLimits
    store: StoreLimits
    ingest: IngestLimits
    extract: ExtractLimits
    context: PreviewLimits
    client: Policy
    history: CompactionConfig
    telemetry: TelemetryLimits
    wrap: WrapLimits
    http: HttpLimits
    quota: QuotaLimits
    tenant: TenantRules
    oauth: OAuthLimits
    truncation: Mapping[str, Truncation]
    values: Mapping[str, Any]
    origins: Mapping[str, str]
    output_is_bounded: bool = False
    wrapped: Mapping[str, WrappedServer] = field(default_factory=dict[str, WrappedServer])
    tenants: Mapping[str, TenantTable] = field(default_factory=dict[str, TenantTable])

    def views_for(self, client_name: str) -> ViewLimits:
        """Return the limits for a client by the name that it gives itself (clientInfo).

        A named profile goes before it, and so does every limit that was set.
        """
        profile = profile_of(client_name) if self.profile == AUTO else self.profile
        limits = {
            name: value
            for name, value in PROFILES[profile].items()
            if self.origins[f"views.{name}"] == "default"
        }
        return replace(self.views, **limits, count_bytes=profile in COUNTING_BYTES)

    @property
    def tools_differ(self) -> bool:
        """Whether one tenant of a service is offered a tool that another is not."""
        own = (table.values.get("tenant.delete") for table in self.tenants.values())
        return any(delete not in (None, self.tenant.delete) for delete in own)

    def for_tenant(self, name: str) -> "Settings":
        """Return the settings of one tenant of a service: its own values, and a store of its own.

        It has no access to the machine: no file may be read, and no person is asked about a private
        host. Domains that are denied to all stay denied.
        """
        own = self.tenants.get(name, TenantTable())
        values = {**self.values, **own.values, "fetch.ask": False, "ingest.read_roots": ()}
        if "fetch.deny_domains" in own.values:
            values["fetch.deny_domains"] += self.values["fetch.deny_domains"]
        settings = _settings(values, self.origins, self.truncation)
        store, log = settings.store, settings.telemetry.event_log
        if log:
            log = str(Path(log).parent / "tenants" / name / Path(log).name)
        return replace(
            settings,
            fetch=replace(settings.fetch, headers={**self.fetch.headers, **own.headers}),
            store=store_of_tenant(store, name),
            telemetry=replace(settings.telemetry, event_log=log),
        )


def load(
    arguments: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Settings:
    """Read the settings.

    ``arguments`` maps keys ("fetch.ports") to values from the command line; ``file`` is the
    settings file named there. Raises BadArgument for an unknown key or variable and for an invalid
    value; it names the setting, its source and what is valid.
    """
    environment = environment or {}
    source, data = read_file(file, environment)
    truncation = _truncations(data, f"file {source}")
    headers = headers_of(data, f"file {source}", environment)
    wrapped = wrapped_servers(data, f"file {source}", environment)
    layers: list[tuple[str, Mapping[str, Any]]] = [
        ("argument", arguments or {}),
        *_environment_layers(environment),
        (f"file {source}", _of_file(data, source)),
    ]
    chosen: dict[str, tuple[Any, str]] = {}
    for origin, layer in layers:
        for path, raw in layer.items():
            if any(key.startswith(f"{path}.") for key in KEYS):
                what = f"{path!r} is a section, not a setting ({origin})."
                raise BadArgument(what, f"Name each of its settings as '{path}.NAME'.")
            if path not in KEYS:
                raise BadArgument(f"There is no setting {path!r} ({origin}).", advice(path, KEYS))
            if path not in chosen and not _is_overridden(path, raw, origin, chosen):
                chosen[path] = (convert(KEYS[path], raw, origin), origin)
    profile = chosen.get("views.profile", (AUTO, ""))[0]
    for name, value in PROFILES.get(profile, {}).items():
        chosen.setdefault(f"views.{name}", (value, f"profile {profile}"))
    defaults = {path: (key.default, "default") for path, key in KEYS.items()}
    chosen = defaults | chosen
    values = {path: value for path, (value, _) in chosen.items()}
    origins = {path: origin for path, (_, origin) in chosen.items()}
    _place_store(values)
    settings = _settings(values, origins, truncation)
    return replace(
        settings,
        fetch=replace(settings.fetch, headers=headers),
        output_is_bounded=bool(environment.get(_OUTPUT_VARIABLE)),
        wrapped=wrapped,
        tenants=tenant_tables(data, f"file {source}", environment),
    )


_WHOLE = ("fetch", "http", "ingest", "oauth", "quota", "telemetry", "tenant", "wrap")
"""Sections whose settings are the fields of one room's limits, and all of them."""


def _is_overridden(path: str, raw: Any, origin: str, chosen: Mapping[str, tuple[Any, str]]) -> bool:
    """Return whether a stronger source sets the store by the other setting (url or folder).

    A bucket has both: the folder is that of its cache.
    """
    value, other = chosen.get(_STORE_PLACES.get(path, ""), (None, origin))
    url = raw if path == "store.url" else value
    if path in _STORE_PLACES and bucket_url(str(url)):
        return False
    return other.split()[0] != origin.split(maxsplit=1)[0]


def _settings(
    values: Mapping[str, Any], origins: Mapping[str, str], truncation: Mapping[str, Truncation]
) -> Settings:
    def section(name: str) -> dict[str, Any]:
        return {key.name: values[path] for path, key in KEYS.items() if key.section == name}

    views = section("views")
    profile = views.pop("profile")
    store = section("store")
    context = PreviewLimits(**section("context"))
    client = section("client")
    history = CompactionConfig(
        client.pop("history_max_tokens"),
        client.pop("history_target_tokens"),
        client.pop("summarizer_max_tokens"),
    )
    return Settings(
        profile=profile,
        views=ViewLimits(**views, count_bytes=profile in COUNTING_BYTES),
        store=StoreLimits(folder=Path(store.pop("folder")).expanduser(), **store),
        extract=ExtractLimits(**section("extract"), preview=context),
        context=context,
        client=Policy(**client),
        history=history,
        **{name: type(DEFAULTS[name][0])(**section(name)) for name in _WHOLE},
        truncation=truncation,
        values=values,
        origins=origins,
    )


def _place_store(values: dict[str, Any]) -> None:
    """Read the folder out of ``store.url``, or take the default one."""
    url = values["store.url"]
    if url and values["store.folder"] and not bucket_url(url):
        next_step = "Set one: store.folder is short for store.url file:FOLDER."
        raise BadArgument("Both store.url and store.folder are set.", next_step)
    default = values["store.folder"]
    if not default:
        import platformdirs  # noqa: PLC0415 - only where the folder is not named

        path = platformdirs.user_cache_path if bucket_url(url) else platformdirs.user_data_path
        default = str(path("fetchstash", appauthor=False))
    folder = store_folder(StoreLimits(Path(default), url))
    values["store.folder"] = default if folder is None else str(folder)


def _environment_layers(environment: Mapping[str, str]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    by_variable = {key.variable: key for key in KEYS.values()}
    for name, value in environment.items():
        own = (CONFIG_VARIABLE, SERVERS_VARIABLE)
        if not name.startswith(_PREFIX) or name.startswith(own):
            continue
        key = by_variable.get(name)
        if key is None:
            what = f"The environment variable {name} is no setting."
            raise BadArgument(what, advice(name, by_variable, _PREFIX))
        items = [item.strip() for item in value.split(",") if item.strip()]
        yield f"environment variable {name}", {key.path: items if key.kind is tuple else value}


def _of_file(data: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return a file's values by their keys."""
    sections = dict.fromkeys([*(key.section for key in KEYS.values()), "tenants"])
    layer: dict[str, Any] = {}
    for section, values in data.items():
        if section == "tenants":
            continue
        if section not in sections:
            what = f"The settings file {path} has an unknown section {section!r}."
            raise BadArgument(what, advice(section, sections))
        if isinstance(values, dict):
            table = cast("Mapping[str, Any]", values)
            layer |= {f"{section}.{name}": value for name, value in table.items()}
        else:
            layer[section] = values
    return {path: value for path, value in layer.items() if path not in _OF_THE_FILE_ALONE}


def _truncations(data: Mapping[str, Any], origin: str) -> dict[str, Truncation]:
    """Return the profiles of context_result.

    A table ``[context.truncation.NAME]`` of the file changes a built-in profile or adds one.
    """
    profiles = dict(TRUNCATIONS)
    names = [f.name for f in fields(Truncation)]
    for profile, values in tables(data, "context.truncation", "NAME", origin).items():
        setting = f"context.truncation.{profile}"
        for name, value in values.items():
            if name not in names:
                what = f"There is no setting '{setting}.{name}' ({origin})."
                raise BadArgument(what, advice(name, names))
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                what = f"{setting}.{name} is {value!r} ({origin})."
                raise BadArgument(what, "It must be a whole number, at least 0.")
        profiles[profile] = replace(profiles.get(profile, Truncation()), **values)
    return profiles


def example_file() -> str:
    """Return a settings file that lists every setting with its meaning, commented out."""
    lines = ["# Settings of fetchstash, each at its default. Remove the # where you change one."]
    section = ""
    for key in KEYS.values():
        if key.section != section:
            section = key.section
            lines += ["", f"[{section}]"]
        choices = f" ({', '.join(key.choices)})" if key.choices else ""
        lines += [f"# {key.meaning}{choices}", f"# {key.name} = {toml_value(key.default)}"]
    lines += ["", "# Profiles of context_result, each a table of its own."]
    for name, profile in TRUNCATIONS.items():
        lines.append(f"# [context.truncation.{name}]")
        values = asdict(profile).items()
        lines += [f"# {key} = {value}" for key, value in values if value is not None]
    lines += ["", "# Request headers for one origin; env:NAME reads the environment."]
    lines += ['# [fetch.headers."https://api.example.org"]', '# authorization = "env:API_TOKEN"']
    lines += ['# [fetch.headers."https://wiki.example.org"]', '# cookie = "file:/…/cookies.txt"']
    lines += ["", "# What differs for a tenant of a service: fetch, extract, quota, store.max_…"]
    lines += ["# [tenants.research.quota]", "# requests_per_minute = 120"]
    return "\n".join(lines) + "\n"


def toml_value(value: object) -> str:
    """Return a setting's value as TOML writes it: the values that occur are written as in JSON."""
    return json.dumps(value, ensure_ascii=False)

"""What an operator sets for one tenant of a service, in ``[tenants.NAME]`` of the file alone."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from fetchstash.config._convert import advice, convert
from fetchstash.config._keys import KEYS
from fetchstash.config._tables import headers_of
from fetchstash.errors import BadArgument

_NAME = re.compile("[a-z0-9][a-z0-9-]{0,62}")
"""A name that is safe as a folder, in the key of a bucket and in a log."""

_OWN = {
    path: key
    for path, key in KEYS.items()
    if (key.section in ("fetch", "extract", "quota") and path != "fetch.ask")
    or path in ("store.max_age_days", "store.max_total_bytes", "store.max_artifacts")
}
"""What may differ from tenant to tenant. The list of tools depends on none of these."""

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
    tenants = _mapping(data.get("tenants", {}))
    if tenants is None:
        what = f"tenants is {data['tenants']!r} ({origin})."
        raise BadArgument(what, "It must be tables: [tenants.NAME].")
    return {name: _table(name, own, origin, environment) for name, own in tenants.items()}


def _mapping(value: Any) -> Mapping[str, Any] | None:
    """Return a table of TOML as one, None for any other value."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None


def _table(name: str, own: Any, origin: str, environment: Mapping[str, str]) -> TenantTable:
    setting = f"tenants.{name}"
    if not _NAME.fullmatch(name):
        what = f"{setting[:100]!r} is no name of a tenant ({origin})."
        raise BadArgument(what, "Use up to 63 of a-z, 0-9 and -, and no - at the beginning.")
    sections = _mapping(own)
    if sections is None:
        raise BadArgument(f"{setting} is no table ({origin}).", f"It must be [{setting}.SECTION].")
    values: dict[str, Any] = {}
    for section, items in sections.items():
        table = _mapping(items)
        if section not in _SECTIONS or table is None:
            what = f"There is no table [{setting}.{section}] ({origin})."
            raise BadArgument(what, f"There are {', '.join(_SECTIONS)}.")
        for item, raw in table.items():
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

"""Read the tables of the settings file that no argument and no variable can set."""

from collections.abc import Mapping
from typing import Any, cast

from fetchstash.config._variables import from_environment, variable_of
from fetchstash.errors import BadArgument


def tables(
    data: Mapping[str, Any], setting: str, key: str, origin: str
) -> dict[str, Mapping[str, Any]]:
    """Return the tables [setting.KEY] of the file by their keys."""
    section, _, name = setting.partition(".")
    parent = data.get(section)
    values_by_key: Any = {}
    if isinstance(parent, dict):
        values_by_key = cast("Mapping[str, Any]", parent).get(name, {})
    if not isinstance(values_by_key, dict):
        secret = setting == "fetch.headers"
        shown = "no table" if secret else repr(values_by_key)
        what = f"{setting} is {shown} ({origin})."
        raise BadArgument(what, f"It must be tables: [{setting}.{key}].")
    for name, values in cast("Mapping[str, Any]", values_by_key).items():
        if not isinstance(values, dict):
            what = f"{setting}.{name} is no table ({origin})."
            raise BadArgument(what, f"It must be a table: [{setting}.{key}].")
    return cast("dict[str, Mapping[str, Any]]", values_by_key)


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
    from fetchstash.fetch import origin_headers  # noqa: PLC0415 - few set any

    return origin_headers(headers)

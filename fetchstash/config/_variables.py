"""Values of the settings file that name a variable of the environment: ``env:NAME``."""

from collections.abc import Mapping

_PREFIX = "env:"


def variable_of(value: str) -> str:
    """Return the name of the variable that ``value`` names, "" for any other value."""
    return value.removeprefix(_PREFIX) if value.startswith(_PREFIX) else ""


def from_environment(value: str, environment: Mapping[str, str]) -> str | None:
    """Return ``value``, or that of the variable which it names; None if that is not set."""
    return environment.get(variable_of(value)) if value.startswith(_PREFIX) else value

"""Values of the settings file that name a variable of the environment: ``env:NAME``."""

import re
from collections.abc import Mapping

# A header may name its scheme first (RFC 9110, 11.4): the variable then has the token alone.
_REFERENCE = re.compile(r"((?:[A-Za-z]+ )?)env:(.*)", re.DOTALL)


def variable_of(value: str) -> str:
    """Return the name of the variable that ``value`` names, "" for any other value."""
    reference = _REFERENCE.fullmatch(value)
    return reference[2] if reference else ""


def from_environment(value: str, environment: Mapping[str, str]) -> str | None:
    """Return ``value``, with what the variable holds that it names; None if that is not set.

    ``Bearer env:NAME`` becomes the scheme and the variable's value.
    """
    reference = _REFERENCE.fullmatch(value)
    if reference is None:
        return value
    read = environment.get(reference[2])
    return None if read is None else reference[1] + read

"""A settings file to start from."""

import json
from dataclasses import asdict

from fetchstash.config._keys import KEYS, Key
from fetchstash.text import TRUNCATIONS


def example_file() -> str:
    """Return a settings file in which every setting stands with its meaning, commented out at its default."""
    lines = [
        "# Settings of fetchstash, each at its default. Take away the # of those that you change."
    ]
    section = ""
    for key in KEYS.values():
        if key.section != section:
            section = key.section
            lines += ["", f"[{section}]"]
        choices = f" ({', '.join(key.choices)})" if key.choices else ""
        lines += [f"# {key.meaning}{choices}", f"# {key.name} = {toml_value(key)}"]
    lines += ["", "# Profiles of context_result, each a table of its own."]
    for name, profile in TRUNCATIONS.items():
        told = {key: value for key, value in asdict(profile).items() if value is not None}
        lines += [
            f"# [context.truncation.{name}]",
            *(f"# {key} = {value}" for key, value in told.items()),
        ]
    return "\n".join(lines) + "\n"


def toml_value(key: Key) -> str:
    """Return a default as TOML writes it. Its booleans, lists, numbers and plain strings are those of JSON."""
    return json.dumps(list(key.default) if key.kind is tuple else key.default)

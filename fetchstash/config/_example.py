"""Write a settings file to start from."""

import json
from dataclasses import asdict

from fetchstash.config._keys import KEYS
from fetchstash.text import TRUNCATIONS


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
    lines += ["", "# What differs for a tenant of a service: fetch, extract, quota, store.max_…"]
    lines += ["# [tenants.research.quota]", "# requests_per_minute = 120"]
    return "\n".join(lines) + "\n"


def toml_value(value: object) -> str:
    """Return a setting's value as TOML writes it: the values that occur are written as in JSON."""
    return json.dumps(value, ensure_ascii=False)

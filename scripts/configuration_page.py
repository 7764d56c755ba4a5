"""Writes docs/configuration.md from the table of settings: scripts/configuration_page.py > docs/configuration.md."""

from fetchstash.config import KEYS, PROFILES, Key
from fetchstash.config._example import toml_value

HEAD = """# Configuration

An argument wins over the environment, that over the file, that over the host's profile, and that over the default.
`fetchstash config` prints each value and where it came from.

- **Argument**: the flag after the sub-command. A list repeats its flag: `--allow-host a --allow-host b`. What is on or off is
  turned off by `--no-` before its name.
- **Environment**: lists have commas. A `FETCHSTASH_…` variable that is no setting is an error.
- **File**: `--config PATH`, else `FETCHSTASH_CONFIG`, else `fetchstash.toml` in the user's configuration folder
  (`~/.config/fetchstash` on Linux). The working directory is never searched: hosts start servers in the agent's project.
  `fetchstash config --example` prints a file to start from.

Hosts hand only a few variables on to the servers that they start (HOME, PATH and the like), unless their configuration names more;
flags always arrive.

## Profiles

`views.profile` sets the limits of a host, because each cuts long results in its own way.

"""


TAIL = """
## context.truncation

Profiles of `context_result`, in the file alone: each is a table of its own. `threshold` counts characters;
`max_preview_tokens` is what a preview may cost; `rows_head`, `rows_tail`, `lines_head` and `lines_tail` say what of a table or a
text it shows. Three are there already and can be changed: `default`, `sql_query` (threshold 2000, 1000 tokens, 30 and 10 rows) and
`log_search` (threshold 10000, 300 tokens, 50 and 20 lines).

```toml
[context.truncation.build_log]
threshold = 8000
max_preview_tokens = 400
lines_head = 20
lines_tail = 60
```
"""


def setting(key: Key) -> str:
    """Return the section of one setting."""
    where = f"`{key.variable}`"
    if key.flag:
        where = f"`--{key.flag}` · {where}"
    choices = (
        f" One of {', '.join(f'`{choice}`' for choice in key.choices)}." if key.choices else ""
    )
    bounds = "".join(
        f" {word} {bound:,.10g}."
        for word, bound in (("At least", key.low), ("At most", key.high))
        if bound is not None
    )
    return f"### {key.path}\n\n{key.meaning}.{choices}{bounds} Default: `{toml_value(key)}`.\n\n{where}\n"


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for profile, values in PROFILES.items():
        said = (
            ", ".join(f"`{name}` = {value:,}" for name, value in values.items()) or "the defaults"
        )
        more = {"vscode": ", counted in UTF-8 bytes", "copilot": ", counted in UTF-8 bytes"}.get(
            profile, ""
        )
        if profile == "claude-code":
            more = ", and each tool tells Claude Code how long its results may be"
        parts.append(f"- `{profile}`: {said}{more}\n")
    section = ""
    for key in KEYS.values():
        if key.section != section:
            section = key.section
            parts.append(f"\n## {section}\n")
        parts.append("\n" + setting(key))
    parts.append(TAIL)
    return "".join(parts)


if __name__ == "__main__":
    print(page(), end="")

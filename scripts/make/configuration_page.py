"""Write docs/configuration.md from the table of settings.

scripts/make/configuration_page.py > docs/configuration.md
"""

import textwrap

from fetchstash.config import CLIENT_NAMES, COUNTING_BYTES, KEYS, PROFILES, Key, toml_value

HEAD = """# Configuration

A value comes from the first of these that has it: argument, environment, file, the host's profile,
default. `fetchstash config` prints each value and where it came from.

- **Argument**: the flag after the sub-command. A list repeats its flag: `--allow-host a
  --allow-host b`. `--no-` before the name turns a switch off.
- **Environment**: commas separate the items of a list. A `FETCHSTASH_…` variable that is no setting
  is an error.
- **File**: `--config PATH`, else `FETCHSTASH_CONFIG`, else `fetchstash.toml` in the user's
  configuration folder (`~/.config/fetchstash` on Linux). The working directory is never searched:
  hosts start servers in the agent's project. `fetchstash config --example` prints a file to start
  from.

Hosts pass only a few variables (HOME, PATH and the like) to the servers that they start, unless
their configuration names more. Flags always arrive.

## Profiles

`views.profile` sets the limits of a host: each host cuts long results in its own way. With `auto`,
the default, the limits are those of the host that asks, by the name in its clientInfo. A named
profile goes before that name, and a limit that you set goes before both. The list of tools is the
same for every client.

| clientInfo begins with | profile |
|---|---|
"""


TAIL = """
## fetch.headers

Request headers that you set for an origin, each origin a table of its own, such as the token of an
API or of a wiki. They are read from the file alone. `env:NAME` reads the environment variable of
that name, and `Bearer env:NAME` puts the scheme before it.

```toml
[fetch.headers."https://api.example.org"]
authorization = "env:API_TOKEN"
```

They are sent to that origin alone (scheme, host and port), and to none after a redirect that led
elsewhere, not even back. They are sent with no robots.txt, and never shown, logged or stored; no
tool has an argument for them. What such a page says is kept as any other page. Headers that
fetchstash sets itself are refused: Host, Content-Length, Accept-Encoding, Range, those of
conditional requests and those of one connection.

Pages that need a login of yours are read with the cookies of a browser in which you signed in:
`cookie = "file:PATH"` names a file with them, by its absolute path.

```toml
[fetch.headers."https://wiki.example.org"]
cookie = "file:/home/me/.config/fetchstash/wiki-cookies.txt"
```

The file is one that a browser's extension exports (Netscape's `cookies.txt`) or that Playwright
writes (`storage_state`, JSON). Of its cookies those are sent that belong to the address by domain,
path and `Secure` and that have not expired (RFC 6265), to that origin alone, as headers are. It is
read again when it changes and never written. It must belong to the server's user or to root and be
closed to others: `chmod 600`. What is wrong with it is said at the start.

## wrap.servers

The servers that [`fetchstash wrap`](gateway.md) runs, each a table of its own. They are read from
the file alone.

```toml
[wrap.servers.github]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-github"]
env = { GITHUB_PERSONAL_ACCESS_TOKEN = "env:GITHUB_TOKEN" }

[wrap.servers.docs]
url = "https://mcp.example.org/mcp"
headers = { authorization = "env:DOCS_TOKEN" }
threshold = 5000
leave_alone = ["list_pages"]
```

A table has `command` with `args`, `env` and the folder `cwd`, or `url` with `headers`; a value
`env:NAME` reads the environment variable of that name, and `Bearer env:NAME` puts the scheme before
it. Where `tools` names any, these alone are offered; those of `hidden_tools` never are. `prefix` is
put before a name that another server has, too (default: the table's name and `_`, with `_` for
every character but letters, digits and `-`). A result over `threshold` characters becomes a preview
(default: 10000); those of the tools in `leave_alone` never do, and with `leave_resources = true`
no resource of the server does. `timeout` is how many seconds a server may be silent about a call
(default: 300).

## tenants

What differs for a tenant of a [service](operations.md), each tenant a table of its own by the name
that its tokens carry. They are read from the file alone. A tenant without a table has the settings
of all.

```toml
[tenants.research.fetch]
allow_domains = ["example.org", "arxiv.org"]

[tenants.research.quota]
requests_per_minute = 120
fetched_bytes_per_day = 2_000_000_000

[tenants.research.fetch.headers."https://api.example.org"]
authorization = "env:RESEARCH_TOKEN"
```

A tenant may have its own values of all settings of `fetch`, `extract`, `quota` and `tenant`, and of
`store.max_age_days`, `store.max_total_bytes` and `store.max_artifacts`. A list takes the place of
that of all, but for `fetch.deny_domains`: what is denied to all stays denied. The headers for an
origin take the place of those that all send to it; an empty table sends none.

## context.truncation

The profiles of `context_result`, each a table of its own. They are read from the file alone.
`threshold` counts characters, `max_preview_tokens` bounds the preview, and `rows_head`,
`rows_tail`, `lines_head` and `lines_tail` say how many rows or lines it shows. Three are built in
and can be changed: `default`, `sql_query` (threshold 2000, 1000 tokens, 30 and 10 rows) and
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
    sentences = [f"{key.meaning}."]
    if key.choices:
        sentences.append(f"One of {', '.join(f'`{choice}`' for choice in key.choices)}.")
    for word, bound in (("At least", key.low), ("At most", key.high)):
        if bound is not None:
            sentences.append(f"{word} {bound:,.10g}.")
    sentences.append(f"Default: `{toml_value(key.default)}`.")
    return f"### {key.path}\n\n{wrapped(' '.join(sentences))}\n\n{where}\n"


def wrapped(text: str, indent: str = "") -> str:
    """Return a paragraph in lines of at most 100 columns; no word of it is broken."""
    return textwrap.fill(
        text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    parts += [f"| `{name}` | `{profile}` |\n" for name, profile in CLIENT_NAMES.items()]
    parts.append("\n")
    for profile, values in PROFILES.items():
        limits = ", ".join(f"`{name}` = {value:,}" for name, value in values.items())
        more = ", counted in UTF-8 bytes" if profile in COUNTING_BYTES else ""
        if profile == "claude-code":
            more = (
                ". Each tool tells Claude Code how long its results may be (with `auto`, too), "
                "unless MAX_MCP_OUTPUT_TOKENS is set in the server's environment"
            )
        parts.append(wrapped(f"- `{profile}`: {limits or 'the defaults'}{more}", "  ") + "\n")
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

"""The parts of files that are written from the code: settings, formats, tools, the peers.

Each function takes the text of a page, and returns it with its part between the marks made anew.
"""

import json
import re
import textwrap
from collections.abc import Callable
from itertools import groupby

import yaml

from fetchstash.config import CLIENT_NAMES, COUNTING_BYTES, KEYS, PROFILES, Key, load, toml_value
from fetchstash.handlers._contract import Format
from fetchstash.handlers._registry import built_in, handler_of, words
from fetchstash.server.tools import tool_specs

BEGIN, END = "<!-- scripts/make/renew.py writes this -->\n", "<!-- until here -->\n"
DOCS = "https://raw.githubusercontent.com/fetchstash/fetchstash/main"
FORMATS = (
    "| kind | handler | formats | extensions and file names | paths |\n|---|---|---|---|---|\n"
)
TOLD = (
    ". Each tool tells Claude Code how long its results may be (with `auto`, too), unless "
    "MAX_MCP_OUTPUT_TOKENS is set in the server's environment"
)
PEERS = """## Beside others

Right / tolerable / wrong answers to the same cases, judged by rules and never by a model. Tokens
to the answer is the median of what was read where the answer was right. A server that answers only
the easy half of the cases has a small median: "of ours" compares the same cases. [The
comparison](docs/comparison.md) begins with the verdict, and has the cases, the versions, the
answers, and what the others do better. `compare/run` prints it on your machine.

"""


def with_part(page: str, part: str) -> str:
    """Return a page with another part between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{part}{END}{rest.partition(END)[2]}"


def wrapped(text: str, indent: str = "") -> str:
    """Return a paragraph in lines of at most 100 columns; no word of it is broken."""
    return textwrap.fill(
        text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def with_tools(manifest: str) -> str:
    """Return the manifest of the bundle for Claude Desktop with the tools as they are now."""
    tools = [{"name": spec.name, "description": spec.description} for spec in tool_specs(load({}))]
    text = json.dumps(json.loads(manifest) | {"tools": tools}, indent=2, ensure_ascii=False)
    return f"{text}\n"


def with_settings(page: str) -> str:
    """Return docs/configuration.md with the profiles of hosts and all settings."""
    parts = ["| clientInfo begins with | profile |\n|---|---|\n"]
    parts += [f"| `{name}` | `{profile}` |\n" for name, profile in CLIENT_NAMES.items()]
    parts.append("\n")
    for profile, values in PROFILES.items():
        limits = ", ".join(f"`{name}` = {value:,}" for name, value in values.items())
        more = ", counted in UTF-8 bytes" if profile in COUNTING_BYTES else ""
        more = TOLD if profile == "claude-code" else more
        parts.append(wrapped(f"- `{profile}`: {limits or 'the defaults'}{more}", "  ") + "\n")
    for section, keys in groupby(KEYS.values(), lambda key: key.section):
        parts.append(f"\n## {section}\n")
        parts += [f"\n{_setting(key)}" for key in keys]
    return with_part(page, "".join(parts))


def _setting(key: Key) -> str:
    where = f"`--{key.flag}` · `{key.variable}`" if key.flag else f"`{key.variable}`"
    sentences = [f"{key.meaning}."]
    if key.choices:
        sentences.append(f"One of {', '.join(f'`{choice}`' for choice in key.choices)}.")
    for word, bound in (("At least", key.low), ("At most", key.high)):
        if bound is not None:
            sentences.append(f"{word} {bound:,.10g}.")
    sentences.append(f"Default: `{toml_value(key.default)}`.")
    return f"### {key.path}\n\n{wrapped(' '.join(sentences))}\n\n{where}\n"


def with_formats(page: str) -> str:
    """Return docs/handlers.md with a row for the formats of each kind and handler."""

    def key(declared: Format) -> tuple[str, str]:
        return declared.kind, handler_of(declared).name

    rows = FORMATS
    for (kind, handler), grouped in groupby(sorted(built_in().all, key=key), key=key):
        formats = list(grouped)
        ends = sorted({end for f in formats for end in (*f.extensions, *f.file_names)})
        paths = dict.fromkeys(f"`{path}`" for f in formats for path in f.paths)
        cells = (f"`{kind}`", handler, words(formats), " ".join(ends), " ".join(paths))
        rows += f"| {' | '.join(cells)} |\n"
    return with_part(page, rows)


def llms_txt(read: Callable[[str], str]) -> str:
    """Return the list of the documentation for models, in the order of the site (llmstxt.org)."""
    settings = yaml.safe_load(read("scripts/parts/site.yml"))
    lines = [f"# {settings['site_name']}", "", f"> {settings['site_description']}"]
    for section in settings["nav"]:
        for title, pages in section.items():
            lines += ["", f"## {title}", ""]
            lines += [_listed(name, read(name)) for name in pages]
    return "\n".join(lines) + "\n"


def _listed(name: str, page: str) -> str:
    """Return a page's line: its title, and the first sentence below it."""
    _, _, rest = page.partition("\n# ") if not page.startswith("# ") else ("", "", page[2:])
    title, _, body = rest.partition("\n")
    begin = re.sub(r"(?s)```.*?```", "", body.partition("\n## ")[0])
    parts = (part.strip() for part in begin.split("\n\n"))
    paragraphs = (part for part in parts if part[:1].isalpha() or part[:1] in "`*")
    said = " ".join(next(paragraphs, "").split())
    said = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", said).replace("**", "")
    first = re.split(r"(?<=[.!?])\s", said)[0].rstrip(":.")
    return f"- [{title.strip()}]({DOCS}/{name})" + (f": {first}" if first else "")


def with_peers(readme: str, comparison: str) -> str:
    """Return README with the table of servers as the comparison printed it."""
    section = comparison.partition("\n## Servers\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    shown = "\n".join(row for row in rows if not row.startswith("| planted"))
    return with_part(readme, f"{PEERS}{shown}\n\n") if shown else readme

"""Options and arguments: the flags of settings, those that commands share, their completion."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    split_arg_string,
)

from fetchstash.cli._terminal import safe_line
from fetchstash.cli._words import short_ref
from fetchstash.config import KEYS, Key, Settings, load
from fetchstash.store import ALL_RUNS

if TYPE_CHECKING:
    from fetchstash.store import Facts

_NEWEST = 200
"""Artifacts that are offered. More would not help, and would take time."""

# Bash breaks words at ":" and "@" (COMP_WORDBREAKS), the command does not: the line goes whole,
# and of what comes back the part before the break is cut off.
_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}" type value
    local word="${line##*[[:space:]]}" before
    before="${word%%"${COMP_WORDS[COMP_CWORD]}"}"
    COMPREPLY=()
    while IFS=, read -r type value; do
        if [[ $type == file ]]; then
            ((${#COMPREPLY[@]})) || compopt -o filenames
            while read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "$word")
        elif [[ $type == plain ]]; then
            COMPREPLY+=("${value#"$before"}")
        fi
    done < <(COMP_WORDS="$line" %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@add_completion_class
class _Bash(BashComplete):
    source_template = _BASH

    def source(self) -> str:
        """Return the script. Click's own looks for a newer bash first, which takes a process."""
        return self.source_template % self.source_vars()

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the whole words of the line, and the one that is being typed."""
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)[1:]
        typed = "" if not words or line[-1:].isspace() else words.pop()
        return words, typed


def complete_kept(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer what is kept: @1, @2 … with their titles, references, and URLs once one is begun."""
    artifacts, items = _kept(ctx), list[CompletionItem]()
    for number, facts in enumerate(artifacts, start=1):
        title = safe_line(facts.title or facts.name)
        for word in (f"@{number}", short_ref(facts.artifact_ref), facts.artifact_ref):
            begun = word.startswith(incomplete) if incomplete else word.startswith("@")
            if begun and (word != facts.artifact_ref or incomplete.startswith("art_")):
                items.append(CompletionItem(word, help=title))
    urls = dict.fromkeys(facts.final_url for facts in artifacts)
    for word in (*_hosts(artifacts), *urls) if incomplete else ():
        if word.startswith(incomplete) and "," not in word:  # which the scripts split at
            items.append(CompletionItem(word))
    return items


def complete_sources(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer what is kept, and files."""
    kept = complete_kept(ctx, parameter, incomplete)
    return [*kept, CompletionItem(incomplete, type="file")]


def complete_hosts(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the hosts that something is kept from."""
    return [CompletionItem(h) for h in _hosts(_kept(ctx)) if h.startswith(incomplete)]


def _hosts(artifacts: "Sequence[Facts]") -> list[str]:
    return list(dict.fromkeys(filter(None, (urlsplit(f.final_url).netloc for f in artifacts))))


def _kept(ctx: click.Context) -> "Sequence[Facts]":
    """Return what is kept here, the newest first; nothing where there is no store yet."""
    import anyio  # noqa: PLC0415 - heavy

    from fetchstash.store import open_store, with_run  # noqa: PLC0415 - heavy

    async def newest() -> "Sequence[Facts]":
        store = await open_store(with_run(settings.store))
        try:
            return (await store.list(limit=_NEWEST)).facts
        finally:
            await store.aclose()

    # Whatever is wrong, a shell at its prompt wants no message.
    with suppress(Exception):
        settings = take_settings(dict(ctx.params), dict(os.environ))
        if settings.store.folder.exists():
            return anyio.run(newest)
    return ()


UNITS = ("lines", "chars", "bytes", "pages", "rows")
F = TypeVar("F", bound=Callable[..., Any])


def sources_argument(metavar: str = "SOURCE...") -> Callable[[F], F]:
    """Add the argument ``words``: one or more sources, or references of what is kept."""
    complete = complete_kept if metavar == "REF..." else complete_sources
    return click.argument(
        "words", nargs=-1, required=True, metavar=metavar, shell_complete=complete
    )


def max_chars_flag(
    help_text: str = "Characters to show at the most, 200 or more.",
) -> Callable[[F], F]:
    """Add ``--max-chars``."""
    return click.option("--max-chars", type=click.IntRange(min=200), metavar="N", help=help_text)


model_max_chars_flag = max_chars_flag(
    "With --as-model: the characters that it is shown at the most."
)
as_model_flag = click.option(
    "--as-model", "model", is_flag=True, help="Show exactly what a model is shown."
)
json_flag = click.option(
    "--json", "as_json", is_flag=True, help="Print data, one JSON object a line."
)
refresh_flag = click.option(
    "--refresh", is_flag=True, help="Ask the server even where a kept copy is still fresh."
)
output_flag = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the whole text there, - being stdout.",
)
raw_flag = click.option("--raw", is_flag=True, help="The bytes as they came, in place of the text.")

_PREFIX = "setting__"


@cache
def setting_options() -> tuple[click.Option, ...]:
    """Return ``--config``, ``--all-runs`` and the flags of the settings, for every command."""
    every = "What every project fetched, not this folder's alone."
    file = click.Path(path_type=Path)
    return (
        click.Option(["--config", "config_file"], type=file, help="Settings file."),
        click.Option(["--all-runs"], is_flag=True, help=every),
        *(_option(key) for key in KEYS.values() if key.flag),
    )


def is_setting(parameter: click.Parameter) -> bool:
    """Return whether a parameter of a command is the flag of a setting."""
    name = parameter.name or ""
    return name.startswith(_PREFIX) or name in ("config_file", "all_runs")


def _option(key: Key) -> click.Option:
    name, meaning = _PREFIX + key.path.replace(".", "__"), f"{key.meaning}."
    if key.kind is bool:
        return click.Option([f"--{key.flag}/--no-{key.flag}", name], default=None, help=meaning)
    return click.Option(
        [f"--{key.flag}", name],
        multiple=key.kind is tuple,
        metavar="TEXT" if (key.item or key.kind) is str else "NUMBER",
        help=meaning,
        shell_complete=_completion(key),
    )


def _completion(key: Key) -> Callable[..., list[CompletionItem]] | None:
    """Return what completes a value: the choices of a setting, or hosts."""
    if key.name in ("allow_hosts", "allow_domains", "deny_domains"):
        return complete_hosts
    if not key.choices:
        return None

    def choices(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(choice) for choice in key.choices if choice.startswith(incomplete)]

    return choices


def take_settings(parameters: dict[str, Any], environment: dict[str, str]) -> Settings:
    """Take the flags out of a command's arguments and read the settings. Raises BadArgument."""
    file = parameters.pop("config_file", None)
    arguments: dict[str, Any] = {}
    if parameters.pop("all_runs", False):
        arguments["store.run"] = ALL_RUNS
    for name in [name for name in parameters if name.startswith(_PREFIX)]:
        value = parameters.pop(name)
        if value not in (None, ()):
            section, _, key = name.removeprefix(_PREFIX).partition("__")
            arguments[f"{section}.{key}"] = value
    return load(arguments, environment, file)

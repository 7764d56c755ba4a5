"""Completion in bash, zsh and fish: references, pages and hosts that are kept, files, profiles."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
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
    return list(_offered(_kept(ctx), incomplete))


def complete_sources(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer what is kept, and files."""
    kept = complete_kept(ctx, parameter, incomplete)
    return [*kept, CompletionItem(incomplete, type="file")]


def complete_hosts(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the hosts that something is kept from."""
    return [CompletionItem(h) for h in _hosts(_kept(ctx)) if h.startswith(incomplete)]


def _offered(artifacts: "Sequence[Facts]", incomplete: str) -> Iterator[CompletionItem]:
    for number, facts in enumerate(artifacts, start=1):
        title = safe_line(facts.title or facts.name)
        for word in (f"@{number}", short_ref(facts.artifact_ref), facts.artifact_ref):
            begun = word.startswith(incomplete) if incomplete else word.startswith("@")
            if begun and (word != facts.artifact_ref or incomplete.startswith("art_")):
                yield CompletionItem(word, help=title)
    if incomplete:
        urls = dict.fromkeys(facts.final_url for facts in artifacts)
        for word in (*_hosts(artifacts), *urls):
            if word.startswith(incomplete) and "," not in word:  # which the scripts split at
                yield CompletionItem(word)


def _hosts(artifacts: "Sequence[Facts]") -> list[str]:
    return list(dict.fromkeys(filter(None, (urlsplit(f.final_url).netloc for f in artifacts))))


def _kept(ctx: click.Context) -> "Sequence[Facts]":
    """Return what is kept here, the newest first; nothing where there is no store yet."""
    import anyio  # noqa: PLC0415 - heavy

    from fetchstash.cli._options import take_settings  # noqa: PLC0415 - it imports this module
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

"""Commands that fetch and read: fetch, get, grep, slice, search, info."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fetchstash.cli._run import (
    FAILED,
    NO_MATCH,
    command,
    json_flag,
    max_chars_flag,
    print_objects,
    show,
    view_for_terminal,
    with_stash,
)

if TYPE_CHECKING:
    from fetchstash.config import Settings
    from fetchstash.render import Value
    from fetchstash.stash import Stash

_UNITS = ("lines", "chars", "bytes", "pages", "rows")
_output_flag = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the whole text there.",
)
_raw_flag = click.option("--raw", is_flag=True, help="With -o: the bytes as they came.")


class _Meter:
    """How far a download is, on a terminal; nothing in a pipe."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def __call__(self, done: int, total: int | None) -> None:
        if self._shown:
            of = f" of {total:,}" if total else ""
            click.echo(f"\r\033[K{done:,}{of}", nl=False, err=True)

    def clear(self) -> None:
        if self._shown:
            click.echo("\r\033[K", nl=False, err=True)


@click.command()
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option(
    "--focus", default="", help="What you look for, in words: a preview shows the best passages."
)
@click.option(
    "--refresh", is_flag=True, help="Ask the server even where a kept copy is still fresh."
)
@_output_flag
@_raw_flag
@max_chars_flag
@json_flag
@command
def fetch(
    settings: "Settings",
    urls: Sequence[str],
    output: Path | None,
    raw: bool,
    as_json: bool,
    **options: Any,
) -> int | None:
    """Fetch URLs and show what a model would see of them."""
    meter = _Meter()

    async def work(stash: "Stash") -> "Value":
        if len(urls) > 1:
            return await stash.fetch_many(urls, progress=meter, **options)
        artifact = await stash.fetch(urls[0], progress=meter, **options)
        if output is not None:
            await stash.export(artifact.ref, output, raw=raw)
        return artifact

    if output is not None and len(urls) > 1:
        raise click.UsageError("-o writes one document: give one URL.")
    try:
        value = with_stash(settings, work)
    finally:
        meter.clear()
    view = view_for_terminal(settings, value, options["max_chars"])
    if as_json:
        print_objects(view.records or view.facts)
    elif output is None:
        click.echo(view.text)
    return FAILED if view.is_error else None


@click.command()
@click.argument("ref")
@click.option(
    "--offset", type=click.IntRange(min=0), default=0, help="First character.", show_default=True
)
@_output_flag
@_raw_flag
@max_chars_flag
@json_flag
@command
def get(
    settings: "Settings",
    ref: str,
    offset: int,
    output: Path | None,
    raw: bool,
    max_chars: int | None,
    as_json: bool,
) -> None:
    """Read an artifact's text; REF is an artifact_ref or a URL fetched before."""
    if output is not None:
        with_stash(settings, lambda stash: stash.export(ref, output, raw=raw))
    else:
        limit = _limit(settings, max_chars)
        part = with_stash(settings, lambda stash: stash.read(ref, offset, max_chars=limit))
        show(view_for_terminal(settings, part, max_chars), as_json=as_json)


@click.command()
@click.argument("pattern")
@click.argument("refs", nargs=-1, required=True, metavar="REF...")
@click.option("-F", "--literal", is_flag=True, help="PATTERN is plain text.")
@click.option("-i", "--ignore-case", is_flag=True, help="Ignore case.")
@click.option(
    "-C",
    "--context",
    type=click.IntRange(0, 50),
    default=2,
    help="Lines around a match.",
    show_default=True,
)
@click.option(
    "-m",
    "--max-matches",
    type=click.IntRange(1, 1_000),
    default=30,
    help="Matches to show.",
    show_default=True,
)
@click.option(
    "--offset", type=click.IntRange(min=0), default=0, help="Matches to skip.", show_default=True
)
@max_chars_flag
@json_flag
@command
def grep(
    settings: "Settings",
    pattern: str,
    refs: Sequence[str],
    max_chars: int | None,
    as_json: bool,
    **options: Any,
) -> int | None:
    """Find the lines of artifacts that match an RE2 pattern."""
    matches = with_stash(settings, lambda stash: stash.grep(pattern, refs, **options))
    view = view_for_terminal(settings, matches, max_chars)
    show(view, as_json=as_json)
    return None if view.records else NO_MATCH


@click.command("slice")
@click.argument("ref")
@click.option(
    "--path", default="", help="Heading, sheet, archive member, JSON pointer or JSONPath."
)
@click.option(
    "--unit",
    type=click.Choice(_UNITS),
    default="lines",
    show_default=True,
    help="What start and end count.",
)
@click.option(
    "--start",
    type=click.IntRange(min=0),
    help="First: lines, pages and rows count from 1, the others from 0.",
)
@click.option(
    "--end",
    type=click.IntRange(min=0),
    help="Last, included for lines, pages and rows, excluded for the others.",
)
@max_chars_flag
@json_flag
@command
def slice_(
    settings: "Settings", ref: str, max_chars: int | None, as_json: bool, **part: Any
) -> None:
    """Read exactly a part of an artifact."""
    limit = _limit(settings, max_chars)
    value = with_stash(settings, lambda stash: stash.slice(ref, max_chars=limit, **part))
    show(view_for_terminal(settings, value, max_chars), as_json=as_json)


@click.command()
@click.argument("query")
@click.argument("refs", nargs=-1, metavar="[REF]...")
@click.option(
    "-n",
    "--max-results",
    type=click.IntRange(1, 50),
    default=8,
    help="Passages to show.",
    show_default=True,
)
@max_chars_flag
@json_flag
@command
def search(
    settings: "Settings",
    query: str,
    refs: Sequence[str],
    max_results: int,
    max_chars: int | None,
    as_json: bool,
) -> int | None:
    """Rank the passages of artifacts, or of all of the run, by the words of QUERY."""
    search = with_stash(settings, lambda stash: stash.search(query, refs, max_results=max_results))
    view = view_for_terminal(settings, search, max_chars)
    show(view, as_json=as_json)
    return None if view.records else NO_MATCH


@click.command()
@click.argument("ref")
@json_flag
@command
def info(settings: "Settings", ref: str, as_json: bool) -> None:
    """Show the facts and the outline of an artifact."""
    artifact = with_stash(settings, lambda stash: stash.get(ref))
    show(view_for_terminal(settings, artifact.facts), as_json=as_json)


def _limit(settings: "Settings", max_chars: int | None) -> int:
    """Return how many characters a read needs at most."""
    return settings.views.max_chars(max_chars, settings.views.default_max_chars)


COMMANDS = (fetch, get, grep, slice_, search, info)

"""The commands. Each is a thin face of one method of Stash, which is imported when a command runs, not when one is listed."""

import functools
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fetchstash import __version__
from fetchstash.cli._options import setting_flags, take_settings
from fetchstash.errors import BadArgument, FetchstashError

if TYPE_CHECKING:
    from fetchstash.config import Settings
    from fetchstash.stash import Stash
    from fetchstash.views import View

NO_MATCH, USAGE, FAILED = 1, 2, 3

T = TypeVar("T")
_UNITS = ("lines", "chars", "bytes", "pages", "rows")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="fetchstash")
def commands() -> None:
    """Fetch any web page or document without flooding an agent's context.

    Without a command, or with flags alone, fetchstash serves MCP over stdin and stdout.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Exit codes: 0, 1 no match, 2 wrong usage, 3 refused or failed, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help", "-V", "--version")):
        given.insert(0, "serve")
    commands(given, prog_name="fetchstash")


def _told(command: Callable[..., int | None]) -> Callable[..., None]:
    """Hand a command its settings, turn our errors into one line on stderr, and its result into an exit code."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        try:
            code = command(take_settings(given, dict(os.environ)), **given)
        except BadArgument as error:
            click.echo(error.line(), err=True)
            sys.exit(USAGE)
        except FetchstashError as error:
            click.echo(error.line(), err=True)
            sys.exit(FAILED)
        sys.exit(code or 0)

    return run


def _with_stash(settings: "Settings", work: Callable[["Stash"], Awaitable[T]]) -> T:
    """Open a Stash, do one thing, and close it again; Ctrl-C cancels the work and leaves nothing half-written."""
    import anyio  # noqa: PLC0415 - heavy: only where something is done

    from fetchstash.stash import Stash  # noqa: PLC0415

    async def run() -> T:
        async with Stash.open(settings) as stash:
            return await work(stash)

    return anyio.run(run)


def _show(view: "View", *, as_json: bool) -> None:
    """Print a view: whole on a terminal; in a pipe the body to stdout and the notices to stderr, without the fences for a model."""
    if as_json:
        import json  # noqa: PLC0415

        for facts in view.facts:
            click.echo(json.dumps(facts, ensure_ascii=False))
        return
    if sys.stdout.isatty():
        click.echo(view.text)
        return
    for block in view.blocks:
        for line in block.head:
            click.echo(line, err=True)
        if block.body is not None:
            click.echo(block.body, nl=not block.body.endswith("\n"))
        for line in block.tail:
            click.echo(line, err=True)


_max_chars = click.option("--max-chars", type=int, help="Characters to show at the most (200 to the ceiling).")
_json = click.option("--json", "as_json", is_flag=True, help="Print facts, one object a line.")


@commands.command()
@setting_flags
@_told
def serve(settings: "Settings") -> None:
    """Serve MCP over stdin and stdout, as a host starts it."""
    import anyio  # noqa: PLC0415

    from fetchstash.server import serve_stdio  # noqa: PLC0415

    anyio.run(serve_stdio, settings)


@commands.command()
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option("--focus", default="", help="What you look for, in words.")
@click.option("--refresh", is_flag=True, help="Ask the server even where a kept copy is still fresh.")
@_max_chars
@_json
@setting_flags
@_told
def fetch(settings: "Settings", urls: Sequence[str], focus: str, refresh: bool, max_chars: int | None, as_json: bool) -> int | None:
    """Fetch URLs and show what a model would see of them."""
    view = _with_stash(settings, lambda stash: stash.fetch(urls, focus=focus, max_chars=max_chars, refresh=refresh))
    if as_json:
        _show(view, as_json=True)
    else:
        click.echo(view.text)
    return FAILED if view.is_error else None


@commands.command()
@click.argument("ref")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="First character.", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the whole text there.")
@click.option("--raw", is_flag=True, help="With -o: the bytes as they came.")
@_max_chars
@_json
@setting_flags
@_told
def get(settings: "Settings", ref: str, offset: int, output: Path | None, raw: bool, max_chars: int | None, as_json: bool) -> None:
    """Read an artifact's text; REF is an artifact_ref or a URL fetched before."""
    if output is not None:
        _with_stash(settings, lambda stash: stash.export(ref, output, raw=raw))
        return
    _show(_with_stash(settings, lambda stash: stash.read(ref, offset, max_chars)), as_json=as_json)


@commands.command()
@click.argument("pattern")
@click.argument("refs", nargs=-1, required=True, metavar="REF...")
@click.option("-F", "--literal", is_flag=True, help="PATTERN is plain text.")
@click.option("-i", "--ignore-case", is_flag=True, help="Ignore case.")
@click.option("-C", "--context", type=click.IntRange(0, 50), default=2, help="Lines around a match.", show_default=True)
@click.option("-m", "--max-matches", type=click.IntRange(1, 1_000), default=30, help="Matches to show.", show_default=True)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Matches to skip.", show_default=True)
@_max_chars
@_json
@setting_flags
@_told
def grep(
    settings: "Settings", pattern: str, refs: Sequence[str], max_chars: int | None, as_json: bool, **options: Any
) -> int | None:
    """Find the lines of artifacts that match an RE2 pattern."""
    from fetchstash.store import GrepQuery  # noqa: PLC0415

    view = _with_stash(settings, lambda stash: stash.grep(refs, GrepQuery(pattern, **options), max_chars=max_chars))
    _show(view, as_json=as_json)
    return None if view.body else NO_MATCH


@commands.command("slice")
@click.argument("ref")
@click.option("--path", default="", help="Heading, sheet, archive member, JSON pointer or JSONPath.")
@click.option("--unit", type=click.Choice(_UNITS), default="lines", show_default=True)
@click.option("--start", type=click.IntRange(min=0))
@click.option("--end", type=click.IntRange(min=0))
@_max_chars
@_json
@setting_flags
@_told
def slice_(settings: "Settings", ref: str, max_chars: int | None, as_json: bool, **part: Any) -> None:
    """Read exactly a part of an artifact."""
    _show(_with_stash(settings, lambda stash: stash.slice(ref, max_chars=max_chars, **part)), as_json=as_json)


@commands.command()
@click.argument("query")
@click.argument("refs", nargs=-1, metavar="[REF]...")
@click.option("-n", "--max-results", type=click.IntRange(1, 50), default=8, help="Passages to show.", show_default=True)
@_max_chars
@_json
@setting_flags
@_told
def search(
    settings: "Settings", query: str, refs: Sequence[str], max_results: int, max_chars: int | None, as_json: bool
) -> int | None:
    """Rank the passages of artifacts, or of all of the run, by the words of QUERY."""
    view = _with_stash(settings, lambda stash: stash.search(query, refs, max_results=max_results, max_chars=max_chars))
    _show(view, as_json=as_json)
    return None if view.body else NO_MATCH


@commands.command()
@click.argument("ref")
@_json
@setting_flags
@_told
def info(settings: "Settings", ref: str, as_json: bool) -> None:
    """Show the facts and the outline of an artifact."""
    _show(_with_stash(settings, lambda stash: stash.info(ref)), as_json=as_json)


@commands.command()
@click.option("-n", "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Artifacts to list.")
@_json
@setting_flags
@_told
def ls(settings: "Settings", limit: int, as_json: bool) -> None:
    """List the run's artifacts, newest first."""
    _show(_with_stash(settings, lambda stash: stash.list(limit=limit)), as_json=as_json)


@commands.command()
@click.pass_context
def demo(context: click.Context) -> None:
    """Show, on a small site of its own, what a model sees and what each call costs; no network, no key."""
    from fetchstash import demo as demonstration  # noqa: PLC0415

    context.exit(demonstration.run())

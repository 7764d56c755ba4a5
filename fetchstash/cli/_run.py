"""Shared by every command: settings, an open Stash, output, errors and exit codes."""

import functools
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fetchstash.cli._options import setting_flags, take_settings
from fetchstash.cli._words import as_command
from fetchstash.errors import BadArgument, FetchstashError, StoreError

if TYPE_CHECKING:
    from fetchstash.config import Settings
    from fetchstash.render import Value, View
    from fetchstash.stash import Stash

NO_MATCH, USAGE, FAILED, INTERRUPTED = 1, 2, 3, 130

T = TypeVar("T")

max_chars_flag = click.option(
    "--max-chars", type=int, help="Characters to show at the most (200 to the ceiling)."
)
json_flag = click.option(
    "--json", "as_json", is_flag=True, help="Print data, one JSON object a line."
)


def command(body: Callable[..., int | None]) -> Callable[..., None]:
    """Give a command the flags of the settings, and its body the settings as read."""

    @setting_flags
    @exit_codes
    @functools.wraps(body)
    def run(**arguments: Any) -> int | None:
        return body(take_settings(arguments, dict(os.environ)), **arguments)

    return run


def exit_codes(body: Callable[..., int | None]) -> Callable[..., None]:
    """Turn the result of a command into an exit code, and an error into one line on stderr."""

    @functools.wraps(body)
    def run(**arguments: Any) -> None:
        try:
            code = body(**arguments)
            sys.stdout.flush()
        except FetchstashError as error:
            from fetchstash.render import error_line  # noqa: PLC0415 - heavy

            code = USAGE if isinstance(error, BadArgument) else FAILED
            say(error_line(error, as_command))
        except KeyboardInterrupt:
            code = INTERRUPTED
        except BrokenPipeError:
            # The pipe's reader is gone. Without this Python would complain at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        except OSError as error:
            code = FAILED
            say(StoreError(f"The system said: {error}.", "Mend that and try again.").line())
        sys.exit(code or 0)

    return run


def with_stash(settings: "Settings", work: "Callable[[Stash], Awaitable[T]]") -> T:
    """Open a Stash, do one thing, and close it; Ctrl-C leaves nothing half-written."""
    import anyio  # noqa: PLC0415 - heavy: only where something is done

    from fetchstash.stash import open_stash  # noqa: PLC0415 - as above
    from fetchstash.store import AUTO_RUN, folder_run  # noqa: PLC0415 - as above

    if settings.store.run == AUTO_RUN and not settings.store.ephemeral:
        # A command's process ends with it, so even / and the home folder have a run here.
        settings = replace(settings, store=replace(settings.store, run=folder_run(Path.cwd())))

    async def run() -> T:
        async with open_stash(settings) as stash:
            return await work(stash)

    return anyio.run(run)


def say(text: str) -> None:
    """Print what is no result, to stderr."""
    click.echo(text, err=True)


def print_objects(objects: "Sequence[Mapping[str, object]]") -> None:
    """Print data, one JSON object a line."""
    for item in objects:
        click.echo(json.dumps(item, ensure_ascii=False))


def view_for_terminal(settings: "Settings", value: "Value", max_chars: int | None = None) -> "View":
    """Return what a person at a terminal is shown of a value."""
    from fetchstash.render import Face, Host, view_of  # noqa: PLC0415 - heavy

    face = Face(as_command, "--max-chars", "--refresh")
    return view_of(Host(settings.views, True, settings.context, face), value, max_chars)


def show(view: "View", *, as_json: bool) -> None:
    """Print a view: whole on a terminal; in a pipe the bodies, and the notices on stderr."""
    if as_json:
        print_objects(view.records or view.facts)
    elif sys.stdout.isatty():
        click.echo(view.text)
    else:
        for block in view.blocks:
            for line in block.head:
                say(line)
            if block.body is not None:
                click.echo(block.body, nl=not block.body.endswith("\n"))
            for line in block.tail:
                say(line)

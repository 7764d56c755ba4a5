"""Shared by every command: settings, an open Stash, output, errors and exit codes."""

import functools
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from fetchstash.cli._options import setting_flags, take_settings
from fetchstash.cli._terminal import safe, safe_line, screen_of, wrapped
from fetchstash.cli._words import as_command
from fetchstash.errors import BadArgument, FetchstashError, StoreError

if TYPE_CHECKING:
    from fetchstash.config import Settings
    from fetchstash.render import Value
    from fetchstash.stash import Stash

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""What click is told of every command."""

NO_MATCH, USAGE, FAILED, INTERRUPTED = 1, 2, 3, 130

T = TypeVar("T")

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
        as_json = bool(arguments.get("as_json"))
        try:
            code = body(**arguments)
            sys.stdout.flush()
        except FetchstashError as error:
            code = failed(error, as_model=bool(arguments.get("model")), as_json=as_json)
        except KeyboardInterrupt:
            code = INTERRUPTED
        except BrokenPipeError:
            # The pipe's reader is gone. Without this Python would complain at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        except OSError as error:
            system = StoreError(f"The system said: {error}.", "Mend that and try again.")
            code = failed(system, as_json=as_json)
        sys.exit(code or 0)

    return run


def end_with(command: click.Command, words: Sequence[str], name: str, **context: Any) -> NoReturn:
    """Run a command line, and end with its exit code."""
    try:
        sys.exit(command.main([*words], prog_name=name, standalone_mode=False, **context))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(INTERRUPTED)


def failed(
    error: FetchstashError,
    about: str = "",
    *,
    of: str = "",
    as_model: bool = False,
    as_json: bool = False,
) -> int:
    """Say what failed, and about what, and return its exit code.

    To a model the line is the result. As data it is an object of its own on stdout, which names
    the source that it is ``of``.
    """
    from fetchstash.render import error_line, error_record  # noqa: PLC0415 - heavy

    if as_model:
        click.echo(safe_line(error_line(error)))
    else:
        if as_json:
            named = {"source_url": of} if of else {}
            print_objects([{**named, "error": error_record(error, as_command)}])
        line = error_line(error, as_command)
        say(f"{about}: {line}" if about else line)
    return USAGE if isinstance(error, BadArgument) else FAILED


def with_stash(settings: "Settings", work: "Callable[[Stash], Awaitable[T]]") -> T:
    """Open a Stash, do one thing, and close it; Ctrl-C leaves nothing half-written."""
    import anyio  # noqa: PLC0415 - heavy: only where something is done

    from fetchstash.stash import open_stash  # noqa: PLC0415 - as above

    settings = in_this_folder(settings)

    async def run() -> T:
        async with open_stash(settings) as stash:
            return await work(stash)

    return anyio.run(run)


def in_this_folder(settings: "Settings") -> "Settings":
    """Return the settings with the run of the working folder in place of "auto".

    A command's process ends with it, so even / and the home folder have a run here.
    """
    from fetchstash.store import AUTO_RUN, folder_run  # noqa: PLC0415 - heavy

    if settings.store.run != AUTO_RUN or settings.store.ephemeral:
        return settings
    return replace(settings, store=replace(settings.store, run=folder_run(Path.cwd())))


def say(text: str) -> None:
    """Print what is no result, to stderr: a line, which a terminal gets wrapped at words."""
    screen, line = screen_of("stderr"), safe_line(text)
    click.echo(wrapped(line, screen.width) if screen.is_terminal else line, err=True)


def aside(text: str) -> None:
    """Say what only a person wants to know: on a terminal alone."""
    screen = screen_of("stderr")
    if screen.is_terminal:
        click.echo(screen.style(wrapped(safe_line(text), screen.width), "dim"), err=True)


def print_text(text: str, *, wrap: bool = False) -> None:
    """Print a text of a document: as it is in a pipe, safe on a terminal, and wrapped if asked."""
    screen = screen_of()
    if screen.is_terminal:
        shown = wrapped(safe(text), screen.width) if wrap else safe(text)
        click.echo(shown, nl=not text.endswith("\n"))
    else:
        write(text.encode())


def write(data: bytes) -> None:
    """Write bytes to stdout."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def print_objects(objects: "Sequence[Mapping[str, object]]") -> None:
    """Print data, one JSON object a line; what would steer a terminal is escaped there."""
    for item in objects:
        write(json.dumps(item, ensure_ascii=screen_of().is_terminal).encode() + b"\n")


_ALL = 10**12


def print_as_model(settings: "Settings", value: "Value", max_chars: int | None = None) -> None:
    """Print the text that a tool's result has; its pictures are only said to be there."""
    from fetchstash.render import Host, view_of  # noqa: PLC0415 - heavy

    view = view_of(Host(settings.views, preview=settings.context), value, max_chars)
    print_text(view.text + "\n")
    for data, media_type in view.pictures:
        aside(f"With it goes a picture, {media_type}, {len(data):,} bytes.")


def print_json(settings: "Settings", value: "Value") -> None:
    """Print a value as data, nothing of it cut."""
    from fetchstash.render import Host, view_of  # noqa: PLC0415 - heavy

    limits = replace(
        settings.views, default_max_chars=_ALL, max_chars_ceiling=_ALL, count_bytes=False
    )
    view = view_of(Host(limits, preview=settings.context), value)
    print_objects(view.records or view.facts)

"""What every command shares: settings in, one Stash open for one thing, its result out, errors as one line."""

import functools
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fetchstash.cli._options import setting_flags, take_settings
from fetchstash.cli._words import as_command
from fetchstash.errors import BadArgument, FetchstashError, StoreError
from fetchstash.render import error_line

if TYPE_CHECKING:
    from fetchstash.config import Settings
    from fetchstash.render import View
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
    """Give a command the flags of the settings, and its body the settings that they, the environment and the file make."""

    @setting_flags
    @told
    @functools.wraps(body)
    def run(**given: Any) -> int | None:
        return body(take_settings(given, dict(os.environ)), **given)

    return run


def told(body: Callable[..., int | None]) -> Callable[..., None]:
    """Turn what a command returns or raises into an exit code, and an error into one line on stderr."""

    @functools.wraps(body)
    def run(**given: Any) -> None:
        try:
            code = body(**given)
            sys.stdout.flush()
        except FetchstashError as error:
            code = USAGE if isinstance(error, BadArgument) else FAILED
            say(error_line(error, as_command))
        except KeyboardInterrupt:
            code = INTERRUPTED
        except BrokenPipeError:
            # The reader of the pipe has what it wanted; without this Python would complain at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        except OSError as error:
            code = FAILED
            say(StoreError(f"The system said: {error}.", "Mend that and try again.").line())
        sys.exit(code or 0)

    return run


def with_stash(settings: "Settings", work: "Callable[[Stash], Awaitable[T]]") -> T:
    """Open a Stash, do one thing, and close it again; Ctrl-C cancels the work and leaves nothing half-written."""
    import anyio  # noqa: PLC0415 - heavy: only where something is done

    from fetchstash.stash import Stash  # noqa: PLC0415 - as above

    async def run() -> T:
        async with Stash.open(settings) as stash:
            return await work(stash)

    return anyio.run(run)


def say(text: str) -> None:
    """Tell a person something that is no result: to stderr."""
    click.echo(text, err=True)


def print_objects(objects: "tuple[Mapping[str, object], ...]") -> None:
    """Print data, one JSON object a line."""
    for one in objects:
        click.echo(json.dumps(one, ensure_ascii=False))


def show(view: "View", *, as_json: bool) -> None:
    """Print a view: whole on a terminal; in a pipe the bodies to stdout and the notices to stderr, without the fences."""
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

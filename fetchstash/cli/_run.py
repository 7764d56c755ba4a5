"""Shared by all commands: settings, an open Stash, output, errors and exit codes."""

import functools
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from fetchstash.cli._options import Command, take_settings
from fetchstash.cli._terminal import safe, safe_line, screen_of, wrapped
from fetchstash.cli._words import as_command
from fetchstash.config import Settings
from fetchstash.errors import BadArgument, BadPattern, FetchstashError, HttpError, StoreError
from fetchstash.store import AUTO_RUN, folder_run

if TYPE_CHECKING:
    from fetchstash.render import Value
    from fetchstash.stash import Stash

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""The settings of click for every command."""

NO_MATCH, USAGE, FAILED, INTERRUPTED = 1, 2, 3, 130
_ALL = 10**12

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class View:
    """The flags of a command that reads: for a person, exactly as a model is shown it, or as data.

    ``max_chars`` bounds what is shown; ``refresh`` asks the server where a kept copy is fresh.
    """

    settings: Settings
    refresh: bool = False
    max_chars: int | None = None
    model: bool = False
    as_json: bool = False

    def printed(self, value: "Value") -> bool:
        """Print a value for a model or as JSON; return False if it is to be shown to a person."""
        if self.model:
            self.print_as_model(value)
        elif self.as_json:
            self.print_json(value)
        return self.model or self.as_json

    def print_as_model(self, value: "Value") -> None:
        """Print the text of a tool's result; pictures are only named."""
        from fetchstash.render import Host, view_of  # noqa: PLC0415 - heavy

        host = Host(self.settings.views, preview=self.settings.context)
        view = view_of(host, value, self.max_chars)
        print_text(view.text + "\n")
        for data, media_type in view.pictures:
            aside(f"With it goes a picture, {media_type}, {len(data):,} bytes.")

    def print_json(self, value: "Value") -> None:
        """Print a value as data, nothing of it cut."""
        from fetchstash.render import Host, view_of  # noqa: PLC0415 - heavy

        limits = replace(
            self.settings.views, default_max_chars=_ALL, max_chars_ceiling=_ALL, count_bytes=False
        )
        view = view_of(Host(limits, preview=self.settings.context), value)
        print_objects(view.records or view.facts)


def command(
    short_help: str,
    *,
    name: str | None = None,
    example: str = "",
    shows: Sequence[str] = (),
    settings: bool = True,
    views: bool = False,
) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a command of a function that returns an exit code. An error becomes a line on stderr.

    The function gets the ``settings`` as read, with ``views`` a View. ``example``: its arguments in
    an example of the help; ``shows``: the flags of the settings that the help shows.
    """

    def decorate(body: Callable[..., int | None]) -> click.Command:
        @functools.wraps(body)
        def run(**arguments: Any) -> None:
            as_json, model = bool(arguments.get("as_json")), bool(arguments.get("model"))
            try:
                read: list[Any] = []
                tenant = arguments.pop("of_tenant", None)
                if settings:
                    own = take_settings(arguments, dict(os.environ))
                    read = [of_tenant(own, tenant) if tenant else own]
                if views:
                    flags = ("refresh", "max_chars", "model", "as_json")
                    shown = {flag: arguments.pop(flag) for flag in flags if flag in arguments}
                    read = [View(*read, **shown)]
                code = body(*read, **arguments)
                sys.stdout.flush()
            except FetchstashError as error:
                code = failed(error, as_model=model, as_json=as_json)
            except KeyboardInterrupt:
                code = INTERRUPTED
            except (BrokenPipeError, ExceptionGroup) as error:
                if isinstance(error, ExceptionGroup) and not error.subgroup(BrokenPipeError):
                    raise
                # The pipe's reader is gone. Without this Python would complain at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                code = 0
            sys.exit(code or 0)

        shown = {"short_help": short_help, "shows": shows, "settings": settings, "views": views}
        return click.command(name, cls=Command, epilog=example, **shown)(run)

    return decorate


tenant_flag = click.option(
    "--tenant", "of_tenant", metavar="TENANT", help="One tenant of a service, and no other store."
)
"""Narrows a command to the store of one tenant: ``command`` takes it as it takes the settings."""


def of_tenant(settings: Settings, tenant: str) -> Settings:
    """Return the settings of a tenant that keeps something. Raises BadArgument for any other."""
    import anyio  # noqa: PLC0415 - heavy

    from fetchstash.store import tenants_of  # noqa: PLC0415 - as above

    names = anyio.run(tenants_of, settings.store)
    if tenant in names:
        return settings.for_tenant(tenant)
    what = f"The tenant {safe_line(tenant)[:80]} keeps nothing here."
    raise BadArgument(what, f"There are {', '.join(names)}." if names else "No tenant does.")


def end_with(command: click.Command, words: Sequence[str], name: str, **context: Any) -> NoReturn:
    """Run a command line, and end with its exit code."""
    try:
        sys.exit(command.main([*words], prog_name=name, standalone_mode=False, **context))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(INTERRUPTED)
    except OSError as error:
        system = StoreError(f"The system said: {error}.", "Mend that and try again.")
        sys.exit(failed(system, as_json="--json" in words))


def failed(
    error: FetchstashError,
    about: str = "",
    *,
    of: str = "",
    as_model: bool = False,
    as_json: bool = False,
) -> int:
    """Print a failure with its subject, and return its exit code.

    To a model that is the result. As data it is an object of its own on stdout, which names the
    source that it is ``of``.
    """
    from fetchstash.render import Host, error_line, error_record, error_view  # noqa: PLC0415 - heavy

    if as_model:
        print_text(f"{error_view(Host(), error).text}\n")
    else:
        line = error_line(error, as_command)
        say(f"{about}: {line}" if about else line)
        if as_json:
            named = {"source_url": of} if of else {}
            with suppress(OSError):  # a stdout that is full
                print_objects([{**named, "error": error_record(error, as_command)}])
        said = "The answer begins: " if isinstance(error, HttpError) else ""
        for line in error.excerpt.splitlines():  # of others, what the document has instead
            say(said + line)
    return USAGE if isinstance(error, BadArgument | BadPattern) else FAILED


def with_stash(settings: Settings, work: "Callable[[Stash], Awaitable[T]]") -> T:
    """Open a Stash, do one thing, and close it; Ctrl-C leaves nothing half-written."""
    import anyio  # noqa: PLC0415 - heavy: only where something is done

    from fetchstash.stash import open_stash  # noqa: PLC0415 - as above

    settings = in_this_folder(settings)

    async def run() -> T:
        async with open_stash(settings) as stash:
            return await work(stash)

    return anyio.run(run)


def with_every_stash(settings: Settings, work: "Callable[[Sequence[Stash]], Awaitable[T]]") -> T:
    """Open a Stash for each store of the settings, that of each tenant too, and do one thing."""
    import anyio  # noqa: PLC0415 - heavy

    from fetchstash.stash import open_stash  # noqa: PLC0415 - as above

    settings = in_this_folder(settings)

    async def run() -> T:
        async with AsyncExitStack() as opened:
            stashes = [
                await opened.enter_async_context(open_stash(own))
                for own in (await each_store(settings)).values()
            ]
            return await work(stashes)

    return anyio.run(run)


async def each_store(settings: Settings) -> dict[str, Settings]:
    """Return the settings of each store by its tenant, "" of the one that has none.

    Without any store it is that one, which the first put makes. Raises StoreError.
    """
    from fetchstash.store import stores_of  # noqa: PLC0415 - heavy

    names = await stores_of(settings.store) or [""]
    return {name: settings.for_tenant(name) if name else settings for name in names}


def in_this_folder(settings: Settings) -> Settings:
    """Return the settings with the run of the working folder in place of "auto".

    A command's process ends with it, so even / and the home folder have a run here.
    """
    if settings.store.run != AUTO_RUN or settings.store.ephemeral:
        return settings
    return replace(settings, store=replace(settings.store, run=folder_run(Path.cwd())))


def say(text: str) -> None:
    """Print a message as one line on stderr; on a terminal it is wrapped at words."""
    screen, line = screen_of("stderr"), safe_line(text)
    click.echo(wrapped(line, screen.width) if screen.is_terminal else line, err=True)


def aside(text: str) -> None:
    """Print a remark for a person: on stderr, and only if that is a terminal."""
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
    """Print objects as JSON, one a line; on a terminal control characters are escaped."""
    for item in objects:
        write(json.dumps(item, ensure_ascii=screen_of().is_terminal).encode() + b"\n")

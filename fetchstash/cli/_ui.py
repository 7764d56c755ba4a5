"""The command that shows what is kept in a browser."""

import webbrowser
from typing import TYPE_CHECKING

import click

from fetchstash.cli._help import Command
from fetchstash.cli._run import aside, command, in_this_folder, say
from fetchstash.cli._words import as_command

if TYPE_CHECKING:
    from fetchstash.config import Settings


@click.command(cls=Command, short_help="Look at what is kept, in a browser")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="0: any free one.")
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@command
def ui(settings: "Settings", port: int, no_browser: bool) -> None:
    """Show what agents fetched and what they were shown of it. The link opens one browser, once."""
    import anyio  # noqa: PLC0415 - heavy

    from fetchstash.cli._open import open_copy  # noqa: PLC0415 - only where it is needed
    from fetchstash.server.ui import Person, ViewServer  # noqa: PLC0415 - imports a web server

    settings = in_this_folder(settings)

    async def serve() -> None:
        person = Person(as_command, open_copy)
        async with ViewServer.open(settings, port=port, person=person) as server:
            click.echo(server.link)
            if not (no_browser or await anyio.to_thread.run_sync(webbrowser.open, server.link)):
                say("No browser could be started. Open the link yourself.")
            aside("Ctrl-C ends it.")
            await server.wait()

    anyio.run(serve)


COMMANDS = (ui,)

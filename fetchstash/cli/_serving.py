"""The commands that hosts start: serve and wrap. Nothing is imported here for other commands."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from fetchstash.cli._options import Count
from fetchstash.cli._run import command
from fetchstash.config import Settings, WrappedServer, load, resolved
from fetchstash.errors import BadArgument

if TYPE_CHECKING:
    from fetchstash.gateway import Process


@command("Serve MCP over stdin and stdout, or HTTP")
@click.option(
    "--http", "address", metavar="HOST:PORT", help="Serve over HTTP, in place of stdin and stdout."
)
@click.option(
    "--forwarded",
    multiple=True,
    metavar="ADDRESS",
    help="Believe X-Forwarded-For and -Proto of this address or network (http.forwarded).",
)
@click.option(
    "--workers", type=Count(1), metavar="N", help="Serve in so many processes (http.workers)."
)
def serve(
    settings: Settings, address: str | None, forwarded: tuple[str, ...], workers: int | None
) -> None:
    """Serve MCP over stdin and stdout, as a host starts it; with --http to many clients."""
    import anyio  # noqa: PLC0415 - heavy

    if address is None:
        from fetchstash.server import serve_stdio  # noqa: PLC0415 - imports mcp

        anyio.run(serve_stdio, settings)
    else:
        from fetchstash.service import serve_http  # noqa: PLC0415 - as above

        http = replace(
            settings.http,
            forwarded=forwarded or settings.http.forwarded,
            workers=workers or settings.http.workers,
        )
        anyio.run(serve_http, replace(settings, http=http), address, click.echo)


@command("Serve another MCP server, long results kept", settings=False)
@click.option("--url", default="", help="A server over streamable HTTP; may be env:VARIABLE.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header for --url; VALUE may be env:VARIABLE, or Bearer env:VARIABLE.",
)
@click.option(
    "--server",
    "names",
    multiple=True,
    metavar="NAME",
    help="A server of [wrap.servers.NAME] in the settings file; without any, all of them.",
)
@click.option("--with-fetch", is_flag=True, help="Offer fetch_content, too.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
@click.option("--config", "file", type=click.Path(path_type=Path), help="Settings file.")
def wrap(
    file: Path | None,
    url: str,
    headers: tuple[str, ...],
    names: tuple[str, ...],
    with_fetch: bool,
    program: tuple[str, ...],
) -> None:
    """Serve another MCP server, its long results as previews: wrap -- COMMAND [ARGUMENT …]."""
    import anyio  # noqa: PLC0415 - heavy

    from fetchstash.gateway import serve_gateway  # noqa: PLC0415 - as above

    settings = load(environment=os.environ, file=file)
    servers = _servers(settings, url, headers, names, program)
    started: dict[str, Process] = click.get_current_context().obj or {}

    async def serve() -> None:
        await serve_gateway(settings, servers, started, with_fetch=with_fetch)

    anyio.run(serve)


def _servers(
    settings: Settings,
    url: str,
    headers: tuple[str, ...],
    names: tuple[str, ...],
    program: tuple[str, ...],
) -> tuple[WrappedServer, ...]:
    """Return the servers to wrap: the command, the URL, or those of the settings file."""
    from fetchstash.gateway import name_of  # noqa: PLC0415 - heavy

    if bool(url) + bool(program) + bool(names) > 1:
        raise BadArgument("Several servers are named in different ways.", "Give one way.")
    if program:
        return (WrappedServer(name_of(program), program[0], program[1:]),)
    if url:
        url = resolved("--url", {"the URL": url})["the URL"]
        pairs = (header.partition("=") for header in headers)
        named = {name: value for name, _, value in pairs}
        return (WrappedServer(urlsplit(url).hostname or "server", url=url, headers=named),)
    known = settings.wrapped
    for name in names:
        if name not in known:
            what = f"There is no server {name!r} in the settings file."
            raise BadArgument(what, f"Write its table: [wrap.servers.{name}].")
    chosen = tuple(known[name] for name in dict.fromkeys(names)) or tuple(known.values())
    if not chosen:
        example = "fetchstash wrap -- npx -y @playwright/mcp"
        raise BadArgument("There is no server to wrap.", f"Name its command: {example}.")
    return chosen

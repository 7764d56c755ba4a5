"""Commands for whoever runs it: serve, config, demo."""

from typing import TYPE_CHECKING

import click

from fetchstash.cli._run import command, json_flag, print_objects, told

if TYPE_CHECKING:
    from fetchstash.config import Settings


@click.command()
@command
def serve(settings: "Settings") -> None:
    """Serve MCP over stdin and stdout, as a host starts it."""
    import anyio  # noqa: PLC0415 - heavy

    from fetchstash.server import serve_stdio  # noqa: PLC0415 - imports mcp

    anyio.run(serve_stdio, settings)


@click.command()
@click.option("--example", is_flag=True, help="Print a settings file with every setting, its default and its meaning.")
@json_flag
@command
def config(settings: "Settings", example: bool, as_json: bool) -> None:
    """Print each setting's value and where it came from."""
    from fetchstash.config import KEYS, example_file  # noqa: PLC0415 - the rooms are heavy

    if example:
        click.echo(example_file(), nl=False)
        return
    rows = tuple({"key": path, "value": settings.values[path], "origin": settings.origins[path]} for path in KEYS)
    if as_json:
        print_objects(rows)
        return
    width = max(len(path) for path in KEYS)
    for row in rows:
        click.echo(f"{row['key']:<{width}}  {row['value']!r}  ({row['origin']})")


@click.command()
@told
def demo() -> int:
    """Show, on a small site of its own, what a model sees and what each call costs; no network, no key."""
    from fetchstash.demo import run  # noqa: PLC0415 - imports mcp

    return run()


COMMANDS = (serve, config, demo)

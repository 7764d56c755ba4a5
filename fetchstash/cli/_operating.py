"""Commands for whoever runs it: serve, config, doctor, demo."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from fetchstash.cli._run import FAILED, command, exit_codes, json_flag, print_objects

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
@click.option(
    "--example",
    is_flag=True,
    help="Print a settings file with every setting, its default and its meaning.",
)
@json_flag
@command
def config(settings: "Settings", example: bool, as_json: bool) -> None:
    """Print each setting's value and where it came from."""
    from fetchstash.config import KEYS, example_file  # noqa: PLC0415 - the rooms are heavy
    from fetchstash.fetch import mask_url  # noqa: PLC0415 - as above

    if example:
        click.echo(example_file(), nl=False)
        return
    shown = {**settings.values, "fetch.proxy": mask_url(settings.fetch.proxy)}
    rows = tuple(
        {"key": path, "value": shown[path], "origin": settings.origins[path]} for path in KEYS
    )
    if as_json:
        print_objects(rows)
        return
    width = max(len(path) for path in KEYS)
    for row in rows:
        click.echo(f"{row['key']:<{width}}  {row['value']!r}  ({row['origin']})")


@click.command()
@click.option(
    "--repair",
    is_flag=True,
    help="Mend what can be mended in the store; what is lost for good is removed.",
)
@json_flag
@command
def doctor(settings: "Settings", repair: bool, as_json: bool) -> int | None:
    """Examine the installation and the store; the exit code says whether all is well."""
    import anyio  # noqa: PLC0415 - heavy

    from fetchstash.cli._doctor import Diagnosis, examine  # noqa: PLC0415 - as above

    async def diagnose() -> list[Diagnosis]:
        return [diagnosis async for diagnosis in examine(settings, repair=repair)]

    diagnoses = anyio.run(diagnose)
    if as_json:
        print_objects([asdict(diagnosis) for diagnosis in diagnoses])
    else:
        for diagnosis in diagnoses:
            click.echo(f"{diagnosis.level:<7}  {diagnosis.what} {diagnosis.next_step}".rstrip())
    return FAILED if any(item.level in ("warning", "fault") for item in diagnoses) else None


@click.command()
@exit_codes
def demo() -> int:
    """Show what a model sees and what each call costs, on a small site of its own."""
    from fetchstash.demo import run  # noqa: PLC0415 - imports mcp

    return run()


COMMANDS = (serve, config, doctor, demo)

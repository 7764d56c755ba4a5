"""The command ``store``: prepare the place where artifacts are kept."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from fetchstash.cli._help import Command
from fetchstash.cli._run import command, say

if TYPE_CHECKING:
    from fetchstash.config import Settings
    from fetchstash.store import StoreLimits


@click.group(short_help="Prepare a bucket for artifacts")
def store() -> None:
    """Prepare the bucket that store.url names."""


@store.command(cls=Command, short_help="Set the lifecycle rules of a bucket")
@click.option("--print", "only_print", is_flag=True, help="Print the rules, and set nothing.")
@command
def init(settings: "Settings", only_print: bool) -> None:
    """Set the lifecycle rules by which artifacts in a bucket expire.

    Rules for other prefixes stay. For gs:// and az://, and without keys in the environment, the
    rules are printed, with the command that applies them.
    """
    import anyio  # noqa: PLC0415 - heavy

    from fetchstash.store import lifecycle_rules, set_lifecycle  # noqa: PLC0415 - as above

    limits = limits_of_all(settings)
    text, apply = lifecycle_rules(limits)
    if not only_print and anyio.run(set_lifecycle, limits):
        say(f"The lifecycle rules of {limits.url} are set.")
        return
    click.echo(text)
    say(f"Write this to FILE, add your own rules, and run: {apply}")


def limits_of_all(settings: "Settings") -> "StoreLimits":
    """Return the limits of the store with the longest time that a tenant keeps artifacts."""
    ages = [settings.for_tenant(name).store.max_age_days for name in settings.tenants]
    return replace(settings.store, max_age_days=max((settings.store.max_age_days, *ages)))


COMMANDS = (store,)

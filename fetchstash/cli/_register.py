"""The command that puts fetchstash into the settings of a host: register."""

import click

from fetchstash.cli import hosts
from fetchstash.cli._help import Command
from fetchstash.cli._run import exit_codes, say
from fetchstash.errors import BadArgument


@click.command(cls=Command, short_help="Add fetchstash to a host, or take it out")
@click.argument("host", metavar="HOST", type=click.Choice(list(hosts.HOSTS)))
@click.option("--print", "print_only", is_flag=True, help="Show what would be added; add nothing.")
@click.option("--remove", is_flag=True, help="Take fetchstash out again.")
@click.option("--wrap", is_flag=True, help="Put its other servers behind fetchstash.")
@click.option("--unwrap", is_flag=True, help="Bring them back as they were.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@exit_codes
def register(
    host: str, names: tuple[str, ...], print_only: bool, remove: bool, wrap: bool, unwrap: bool
) -> None:
    """Add this fetchstash to a host's servers; all else there stays.

    HOST is claude-code, codex, gemini, claude-desktop, cursor, vscode, windsurf or zed.

    The file is backed up before it is changed. Claude Code, Codex and Gemini CLI have a command of
    their own for it, which is run.
    """
    target, start, place = hosts.HOSTS[host], hosts.start_command(), hosts.Place()
    if print_only + remove + wrap + unwrap > 1:
        raise BadArgument("Several of these options exclude each other.", "Give one of them.")
    if names and not (wrap or unwrap):
        raise BadArgument("Names of servers go with --wrap or --unwrap.", "Add one of them.")
    if wrap:
        click.echo(hosts.wrap(target, names, start, place))
    elif unwrap:
        click.echo(hosts.unwrap(target, names, place))
    elif remove:
        click.echo(hosts.unregister(target, place))
    elif not print_only:
        click.echo(hosts.register(target, start, place))
    elif isinstance(target, hosts.CommandHost):
        click.echo(hosts.add_line(target, start))
    else:
        say(f"In {target.file(place)}:")
        click.echo(hosts.snippet(target, start))


COMMANDS = (register,)

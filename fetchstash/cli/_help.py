"""Help in short screens: a command's own options; the settings have a screen of their own."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import click

from fetchstash.cli._options import is_setting

SOURCE_HELP = (
    "SOURCE is a URL, example.com, a file, - for stdin, or what is kept: @1 the newest, @2 …, or "
    "the beginning of a reference."
)

_RANGE = re.compile(r"\s*\[[^]]*[<>]=[^]]*\]$")
"""What click says of the numbers that an option takes; a wrong one is told them."""


class Command(click.Command):
    """A command whose help leaves out the flags of the settings, but for those it ``shows``."""

    def __init__(self, *arguments: Any, shows: Sequence[str] = (), **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._shows = shows
        if any(is_setting(parameter) for parameter in self.params):
            self.params.append(
                click.Option(
                    ["--help-settings"],
                    is_flag=True,
                    expose_value=False,
                    is_eager=True,
                    callback=_print_settings,
                    help="Show the flags of the settings.",
                )
            )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. A wrong option is told the line that was meant, or one near it."""
        given = [*args]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if ctx.resilient_parsing:
                raise
            from fetchstash.cli._suggest import line_meant, near  # noqa: PLC0415 - for mistakes

            if line := line_meant(self, ctx.info_name or "", given):
                what = f"No such option {error.option_name!r}. Did you mean `{line}`?"
                raise click.UsageError(what, ctx) from None
            own = [name for option in self.own_options for name in option.opts]
            every = [name for p in self.params for name in (*p.opts, *p.secondary_opts)]
            spelt = near(error.option_name, own, every)
            raise click.NoSuchOption(error.option_name, possibilities=spelt, ctx=ctx) from None

    @property
    def own_options(self) -> list[click.Option]:
        """The options that are this command's, as its help shows them."""
        return [
            option
            for option in self.params
            if isinstance(option, click.Option)
            and (not is_setting(option) or option.name in self._shows)
        ]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the command itself."""
        help_option = self.get_help_option(ctx)
        rows = _rows(ctx, [*self.own_options, *([help_option] if help_option else [])])
        with formatter.section("Options"):
            formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say what a SOURCE is, where the command takes one."""
        metavars = {parameter.metavar or "" for parameter in self.params}
        if any("SOURCE" in metavar for metavar in metavars):
            formatter.write_paragraph()
            formatter.write_text(SOURCE_HELP)
        super().format_epilog(ctx, formatter)


class Group(click.Group):
    """The commands under the headings of ``sections``."""

    command_class = Command

    def __init__(
        self, *arguments: Any, sections: Mapping[str, Sequence[click.Command]], **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._sections = sections
        for commands in sections.values():
            for command in commands:
                self.add_command(command)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one screen of 24 rows: all commands, and no blank line between their headings.

        The first section stands under the usage, without a heading of its own.
        """
        formatter.write(f"Usage: {ctx.command_path} COMMAND [--help | OPTIONS]\n")
        widest = max(len(name) for name in self.list_commands(ctx))
        for number, (heading, commands) in enumerate(self._sections.items()):
            if number:
                formatter.write(f"{heading}\n")
            with formatter.indentation():
                formatter.write_dl(
                    [(f"{c.name or '':<{widest}}", c.get_short_help_str(46)) for c in commands]
                )


def _rows(ctx: click.Context, options: Sequence[click.Option]) -> list[tuple[str, str]]:
    rows = (option.get_help_record(ctx) for option in options)
    return [(flags, _RANGE.sub("", text)) for flags, text in filter(None, rows)]


def _print_settings(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    formatter = ctx.make_formatter()
    rows = _rows(
        ctx, [o for o in ctx.command.params if isinstance(o, click.Option) and is_setting(o)]
    )
    with formatter.section("Settings, for this call alone (docs/configuration.md)"):
        formatter.write_dl(rows)
    click.echo(formatter.getvalue().rstrip())
    ctx.exit()

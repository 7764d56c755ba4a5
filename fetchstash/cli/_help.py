"""Help in short screens, and the call that was meant where an option is wrong."""

import re
import shlex
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import click

from fetchstash.cli._options import is_setting, setting_options
from fetchstash.cli._words import command_line
from fetchstash.errors import Call

_TOOLS = {
    "fetch": "fetch_content",
    "get": "get_search_content",
    "grep": "artifact_grep",
    "slice": "artifact_slice",
    "search": "artifact_search",
    "info": "artifact_info",
}
_INFORMS = ("-h", "--help", "--help-settings")
_SWITCHES = ("literal", "ignore_case", "refresh")
_MOST = 8
_NEAR, _VERY_NEAR = 0.6, 0.8


def line_meant(command: click.Command, name: str, arguments: Sequence[str]) -> str:
    """Return the command line that wrong options are likely to mean, "" if none is known."""
    if name not in _TOOLS or set(arguments).intersection(_INFORMS):
        return ""
    for with_values in (True, False):
        line = _line(command, name, list(arguments), with_values=with_values)
        if line and _is_taken(line):
            return shlex.join(line)
    return ""


def near(option: str, own: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the options that are spelt like a wrong one; those of the settings must be nearer."""
    word = option.lstrip("-")
    for names, cutoff in ((own, _NEAR), (others, _VERY_NEAR)):
        by_word = {name.lstrip("-"): name for name in names if name.startswith("--")}
        longer = [other for other in by_word if other.startswith(word)]
        if matches := longer or get_close_matches(word, by_word, cutoff=cutoff):
            return sorted(by_word[match] for match in matches)
    return []


def _line(command: click.Command, name: str, rest: list[str], *, with_values: bool) -> list[str]:
    """Return the words of the line that unknown options mean, [] if one of them means nothing."""
    from fetchstash.config import load  # noqa: PLC0415 - for mistakes alone
    from fetchstash.server.tools import meant, tool_specs  # noqa: PLC0415 - as above

    context = click.Context(command, info_name=name)
    unknown: dict[str, Any] = {}
    while True:
        try:
            given, _, _ = command.make_parser(context).parse_args([*rest])
            break
        except click.NoSuchOption as error:
            at, value = next(_places(error.option_name, rest), (-1, ""))
            if at < 0 or len(unknown) == _MOST:
                return []
            following = rest[at + 1 : at + 2] if with_values and not value else []
            following = [] if following and following[0].startswith("-") else following
            unknown[error.option_name.lstrip("-")] = value or "".join(following) or True
            del rest[at : at + 1 + len(following)]
        except click.UsageError:
            return []
    numbers = {place: str(given.get(place)) for place in ("start", "end")}
    known = {place: int(number) for place, number in numbers.items() if number.isdecimal()}
    spec = next(spec for spec in tool_specs(load()) if spec.name == _TOOLS[name])
    call, all_meant = meant(spec, {**known, **unknown})
    new = {k: v for k, v in call.arguments.items() if known.get(k) != v and v not in ("…", ["…"])}
    lacks_value = any(value is True and key not in _SWITCHES for key, value in new.items())
    if not all_meant or lacks_value or (call.action == "grep" and {"ref", "refs"} & set(new)):
        return []  # the sources of grep stand behind its pattern
    return [*shlex.split(command_line(Call(call.action, new), places=False)), *rest]


def _places(option: str, words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Go through the places of an option, with the value behind its "="."""
    for at, word in enumerate(words):
        written, _, value = word.partition("=")
        if written == option:
            yield at, value


def _is_taken(words: Sequence[str]) -> bool:
    """Return whether the command takes a line."""
    from fetchstash.cli._main import commands  # noqa: PLC0415 - it imports this module

    _, name, *arguments = words
    try:
        click.Command.make_context(commands.commands[name], name, [*arguments])
    except click.UsageError:
        return False
    return True


SOURCE_HELP = (
    "SOURCE is a URL, example.com, a file, - for stdin, or what is kept: @1 the newest, @2 …, or "
    "the beginning of a reference."
)

_RANGE = re.compile(r"\s*\[[^]]*[<>]=[^]]*\]$")
"""What click says of the numbers that an option takes; a wrong one is told them."""


class Command(click.Command):
    """A command whose help leaves out the flags of the settings, but for those it ``shows``."""

    def __init__(
        self, *arguments: Any, shows: Sequence[str] = (), settings: bool = True, **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._shows = shows
        if settings:
            self.params += (*setting_options(), _HELP_SETTINGS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. A wrong option is told the line that was meant, or one near it."""
        given = [*args]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if ctx.resilient_parsing:
                raise

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


_HELP_SETTINGS = click.Option(
    ["--help-settings"],
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_settings,
    help="Show the flags of the settings.",
)

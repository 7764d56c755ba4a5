"""Options and arguments: those that commands share, their completion, help and corrections."""

import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click
from click import shell_completion as completion
from click.shell_completion import CompletionItem

from fetchstash.cli._terminal import safe_line
from fetchstash.cli._words import command_line, short_ref
from fetchstash.config import KEYS, Key, Settings, load
from fetchstash.errors import Call, between
from fetchstash.store import ALL_RUNS
from fetchstash.text import MIN_MAX_CHARS

if TYPE_CHECKING:
    from fetchstash.store import Facts

_NEWEST = 200
"""Artifacts that are offered. More would not help, and would take time."""

# Bash breaks words at ":" and "@" (COMP_WORDBREAKS), the command does not: the line goes whole,
# and of what comes back the part before the break is cut off.
_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}" type value
    local word="${line##*[[:space:]]}" before
    before="${word%%"${COMP_WORDS[COMP_CWORD]}"}"
    COMPREPLY=()
    while IFS=, read -r type value; do
        if [[ $type == file ]]; then
            ((${#COMPREPLY[@]})) || compopt -o filenames
            while read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "$word")
        elif [[ $type == plain ]]; then
            COMPREPLY+=("${value#"$before"}")
        fi
    done < <(COMP_WORDS="$line" %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@completion.add_completion_class
class _Bash(completion.BashComplete):
    source_template = _BASH

    def source(self) -> str:
        """Return the script. Click's own looks for a newer bash first, which takes a process."""
        return self.source_template % self.source_vars()

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the complete words of the line, and the incomplete last one."""
        line = os.environ["COMP_WORDS"]
        words = completion.split_arg_string(line)[1:]
        typed = "" if not words or line[-1:].isspace() else words.pop()
        return words, typed


def complete_kept(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete kept artifacts: @1, @2 … with titles, references, and URLs once one is typed."""
    artifacts, items = _kept(ctx), list[CompletionItem]()
    for number, facts in enumerate(artifacts, start=1):
        title = safe_line(facts.title or facts.name)
        for word in (f"@{number}", short_ref(facts.artifact_ref), facts.artifact_ref):
            begun = word.startswith(incomplete) if incomplete else word.startswith("@")
            if begun and (word != facts.artifact_ref or incomplete.startswith("art_")):
                items.append(CompletionItem(word, help=title))
    urls = dict.fromkeys(facts.final_url for facts in artifacts)
    for word in (*_hosts(artifacts), *urls) if incomplete else ():
        if word.startswith(incomplete) and "," not in word:  # which the scripts split at
            items.append(CompletionItem(word))
    return items


def complete_sources(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete kept artifacts and files."""
    kept = complete_kept(ctx, parameter, incomplete)
    return [*kept, CompletionItem(incomplete, type="file")]


def complete_hosts(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the hosts from which artifacts are stored."""
    return [CompletionItem(h) for h in _hosts(_kept(ctx)) if h.startswith(incomplete)]


def _hosts(artifacts: "Sequence[Facts]") -> list[str]:
    return list(dict.fromkeys(filter(None, (urlsplit(f.final_url).netloc for f in artifacts))))


def _kept(ctx: click.Context) -> "Sequence[Facts]":
    """Return this folder's artifacts, the last fetched first; none if there is no store yet."""
    import anyio  # noqa: PLC0415 - heavy

    from fetchstash.store import open_store, with_run  # noqa: PLC0415 - heavy

    async def newest() -> "Sequence[Facts]":
        store = await open_store(with_run(settings.store))
        try:
            return (await store.list(limit=_NEWEST)).facts
        finally:
            await store.aclose()

    # Whatever is wrong, a shell at its prompt wants no message.
    with suppress(Exception):
        settings = take_settings(dict(ctx.params), dict(os.environ))
        if settings.store.folder.exists():
            return anyio.run(newest)
    return ()


UNITS = ("lines", "chars", "bytes", "pages", "rows")
F = TypeVar("F", bound=Callable[..., Any])


def sources_argument(metavar: str = "SOURCE...") -> Callable[[F], F]:
    """Add the argument ``words``: one or more sources, or references of what is kept."""
    complete = complete_kept if metavar == "REF..." else complete_sources
    return click.argument(
        "words", nargs=-1, required=True, metavar=metavar, shell_complete=complete
    )


class Count(click.ParamType[int]):
    """A whole number within bounds, which an error names with an example."""

    name = "number"

    def __init__(self, low: int, high: int | None = None) -> None:
        self._low, self._high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        with suppress(ValueError):
            if self._low <= (number := int(value)) <= (self._high or number):
                return number
        option = f"{param.opts[-1]} " if param else ""
        bounds = between(self._low, self._high)
        what = f"{value} is no whole number, {bounds}. Write one such as {option}{self._low or 1}."
        raise click.BadParameter(what, ctx, param)


_UNITS = {"m": 60, "h": 3_600, "d": 86_400}


class Age(click.ParamType[int]):
    """A length of time such as 30m, 12h or 1d, in seconds."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the seconds."""
        number, unit = str(value)[:-1], str(value)[-1:]
        if number.isdecimal() and unit in _UNITS:
            return int(number) * _UNITS[unit]
        raise click.BadParameter(f"{value} is no age. Write one such as 12h or 1d.", ctx, param)


def max_chars_flag(
    help_text: str = "Characters to show at the most, 200 or more.",
) -> Callable[[F], F]:
    """Add ``--max-chars``."""
    return click.option("--max-chars", type=Count(MIN_MAX_CHARS), metavar="N", help=help_text)


model_max_chars_flag = max_chars_flag(
    "With --as-model: the characters that it is shown at the most."
)
_JSON: dict[str, Any] = {"is_flag": True, "help": "Print data, one JSON object a line."}
json_flag = click.option("--json", "as_json", **_JSON)
refresh_flag = click.option(
    "--refresh", is_flag=True, help="Ask the server even where a kept copy is still fresh."
)
output_flag = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the whole text there, - being stdout.",
)
raw_flag = click.option("--raw", is_flag=True, help="The bytes as they came, in place of the text.")

_PREFIX = "setting__"


@cache
def setting_options() -> tuple[click.Option, ...]:
    """Return ``--config``, ``--all-runs`` and the flags of the settings, for every command."""
    every = "What every project fetched, not this folder's alone."
    file = click.Path(path_type=Path)
    return (
        click.Option(["--config", "config_file"], type=file, help="Settings file."),
        click.Option(["--all-runs"], is_flag=True, help=every),
        *(_option(key) for key in KEYS.values() if key.flag),
    )


def is_setting(parameter: click.Parameter) -> bool:
    """Return whether a parameter of a command is the flag of a setting."""
    name = parameter.name or ""
    return name.startswith(_PREFIX) or name in ("config_file", "all_runs")


def _option(key: Key) -> click.Option:
    name, meaning = _PREFIX + key.path.replace(".", "__"), f"{key.meaning}."
    if key.kind is bool:
        return click.Option([f"--{key.flag}/--no-{key.flag}", name], default=None, help=meaning)
    return click.Option(
        [f"--{key.flag}", name],
        multiple=key.kind is tuple,
        metavar="TEXT" if (key.item or key.kind) is str else "NUMBER",
        help=meaning,
        shell_complete=_completion(key),
    )


def _completion(key: Key) -> Callable[..., list[CompletionItem]] | None:
    """Return the completion function of a setting's value: its choices, or hosts."""
    if key.name in ("allow_hosts", "allow_domains", "deny_domains"):
        return complete_hosts
    if not key.choices:
        return None

    def choices(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(choice) for choice in key.choices if choice.startswith(incomplete)]

    return choices


def take_settings(parameters: dict[str, Any], environment: dict[str, str]) -> Settings:
    """Take the flags out of a command's arguments and read the settings. Raises BadArgument."""
    file = parameters.pop("config_file", None)
    arguments: dict[str, Any] = {}
    if parameters.pop("all_runs", False):
        arguments["store.run"] = ALL_RUNS
    for name in [name for name in parameters if name.startswith(_PREFIX)]:
        value = parameters.pop(name)
        if value not in (None, ()):
            section, _, key = name.removeprefix(_PREFIX).partition("__")
            arguments[f"{section}.{key}"] = value
    return load(arguments, environment, file)


_ACTIONS = {
    "fetch": "fetch",
    "get": "read",
    "grep": "grep",
    "slice": "slice",
    "search": "search",
    "info": "info",
}
"""The commands that take what a tool takes, and the action of that tool."""
_INFORMS = ("-h", "--help", "--help-settings")
_SWITCHES = ("literal", "ignore_case", "refresh")
_NEAR, _VERY_NEAR = 0.6, 0.8


def line_meant(ctx: click.Context, arguments: Sequence[str]) -> str:
    """Return the command line that wrong options are likely to mean, "" if none is known."""
    name, group = ctx.info_name or "", ctx.find_root().command
    if name not in _ACTIONS or set(arguments).intersection(_INFORMS):
        return ""
    for with_values in (True, False):
        line = _line(ctx.command, name, list(arguments), with_values=with_values)
        if line and isinstance(group, click.Group) and _is_taken(group, line):
            return shlex.join(line)
    return ""


def near(option: str, own: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the options that are spelt like a wrong one; those of the settings must be nearer."""
    from difflib import get_close_matches  # noqa: PLC0415 - for mistakes alone

    word = option.lstrip("-")
    for names, cutoff in ((own, _NEAR), (others, _VERY_NEAR)):
        by_word = {name.lstrip("-"): name for name in names if name.startswith("--")}
        longer = [other for other in by_word if other.startswith(word)]
        if matches := longer or get_close_matches(word, by_word, cutoff=cutoff):
            return sorted(by_word[match] for match in matches)
    return []


def _line(command: click.Command, name: str, words: list[str], *, with_values: bool) -> list[str]:
    """Return the corrected command line for unknown options, [] if one has no correction."""
    from fetchstash.server.tools import meant, tool_specs  # noqa: PLC0415 - for mistakes alone

    own = {option for parameter in command.params for option in parameter.opts}
    own.update(option for parameter in command.params for option in parameter.secondary_opts)
    unknown, rest = dict[str, Any](), list[str]()
    while words and words[0] != "--":
        word = words.pop(0)
        option, _, value = word.partition("=")
        if not word.startswith("--") or option in own:
            rest.append(word)
            continue
        if with_values and not value and words and not words[0].startswith("-"):
            value = words.pop(0)
        unknown[option.lstrip("-")] = value or True
    rest += words
    try:
        given, _, _ = command.make_parser(click.Context(command)).parse_args([*rest])
    except click.UsageError:
        return []
    numbers = {place: str(given.get(place)) for place in ("start", "end")}
    known = {place: int(number) for place, number in numbers.items() if number.isdecimal()}
    spec = next(spec for spec in tool_specs(load()) if spec.action == _ACTIONS[name])
    call, all_meant = meant(spec, {**known, **unknown})
    new = {k: v for k, v in call.arguments.items() if known.get(k) != v and v not in ("…", ["…"])}
    lacks_value = any(value is True and key not in _SWITCHES for key, value in new.items())
    if not all_meant or lacks_value or (call.action == "grep" and {"ref", "refs"} & set(new)):
        return []  # the sources of grep stand behind its pattern
    return [*shlex.split(command_line(Call(call.action, new), places=False)), *rest]


def _is_taken(group: click.Group, words: Sequence[str]) -> bool:
    """Return whether a command of the group takes a line."""
    _, name, *arguments = words
    try:
        click.Command.make_context(group.commands[name], name, [*arguments])
    except click.UsageError:
        return False
    return True


SOURCE_HELP = (
    "SOURCE is a URL, example.com, a file, - for stdin, or what is kept: @1 the newest, @2 …, or "
    "the beginning of a reference."
)
REF_HELP = "REF is what is kept: @1 the newest, @2 …, or the beginning of a reference, as ls shows."


class Command(click.Command):
    """A command whose help leaves out the flags of the settings, but for those it ``shows``.

    With ``views`` it takes --as-model and --json. The epilog is the arguments of an example.
    """

    def __init__(
        self, *arguments: Any, shows: Sequence[str], settings: bool, views: bool, **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._shows = shows
        if views:
            help_text = "Show exactly what a model is shown."
            self.params += (
                click.Option(["--as-model", "model"], is_flag=True, help=help_text),
                click.Option(["--json", "as_json"], **_JSON),
            )
        if settings:
            self.params += (*setting_options(), _HELP_SETTINGS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. The error for a wrong option shows the corrected line."""
        given = [*args]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if ctx.resilient_parsing:
                raise

            if line := line_meant(ctx, given):
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
        """Say what a SOURCE or a REF is, where the command takes one, and give the example."""
        metavars = " ".join(parameter.metavar or "" for parameter in self.params)
        texts = [SOURCE_HELP] if "SOURCE" in metavars else []
        texts += [REF_HELP] if "REF" in metavars else []
        texts += [f"Example: {ctx.command_path} {self.epilog}"] if self.epilog else []
        if texts:
            formatter.write_paragraph()
        for text in texts:
            formatter.write_text(text)


def _rows(ctx: click.Context, options: Sequence[click.Option]) -> list[tuple[str, str]]:
    return [row for option in options if (row := option.get_help_record(ctx))]


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

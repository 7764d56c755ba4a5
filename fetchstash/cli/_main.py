"""The command ``fetchstash``. A command imports what is heavy when it runs."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from fetchstash import __version__
from fetchstash.cli import _fetching, _grep, _keeping, _leaving, _operating, _reading, _serving
from fetchstash.cli._run import CONTEXT

SECTIONS = {
    "Read and keep": (
        *_fetching.COMMANDS,
        *_grep.COMMANDS,
        *_reading.COMMANDS,
        *_keeping.COMMANDS,
        _operating.ui,
    ),
    "Run": (
        _serving.serve,
        *_operating.COMMANDS,
        *_leaving.COMMANDS,
        _serving.wrap,
        _operating.register,
    ),
}
"""The commands under their headings. A new one is a line in its module's COMMANDS."""


_WIDEST = 8
"""Columns of a name; where several commands have one row, its text begins later."""


def _rows(commands: Sequence[click.Command]) -> list[tuple[str, str]]:
    """Return the names and the short help of commands; those with the same help share a row."""
    names: dict[str, list[str]] = {}
    for command in commands:
        names.setdefault(command.get_short_help_str(46), []).append(command.name or "")
    return [(", ".join(shared), text) for text, shared in names.items()]


class _Group(click.Group):
    """The commands under the headings of ``sections``."""

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
        for number, (heading, commands) in enumerate(self._sections.items()):
            if number:
                formatter.write(f"{heading}\n")
            with formatter.indentation():
                for name, text in _rows(commands):
                    formatter.write_dl([(f"{name:<{_WIDEST}}", text)])


@click.group(cls=_Group, sections=SECTIONS, context_settings=CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="fetchstash")
def commands() -> None:
    """Fetch documents, keep them, and read them in parts."""

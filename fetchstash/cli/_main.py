"""The command ``fetchstash``. A command imports what is heavy when it runs."""

from collections.abc import Sequence
from typing import NoReturn

import click

from fetchstash import __version__
from fetchstash.cli import _fetching, _gateway, _keeping, _operating, _reading, _team
from fetchstash.cli._help import Group
from fetchstash.cli._run import CONTEXT, end_with
from fetchstash.cli._terminal import screen_of

SECTIONS = {
    "Read and keep": (*_fetching.COMMANDS, *_reading.COMMANDS, *_keeping.COMMANDS, _operating.ui),
    "Run": (*_operating.COMMANDS, *_team.COMMANDS, *_gateway.COMMANDS, _operating.register),
}
"""The commands under their headings. A new one is a line in its module's COMMANDS."""


@click.group(cls=Group, sections=SECTIONS, context_settings=CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="fetchstash")
def commands() -> None:
    """Fetch documents, keep them, and read them in parts."""


def run(arguments: Sequence[str]) -> NoReturn:
    """Run the command line."""
    words = list(arguments)
    informs = bool(words) and words[0] in ("-h", "--help", "-V", "--version")
    if not words and screen_of("stdin").is_terminal:
        words = ["--help"]  # a person, not a host
    elif not words or (words[0].startswith("-") and not informs):
        words.insert(0, "serve")
    end_with(commands, words, "fetchstash")

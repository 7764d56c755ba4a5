"""The command ``fetchstash``. A command imports what is heavy when it runs."""

import sys
from collections.abc import Sequence

import click

from fetchstash import __version__
from fetchstash.cli import _keeping, _operating, _reading, _register


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="fetchstash")
def commands() -> None:
    """Fetch any web page or document without flooding an agent's context.

    Without a command, or with flags alone, fetchstash serves MCP over stdin and stdout.

    Exit codes: 0, 1 no match, 2 wrong usage, 3 refused or failed, 130 interrupted.
    """


for _command in (*_reading.COMMANDS, *_keeping.COMMANDS, *_operating.COMMANDS, *_register.COMMANDS):
    commands.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; never returns."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    informs = bool(words) and words[0] in ("-h", "--help", "-V", "--version")
    if not words or (words[0].startswith("-") and not informs):
        words.insert(0, "serve")
    commands(words, prog_name="fetchstash")

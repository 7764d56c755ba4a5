"""The terminal face of Stash: results on stdout, everything else on stderr."""

from fetchstash.cli._help import Command
from fetchstash.cli._main import commands, main
from fetchstash.cli._words import as_command

__all__ = ["Command", "as_command", "commands", "main"]

"""The terminal face of Stash: results on stdout, everything else on stderr."""

from fetchstash.cli._main import commands, main
from fetchstash.cli._words import as_command

__all__ = ["as_command", "commands", "main"]

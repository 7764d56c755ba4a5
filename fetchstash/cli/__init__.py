"""The terminal face of Stash: results on stdout, everything else on stderr, exit codes that mean something."""

from fetchstash.cli._main import main

__all__ = ["main"]

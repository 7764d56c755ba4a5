"""The terminal face of Stash: results on stdout, everything else on stderr."""

from fetchstash.cli._main import main

__all__ = ["main"]

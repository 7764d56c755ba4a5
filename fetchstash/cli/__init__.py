"""The terminal face of Stash: results on stdout, everything else on stderr."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fetchstash.cli._main import commands as commands
    from fetchstash.cli._options import Command as Command
    from fetchstash.cli._terminal import cells as cells
    from fetchstash.cli._words import as_command as as_command

__all__ = ["Command", "as_command", "cells", "commands", "main"]

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; never returns."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_streams()
    try:  # so early that Ctrl-C ends the imports, too, without a word
        if words[:1] == ["wrap"]:
            _wrap(words[1:])
        from fetchstash.cli._main import run  # noqa: PLC0415 - as above

        run(words)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _open_streams() -> None:
    """Open what a caller closed of stdin, stdout and stderr: no file of ours may get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            from pathlib import Path  # noqa: PLC0415 - rarely needed

            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def _wrap(words: Sequence[str]) -> None:
    """Run ``wrap``: start its servers first, and import no other command while they start."""
    from fetchstash.gateway import start_early, stop  # noqa: PLC0415 - as said

    started = start_early(words)
    try:
        from fetchstash.cli._operating import wrap  # noqa: PLC0415 - as said
        from fetchstash.cli._run import CONTEXT, end_with  # noqa: PLC0415 - as said

        end_with(wrap, words, "fetchstash wrap", obj=started, **CONTEXT)
    finally:
        for process in started.values():
            stop(process)  # where it was not served; else it has ended


def __getattr__(name: str) -> Any:
    """Import what is named when it is asked for."""
    if name not in __all__:
        raise AttributeError(name)
    from fetchstash.cli import _main, _options, _terminal, _words  # noqa: PLC0415 - after main

    return next(getattr(m, name) for m in (_main, _options, _terminal, _words) if hasattr(m, name))

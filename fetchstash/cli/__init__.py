"""The command line of Stash: results on stdout, everything else on stderr."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

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
        _start(words)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _start(words: list[str]) -> NoReturn:
    """Run a command line. ``serve`` and ``wrap``, which hosts start, import no other command."""
    if words[:1] == ["wrap"]:
        _wrap(words[1:])
    from fetchstash.cli._run import CONTEXT, end_with  # noqa: PLC0415 - after main
    from fetchstash.cli._terminal import screen_of  # noqa: PLC0415 - as above

    informs = bool(words) and words[0] in ("-h", "--help", "-V", "--version")
    if not words and screen_of("stdin").is_terminal:
        words = ["--help"]  # a person, not a host
    elif not words or (words[0].startswith("-") and not informs):
        words = ["serve", *words]
    if words[0] == "serve" and "_FETCHSTASH_COMPLETE" not in os.environ:
        from fetchstash.cli._serving import serve  # noqa: PLC0415 - as above

        end_with(serve, words[1:], "fetchstash serve", **CONTEXT)
    from fetchstash.cli._main import commands  # noqa: PLC0415 - as above

    end_with(commands, words, "fetchstash")


def _open_streams() -> None:
    """Open standard streams that the caller closed, so that no file of ours gets their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            from pathlib import Path  # noqa: PLC0415 - rarely needed

            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def _wrap(words: Sequence[str]) -> NoReturn:
    """Run ``wrap``: start its servers first, and import no other command while they start."""
    from fetchstash.gateway import start_early, stop  # noqa: PLC0415 - as said

    started = start_early(words)
    try:
        from fetchstash.cli._run import CONTEXT, end_with  # noqa: PLC0415 - as said
        from fetchstash.cli._serving import wrap  # noqa: PLC0415 - as said

        end_with(wrap, words, "fetchstash wrap", obj=started, **CONTEXT)
    finally:
        for process in started.values():
            stop(process)  # where it was not served; else it has ended


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(name)
    from fetchstash.cli import _main, _options, _terminal, _words  # noqa: PLC0415 - after main

    return next(getattr(m, name) for m in (_main, _options, _terminal, _words) if hasattr(m, name))

"""What each part of CI and each benchmark does besides its work: options, checks, programs."""

import argparse
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

MAX_SECONDS = 900
"""What a command of a check may take."""


def options(
    about: str | None, corpus: str = "", names: Iterable[str] = (), **defaults: Any
) -> Namespace:
    """Return the options of the command line; each has the type of its default.

    A switch has the default False, a list takes some of what its first item is. ``corpus`` is what
    the files of the folder are that the command line names first; ends with 2 if it has none.
    ``names`` are what the command line may choose among; all are chosen if it names none.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = list(names)
    if corpus:
        parser.add_argument("folder", type=Path)
    if names:
        parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    for name, default in defaults.items():
        flag = f"--{name.replace('_', '-')}"
        kind: Any = default.__class__
        if kind is bool:
            parser.add_argument(flag, action="store_true")
        elif kind is list:
            first: Any = default[0].__class__ if default else str
            parser.add_argument(flag, nargs="+", type=first, default=default)
        else:
            parser.add_argument(flag, type=kind, default=default)
    chosen = parser.parse_args()
    if corpus and not any(chosen.folder.glob(corpus)):
        print(f"The corpus is missing: {chosen.folder} has no {corpus}.", file=sys.stderr)
        raise SystemExit(2)
    if names:
        if unknown := set(chosen.names) - set(names):
            parser.error(f"there is no {', '.join(sorted(unknown))}, but: {', '.join(names)}")
        chosen.names = chosen.names or names
    return chosen


failures: list[str] = []
"""The names of the checks that failed."""


def check(name: str, fault: object = "") -> bool:
    """Print how a check ended, and return whether well; a ``fault`` that is not empty failed.

    A function is called for it, and may raise.
    """
    if callable(fault):
        try:
            fault = fault()
        except Exception as error:  # noqa: BLE001 - whatever it is, the check failed
            fault = f"{type(error).__name__}: {error}"
    if fault:
        failures.append(name)
    print(f"{'FAILED' if fault else 'ok':<6}  {name}{f': {fault}' if fault else ''}", flush=True)
    return not fault


def output_of(command: Sequence[object], **more: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end and return what it said."""
    more = {"stdin": subprocess.DEVNULL, "timeout": MAX_SECONDS, **more}
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **more
    )


def fault_of(command: Sequence[object], env: Mapping[str, str] | None = None) -> str:
    """Run a command and return the end of what it said if it failed, else ""."""
    try:
        done = output_of(command, env=env)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-2_000:] or "it failed"


def ends_well(
    name: str,
    command: Sequence[object],
    seconds: float | None = None,
    *,
    is_good: Callable[[int, str], bool] = lambda code, _: not code,
    quiet: bool = False,
    **more: Any,
) -> bool:
    """Run a program, print how it ended, and return whether well.

    ``is_good`` judges the exit code and, with ``quiet``, what it said on stderr: the end of that is
    shown only where it is not.
    """
    print(f"--- {name}", flush=True)
    start = time.monotonic()
    piped: dict[str, Any] = {"stderr": subprocess.PIPE, "text": True, "errors": "replace"}
    given: dict[str, Any] = {**more, **(piped if quiet else {})}
    try:
        words = [str(word) for word in command]
        done = cast("Any", subprocess.run(words, check=False, timeout=seconds, **given))
        said = str(done.stderr or "")
        good = is_good(done.returncode, said)
        ended = "ok" if good else f"FAILED with {done.returncode}"
    except subprocess.TimeoutExpired:
        good, said, ended = False, "", f"FAILED, it did not end in {seconds:.0f} s"
    if not good:
        print("\n".join(said.splitlines()[-60:]), end="\n" if said else "")
    print(f"--- {name}: {ended} after {time.monotonic() - start:.0f} s", flush=True)
    return good

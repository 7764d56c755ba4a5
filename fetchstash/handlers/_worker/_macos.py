"""macOS: start a worker inside a sandbox, as sandbox-exec(1) reads one from a profile."""

import json
import os
import shutil
import sys
from collections.abc import Iterable

from fetchstash.handlers._worker._confine import python_folders
from fetchstash.handlers._worker._room import Room

_PROFILE = """(version 1)
(deny default)
(allow process-exec (literal {python}) {folders_of_python})
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* {folders})
(allow file-read* (subpath {room}))
(allow file-write* (subpath {out}))
(allow file-read* file-write-data (literal "/dev/null"))
(allow signal (target self))
(deny file-link)
(deny file-write-create (vnode-type SYMLINK))
"""
# Where macOS has its own libraries and the time zones.
_SYSTEM = ("/System", "/usr/lib", "/usr/share", "/private/var/db/timezone", "/dev/urandom")


def confined_command(room: Room) -> tuple[str, ...]:
    """Return the beginning of the command line that confines a worker to its room, () elsewhere."""
    if sys.platform != "darwin" or shutil.which("sandbox-exec") is None:
        return ()
    return ("sandbox-exec", "-p", profile(room))


def profile(room: Room) -> str:
    """Return the profile of a worker. Later rules go before earlier ones: it makes no links.

    A profile quotes strings as JSON does.
    """
    folder = room.path.resolve()  # rules are about real paths, and /tmp is a link
    # A framework's python starts another program of its own folder.
    programs = (sys.base_prefix, os.path.realpath(sys.executable))
    return _PROFILE.format(
        python=json.dumps(sys.executable),
        folders_of_python=_subpaths(programs),
        folders=_subpaths((*map(str, python_folders()), *_SYSTEM, *map(str, room.readable))),
        room=json.dumps(str(folder)),
        out=json.dumps(str(folder / "out")),
    )


def _subpaths(paths: Iterable[str]) -> str:
    real = dict.fromkeys(name for path in paths for name in (path, os.path.realpath(path)))
    return " ".join(f"(subpath {json.dumps(path)})" for path in real)

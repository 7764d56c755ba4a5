"""macOS: start a worker inside a sandbox, as sandbox-exec(1) reads one from a profile."""

import json
import shutil
import sys

from fetchstash.handlers._worker._confine import python_folders
from fetchstash.handlers._worker._room import Room

_PROFILE = """(version 1)
(deny default)
(allow process-exec (literal {python}))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* {folders})
(allow file-read* (subpath {room}))
(allow file-write* (subpath {out}))
(allow file-read* file-write-data (literal "/dev/null"))
(allow signal (target self))
"""
# Where macOS has its own libraries and the time zones.
_SYSTEM = ("/System", "/usr/lib", "/usr/share", "/private/var/db/timezone", "/dev/urandom")


def confined_command(room: Room) -> tuple[str, ...]:
    """Return the beginning of the command line that confines a worker to its room, () elsewhere.

    A profile quotes strings as JSON does.
    """
    if sys.platform != "darwin" or shutil.which("sandbox-exec") is None:
        return ()
    readable = (*map(str, python_folders()), *_SYSTEM, *map(str, room.readable))
    profile = _PROFILE.format(
        python=json.dumps(sys.executable),
        folders=" ".join(f"(subpath {json.dumps(path)})" for path in readable),
        room=json.dumps(str(room.path)),
        out=json.dumps(str(room.path / "out")),
    )
    return ("sandbox-exec", "-p", profile)

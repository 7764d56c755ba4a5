"""The Chromium of this machine, and how it is started: always in its own sandbox.

Chromium has no sandbox as root, and is never started without one: where the server runs as root the
browser runs as `nobody`.
"""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

_NAMES = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
    "microsoft-edge",
)  # fmt: skip
_PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
NOBODY = 65_534
"""The user and group without rights of its own, on Linux."""


def executable() -> str:
    """Return the path of a Chromium, "" if there is none."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    return found or next((place for place in _PLACES if Path(place).exists()), "")


def missing() -> str:
    """Return what a browser lacks on this machine, as a sentence; "" if nothing."""
    if find_spec("playwright") is None:
        return "The extra `browser` is not installed."
    if not executable():
        return "There is no Chromium on this machine."
    if needs_other_user() and not shutil.which("setpriv"):
        return "Chromium has no sandbox as root, and setpriv is missing to start it as nobody."
    return ""


def needs_other_user() -> bool:
    """Return whether this process is root's."""
    return sys.platform != "win32" and os.geteuid() == 0


def prepared(folder: Path) -> tuple[str, Path]:
    """Return the command that starts the browser, and its fresh profile, both in ``folder``."""
    profile = folder / "profile"
    profile.mkdir(0o700)
    if not needs_other_user():
        return executable(), profile
    folder.chmod(0o711)
    os.chown(profile, NOBODY, NOBODY)
    user = f"--reuid={NOBODY} --regid={NOBODY} --clear-groups --no-new-privs --pdeathsig KILL"
    start = folder / "start"
    start.write_text(
        f'#!/bin/sh\nexport HOME="{profile}" TMPDIR="{profile}"\n'
        f'exec setpriv {user} -- "{executable()}" "$@"\n'
    )
    start.chmod(0o755)
    return str(start), profile

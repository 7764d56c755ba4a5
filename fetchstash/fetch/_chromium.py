"""Whether there is a browser to render pages with: a Chromium, and Playwright to drive it.

Light: nothing is started, and no HTTP library imported, to know it.
"""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from fetchstash.fetch._contract import Fetcher, FetchLimits, Renderer

# Chromium has no sandbox as root, and is never started without one: where the server runs as root
# the browser runs as `nobody`.
_NAMES = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
    "microsoft-edge",
)  # fmt: skip
_PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def executable() -> str:
    """Return the path of a Chromium, "" if there is none."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    return found or next((place for place in _PLACES if Path(place).exists()), "")


def missing() -> str:
    """Return what a browser lacks on this machine, as a sentence; "" if nothing."""
    if find_spec("playwright") is None:
        return "The extra `browser` is not installed."
    return missing_chromium()


def missing_chromium() -> str:
    """Return what Chromium itself lacks, as a sentence; "" if nothing."""
    if not executable():
        return "There is no Chromium on this machine."
    if needs_other_user() and not shutil.which("setpriv"):
        return "Chromium has no sandbox as root, and setpriv is missing to start it as nobody."
    return ""


def needs_other_user() -> bool:
    """Return whether this process is root's."""
    return sys.platform != "win32" and os.geteuid() == 0


async def browser_fault() -> str:
    """Return why no browser starts on this machine, as a sentence; "" if one does."""
    from fetchstash.fetch import _browser  # noqa: PLC0415 -- it imports the HTTP library

    return await _browser.browser_fault()


def browser_of(fetcher: Fetcher, limits: FetchLimits) -> Renderer | None:
    """Return the browser of a fetcher, None where it is off or, with auto alone, not there."""
    from fetchstash.fetch._fetcher import HttpFetcher  # noqa: PLC0415 -- it is heavier

    entries = set(limits.browser) - {"off"}
    is_on = entries and not (entries == {"auto"} and missing())
    return fetcher if is_on and isinstance(fetcher, HttpFetcher) else None

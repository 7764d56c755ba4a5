"""Render a page of scripts in a browser; each of its connections goes through the guard.

Each page has a process of its own, a fresh profile, a proxy of its own and one deadline. Whether
there is a browser, a Chromium and Playwright to drive it, is known without the HTTP library.
"""

import asyncio
import contextlib
import json
import os
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from fetchstash.errors import FetchFailed, FetchstashError, TimedOut, TooLarge
from fetchstash.fetch._addresses import Resolver, addresses_of
from fetchstash.fetch._body import FIRST_PART
from fetchstash.fetch._contract import Fetcher, FetchLimits, Rendered, Renderer
from fetchstash.fetch._policy import Policy
from fetchstash.system import processes
from fetchstash.text.urls import Target, parse

if TYPE_CHECKING:
    from fetchstash.fetch._browser._proxy import Tunnel

PAGES_AT_A_TIME = 1
COMMAND = (sys.executable, "-P", "-m", "fetchstash.fetch._browser._child")
_ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LANG", "TZ")
_END_SECONDS = 5
_START_SECONDS = 30
_MAX_ANSWER = 64 * 2**10
_AGAIN = "Try again, or look for the same content at another address."

_FAILURES: Mapping[str, tuple[type[FetchstashError], str]] = {
    "missing": (FetchFailed, "The extra `browser` is not installed."),
    "sandbox": (FetchFailed, "The browser finds no sandbox on this machine and was not started."),
    "status": (FetchFailed, "The server answered the browser with an error."),
    "unreached": (FetchFailed, "The browser could not reach the page."),
    "too_large": (TooLarge, "The rendered page is larger than the limit."),
    "timeout": (TimedOut, "The page was not rendered in time."),
    "left": (FetchFailed, "The scripts of the page lead to another site."),
    "crashed": (FetchFailed, "The browser ended before the page was rendered."),
}
"""By the codes of the child. Nothing that it says is shown: the page may have a hand in it."""


NOBODY = 65_534
"""The user and group without rights of its own, on Linux."""


# Chromium has no sandbox as root, and is never started without one: where the server runs as root
# the browser runs as `nobody`.
_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
)
_PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def executable() -> str:
    """Return the path of a Chromium, "" if there is none."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    return found or next((place for place in _PLACES if Path(place).exists()), "")


def missing() -> str:
    """Return which requirements of the browser this machine lacks, as a sentence; "" if none."""
    if find_spec("playwright") is None:
        return "The extra `browser` is not installed."
    return missing_chromium()


def missing_chromium() -> str:
    """Return which requirements of Chromium itself are missing, as a sentence; "" if none."""
    if not executable():
        return "There is no Chromium on this machine."
    if needs_other_user() and not shutil.which("setpriv"):
        return "Chromium has no sandbox as root, and setpriv is missing to start it as nobody."
    return ""


def needs_other_user() -> bool:
    """Return whether Chromium must run as another user, because this process is root's."""
    return sys.platform != "win32" and os.geteuid() == 0


def browser_of(fetcher: Fetcher, limits: FetchLimits) -> Renderer | None:
    """Return the browser of a fetcher, None where it is off or, with auto alone, not there."""
    from fetchstash.fetch._fetcher import HttpFetcher  # noqa: PLC0415 -- it imports this

    entries = set(limits.browser) - {"off"}
    is_on = entries and not (entries == {"auto"} and missing())
    return fetcher if is_on and isinstance(fetcher, HttpFetcher) else None


class Browser:
    """Renders pages; one at a time, the others wait."""

    def __init__(
        self,
        limits: FetchLimits,
        policy: Policy,
        resolver: Resolver | None,
        tunnel: "Callable[[Policy], Tunnel]",
    ) -> None:
        """Take the rules of the fetcher, and what makes a way to connect by some rules."""
        self._limits = limits
        self._policy = policy
        self._resolver = resolver
        self._tunnel = tunnel
        self._free = asyncio.Semaphore(PAGES_AT_A_TIME)

    async def render(
        self, url: str, folder: Path, *, seconds: float, edge: int = 0, max_bytes: int = 0
    ) -> Rendered:
        """Render ``url`` into a new 0600 file in ``folder``; see Renderer."""
        if lack := missing():
            raise FetchFailed(lack, "Tell the operator.")
        requested = parse(url, self._limits.max_url_chars)
        self._policy.check(requested)
        most = max_bytes or self._limits.max_decoded_bytes
        file = processes.new_file(folder, "page-")
        job = {"url": url, "file": str(file), "edge": edge, "max_bytes": most}
        try:
            answer = await self._answer(job, requested, seconds)
            final = _checked(answer, requested, self._limits.max_url_chars)
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        version = "".join(c for c in str(answer.get("version"))[:30] if c.isdigit() or c == ".")
        width, height = (int(answer.get(name) or 0) for name in ("width", "height"))
        media_type = str(answer.get("media_type"))
        incomplete = ""
        if answer.get("cut"):
            incomplete = FIRST_PART.format(most, "")
        elif answer.get("flooded"):
            more = f"its scripts loaded more than {self._limits.max_wire_bytes:,} bytes"
            incomplete = f"{more}, and it is shown as it stood then"
        browser = f"Chromium {version}"
        return Rendered(file, final.text, browser, media_type, width, height, incomplete)

    async def _answer(self, job: dict[str, Any], page: Target, seconds: float) -> dict[str, Any]:
        """Return the child's answer, or that of a time-out if it gave none."""
        from fetchstash.fetch._browser._proxy import PageProxy  # noqa: PLC0415 -- it is heavy

        limits = self._limits
        with anyio.move_on_after(seconds) as scope:
            async with self._free:
                left = scope.deadline - anyio.current_time()
                job |= {"seconds": left, "agent": limits.user_agent}
                addresses = await addresses_of(page, self._resolver)
                policy = self._policy.for_page(page, addresses)
                async with PageProxy.listening(
                    policy, self._tunnel(policy), limits.max_wire_bytes, limits.max_url_chars
                ) as proxy:
                    answer = await _asked(job | {"port": proxy.port, "token": proxy.token})
                    return answer | {"flooded": proxy.received > proxy.max_bytes}
        return {"failed": "timeout"}


async def browser_fault() -> str:
    """Return why no browser starts here, as a sentence; "" if one does."""
    if lack := missing():
        return lack
    job: dict[str, Any] = {"url": "about:blank", "port": 9, "token": "", "agent": ""}
    job["seconds"] = _START_SECONDS
    with anyio.move_on_after(_START_SECONDS):
        code = str((await _asked(job)).get("failed") or "")
        return "" if code == "started" else _FAILURES.get(code, _FAILURES["crashed"])[1]
    return _FAILURES["timeout"][1]


def _checked(answer: dict[str, Any], requested: Target, max_url_chars: int) -> Target:
    """Return the final address of a rendered page. Raises the error of a page that failed."""
    code = answer.get("failed") or ("" if "url" in answer else "crashed")
    final: Target | None = None
    if not code:
        with contextlib.suppress(FetchstashError):  # else it is no page of the web
            final = parse(str(answer.get("url")), max_url_chars)
        code = "" if final and final.origin == requested.origin else "left"
    if final is None or code:
        kind, what = _FAILURES.get(str(code), _FAILURES["crashed"])
        raise kind(what, _AGAIN)
    return final


async def _asked(job: dict[str, Any]) -> dict[str, Any]:
    """Start the child, hand it the job, and return its answer; {} if it gives none.

    When this ends, for whatever reason, the browser and all its processes have.
    """
    async with _folder() as folder:
        start, profile = await anyio.to_thread.run_sync(prepared, folder)
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={**environment, "HOME": str(profile), "TMPDIR": str(folder)},
            start_new_session=True,
            limit=_MAX_ANSWER,
        )
        assert process.stdin
        assert process.stdout
        try:
            job |= {"executable": start, "profile": str(profile), "folder": str(folder)}
            process.stdin.write(json.dumps(job).encode() + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
            return dict[str, Any](json.loads(line or b"{}"))
        except (OSError, TypeError, ValueError):
            return {}
        finally:
            # Upon the end of its pipe the child kills the browser and ends.
            process.stdin.close()
            with anyio.CancelScope(shield=True):
                try:
                    async with asyncio.timeout(_END_SECONDS):
                        await process.wait()
                except TimeoutError:
                    processes.kill(process)
                    await processes.is_gone(process)


@contextlib.asynccontextmanager
async def _folder() -> AsyncGenerator[Path]:
    # As nobody the browser could not reach a folder below one that is private to root.
    place = "/tmp" if needs_other_user() else None  # noqa: S108 - mkdtemp makes it
    make = partial(tempfile.mkdtemp, prefix="fetchstash-", dir=place)
    folder = Path(await anyio.to_thread.run_sync(make))
    try:
        yield folder
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


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

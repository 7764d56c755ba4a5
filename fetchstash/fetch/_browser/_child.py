"""The process that drives a browser for one page, and ends it with all its children.

Started by the server as ``python -P -m fetchstash.fetch._browser._child``. It reads one job from
its standard input, a line of JSON, writes one line of JSON as the answer, and lives no longer than
that pipe: where the server ends it, or is killed, every process of the browser is killed too.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from fetchstash.fetch._browser._proxy import USER

_PR_SET_CHILD_SUBREAPER = 36
_LOAD_SECONDS = 12
_QUIET_SECONDS = 6
"""A page that never stops asking its server is taken as it is so long after it was loaded."""
_SETTLE_SECONDS = 0.3
_TAKE_SECONDS = 5
"""Kept, or a third of the time, to take the page as it stands: loading may never end."""
_VIEW = 1_280, 900
_LEAST_HEIGHT = 200
_QUALITIES = (80, 60, 40)

FLAGS = (
    "--proxy-bypass-list=<-loopback>",  # loopback goes through the proxy, too, which refuses it
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no look-up but by the proxy
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--no-pings",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-file-system",
    "--disable-notifications",
    "--disable-speech-api",
    "--deny-permission-prompts",
    "--mute-audio",
    "--no-first-run",
)

_NO_WORKERS = """
for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "SharedWorker"])
    Object.defineProperty(window, name, {value: undefined});
"""
"""WebRTC sends datagrams, which no proxy of ours vets."""


def main() -> None:
    """Run one job; print a line of JSON with the rendered page or the code of a failure."""
    job: dict[str, Any] = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # the driver prints
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    threading.Thread(target=_end_with_server, args=(job["folder"],), daemon=True).start()
    try:
        answer = render(job)
    except Exception as error:  # noqa: BLE001 - whatever the driver raises is a failure of the page
        answer = {"failed": _code(error), "detail": str(error)[:400]}
    with suppress(OSError):  # a server that is gone reads no answer
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    _end(job["folder"])


def render(job: dict[str, Any]) -> dict[str, Any]:
    """Render the job's page into its file; return its address and the browser's version."""
    seconds = float(job["seconds"])
    deadline = time.monotonic() + seconds - min(_TAKE_SECONDS, seconds / 3)

    def left(most: float = 1e6) -> float:
        return 1_000 * max(min(deadline - time.monotonic(), most), 0.05)

    api: Any = import_module("playwright.sync_api")
    with api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            job["profile"],
            executable_path=job["executable"],
            headless=True,
            chromium_sandbox=True,
            args=list(FLAGS),
            proxy={
                "server": f"http://127.0.0.1:{job['port']}",
                "username": USER,
                "password": job["token"],
            },
            accept_downloads=False,
            service_workers="block",
            user_agent=job["agent"] or None,
            viewport={"width": _VIEW[0], "height": _VIEW[1]},
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
            timeout=left(),
        )
        context.add_init_script(_NO_WORKERS)
        page = context.pages[0]
        context.on("page", _close)
        page.on("dialog", _dismiss)
        version = context.browser.version if context.browser else ""
        if job["url"] == "about:blank":  # doctor's question
            return {"failed": "started"}
        response = page.goto(job["url"], wait_until="commit", timeout=left())
        if response is None or response.status >= 400:
            return {"failed": "status"}
        with suppress(api.TimeoutError):
            page.wait_for_load_state("load", timeout=left(_LOAD_SECONDS))
        with suppress(api.TimeoutError):
            page.wait_for_load_state("networkidle", timeout=left(_QUIET_SECONDS))
        page.wait_for_timeout(min(left(), 1_000 * _SETTLE_SECONDS))
        size = {"width": 0, "height": 0}
        if job["edge"]:
            data, media_type, size = _screenshot(page, job["edge"], job["max_bytes"])
        else:
            data, media_type = page.content().encode("utf-8", "replace"), "text/html"
        is_cut = len(data) > job["max_bytes"]
        if is_cut and job["edge"]:
            return {"failed": "too_large"}
        Path(job["file"]).write_bytes(data[: job["max_bytes"]])
        answer = {"url": page.url, "version": version, "media_type": media_type}
        return {**answer, "cut": is_cut, **size}


def _close(popup: Any) -> None:
    popup.close()


def _dismiss(dialog: Any) -> None:
    dialog.dismiss()


def _screenshot(page: Any, edge: int, max_bytes: int) -> tuple[bytes, str, dict[str, int]]:
    """Return the page as a picture: as much of it as is not longer than ``edge`` pixels."""
    width = min(_VIEW[0], edge)
    page.set_viewport_size({"width": width, "height": _VIEW[1]})
    whole = page.evaluate("Math.max(document.documentElement.scrollHeight, 1)")
    size = {"width": width, "height": int(min(max(whole, _LEAST_HEIGHT), edge))}
    page.set_viewport_size(size)
    data: bytes = page.screenshot(type="png")
    if len(data) <= max_bytes:
        return data, "image/png", size
    for quality in _QUALITIES:
        data = page.screenshot(type="jpeg", quality=quality)
        if len(data) <= max_bytes:
            break
    return data, "image/jpeg", size


def _code(error: Exception) -> str:
    """Return the server's code for a failure of the browser."""
    if isinstance(error, ImportError):
        return "missing"
    text = str(error)
    if type(error).__name__ == "TimeoutError":
        return "timeout"
    if re.search(r"sandbox|SUID|namespace", text):
        return "sandbox"
    if "net::ERR_" in text:
        return "unreached"
    return "crashed"


def _end_with_server(folder: str) -> None:
    """Wait for the end of standard input, and end everything then."""
    with suppress(OSError, ValueError):
        while os.read(0, 1_024):
            pass
    _end(folder)


def _end(folder: str) -> None:
    """End the browser, remove its folder, and exit."""
    end_children()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def end_children() -> None:
    """Kill all descendants, also those whose parents have ended (Linux).

    Elsewhere the driver ends the browser when its own pipe closes.
    """
    while sys.platform == "linux" and (below := descendants(os.getpid())):
        for process in below:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def descendants(process: int) -> list[int]:
    """Return the processes below ``process``, zombies left out (proc(5))."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - thousands of them
        with suppress(OSError, ValueError, IndexError):
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                parents[int(name)] = int(fields[1])
    below, last = list[int](), {process}
    while last := {child for child, parent in parents.items() if parent in last}:
        below += last
    return below


if __name__ == "__main__":
    main()

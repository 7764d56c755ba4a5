"""Every error code, provoked once through a tool, is one line with a next step."""

import gzip
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from fetchstash.stash import Stash
from scripts.make.surface import error_codes
from tests.loopback import Site
from tests.server.conftest import Connect
from tests.server.test_tools import REPORT, call, facts_of, ref_in, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

CODES = error_codes() - {"server_failed", "quota"}  # of the gateway, of a service
PROVOKED: dict[str, Callable[..., Any]] = {}


def provokes(code: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        PROVOKED[code] = function
        return function

    return note


@dataclass
class Scene:
    """A client of a server with settings of its own, and what the test may break."""

    connect: Connect
    site: Site
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    stack: ExitStack

    async def fails(self, client: Client, tool: str, **arguments: Any) -> Any:
        result: Any = await client.call_tool(tool, arguments)
        assert result.is_error, text_of(result)
        return result

    async def fetching(self, url: str, **settings: Any) -> Any:
        async with self.connect(**settings) as client:
            return await self.fails(client, "fetch_content", url=url)


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "refused": ("fetch_content", {"url": "http://169.254.169.254/latest/meta-data/"}),
    "bad_argument": ("fetch_content", {"url": "not a url"}),
    "unknown_ref": ("artifact_info", {"artifact_ref": "art_" + "a" * 26}),
    "no_text": ("artifact_grep", {"artifact_ref": "/bytes", "pattern": "x"}),
    "bad_pattern": ("artifact_grep", {"artifact_ref": "/text", "pattern": "(unclosed"}),
    "out_of_range": ("artifact_slice", {"artifact_ref": "/pdf", "unit": "pages", "start": 49}),
}
"""Codes that one call provokes; a path stands for what was fetched from there."""
PAGES: dict[str, tuple[bytes | str, str]] = {
    "/bytes": (bytes(range(256)), "text/plain"),
    "/text": ("text", "text/plain"),
    "/pdf": (REPORT, "application/pdf"),
}


async def one_call(scene: Scene, tool: str, arguments: dict[str, Any]) -> Any:
    async with scene.connect() as client:
        path = arguments.get("artifact_ref", "")
        if path in PAGES:
            url = scene.site.put(path, *PAGES[path])
            await call(client, "fetch_content", url=url)
            arguments = {**arguments, "artifact_ref": url}
        return await scene.fails(client, tool, **arguments)


PROVOKED.update({c: partial(one_call, tool=t, arguments=a) for c, (t, a) in CALLS.items()})


@provokes("robots")
async def robots(scene: Scene) -> Any:
    scene.site.put("/robots.txt", "User-agent: *\nDisallow: /private", "text/plain")
    return await scene.fetching(scene.site.put("/private", "x"), fetch__respect_robots=True)


@provokes("fetch_failed")
async def fetch_failed(scene: Scene) -> Any:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, and nobody listens
        port = held.getsockname()[1]
        return await scene.fetching(
            f"http://127.0.0.1:{port}/", fetch__allow_hosts=[f"127.0.0.1:{port}"]
        )


@provokes("http_error")
async def http_error(scene: Scene) -> Any:
    result = await scene.fetching(
        scene.site.put("/gone", "it moved to Mars", "text/plain", status=410)
    )
    line, _, quoted = text_of(result).partition("\n")
    assert "Mars" not in line
    fence = r"<untrusted-\w+ source=.*>\nit moved to Mars\n</untrusted-\w+>"
    assert re.fullmatch(r"What follows was fetched: .*\n" + fence, quoted)
    told = {"code": "http_error", "status": 410, "cause": "not_found"}
    assert result.meta["fetchstash/error"] == told
    return result


@provokes("timeout")
async def timeout(scene: Scene) -> Any:
    def say_nothing(handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(1)  # returns when the client gives up

    url = scene.site.put("/silent", script=say_nothing)
    return await scene.fetching(url, fetch__deadline_seconds=0.3)


@provokes("too_large")
async def too_large(scene: Scene) -> Any:
    bomb = gzip.compress(bytes(40 * 2**20))
    packed = {"Content-Encoding": "gzip"}
    return await scene.fetching(scene.site.put("/big", bomb, "text/plain", headers=packed))


@provokes("expired_ref")
async def expired_ref(scene: Scene) -> Any:
    async with scene.connect(store__max_artifacts=1) as client:
        ref = ref_in(
            await call(client, "fetch_content", url=scene.site.put("/1", "one", "text/plain"))
        )
        await call(client, "fetch_content", url=scene.site.put("/2", "two", "text/plain"))
        return await scene.fails(client, "get_search_content", artifact_ref=ref)


@provokes("busy")
async def busy(scene: Scene) -> Any:
    fcntl = pytest.importorskip("fcntl", reason="the lock of this test is POSIX's")
    now, loop = time.monotonic, threading.current_thread()

    def faster_in_the_store() -> float:
        return now() * (1 if threading.current_thread() is loop else 200)

    scene.monkeypatch.setattr(time, "monotonic", faster_in_the_store)
    async with scene.connect() as client:
        await call(client, "fetch_content", url=scene.site.put("/1", "one", "text/plain"))
        lock = scene.stack.enter_context((scene.folder / "store" / "lock").open("rb+"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = await scene.fails(
            client, "fetch_content", url=scene.site.put("/2", "two", "text/plain")
        )
        fcntl.flock(lock, fcntl.LOCK_UN)
        return result


@provokes("store_error")
async def store_error(scene: Scene) -> Any:
    async with scene.connect() as client:
        result = await client.call_tool(
            "fetch_content", {"url": scene.site.put("/t", "text", "text/plain")}
        )
        (facts,) = facts_of(result)
        Path(facts["path"]).unlink()
        return await scene.fails(client, "get_search_content", artifact_ref=facts["artifact_ref"])


@provokes("internal")
async def internal(scene: Scene) -> Any:
    async def broken(*_: object) -> Any:
        raise RuntimeError("secret of the inside")

    scene.monkeypatch.setattr(Stash, "list", broken)
    async with scene.connect() as client:
        return await scene.fails(client, "artifact_info")


@pytest.mark.parametrize("code", sorted(CODES))
async def test_each_error_is_one_line_with_its_code_and_what_to_do(
    code: str, connect: Connect, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        result = await PROVOKED[code](Scene(connect, site, tmp_path, monkeypatch, stack))
    line, _, quoted = text_of(result).partition("\n")
    assert quoted.startswith("What follows was fetched: ") or not quoted
    assert re.fullmatch(rf"\[{code}\] [A-Z0-9a-z/].*[.!?] [A-Z`].*\.", line), line
    assert "Traceback" not in line
    assert "secret" not in line
    assert result.meta["fetchstash/error"]["code"] == code
    assert result.meta["fetchstash/artifact"] == []

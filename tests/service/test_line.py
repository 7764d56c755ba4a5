"""Requests in line at the endpoint: short calls pass, slow bodies and clients that left do not."""

import json
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from fetchstash.config import HttpLimits, OAuthLimits, load
from fetchstash.service import _endpoint, _fair
from fetchstash.service._endpoint import EARLY_BYTES, Endpoint
from fetchstash.service._fair import AT_ONCE, RequestQueue

pytestmark = pytest.mark.anyio


class OneTenant:
    """Tenants whose requests all have a turn, and nothing else."""

    def __init__(self) -> None:
        self.queue, self.settings = RequestQueue(100), load({})

    def admit(self, tenant: str, person: str) -> None:
        """Admit everybody."""

    def entered(self, tenant: str) -> AbstractContextManager[None]:
        """Keep nothing open for any ``tenant``."""
        del tenant
        return nullcontext()


class InLine:
    """Requests of one person at an endpoint. Each holds its turn until it is let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.lets_go = anyio.Event()
        tenants: Any = OneTenant()
        self._app = Endpoint(self._run, HttpLimits(), OAuthLimits(), tenants)

    async def _run(self, _: Scope, receive: Receive, send: Send) -> None:
        self.begun.append(json.loads((await receive())["body"])["params"]["name"])
        if len(self.begun) <= AT_ONCE:
            await self.lets_go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    async def call(
        self,
        tool: str,
        *,
        pad: int = 0,
        leaves: anyio.Event | None = None,
        comes: anyio.Event | None = None,
    ) -> None:
        """Call a tool; the client may leave, or send its body late."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}}
        body = json.dumps(call).encode() + b" " * pad
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if comes:
                await comes.wait()
            if parts:
                return parts.pop()
            await (leaves or anyio.Event()).wait()
            return {"type": "http.disconnect"}

        async def send(_: Message) -> None:
            """Ignore the answer."""

        length = (b"content-length", str(len(body)).encode())
        await self._app({"type": "http", "method": "POST", "headers": [length]}, receive, send)


@pytest.fixture
def never_passes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no request be taken for one that waits, and watch each at once."""
    monkeypatch.setattr(_fair, "_BEGUN_SECONDS", 1_000)
    monkeypatch.setattr(_endpoint, "WATCH_SECONDS", 0)


async def test_a_search_and_a_long_body_let_short_calls_pass(never_passes_on: None) -> None:
    line, most = InLine(), EARLY_BYTES
    async with anyio.create_task_group() as tasks:
        for name in ["artifact_info"] * AT_ONCE:
            tasks.start_soon(line.call, name)
            await anyio.wait_all_tasks_blocked()
        for name, pad in (("artifact_search", 0), ("stash_file", most), ("artifact_grep", 0)):
            tasks.start_soon(partial(line.call, name, pad=pad))
            await anyio.wait_all_tasks_blocked()
        assert line.begun == ["artifact_info"] * AT_ONCE
        line.lets_go.set()
    assert line.begun[AT_ONCE:] == ["artifact_grep", "artifact_search", "stash_file"]


async def test_a_body_that_is_late_keeps_no_turn(never_passes_on: None) -> None:
    line, comes = InLine(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(partial(line.call, "artifact_info", comes=comes))
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(line.call, "artifact_grep")
        await anyio.wait_all_tasks_blocked()
        assert line.begun == ["artifact_grep"]
        line.lets_go.set()
        comes.set()


async def test_a_call_whose_client_leaves_in_line_never_begins(never_passes_on: None) -> None:
    line, leaves = InLine(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(line.call, "artifact_info")
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(partial(line.call, "artifact_grep", leaves=leaves))
        await anyio.wait_all_tasks_blocked()
        leaves.set()
        await anyio.wait_all_tasks_blocked()
        line.lets_go.set()
    assert line.begun == ["artifact_info"] * AT_ONCE

"""A service in several processes: one that dies is replaced, and what one must know all know."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import anyio
import httpx2
import pytest

from fetchstash.config import HttpLimits, load
from fetchstash.errors import BadArgument
from fetchstash.service._workers import merged, worker_count
from fetchstash.system.processes import processors
from scripts.drive.service import free_port
from tests.loopback import Site
from tests.server.test_stdio import flags
from tests.service.pages import Hanging, calling
from tests.service.test_serve import process, url_in


def children(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


async def cancelled_from_anywhere(http: httpx2.AsyncClient, url: str, page: Hanging) -> str:
    """Begin a call, and cancel it over connections of their own; return its answer."""
    answers: list[str] = []
    headers = {"accept": "application/json, text/event-stream", "mcp-session-id": "a-session"}

    async def call() -> None:
        request = calling(page.url, "legacy")
        request["headers"] |= headers
        answers.append((await http.post(url, **request)).text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await page.begun.wait()
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        async with httpx2.AsyncClient(timeout=60) as other:
            await other.post(url, json=message | {"params": {"requestId": 1}}, headers=headers)
    return answers[0]


@pytest.mark.anyio
@pytest.mark.long
@pytest.mark.skipif("sys.platform != 'linux'", reason="/proc")
async def test_workers_cancel_for_each_other_and_one_that_dies_is_replaced(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("FETCHSTASH_HTTP_METRICS", place)
    with process(*flags(site, tmp_path), "--workers", "2") as (server, line):
        url = url_in(line)
        async with httpx2.AsyncClient(timeout=60) as http:
            with anyio.fail_after(120):
                for _ in range(3):  # by chance both in one worker
                    page = Hanging(site)
                    assert "Request cancelled" in await cancelled_from_anywhere(http, url, page)
            before = children(server.pid)
            os.kill(min(before), signal.SIGKILL)
            async with httpx2.AsyncClient(timeout=60) as fresh:  # not a connection of the dead
                assert (await fresh.get(url.replace("/mcp", "/readyz"))).status_code == 200
            with anyio.fail_after(120):
                text = ""
                while text.count("process_uptime_seconds{") != 2 or "restarts_total 1" not in text:
                    await anyio.sleep(0.1)
                    text = (await http.get(f"http://{place}/metrics")).text
            assert len(children(server.pid) - before) == 1
        server.send_signal(signal.SIGTERM)
        assert await anyio.to_thread.run_sync(lambda: server.wait(60)) == 0
        lines = [json.loads(text) for text in (server.stderr or []) if text.startswith("{")]
    assert {line.get("worker") for line in lines if line["message"] == "request"} <= {0, 1}
    assert "Worker 0 ended with -9" in str(lines) or "Worker 1 ended with -9" in str(lines)


def test_the_measurements_of_workers_are_one_text_that_names_them() -> None:
    head = "# HELP a_total What\n# TYPE a_total counter\n"
    texts = {
        0: head + 'a_total{x="1"} 2.0\n',
        1: head + 'a_total{x="1"} 3.0\n# TYPE b gauge\nb 4\n',
    }
    assert merged(texts, {"running": 2, "restarts": 0}).splitlines()[:6] == [
        "# HELP a_total What",
        "# TYPE a_total counter",
        'a_total{worker="0",x="1"} 2.0',
        'a_total{worker="1",x="1"} 3.0',
        "# TYPE b gauge",
        'b{worker="1"} 4',
    ]


def test_a_store_in_memory_has_one_worker(tmp_path: Path) -> None:
    settings = load({"store.folder": str(tmp_path)})
    assert worker_count(settings) == processors()
    memory = replace(settings, store=replace(settings.store, url="memory:"))
    assert worker_count(memory) == 1
    with pytest.raises(BadArgument, match=r"2 workers cannot serve.*http\.workers to 1"):
        worker_count(replace(memory, http=HttpLimits(workers=2)))

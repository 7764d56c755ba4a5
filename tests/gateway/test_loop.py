"""Lists that a wrapped server makes never hold the event loop, nor all of the memory."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fetchstash.config import WrappedServer
from fetchstash.gateway._process import connected
from fetchstash.gateway._start import start
from fetchstash.stash import open_stash
from tests.gateway.memory import Line, Message, Server, gateway, initialize
from tests.loop_turns import counted_turns

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.long, pytest.mark.in_process]

MANY = 100_000
MOST_CALLS = 100_000
"""Functions that one turn of the loop may call: 20 ms of Python, on a slow machine 100."""


def listing(method: str, field: str, key: str) -> dict[str, Any]:
    """Return the answer of a server with MANY entries on the one page of a list."""
    return {method: {field: [{key: f"x://{n}"} for n in range(MANY)]}}


async def pages(line: Line, message: Message) -> None:
    """Answer a list of 1,000 pages, each with 100 tools and half a megabyte."""
    number = int(message.get("params", {}).get("cursor", 0))
    found = [{"name": f"tool{number}.{n}", "description": "x" * 5_000} for n in range(100)]
    more = {"nextCursor": str(number + 1)} if number < 999 else {}
    await line.send({"id": message["id"], "result": {"tools": found, **more}})


async def tells(line: Line, message: Message) -> None:
    """Tell the host MANY values before the answer to a call."""
    params = {"level": "info", "data": [{"n": n} for n in range(MANY)]}
    await line.send({"method": "notifications/message", "params": params})
    await line.send({"id": message["id"], "result": {"content": []}})


async def asks(line: Line, message: Message) -> None:
    """Ask the person a question with MANY fields, and answer when the host has refused it."""
    fields = {f"f{n}": {"type": "string"} for n in range(MANY)}
    schema = {"type": "object", "properties": fields}
    params = {"message": "Sure?", "requestedSchema": schema}
    await line.send({"id": "q", "method": "elicitation/create", "params": params})
    await line.send({"id": message["id"], "result": {"content": []}})


async def fails(line: Line, message: Message) -> None:
    """Answer with an error that has MANY values."""
    error = {"code": -1, "message": "no", "data": [{"n": n} for n in range(MANY)]}
    await line.send({"id": message["id"], "error": error})


def text(n: int) -> dict[str, Any]:
    return {"type": "text", "text": f"line {n}"}


def picture(n: int) -> dict[str, Any]:
    return {"type": "image", "mimeType": "image/png", "data": f"{n:08}"}


def link(n: int) -> dict[str, Any]:
    return {"type": "resource_link", "uri": f"x://{n}", "name": f"{n}"}


def embedded(n: int) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": f"x://{n}", "text": f"text {n}"}}


def content(block: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    return {**ONE_TOOL, "tools/call": {"content": [block(n) for n in range(MANY)]}}


ONE_TOOL = {"tools/list": {"tools": [{"name": "read"}]}}
Asked = tuple[str, dict[str, Any]]
CALL: Asked = ("tools/call", {"name": "read", "arguments": {}})
READ = ("resources/read", {"uri": "x://none"})


@dataclass(frozen=True)
class Hostile:
    """A server with MANY items somewhere, and the requests of a host that come across them."""

    name: str
    server: Callable[[], Server]
    requests: tuple[Asked, ...] = (CALL,)


def answering(answers: Callable[[], dict[str, Any]]) -> Callable[[], Server]:
    return lambda: Server("many", answers())


def doing(script: Any, answers: dict[str, Any] = ONE_TOOL) -> Callable[[], Server]:
    return lambda: Server("many", answers, script)


def contents() -> dict[str, Any]:
    found = [{"uri": f"x://{n}", "text": f"text {n}"} for n in range(MANY)]
    return {"resources/read": {"contents": found}}


def messages() -> dict[str, Any]:
    said = [{"role": "user", "content": text(n)} for n in range(MANY)]
    return {"prompts/list": {"prompts": [{"name": "read"}]}, "prompts/get": {"messages": said}}


def structured() -> dict[str, Any]:
    rows = [{"n": n, "of": {"a": [n]}} for n in range(MANY)]
    return {**ONE_TOOL, "tools/call": {"content": [], "structuredContent": {"rows": rows}}}


LIST: tuple[Asked, ...] = (("tools/list", {}),)
WRONG: tuple[Asked, ...] = (*LIST, ("tools/call", {"name": "toool77777", "arguments": {}}))
CASES = (
    Hostile("a list of 1,000 pages", doing(pages, {}), LIST),
    Hostile("tools", answering(lambda: listing("tools/list", "tools", "name")), WRONG),
    Hostile(
        "resources",
        answering(lambda: listing("resources/list", "resources", "uri")),
        (("resources/list", {}), READ),
    ),
    Hostile(
        "templates",
        answering(lambda: listing("resources/templates/list", "resourceTemplates", "uriTemplate")),
        (("resources/templates/list", {}), READ),
    ),
    Hostile(
        "prompts",
        answering(lambda: listing("prompts/list", "prompts", "name")),
        (("prompts/list", {}), ("prompts/get", {"name": "none"})),
    ),
    Hostile("texts of a result", answering(lambda: content(text))),
    Hostile("pictures of a result", answering(lambda: content(picture))),
    Hostile("links of a result", answering(lambda: content(link))),
    Hostile("resources of a result", answering(lambda: content(embedded))),
    Hostile("structured content", answering(structured)),
    Hostile("contents of a resource", answering(contents), (READ,)),
    Hostile("messages of a prompt", answering(messages), (("prompts/get", {"name": "read"}),)),
    Hostile("a notification", doing(tells)),
    Hostile("a question", doing(asks)),
    Hostile("an error", doing(fails)),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_ping_is_answered_while_100_000_items_of_a_server_are_read(case: Hostile) -> None:
    server = case.server()
    answers: list[Message] = []
    async with (
        open_stash({"store.url": "memory:"}) as stash,
        gateway(server, connects="", stash=stash) as host,
    ):
        await host.call("initialize", initialize())
        with counted_turns() as turns:
            for method, params in case.requests:
                asked, ping = await host.ask(method, params), await host.ask("ping")
                numbers: list[Any] = []
                while asked not in numbers or ping not in numbers:
                    answers.append(await host.next())
                    numbers.append(answers[-1].get("id"))
    assert turns.most < MOST_CALLS, str(turns)


async def test_a_list_of_1_000_pages_is_cut_and_told(capfd: pytest.CaptureFixture[str]) -> None:
    server = Server("many", script=pages)
    async with gateway(server) as host:
        listed = (await host.call("tools/list"))["result"]["tools"]
    asked = len(server.got("tools/list"))
    assert len(listed) == asked * 100 + 1  # the gateway's own
    assert asked * 500_000 < 10 * 2**20
    assert "tools/list has over 10,000 entries or 8 MiB; it is cut." in capfd.readouterr().err


LINE = """
import sys
sys.stdin.readline()
sys.stdout.write('{"jsonrpc":"2.0","id":1,"result":{"content":[')
sys.stdout.write('{"":"\\\\ud800"},' * 300_000 + "0]}}\\n")
sys.stdout.flush()
sys.stdin.readline()
"""


async def test_a_long_line_of_many_values_holds_no_loop(tmp_path: Path) -> None:
    process = start([sys.executable, "-c", LINE], {})
    assert process
    settings = WrappedServer("many", command="none")
    async with connected(settings, process, lambda: tmp_path, 2**30) as (messages, send):
        with counted_turns() as turns:
            await send({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})
            message = await anext(messages)
    assert len(message["result"]["content"]) == 300_001
    assert turns.most < MOST_CALLS, str(turns)
    assert list(tmp_path.iterdir()) == []

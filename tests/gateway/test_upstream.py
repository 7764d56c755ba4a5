"""How a server is opened, waited for and started again; all in memory."""

from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from mcp import Client
from mcp.server.apps import EXTENSION_ID
from mcp_types import version

from fetchstash.config import load
from fetchstash.gateway import _catalog, _protocol, _upstream
from fetchstash.gateway._protocol import LOG_LEVEL_KEY
from fetchstash.gateway._rpc import HELD_CHARS, Spooled
from fetchstash.gateway._serve import OWN_ABOUT
from fetchstash.server import LazyStash, build_server, listed_tools
from tests.gateway.memory import (
    MODERN_META,
    Line,
    Message,
    Server,
    gateway,
    initialize,
    names,
    silent,
    tools,
)

pytestmark = pytest.mark.anyio

ECHO = tools("echo")
ABOUT: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}, "resources": {}, "logging": {}},
}


@pytest.mark.parametrize("reply", ["nothing", "end"])
async def test_a_server_that_knows_no_discovery_is_initialized(
    reply: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_upstream, "DISCOVER_SECONDS", 0.01)

    async def opening(line: Line, message: Message) -> None:
        if message["method"] == "initialize":
            await line.send({"id": message["id"], "result": ABOUT})
        elif reply == "end":
            await line.aclose()

    async with gateway(Server("early", ECHO, opening=opening), connects="") as host:
        assert "echo" in names(await host.call("tools/list", {"_meta": MODERN_META}))


async def test_a_server_that_hangs_at_its_start_is_waited_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_catalog, "READY_SECONDS", 0.5)
    servers = Server("hangs", opening=silent), Server("good", ECHO)
    with anyio.fail_after(60):
        async with gateway(*servers, connects="") as host:
            await host.call("initialize", initialize())
            for _ in range(100):
                assert "echo" in names(await host.call("tools/list"))


async def test_a_server_that_does_not_read_keeps_no_other_from_being_served() -> None:
    async def stops_reading(_: Line, __: Message) -> None:
        await anyio.sleep_forever()

    servers = Server("stuck", tools("hang"), stops_reading)
    async with gateway(servers, Server("good", ECHO)) as host:
        await host.call("tools/list")
        await host.ask("tools/call", {"name": "hang"})
        for _ in range(300):
            await host.send({"method": "notifications/roots/list_changed"})
        assert (await host.call("ping"))["result"] == {}


async def test_why_a_server_stays_off_is_told_without_its_secrets() -> None:
    async def refuses(line: Line, message: Message) -> None:
        error = {"code": -1, "message": "there is no user with the key hush-hush-hush"}
        await line.send({"id": message["id"], "error": error})

    server = Server("off", opening=refuses, env={"KEY": "hush-hush-hush"})
    async with gateway(server) as host:
        answer = await host.call("its/own")
    assert answer["error"]["message"] == (
        "[server_failed] The server off is not there: it refused the connection "
        "(there is no user with the key ***). It is started again every 5 minutes: "
        "go on without it."
    )


async def test_a_host_of_the_2026_era_gets_the_log_that_it_asks_for() -> None:
    async def logs(line: Line, message: Message) -> None:
        await line.send({"method": "notifications/message", "params": {"data": "log"}})
        await line.send({"id": message["id"], "result": {"content": []}})

    answers: dict[str, Any] = {**ECHO, "initialize": ABOUT, "logging/setLevel": {}}
    server = Server("logs", answers, logs)
    async with gateway(server, connects="") as host:
        await host.call("tools/list", {"_meta": MODERN_META})
        await host.ask("tools/call", {"name": "echo", "_meta": MODERN_META})
        first = await host.next()
        meta = {**MODERN_META, LOG_LEVEL_KEY: "debug"}
        await host.ask("tools/call", {"name": "echo", "_meta": meta})
        second = await host.next()
    assert "result" in first
    assert second["params"] == {"data": "log"}
    levels = [m["params"] for m in server.got("logging/setLevel")]
    assert levels == [{"level": "debug"}]


async def test_the_log_of_a_server_of_the_hosts_era_passes() -> None:
    async def logs(line: Line, message: Message) -> None:
        await line.send({"method": "notifications/message", "params": {"data": "log"}})

    async with gateway(Server("logs", ECHO, logs, era="modern"), connects="") as host:
        await host.call("tools/list", {"_meta": MODERN_META})
        await host.ask("tools/call", {"name": "echo", "_meta": MODERN_META})
        assert (await host.next())["params"] == {"data": "log"}


async def test_a_server_that_takes_no_message_is_started_again() -> None:
    answers: dict[str, Any] = {**ECHO, "tools/call": {"content": []}}
    server = Server("deaf", answers)
    async with gateway(server) as host:
        await host.call("tools/list")
        assert server.line
        await server.line.incoming.aclose()
        assert (await host.call("tools/call", {"name": "echo"}))["result"]["isError"]
        assert (await host.call("tools/call", {"name": "echo"}))["result"] == {"content": []}
    assert server.starts == 2


async def test_a_server_that_ran_for_long_is_started_again_however_often_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_upstream, "STEADY_SECONDS", -1.0)
    monkeypatch.setattr(_upstream, "FIRST_PAUSE_SECONDS", 0.0)
    answers: dict[str, Any] = {**ECHO, "tools/call": {"content": []}}
    server = Server("ends", answers)
    async with gateway(server) as host:
        for _ in range(_upstream.RESTARTS + 2):
            assert (await host.call("tools/call", {"name": "echo"}))["result"] == {"content": []}
            await server.die()
            await anyio.wait_all_tasks_blocked()
    assert server.starts >= _upstream.RESTARTS + 2


async def ends_in_calls(line: Line, message: Message) -> None:
    if message["method"] == "tools/call":
        await line.aclose()


async def test_a_start_that_answered_is_no_failed_start_however_often_calls_end_the_server() -> (
    None
):
    server = Server("ends", ECHO, ends_in_calls)
    async with gateway(server) as host:
        told = [
            (await host.call("tools/call", {"name": "echo", "arguments": {"n": n}}))["result"]
            for n in (*range(_upstream.RESTARTS + 2), 0, 0, 0)
        ]
        assert "echo" in names(await host.call("tools/list"))
    *first, again, third, fourth = [result["content"][0]["text"] for result in told]
    ended = "[server_failed] The server ends ended in the middle of the call."
    assert set(first) == {f"{ended} It is started again: try once more."}
    advice = "It is started again. Do not repeat the call: ask for less, or for something else."
    assert again == f"{ended} {advice}"
    assert third == (
        f"[server_failed] The server ends ended in this same call for the third time. {advice}"
    )
    assert "for the fourth time" in fourth


async def test_a_call_that_was_answered_at_last_has_ended_no_server() -> None:
    answers: dict[str, Any] = dict(ECHO)
    server = Server("ends", answers, ends_in_calls)
    call = "tools/call", {"name": "echo"}
    async with gateway(server) as host:
        for _ in range(2):
            await host.call(*call)
        server.answers["tools/call"] = {"content": []}
        assert (await host.call(*call))["result"] == {"content": []}
        del server.answers["tools/call"]
        text = (await host.call(*call))["result"]["content"][0]["text"]
    assert text.endswith("try once more.")


async def test_a_server_that_was_off_is_started_again_and_its_tools_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    off = anyio.Event()

    async def pause(seconds: float) -> None:
        if seconds == _upstream.OFF_SECONDS:
            await off.wait()

    monkeypatch.setattr(_upstream, "sleep", pause)

    async def refuses(line: Line, message: Message) -> None:
        await line.send({"id": message["id"], "error": {"code": -1, "message": "not yet"}})

    server = Server("late", ECHO, opening=refuses)
    async with gateway(server) as host:
        assert "echo" not in names(await host.call("tools/list"))
        failed = await host.call("its/own")
        assert "It is started again every 5 minutes" in failed["error"]["message"]
        server.answers["initialize"] = ABOUT
        off.set()
        while (await host.next())["method"] != "notifications/tools/list_changed":
            pass
        assert "echo" in names(await host.call("tools/list"))
    assert server.starts == _upstream.RESTARTS + 2


async def test_a_server_that_ended_is_asked_again_for_subscriptions_and_its_log_level() -> None:
    answers: dict[str, Any] = {
        "initialize": ABOUT,
        "resources/list": {"resources": [{"uri": "data://a"}, {"uri": "data://b"}]},
        "resources/templates/list": {"resourceTemplates": []},
        "resources/subscribe": {},
        "resources/unsubscribe": {},
        "logging/setLevel": {},
    }
    server = Server("dies", answers)
    async with gateway(server) as host:
        for method, uri in (("subscribe", "a"), ("subscribe", "b"), ("unsubscribe", "b")):
            await host.call(f"resources/{method}", {"uri": f"data://{uri}"})
        await host.call("logging/setLevel", {"level": "debug"})
        server.received.clear()
        await server.die()
        while len(asked := [m for m in server.received if "id" in m]) < 3:
            await anyio.lowlevel.checkpoint()
    assert [(m["method"], m["params"]) for m in asked[1:]] == [
        ("resources/subscribe", {"uri": "data://a"}),
        ("logging/setLevel", {"level": "debug"}),
    ]


async def test_a_stream_that_replaces_another_keeps_its_resources() -> None:
    server = Server("plain", {"resources/subscribe": {}, "resources/unsubscribe": {}})
    async with gateway(server, connects="") as host:
        opened: list[int] = []
        for uris in (["data://a", "data://b"], ["data://a"]):
            wanted = {"notifications": {"resourceSubscriptions": uris}, "_meta": MODERN_META}
            opened.append(await host.ask("subscriptions/listen", wanted))
            assert (await host.next())["method"].endswith("/acknowledged")
        params = {"requestId": opened[0]}
        await host.send({"method": "notifications/cancelled", "params": params})
        await host.call("ping")
        await anyio.wait_all_tasks_blocked()
    ended = [m["params"] for m in server.got("resources/unsubscribe")]
    assert ended == [{"uri": "data://b"}]


async def test_a_change_of_the_lists_between_two_of_them_is_no_fault() -> None:
    async def changes(line: Line, message: Message) -> None:
        await line.send({"method": "notifications/resources/list_changed"})
        lists: dict[str, Any] = {"resources": [], "resourceTemplates": []}
        await line.send({"id": message["id"], "result": lists})

    server = Server("changes", {"resources/read": {"contents": []}}, changes)
    async with gateway(server) as host:
        read = await host.call("resources/read", {"uri": "data://a"})
    assert read["result"] == {"contents": []}


async def test_a_list_of_many_pages_is_whole_and_one_without_end_is_cut(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async def pages(line: Line, message: Message) -> None:
        number = int(message.get("params", {}).get("cursor", 0))
        more = {"nextCursor": str(number + 1)} if number < 200 else {}
        result = {"tools": [{"name": f"tool{number}"}], **more}
        await line.send({"id": message["id"], "result": result})

    endless = {"tools/list": {"tools": [{"name": "again"}], "nextCursor": "1"}}
    async with gateway(Server("pages", script=pages), Server("endless", endless)) as host:
        listed = names(await host.call("tools/list"))
    assert listed == [f"tool{number}" for number in range(201)] + ["again", "artifact_grep"]
    assert "[endless] fetchstash: tools/list does not end; it is cut.\n" in capfd.readouterr().err


def spooled(folder: Path, text: str, chars: int = 0) -> Spooled:
    """Return a value as a reader leaves it that was too long to hold."""
    file = folder / f"result-{text}"
    file.write_text(text, encoding="utf-8")
    return Spooled(file, chars or len(text))


async def test_long_values_pass_where_no_result_is_made_short(tmp_path: Path) -> None:
    async def writes(line: Line, message: Message) -> None:
        params = {"data": spooled(tmp_path, "log")}
        await line.send({"method": "notifications/message", "params": params})
        error = {"code": -1, "message": spooled(tmp_path, "why"), "data": spooled(tmp_path, "data")}
        await line.send({"id": message["id"], "error": error})

    tool = {"name": "write", "icons": [{"src": spooled(tmp_path, "icon")}]}
    async with gateway(Server("long", {"tools/list": {"tools": [tool]}}, writes)) as host:
        [listed, _] = (await host.call("tools/list"))["result"]["tools"]
        await host.ask("tools/call", {"name": "write"})
        note, answer = await host.next(), await host.next()
    assert listed["icons"] == [{"src": "icon"}]
    assert note["params"] == {"data": "log"}
    assert answer["error"] == {"code": -1, "message": "why", "data": "data"}
    assert list(tmp_path.iterdir()) == []


async def test_values_beyond_all_bounds_are_refused_and_their_files_removed(tmp_path: Path) -> None:
    async def writes(line: Line, message: Message) -> None:
        if message["method"] != "tools/call":
            return
        huge = [spooled(tmp_path, name, HELD_CHARS + 1) for name in ("one", "two", "three")]
        await line.send({"id": 99, "result": {"content": [huge[0]]}})  # nobody asked for it
        await line.send({"id": 7, "method": "sampling/createMessage", "params": {"a": huge[1]}})
        await line.send({"id": message["id"], "error": {"code": -1, "message": huge[2]}})

    server = Server("huge", tools("write"), writes)
    async with gateway(server) as host:
        await host.call("tools/list")
        answer = await host.call("tools/call", {"name": "write"})
        await host.call("ping")
    [refused] = [m for m in server.received if m.get("id") == 7]
    assert answer["error"]["message"] == refused["error"]["message"]
    assert answer["error"]["message"] == "[too_large] The message is too long. Ask for less."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("connects", ["legacy", ""])
async def test_a_long_question_of_a_modern_server_reaches_the_person_whole(
    connects: str, tmp_path: Path
) -> None:
    file = tmp_path / "question"
    file.write_text("Sure? " * 20_000)
    message = Spooled(file, 120_000)  # as a long line is read
    needed = {"q": {"method": "elicitation/create", "params": {"message": message}}}
    result: dict[str, Any] = {"resultType": "input_required", "inputRequests": needed}
    server = Server("asks", {**ECHO, "tools/call": result}, era="modern")
    meta: dict[str, Any] = {} if connects else {"_meta": MODERN_META}
    async with gateway(server, connects=connects) as host:
        await host.ask("tools/call", {"name": "echo", **meta})
        while not ((answer := await host.next()).get("result") or "params" in answer):
            pass
    asked = answer.get("params") or answer["result"]["inputRequests"]["q"]["params"]
    assert asked["message"] == "The server asks asks: " + "Sure? " * 20_000
    assert not file.exists()


# --- The gateway's own words of MCP are those of the SDK, and of the server that it speaks for.


def test_codes_keys_and_versions_are_those_of_the_sdk() -> None:
    ours = {name: value for name, value in vars(_protocol).items() if name.isupper()}
    theirs = {
        **{f"{name}_KEY": getattr(mcp_types, f"{name}_META_KEY") for name in _META_KEYS},
        "SUBSCRIPTION_ID_KEY": "io.modelcontextprotocol/subscriptionId",
        "HANDSHAKE_VERSIONS": version.HANDSHAKE_PROTOCOL_VERSIONS,
        "UI_EXTENSION": EXTENSION_ID,
        "MODERN_VERSIONS": version.MODERN_PROTOCOL_VERSIONS,
    }
    codes = {name for name, value in ours.items() if isinstance(value, int)}
    theirs |= {name: getattr(mcp_types, name) for name in codes}
    theirs |= {name: getattr(version, name) for name in ours if name.startswith("LATEST")}
    assert {name: ours[name] for name in theirs} == theirs
    assert set(ours) - {"_META", "_DECODER"} == set(theirs)


_META_KEYS = ("PROTOCOL_VERSION", "CLIENT_INFO", "CLIENT_CAPABILITIES", "LOG_LEVEL", "SERVER_INFO")


@pytest.mark.anyio
async def test_what_is_said_of_the_artifact_tools_beforehand_is_what_their_server_says() -> None:
    settings = load()
    stated = OWN_ABOUT["capabilities"]
    async with Client(build_server(LazyStash(settings))) as client:
        offered = client.session.server_capabilities
        listed = (await client.list_tools()).model_dump(by_alias=True, exclude_none=True)
    assert offered
    # Its prompts are of the web, and the gateway shows none.
    assert set(stated) == set(offered.model_dump(exclude_none=True)) - {"prompts"}
    assert listed["tools"] == listed_tools(settings)

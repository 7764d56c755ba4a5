"""What passes between a host and its servers, with servers that misbehave; all in memory."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from fetchstash.gateway import _eras
from fetchstash.stash import open_stash
from tests.gateway.memory import (
    AT_ONCE,
    MODERN_META,
    Line,
    Message,
    Peer,
    Server,
    asking,
    gateway,
    initialize,
    let_wait,
    names,
    silent,
    tools,
)

pytestmark = pytest.mark.anyio

QUESTION: dict[str, Any] = {
    "message": "Sure?",
    "requestedSchema": {"type": "object", "properties": {}},
}


async def test_every_request_that_waits_for_a_server_is_answered_when_it_comes() -> None:
    opening: list[tuple[Line, Message]] = []

    async def slow(line: Line, message: Message) -> None:
        opening.append((line, message))

    async def empty(line: Line, message: Message) -> None:
        await line.send({"id": message["id"], "result": {"prompts": []}})

    server = Server("slow", tools("echo"), empty, opening=slow)
    async with gateway(server, connects="") as host:
        await host.ask("initialize", initialize())
        numbers = [await host.ask(method) for method in ("tools/list", "prompts/list", "ping")]
        while not opening:
            await anyio.lowlevel.checkpoint()
        line, message = opening[0]
        about: dict[str, Any] = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}, "prompts": {}},
        }
        await line.send({"id": message["id"], "result": about})
        answered = {(await host.next())["id"] for _ in range(4)}
    assert set(numbers) < answered


async def test_a_servers_own_error_of_any_code_is_passed_on() -> None:
    async def fails(line: Line, message: Message) -> None:
        error = {"code": -32_000, "message": "no such row", "data": [1]}
        await line.send({"id": message["id"], "error": error})

    async with gateway(Server("rows", tools("read"), fails)) as host:
        answer = await host.call("tools/call", {"name": "read"})
    assert answer["error"] == {"code": -32_000, "message": "no such row", "data": [1]}


@pytest.mark.in_process
@pytest.mark.parametrize(
    ("tool", "chars", "is_kept"),
    [("read", 500, False), ("read", 501, True), ("alone", 501, False)],
    ids=["at the threshold", "over it", "left alone"],
)
async def test_a_result_over_the_threshold_is_kept_unless_its_tool_is_left_alone(
    tool: str, chars: int, *, is_kept: bool
) -> None:
    text = "x" * chars
    result = {"content": [{"type": "text", "text": text}]}
    answers = {**tools("read", "alone"), "tools/call": result}
    server = Server("rows", answers, threshold=500, leave_alone=("alone",))
    async with open_stash({"store.url": "memory:"}) as stash, gateway(server, stash=stash) as host:
        answer = await host.call("tools/call", {"name": tool})
    assert (answer["result"] != result) is is_kept
    assert ("Use artifact_ref=art_" in answer["result"]["content"][0]["text"]) is is_kept


async def test_a_host_that_goes_on_with_initialize_is_of_the_earlier_era() -> None:
    asks = asking("elicitation/create", QUESTION)
    async with gateway(Server("asks", tools("ask"), asks), connects="") as host:
        await host.call("server/discover", {"_meta": MODERN_META})
        await host.call("initialize", initialize())
        await host.ask("tools/call", {"name": "ask"})
        question = await host.next()
    assert question["method"] == "elicitation/create"


@pytest.mark.parametrize("reply", ["error", "nothing to read", "end"])
async def test_a_server_that_refuses_the_host_leaves_the_others_served(reply: str) -> None:
    async def refuses(line: Line, message: Message) -> None:
        if reply == "error":
            error = {"code": -32_603, "message": "no licence"}
            await line.send({"id": message["id"], "error": error})
        elif reply == "nothing to read":
            await line.send({"id": message["id"], "result": "text"})
        else:
            await line.aclose()

    bad = Server("bad", opening=refuses)
    async with gateway(bad, Server("good", tools("echo"))) as host:
        assert names(await host.call("tools/list")) == ["echo", "artifact_grep"]
    assert bad.starts > 1


async def test_a_server_that_dies_between_two_pages_lists_again_when_it_is_back() -> None:
    async def dies(line: Line, message: Message) -> None:
        if server.starts > 1:
            await line.send({"id": message["id"], "result": {"tools": [{"name": "a"}]}})
        elif "cursor" in message["params"]:
            await server.die()
        else:
            page = {"tools": [{"name": "a"}], "nextCursor": "2"}
            await line.send({"id": message["id"], "result": page})

    server = Server("pages", script=dies)
    async with gateway(server) as host:
        await host.ask("tools/list")
        messages = [await host.next() for _ in range(2)]
        while not any(m.get("method") == "notifications/tools/list_changed" for m in messages):
            messages.append(await host.next())
        assert "a" in names(await host.call("tools/list"))


async def test_a_question_of_a_server_that_dies_is_taken_back() -> None:
    asks = asking("sampling/createMessage", {"n": 1})
    server = Server("asks", tools("ask"), asks)
    async with gateway(server) as host:
        await host.call("tools/list")
        await host.ask("tools/call", {"name": "ask"})
        question = await host.next()
        await server.die()
        messages = [await host.next() for _ in range(2)]
    [answer] = [m for m in messages if "result" in m]
    [taken_back] = [m for m in messages if "method" in m]
    assert answer["result"]["isError"]
    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == question["id"]


async def test_cancellation_goes_both_ways() -> None:
    asks = asking("sampling/createMessage", {})
    server = Server("asks", tools("ask"), asks)
    async with gateway(server) as host:
        await host.call("tools/list")
        call = await host.ask("tools/call", {"name": "ask"})
        question = await host.next()
        assert server.line
        await server.line.send({"method": "notifications/cancelled", "params": {"requestId": 7}})
        taken_back = await host.next()
        await host.send({"method": "notifications/cancelled", "params": {"requestId": call}})
        await host.call("ping")
    assert taken_back["params"]["requestId"] == question["id"]
    sent = [m["id"] for m in server.got("tools/call")]
    cancelled = server.got("notifications/cancelled")
    assert [m["params"]["requestId"] for m in cancelled] == sent


async def test_cancellations_and_answers_of_the_host_are_read_behind_any_number_of_calls() -> None:
    """Whatever waits, reading goes on."""

    async def asks(line: Line, message: Message) -> None:
        if message["params"]["name"] == "ask":
            await line.send({"id": 7, "method": "elicitation/create", "params": QUESTION})

    server = Server("asks", tools("ask", "hang"), asks)
    async with gateway(server) as host:
        await host.call("tools/list")
        asking = await host.ask("tools/call", {"name": "ask"})
        question = await host.next()
        hanging = [await host.ask("tools/call", {"name": "hang"}) for _ in range(AT_ONCE + 20)]
        await host.send({"id": question["id"], "result": {"action": "accept"}})
        while not any(message.get("id") == 7 for message in server.received):
            await anyio.lowlevel.checkpoint()
        for call in (asking, *hanging[:-1]):
            await host.send({"method": "notifications/cancelled", "params": {"requestId": call}})
        assert (await host.call("ping"))["result"] == {}
        await anyio.wait_all_tasks_blocked()
    calls = [m["id"] for m in server.got("tools/call")]
    cancelled = [m["params"]["requestId"] for m in server.got("notifications/cancelled")]
    assert sorted(cancelled) == calls[:-1]


async def test_a_host_that_sends_ever_more_is_refused_until_it_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    let_wait(monkeypatch, 3)
    async with gateway(Server("silent", tools("hang"), silent)) as host:
        await host.call("tools/list")
        calls = [await host.ask("tools/call", {"name": "hang"}) for _ in range(4)]
        refused = await host.next()
        await host.send({"method": "notifications/cancelled", "params": {"requestId": calls[0]}})
        await anyio.wait_all_tasks_blocked()
        assert (await host.call("ping"))["result"] == {}
    assert refused["id"] == calls[-1]
    assert refused["error"]["message"].startswith("Too many requests are unanswered.")


async def test_answers_that_the_host_does_not_take_count_as_unanswered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    let_wait(monkeypatch, 3)
    sent: list[Message] = []
    taking = anyio.Event()

    async def send(message: Message) -> None:
        await taking.wait()
        sent.append(message)

    async def answer(*_: object) -> dict[str, Any]:
        return {}

    async def nothing(*_: object) -> None:
        return

    async def incoming() -> AsyncIterator[Message]:
        for number in range(4):
            yield {"id": number, "method": "ping"}
            await anyio.wait_all_tasks_blocked()
        raise AssertionError("It read on, although nobody takes its answers.")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Peer("The host", (incoming(), send)).run, answer, nothing)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert sent == []


async def test_progress_of_a_server_reaches_the_host_under_its_calls_alone() -> None:
    async def reports(line: Line, message: Message) -> None:
        for token in ("mine", "another's", None, {"not": "a token"}):
            params = {"progressToken": token, "progress": 1}
            await line.send({"method": "notifications/progress", "params": params})
        await line.send({"id": message["id"], "result": {"content": []}})

    async with gateway(Server("reports", tools("work"), reports)) as host:
        await host.call("tools/list")
        await host.ask("tools/call", {"name": "work", "_meta": {"progressToken": "mine"}})
        messages = [await host.next() for _ in range(2)]
    assert messages[0]["params"]["progressToken"] == "mine"
    assert "result" in messages[1]


async def test_progress_of_the_host_reaches_the_server_that_asked() -> None:
    asks = asking("sampling/createMessage", {"_meta": {"progressToken": 1}})
    first, second = (Server(name, tools(name), asks) for name in ("first", "second"))
    async with gateway(first, second) as host:
        await host.call("tools/list")
        for name in ("first", "second"):
            await host.ask("tools/call", {"name": name})
        tokens = [(await host.next())["params"]["_meta"]["progressToken"] for _ in range(2)]
        params = {"progressToken": tokens[1], "progress": 0.5}
        await host.send({"method": "notifications/progress", "params": params})
        await host.call("ping")
        while not _progress(second):
            await anyio.lowlevel.checkpoint()
    assert _progress(first) == []
    assert _progress(second) == [{"progressToken": 1, "progress": 0.5}]


def _progress(server: Server) -> list[Any]:
    return [m["params"] for m in server.got("notifications/progress")]


async def test_a_server_that_ends_its_stream_of_changes_at_once_is_not_asked_in_a_loop() -> None:
    answers = {**tools("echo"), "subscriptions/listen": {"resultType": "complete"}}
    server = Server("hasty", answers, era="modern")
    async with gateway(server) as host:
        await host.call("tools/list")
        with anyio.fail_after(60):
            await anyio.wait_all_tasks_blocked()
    asked = server.got("subscriptions/listen")
    assert len(asked) == 1


async def test_a_name_that_clashes_with_its_prefix_too_is_left_out_and_told_once(
    capfd: pytest.CaptureFixture[str],
) -> None:
    servers = [Server(name, tools("echo", "echo"), prefix="same_") for name in ("one", "two")]
    async with gateway(*servers) as host:
        for _ in range(2):
            assert names(await host.call("tools/list")) == ["same_echo", "artifact_grep"]
    assert capfd.readouterr().err == (
        "[two] fetchstash: another server has 'same_echo', too, so this one is left out; "
        "give the servers other prefixes.\n"
    )


async def test_clashing_prompts_are_completed_by_the_server_they_belong_to() -> None:
    answers: dict[str, Any] = {
        "prompts/list": {"prompts": [{"name": "greet"}]},
        "completion/complete": {"completion": {"values": []}},
    }
    first, second = Server("first", answers), Server("second", answers, prefix="zwei_")
    async with gateway(first, second) as host:
        listed = names(await host.call("prompts/list"), "prompts")
        ref = {"type": "ref/prompt", "name": "zwei_greet"}
        params = {"ref": ref, "argument": {"name": "who", "value": "A"}}
        await host.call("completion/complete", params)
    assert listed == ["first_greet", "zwei_greet"]
    [asked] = second.got("completion/complete")
    assert asked["params"]["ref"]["name"] == "greet"
    assert not first.got("completion/complete")


async def test_a_resource_that_two_servers_have_is_listed_once_and_read_at_the_first() -> None:
    servers = [
        Server(
            name,
            {
                "resources/list": {"resources": [{"uri": "data://a", "name": name}]},
                "resources/templates/list": {"resourceTemplates": []},
                "resources/read": {"contents": [{"uri": "data://a", "text": name}]},
            },
        )
        for name in ("first", "second")
    ]
    async with gateway(*servers) as host:
        listed = await host.call("resources/list")
        read = await host.call("resources/read", {"uri": "data://a"})
    assert names(listed, "resources") == ["first"]
    assert read["result"]["contents"][0]["text"] == "first"


async def test_a_name_that_one_server_has_twice_keeps_its_name() -> None:
    async with gateway(Server("twice", tools("echo", "echo"))) as host:
        assert names(await host.call("tools/list")) == ["echo", "artifact_grep"]


async def test_a_changed_list_of_one_of_several_servers_is_asked_for_again() -> None:
    first = Server("first", tools("one"))
    second = Server("second", tools("two"))
    async with gateway(first, second) as host:
        await host.call("tools/list")
        second.answers |= tools("three")
        assert second.line
        await second.line.send({"method": "notifications/tools/list_changed"})
        assert (await host.next())["method"] == "notifications/tools/list_changed"
        assert names(await host.call("tools/list")) == ["one", "three", "artifact_grep"]


async def test_an_unknown_version_of_a_server_is_not_the_hosts() -> None:
    about: dict[str, Any] = {
        "protocolVersion": "1.0",
        "capabilities": {"tools": {}, "tasks": {"list": {}}},
    }
    async with gateway(Server("odd", {"initialize": about}), connects="") as host:
        opened = (await host.call("initialize", initialize()))["result"]
    assert opened["protocolVersion"] == "2025-06-18"
    assert opened["capabilities"]["tasks"] == {"list": {}}


@pytest.mark.parametrize("id_", [1, "one"])
async def test_two_requests_of_one_id_are_both_answered(id_: int | str) -> None:
    async with gateway(Server("plain", tools("echo"))) as host:
        for _ in range(2):
            await host.send({"id": id_, "method": "ping"})
        assert [(await host.next())["id"] for _ in range(2)] == [id_, id_]


async def test_what_is_no_message_is_passed_over() -> None:
    garbage: list[Any] = [
        {"id": None, "result": {}},
        {"id": 1.5, "method": "ping"},
        {"method": ["ping"]},
        {"method": "notifications/x", "params": [1]},
        {"id": 99, "result": {}},
        {},
    ]

    async def writes(line: Line, message: Message) -> None:
        for item in garbage:
            await line.send(item)
        await line.send({"id": message["id"], "result": {"content": []}})
        await line.send({"id": message["id"], "result": {"content": ["again"]}})

    async with gateway(Server("odd", tools("write"), writes)) as host:
        for item in garbage:
            await host.send(item)
        await host.send({"id": 5, "method": "tools/list", "params": [1]})
        assert (await host.next())["error"]["code"] == -32_600
        assert (await host.call("tools/call", {"name": "write"}))["result"] == {"content": []}


async def test_a_silent_server_gets_its_call_cancelled() -> None:
    async with gateway(Server("silent", tools("wait"), silent, timeout=0.2)) as host:
        answer = await host.call("tools/call", {"name": "wait"})
    assert answer["result"]["content"][0]["text"].startswith("[timeout]")


async def test_a_call_that_reports_progress_is_not_silent() -> None:
    async def reports(line: Line, message: Message) -> None:
        object.__setattr__(server.settings, "timeout", 60.0)  # from this report on
        params = {"progressToken": "mine", "progress": 1}
        await line.send({"method": "notifications/progress", "params": params})
        await anyio.sleep(0.7)
        await line.send({"id": message["id"], "result": {"content": []}})

    server = Server("slow", tools("work"), reports, timeout=0.5)
    async with gateway(server) as host:
        await host.call("tools/list")
        answer = await host.call("tools/call", {"name": "work", "_meta": {"progressToken": "mine"}})
    assert answer["result"] == {"content": []}


async def test_a_question_to_a_modern_host_ends_with_the_server_that_asked() -> None:
    asks = asking("elicitation/create", QUESTION)
    server = Server("asks", tools("ask"), asks)
    call: dict[str, Any] = {"name": "ask", "_meta": MODERN_META}
    async with gateway(server, connects="") as host:
        await host.call("tools/list", {"_meta": MODERN_META})
        question = (await host.call("tools/call", call))["result"]
        [key] = question["inputRequests"]
        await server.die()
        again: dict[str, Any] = {
            **call,
            "requestState": question["requestState"],
            "inputResponses": {key: {}},
        }
        ended = await host.call("tools/call", again)
        unknown = await host.call("tools/call", again)
    signed = {**QUESTION, "message": f"The server asks asks: {QUESTION['message']}"}
    assert question["inputRequests"][key] == {"method": "elicitation/create", "params": signed}
    assert ended["result"]["isError"]
    assert unknown["error"]["code"] == -32_602


async def test_of_too_many_calls_that_wait_for_an_answer_the_oldest_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_eras, "PENDING_CALLS", 1)

    async def asks(line: Line, message: Message) -> None:
        question = {"method": "elicitation/create", "params": QUESTION}
        await line.send({"id": f"q{message['id']}", **question})

    server = Server("asks", tools("ask"), asks)
    call: dict[str, Any] = {"name": "ask", "_meta": MODERN_META}
    async with gateway(server, connects="") as host:
        await host.call("tools/list", {"_meta": MODERN_META})
        states = [(await host.call("tools/call", call))["result"]["requestState"] for _ in range(2)]
        oldest = await host.call("tools/call", {**call, "requestState": states[0]})
        await anyio.wait_all_tasks_blocked()
        cancelled = [told["params"] for told in server.got("notifications/cancelled")]
    assert oldest["error"]["code"] == -32_602
    assert cancelled == [{"requestId": server.got("tools/call")[0]["id"]}]


async def test_a_modern_host_gets_the_result_though_the_server_took_its_question_back() -> None:
    async def asks(line: Line, message: Message) -> None:
        if message["method"] == "tools/call":
            await line.send({"id": 7, "method": "elicitation/create", "params": QUESTION})
            await line.send({"method": "notifications/cancelled", "params": {"requestId": 7}})
            await line.send({"id": message["id"], "result": {"content": []}})

    async with gateway(Server("asks", tools("ask"), asks), connects="") as host:
        await host.call("tools/list", {"_meta": MODERN_META})
        call: dict[str, Any] = {"name": "ask", "_meta": MODERN_META}
        answer = (await host.call("tools/call", call))["result"]
        if answer["resultType"] == "input_required":  # it was put to the host already
            again: dict[str, Any] = {"requestState": answer["requestState"], "inputResponses": {}}
            answer = (await host.call("tools/call", {**call, **again}))["result"]
    assert answer["content"] == []

"""The relay between transport and server: what it bounds, and what it answers itself."""

import json

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from fetchstash.server import _wire

pytestmark = pytest.mark.anyio


def request(number: int) -> SessionMessage:
    return SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=number, method="ping"))


def answer(number: int) -> SessionMessage:
    return SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=number, result={}))


async def test_a_client_that_reads_no_answers_is_read_no_further() -> None:
    from_client, incoming = anyio.create_memory_object_stream[_wire.Received](1_000)
    outgoing, to_client = anyio.create_memory_object_stream[SessionMessage](0)
    for number in range(_wire.MAX_WAITING + 10):
        from_client.send_nowait(request(number))
    async with (
        outgoing,
        to_client,
        from_client,
        incoming,
        _wire.relayed(incoming, outgoing) as (requests, answers, _),
    ):
        for _ in range(_wire.MAX_WAITING):
            await requests.receive()
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(anyio.WouldBlock):
            requests.receive_nowait()
        await answers.send(answer(0))
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(anyio.WouldBlock):  # the answer is sent, and not yet read
            requests.receive_nowait()
        await to_client.receive()
        following = await requests.receive()
        assert isinstance(following, SessionMessage)
        assert following.message == request(_wire.MAX_WAITING).message


async def test_a_server_learns_when_its_client_has_the_tools() -> None:
    from_client, incoming = anyio.create_memory_object_stream[_wire.Received](2)
    outgoing, to_client = anyio.create_memory_object_stream[SessionMessage](2)
    list_tools = types.JSONRPCRequest(jsonrpc="2.0", id=2, method="tools/list")
    from_client.send_nowait(request(1))
    from_client.send_nowait(SessionMessage(list_tools))
    async with (
        outgoing,
        to_client,
        from_client,
        incoming,
        _wire.relayed(incoming, outgoing) as (requests, answers, listed),
    ):
        for number in (1, 2):
            await requests.receive()
            await answers.send(answer(number))
            await anyio.wait_all_tasks_blocked()
            assert listed.is_set() is (number == 2)


async def test_cancellations_are_read_behind_requests_that_are_held_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_wire, "MAX_WAITING", 2)
    monkeypatch.setattr(_wire, "MAX_HELD", 2)
    from_client, incoming = anyio.create_memory_object_stream[_wire.Received](100)
    outgoing, to_client = anyio.create_memory_object_stream[SessionMessage](100)
    for number in range(5):
        from_client.send_nowait(request(number))
    for number in (2, 0):
        cancelled = types.JSONRPCNotification(
            jsonrpc="2.0", method="notifications/cancelled", params={"requestId": number}
        )
        from_client.send_nowait(SessionMessage(cancelled))
    from_client.close()  # what was held back is still passed on
    async with (
        outgoing,
        to_client,
        incoming,
        _wire.relayed(incoming, outgoing) as (requests, answers, _),
    ):
        passed_on = [await requests.receive() for _ in range(4)]
        await answers.send(answer(1))
        with pytest.raises(anyio.EndOfStream):
            await requests.receive()
        refused = await to_client.receive()
    messages = [item.message for item in passed_on if isinstance(item, SessionMessage)]
    assert messages == [request(0).message, request(1).message, cancelled, request(3).message]
    assert isinstance(refused.message, types.JSONRPCError)
    assert refused.message.id == 4
    assert refused.message.error.message.startswith("[busy] Too many requests are unanswered.")


async def test_a_request_that_is_cancelled_waits_for_no_answer() -> None:
    from_client, incoming = anyio.create_memory_object_stream[_wire.Received](1_000)
    outgoing, to_client = anyio.create_memory_object_stream[SessionMessage](0)
    cancelled = types.JSONRPCNotification(
        jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 3}
    )
    for number in range(_wire.MAX_WAITING):
        from_client.send_nowait(request(number))
    from_client.send_nowait(SessionMessage(cancelled))
    from_client.send_nowait(request(1_000))
    async with (
        outgoing,
        to_client,
        from_client,
        incoming,
        _wire.relayed(incoming, outgoing) as (requests, _, _),
    ):
        received = [await requests.receive() for _ in range(_wire.MAX_WAITING + 2)]
    assert isinstance(received[-1], SessionMessage)
    assert received[-1].message == request(1_000).message


@pytest.mark.parametrize(
    ("line", "number"),
    [
        pytest.param(
            '{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"\\ud800"}}', 7, id="half"
        ),
        pytest.param('{"jsonrpc":"2.0","id":"\\ud800","method":"x"}', None, id="half in its id"),
        pytest.param('{"id":"a","method":"x"}', "a", id="no version"),
        pytest.param('{"jsonrpc":"2.0","id":7,"method":', None, id="cut short"),
        pytest.param('{"jsonrpc":"2.0","id":7}', None, id="an answer to nothing"),
        pytest.param("[1, 2]", None, id="no object"),
        pytest.param("no JSON", None, id="no JSON"),
        pytest.param("[" * 100_000, None, id="deep"),
    ],
)
def test_a_line_that_is_no_message_is_answered_where_it_has_an_id(
    line: str, number: int | str | None
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever the SDK's reader raises
        types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    error = _wire.unreadable(caught.value)
    assert (error and error.id) == number
    if error:
        assert error.error.code == types.INVALID_REQUEST
        assert error.error.message.startswith("[bad_argument] ")
        json.dumps(error.model_dump()).encode()

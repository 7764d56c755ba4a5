"""The relay between transport and server: what it bounds, and what it answers itself."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from fetchstash.server import _wire, is_request_id

pytestmark = pytest.mark.anyio
Relayed = AsyncGenerator[tuple[Any, Any, Any, Any]]
"""Yields the streams of requests and answers, whether the tools are listed, and the client."""


def request(number: int, method: str = "ping") -> SessionMessage:
    return SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=number, method=method))


def cancelled(number: int) -> SessionMessage:
    params = {"requestId": number}
    method = "notifications/cancelled"
    return SessionMessage(types.JSONRPCNotification(jsonrpc="2.0", method=method, params=params))


def answer(number: int) -> SessionMessage:
    return SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=number, result={}))


@asynccontextmanager
async def relayed(*messages: SessionMessage, room: int = 0, ends: bool = False) -> Relayed:
    """Relay these messages of a client, which has room for so many answers.

    ``ends``: the client sends no more.
    """
    from_client, incoming = anyio.create_memory_object_stream[_wire.Received](1_000)
    outgoing, to_client = anyio.create_memory_object_stream[SessionMessage](room)
    for message in messages:
        from_client.send_nowait(message)
    if ends:
        from_client.close()

    async def write(messages: Sequence[SessionMessage]) -> None:
        for message in messages:
            await outgoing.send(message)

    async with (
        outgoing,
        to_client,
        from_client,
        incoming,
        _wire.relayed(incoming, write) as (requests, answers, listed),
    ):
        yield requests, answers, listed, to_client


async def test_a_client_that_reads_no_answers_is_read_no_further() -> None:
    sent = [request(number) for number in range(_wire.MAX_WAITING + 10)]
    async with relayed(*sent) as (requests, answers, _, to_client):
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
        assert following.message == sent[_wire.MAX_WAITING].message


async def test_a_server_learns_when_its_client_has_the_tools() -> None:
    sent = (request(1), request(2, "tools/list"))
    async with relayed(*sent, room=2) as (requests, answers, listed, _):
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
    sent = [*map(request, range(5)), cancelled(2), cancelled(0)]
    # What was held back is still passed on when the client has ended.
    async with relayed(*sent, room=100, ends=True) as (requests, answers, _, to_client):
        passed_on = [(await requests.receive()).message for _ in range(4)]
        await answers.send(answer(1))
        with pytest.raises(anyio.EndOfStream):
            await requests.receive()
        refused = await to_client.receive()
    expected = (request(0), request(1), cancelled(0), request(3))
    assert passed_on == [message.message for message in expected]
    assert isinstance(refused.message, types.JSONRPCError)
    assert refused.message.id == 4
    assert refused.message.error.message.startswith("[busy] Too many requests are unanswered.")


async def test_a_request_that_is_cancelled_waits_for_no_answer() -> None:
    sent = [*map(request, range(_wire.MAX_WAITING)), cancelled(3), request(1_000)]
    async with relayed(*sent) as (requests, *_):
        received = [await requests.receive() for _ in sent]
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


@pytest.mark.whole
@pytest.mark.parametrize(
    ("value", "is_id"),
    [
        (1, True),
        (0, True),
        ("a", True),
        (True, False),  # Python takes it for 1, and the answer would go to another request
        (None, False),
        (1.5, False),
        ([], False),
        ("\ud83d", False),
    ],
)
def test_an_id_of_a_request_is_a_number_or_text_that_can_be_sent_back(
    value: object,
    is_id: bool,
) -> None:
    assert is_request_id(value) is is_id

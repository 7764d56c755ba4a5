"""A session id opens nothing: it says which client asks, and which call it means to cancel."""

import base64
import json
from typing import Any

import anyio
import pytest
from hypothesis import given, strategies as st
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from fetchstash.config import HttpLimits, OAuthLimits, load
from fetchstash.service import Tenants, _endpoint
from fetchstash.service._endpoint import Endpoint
from fetchstash.service._request import client_in, new_session
from fetchstash.service.access import FETCH, Principal
from tests.service.asgi import Tokens

pytestmark = pytest.mark.anyio

ALICE = Principal("acme", "alice", frozenset({FETCH}))
BOB = Principal("acme", "bob", frozenset({FETCH}))
EVE = Principal("other", "alice", frozenset({FETCH}))


def hello(name: object) -> dict[str, Any]:
    return {"params": {"clientInfo": {"name": name, "version": "1"}}}


def named(session: str) -> str:
    return client_in(Headers({"mcp-session-id": session}))


@given(st.text())
def test_an_id_says_which_client_said_hello(name: str) -> None:
    assert named(new_session(hello(name))) == name[:64]


@given(st.text(st.characters(codec="latin-1")))
def test_an_id_of_another_server_says_nothing(session: str) -> None:
    assert named(session) == ""


@pytest.mark.parametrize("data", ["[1, 2, 3]", "{}", '["a", 7]', "[" * 5_000, "null"])
def test_an_id_with_other_data_says_nothing(data: str) -> None:
    assert named(base64.urlsafe_b64encode(data.encode()).decode()) == ""


@pytest.mark.parametrize("message", [{}, {"params": None}, hello(7), {"params": {"clientInfo": 1}}])
def test_a_client_may_give_no_name(message: dict[str, Any]) -> None:
    assert named(new_session(message)) == ""


def test_two_clients_of_one_name_have_two_ids() -> None:
    assert new_session(hello("a")) != new_session(hello("a"))


class Blocked:
    """An application that answers when it may. Knows how its last request ended."""

    def __init__(self) -> None:
        self.begun, self.may_end = anyio.Event(), anyio.Event()
        self.was_cancelled = False

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        if b"notifications/" in (await receive())["body"]:
            await send({"type": "http.response.start", "status": 202, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        self.begun.set()
        try:
            await self.may_end.wait()
        except BaseException:
            self.was_cancelled = True
            raise
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


async def posted(app: Endpoint, who: Principal, session: str, message: dict[str, Any]) -> bytes:
    """Return the body of the answer to a message."""
    headers = [(b"authorization", f"Bearer {who.tenant}-{who.name}".encode())]
    headers += [(b"mcp-session-id", session.encode())] if session else []
    scope: Scope = {"type": "http", "method": "POST", "headers": headers}
    answer = b""

    async def receive() -> Message:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(part: Message) -> None:
        nonlocal answer
        answer += part.get("body", b"")

    await app(scope, receive, send)
    return answer


def receiving(left: anyio.Event | None = None) -> Receive:
    """Return a receive that gives one message, then the end of the connection (ASGI, HTTP)."""
    body = json.dumps({"jsonrpc": "2.0", **CALL}).encode()
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await (left or anyio.Event()).wait()
        return {"type": "http.disconnect"}

    return receive


SCOPE: Scope = {"type": "http", "method": "POST", "headers": []}
CALL = {"id": 7, "method": "tools/call", "params": {"name": "artifact_info"}}


def cancelling(request: object) -> dict[str, Any]:
    return {"method": "notifications/cancelled", "params": {"requestId": request}}


@pytest.mark.parametrize(
    ("who", "session", "request_id", "is_cancelled"),
    [
        pytest.param(ALICE, "s", 7, True, id="its own"),
        pytest.param(BOB, "s", 7, False, id="of a colleague's session"),
        pytest.param(EVE, "s", 7, False, id="of another tenant's session"),
        pytest.param(ALICE, "t", 7, False, id="of another session"),
        pytest.param(ALICE, "", 7, False, id="of no session"),
        pytest.param(ALICE, "s", "7", False, id="of another id"),
        pytest.param(ALICE, "s", [7], False, id="of no id"),
    ],
)
@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["here", "in another worker"])
async def test_a_call_is_cancelled_by_its_own_principal_and_session_alone(
    who: Principal, session: str, request_id: object, is_cancelled: bool, is_elsewhere: bool
) -> None:
    inner = Blocked()
    tokens = Tokens(**{f"{who.tenant}-{who.name}": who for who in (ALICE, BOB, EVE)})
    tenants = Tenants(load())
    app = told = Endpoint(inner, HttpLimits(), OAuthLimits(), tenants, tokens)
    if is_elsewhere:
        told = Endpoint(inner, HttpLimits(), OAuthLimits(), tenants, tokens, app.cancel)
    answers: list[bytes] = []

    async def call() -> None:
        answers.append(await posted(app, ALICE, "s", CALL))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await inner.begun.wait()
        await posted(told, who, session, cancelling(request_id))
        await anyio.wait_all_tasks_blocked()
        inner.may_end.set()
    assert inner.was_cancelled == is_cancelled
    assert (b"Request cancelled" in answers[0]) == is_cancelled
    assert (answers[0] == b"done") != is_cancelled


async def test_the_connection_of_a_long_call_is_kept_busy_and_ends_with_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_endpoint, "WATCH_SECONDS", 0)
    monkeypatch.setattr(_endpoint, "PING_SECONDS", 0.01)
    inner, sent = Blocked(), list[Message]()

    async def send(message: Message) -> None:
        sent.append(message)
        if message.get("body", b"").startswith(b":"):
            inner.may_end.set()

    app = Endpoint(inner, HttpLimits(), OAuthLimits(), Tenants(load()))
    await app(SCOPE, receiving(), send)
    start, *pings, answer = sent
    assert dict(start["headers"])[b"content-type"] == b"text/event-stream"
    assert {(ping["body"], ping["more_body"]) for ping in pings} == {(b": ping\r\n\r\n", True)}
    assert answer["body"] == b"event: message\r\ndata: done\r\n\r\n"
    assert not answer.get("more_body")


async def test_a_call_whose_client_leaves_is_cancelled_and_answered_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_endpoint, "WATCH_SECONDS", 0)
    inner, sent, left = Blocked(), list[Message](), anyio.Event()
    app = Endpoint(inner, HttpLimits(), OAuthLimits(), Tenants(load()))

    async def send(message: Message) -> None:
        sent.append(message)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(app, SCOPE, receiving(left), send)
        await inner.begun.wait()
        left.set()
    assert inner.was_cancelled
    assert sent == []

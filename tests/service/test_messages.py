"""What is no message of MCP is answered in one line, and nothing of it is handled."""

import json
from typing import Any

import httpx2
import pytest

from tests.service.asgi import Service

pytestmark = pytest.mark.anyio

HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


async def sent(http: httpx2.AsyncClient, body: bytes, **headers: str) -> httpx2.Response:
    return await http.post("/mcp", content=body, headers=HEADERS | headers)


@pytest.mark.parametrize(
    ("body", "number", "request_id"),
    [
        pytest.param(b"", -32700, None, id="nothing"),
        pytest.param(b"{", -32700, None, id="half an object"),
        pytest.param(b"\xff\xfe", -32700, None, id="no UTF-8"),
        pytest.param(b"[" * 100_000, -32700, None, id="deep"),
        pytest.param(b'{"a": NaN}', -32700, None, id="NaN"),
        pytest.param(b"9" * 5_000, -32700, None, id="a long number"),
        pytest.param(json.dumps([PING, PING]).encode(), -32600, None, id="a batch"),
        pytest.param(b"7", -32600, None, id="a number"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 5}', -32600, 5, id="no method"),
        pytest.param(b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600, None, id="id"),
        pytest.param(b'{%b, "id": 5, "params": [1]}', -32600, 5, id="params"),
        pytest.param(b'{%b, "id": 5, "params": {"a": 1e999}}', -32600, 5, id="infinity"),
        pytest.param(rb'{%b, "id": 5, "params": {"a": "\ud800"}}', -32600, 5, id="half a pair"),
        pytest.param(rb'{%b, "id": "\ud800"}', -32600, None, id="half a pair in its id"),
    ],
)
@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_what_is_no_message_is_answered_in_one_line(
    service: Service, era: str, body: bytes, number: int, request_id: int | None
) -> None:
    async with service() as http:
        body = body.replace(b"%b", b'"jsonrpc": "2.0", "method": "ping"')
        answer = await sent(http, body, **{"mcp-protocol-version": era})
    problem: dict[str, Any] = answer.json()
    assert answer.status_code == 400
    assert (problem["id"], problem["error"]["code"]) == (request_id, number)
    assert problem["error"]["message"].startswith("[bad_argument] ")
    assert "\n" not in problem["error"]["message"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
async def test_there_is_no_stream_to_open_and_no_session_to_delete(
    service: Service, method: str
) -> None:
    async with service() as http:
        answer = await http.request(method, "/mcp", headers=HEADERS)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_requests_of_one_id_are_answered_each(service: Service) -> None:
    async with service() as http:
        http.headers["mcp-session-id"] = "one"
        answers = [await sent(http, json.dumps(PING).encode()) for _ in range(2)]
    assert all('"result":{}' in answer.text for answer in answers)

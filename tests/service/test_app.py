import pytest

from fetchstash.service.access import FETCH, READ, Principal
from tests.service.asgi import Service, Tokens, mcp_client

pytestmark = pytest.mark.anyio

MODES = ("legacy", "2026-07-28")


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_of_either_era_is_answered(service: Service, mode: str) -> None:
    async with service() as http, mcp_client(http, mode) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("artifact_info", {})

    assert "fetch_content" in tools
    assert not answer.is_error


async def test_a_request_without_a_token_is_asked_for_one(service: Service) -> None:
    alice = Principal("acme", "alice", frozenset({READ, FETCH}))
    async with service(verifier=Tokens(good=alice)) as http:
        refused = await http.post("/mcp", json={})
        wrong = await http.post("/mcp", json={}, headers={"authorization": "Bearer bad"})
        http.headers["authorization"] = "Bearer good"
        async with mcp_client(http) as client:
            tools = await client.list_tools()

    assert (refused.status_code, wrong.status_code) == (401, 401)
    assert refused.headers["www-authenticate"] == "Bearer"
    assert wrong.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert tools.tools


async def test_health_needs_no_token(service: Service) -> None:
    async with service(verifier=Tokens()) as http:
        assert (await http.get("/healthz")).text == "ok\n"
        assert (await http.get("/readyz")).status_code == 200

"""Whatever is sent: an answer of the protocol, and no traceback in the log or anywhere."""

import json
import logging
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from hypothesis import HealthCheck, example, given, settings as examples, strategies as st
from mcp.server.transport_security import TransportSecuritySettings

from fetchstash.config import load
from fetchstash.service import Tenants, build_app, for_clients_elsewhere
from tests.service.asgi import HOST, URL, running

METHODS = """
initialize notifications/initialized notifications/cancelled notifications/progress ping
server/discover tools/list tools/call resources/list resources/read prompts/list prompts/get
resources/templates/list resources/subscribe completion/complete logging/setLevel
subscriptions/listen roots/list sampling/createMessage tasks/get
""".split()  # noqa: SIM905 - words read better so
NAMES = """
name arguments uri cursor requestId progressToken _meta protocolVersion capabilities clientInfo ref
argument level url urls artifact_ref pattern unit start end maxChars path query
""".split()  # noqa: SIM905 - as above
META = "io.modelcontextprotocol/"
KEYS = st.sampled_from(NAMES) | st.text(max_size=5)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([*METHODS, "fetch_content", "artifact_info", "artifact_grep", "2026-07-28"])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
ENVELOPE = {
    f"{META}protocolVersion": "2026-07-28",
    f"{META}clientInfo": {"name": "test", "version": "1"},
    f"{META}clientCapabilities": {},
}


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """Return a message that is one in most of its parts."""
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "method": draw(st.sampled_from(METHODS) | st.text()),
    }
    if draw(st.booleans()):
        message["id"] = draw(st.integers() | st.text(max_size=4) | VALUES)
    if draw(st.booleans()):
        params = draw(st.dictionaries(KEYS, VALUES, max_size=5))
        message["params"] = params | ({"_meta": ENVELOPE} if draw(st.booleans()) else {})
    elif draw(st.booleans()):
        message["params"] = draw(VALUES)
    return message


HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "mcp-protocol-version": st.sampled_from(
            ["2026-07-28", "2025-11-25", "2025-03-26", "2024-11-05", "1", "", "9999-01-01"]
        ),
        "mcp-session-id": st.text(st.characters(codec="ascii", categories=["L", "N"]), max_size=9),
        "mcp-method": st.sampled_from(METHODS),
        "mcp-name": st.text(st.characters(codec="ascii", categories=["L", "N"]), max_size=9),
        "last-event-id": st.just("1"),
        "accept": st.sampled_from(["*/*", "text/html", "application/json", "text/event-stream"]),
        "content-type": st.sampled_from(["text/plain", "application/json; charset=utf-16"]),
        "content-length": st.sampled_from(["-1", "1" * 30, "x"]),
    },
)
BASE = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@pytest.mark.long
@examples(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(requests=[({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}, {})])
@given(requests=st.lists(st.tuples(messages() | VALUES, HEADERS), min_size=5, max_size=10))
def test_any_message_gets_an_answer_of_the_protocol(
    requests: list[tuple[Any, dict[str, str]]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)

    async def send_all() -> list[httpx2.Response]:
        settings = for_clients_elsewhere(
            load({"store.folder": str(tmp_path / "store"), "fetch.ports": [1]})
        )
        security = TransportSecuritySettings(allowed_hosts=[HOST])
        app = build_app(Tenants(settings, apart=False), security)
        answers: list[httpx2.Response] = []
        async with running(app) as http:
            for message, headers in requests:
                content = json.dumps(message).encode()
                with anyio.fail_after(60):
                    answers.append(
                        await http.post(f"{URL}/mcp", content=content, headers=BASE | headers)
                    )
        return answers

    for answer in anyio.run(send_all):
        assert answer.status_code in (200, 202, 400, 404, 405, 406, 413, 415), answer.text
        assert "Traceback" not in answer.text
        assert "pydantic" not in answer.text
    assert not caplog.records

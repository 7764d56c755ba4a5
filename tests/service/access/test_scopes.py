"""Which call needs which scope."""

from typing import Any

import pytest

from fetchstash.config import load
from fetchstash.server.tools import tool_specs
from fetchstash.service.access import FETCH, READ, Principal, check_scope, scope_of
from fetchstash.service.access._principal import READ_TOOLS

pytestmark = pytest.mark.whole


def call(name: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}}


def test_every_tool_that_touches_neither_the_network_nor_files_can_be_read_with() -> None:
    specs = tool_specs(load({"ingest.read_roots": ["/"], "tenant.delete": True}))
    others = {"fetch_content", "stash_file", "artifact_delete"}
    assert {spec.name for spec in specs} - READ_TOOLS == others
    assert {spec.name for spec in specs} > READ_TOOLS


@pytest.mark.parametrize(
    ("message", "scope"),
    [
        (call("artifact_grep"), READ),
        (call("fetch_content"), FETCH),
        (call("a tool of the future"), FETCH),
        ({"method": "tools/list"}, READ),
        ({"method": "resources/read", "params": {"uri": "x"}}, READ),
        ({"method": "tools/call", "params": {}}, READ),
    ],
    ids=str,
)
def test_a_call_needs_the_scope_of_its_tool(message: Any, scope: str) -> None:
    assert scope_of(message) == scope


def test_the_scope_fetch_includes_the_scope_read() -> None:
    check_scope(Principal("a", "ada", frozenset({FETCH})), READ)

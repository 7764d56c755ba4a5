"""Tools that a gateway lists short, or not at all, and what becomes of their calls."""

import json
from typing import Any

import pytest

from tests.gateway.memory import Server, gateway, names, tools
from tests.gateway.test_shortening import called

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file to read. " * 20},
        "mode": {"enum": ["head", "tail"], "description": "Which end"},
        "range": {
            "type": "object",
            "properties": {"lines": {"type": "array", "items": {"type": "integer"}}},
            "required": ["lines"],
        },
        "headers": {
            "type": "object",
            "patternProperties": {"^x-": {"type": "string"}},
            "additionalProperties": False,
        },
    },
    "required": ["path"],
    "additionalProperties": False,
}
TOOL: dict[str, Any] = {
    "name": "read",
    "title": "Read",
    "description": "Read a file. Use it only for texts. " + "More of this. " * 30,
    "inputSchema": SCHEMA,
    "annotations": {"readOnlyHint": True},
}
PAGE = {**TOOL, "name": "redraw", "_meta": {"ui": {"visibility": ["app"]}}}


def files() -> Server:
    """Return a server with a long tool, one for a page alone, and one that is short already."""
    listed = {"tools": [TOOL, PAGE, {"name": "stop", "inputSchema": {"type": "object"}}]}
    called = {"content": [{"type": "text", "text": "read"}]}
    return Server("files", {"tools/list": listed, "tools/call": called})


async def test_a_long_tool_is_listed_short_and_its_whole_schema_can_be_asked_for() -> None:
    async with gateway(files(), lean=True) as host:
        listed = (await host.call("tools/list"))["result"]["tools"]
        shown = {tool["name"]: tool for tool in listed}
        whole = await called(host, "tool_schema", name="read")
        other = await called(host, "tool_schema", name="stop")
    assert shown["read"] == {
        **{key: TOOL[key] for key in ("name", "title", "annotations")},
        "description": "Read a file …",
        "inputSchema": {
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": {"type": "string"},
                "mode": {"enum": ["head", "tail"]},
                "range": {"type": "object"},
                "headers": {"type": "object"},
            },
        },
    }
    assert shown["redraw"] == PAGE
    told = json.loads(whole["content"][0]["text"])
    assert told == {key: TOOL[key] for key in ("name", "description", "inputSchema")}
    assert "stop is listed whole." in other["content"][0]["text"]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"path": "/a", "mode": "tail", "range": {"lines": [1, 2.0]}}, ""),
        ({"path": "/a", "headers": {"x-of": "a pattern"}}, ""),
        ({"mode": "tail"}, "path is missing."),
        ({"path": 1}, "path must be of type string."),
        ({"path": "/a", "mode": "all"}, 'mode must be one of ["head", "tail"].'),
        ({"path": "/a", "paht": "/b"}, "there is no paht."),
        ({"path": "/a", "range": {}}, "range.lines is missing."),
        ({"path": "/a", "range": {"lines": [True]}}, "an item of range.lines must be of type"),
    ],
)
async def test_a_call_of_a_short_tool_is_checked_against_its_whole_schema(
    arguments: dict[str, Any], fault: str
) -> None:
    server = files()
    async with gateway(server, lean=True) as host:
        result = await called(host, "read", **arguments)
    text, *more = [block["text"] for block in result["content"]]
    assert len(server.got("tools/call")) == (not fault)
    assert text.startswith(f"[bad_argument] {fault}") if fault else text == "read"
    assert [json.loads(told)["inputSchema"] for told in more] == ([SCHEMA] if fault else [])


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({"tools": ("read", "write")}, ["read", "write"]),
        ({"hidden_tools": ("read",)}, ["write", "stop"]),
        ({"tools": ("read", "write"), "hidden_tools": ("write",)}, ["read"]),
    ],
)
async def test_a_tool_that_a_filter_leaves_out_is_neither_listed_nor_called(
    filters: dict[str, Any], left: list[str]
) -> None:
    server = Server("files", {**tools("read", "write", "stop"), "tools/call": {}}, **filters)
    async with gateway(server) as host:
        assert names(await host.call("tools/list")) == [*left, "artifact_grep"]
        for name in {"read", "write", "stop"} - set(left):
            assert "There is no tool" in (await called(host, name))["content"][0]["text"]
    assert not server.got("tools/call")

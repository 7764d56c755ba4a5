"""What becomes of each kind of block in a long result, and what it is called afterwards."""

import base64
import io
import json
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from PIL import Image

from fetchstash import Stash, open_stash
from fetchstash.config import ARTIFACT_TOOLS, load
from fetchstash.server import listed_tools
from fetchstash.stash import logged_calls
from fetchstash.text.untyped import as_object
from tests.gateway.conftest import Shared, Wrapped, any_mix, both_eras, plain
from tests.gateway.memory import Line, Message, Server, gateway, initialize, tools
from tests.scanned import png

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

LONG = "a line of the log\n" * 100
UI = "io.modelcontextprotocol/ui"


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


@asynccontextmanager
async def connected(
    *servers: Server, folder: Path | None = None, extensions: tuple[str, ...] = ()
) -> AsyncGenerator[tuple[Line, Stash]]:
    """Yield a host with ``extensions``, and the stash that keeps what is long."""
    place = {"store.folder": str(folder)} if folder else {"store.url": "memory:"}
    async with open_stash(place) as stash, gateway(*servers, connects="", stash=stash) as host:
        capabilities: dict[str, Any] = {"extensions": {name: {} for name in extensions}}
        await host.call("initialize", {**initialize(), "capabilities": capabilities})
        yield host, stash


def server(result: dict[str, Any], **settings: Any) -> Server:
    """Return a server whose one tool has a result."""
    return Server("rows", {**tools("read"), "tools/call": result}, threshold=500, **settings)


async def called(host: Line, tool: str = "read", **arguments: Any) -> dict[str, Any]:
    answer = await host.call("tools/call", {"name": tool, "arguments": arguments})
    result: dict[str, Any] = answer["result"]
    return result


PAGE: dict[str, Any] = {"ui": {"resourceUri": "ui://rows/page"}}
PAGE_ALONE: dict[str, Any] = {"ui": {"resourceUri": "ui://rows/page", "visibility": ["app"]}}


@pytest.mark.parametrize(
    ("meta", "extensions", "has_text", "has_structured"),
    [
        (PAGE_ALONE, (), True, True),
        (PAGE, (UI,), False, True),
        ({"ui/resourceUri": "ui://rows/page"}, (UI,), False, True),
        (PAGE, (), False, False),
        ({}, (UI,), False, False),
    ],
    ids=["no model sees it", "page", "page, as it was first named", "host without pages", "none"],
)
async def test_the_page_of_an_app_gets_its_data_and_the_model_a_preview(
    meta: dict[str, Any], extensions: tuple[str, ...], *, has_text: bool, has_structured: bool
) -> None:
    rows = {"rows": [{"id": number} for number in range(500)]}
    result = {"content": [text(LONG)], "structuredContent": rows}
    rows_server = server(result)
    tool = {"name": "read", "outputSchema": {"type": "object"}, "_meta": meta}
    rows_server.answers["tools/list"] = {"tools": [tool]}
    async with connected(rows_server, extensions=extensions) as (host, _):
        listed = await host.call("tools/list")
        short = await called(host)
    [entry] = [item for item in listed["result"]["tools"] if item["name"] == "read"]
    assert (short["content"][0]["text"] == LONG) is has_text
    assert (short.get("structuredContent") == rows) is has_structured
    assert ("outputSchema" in entry) is has_structured


async def test_short_texts_stay_blocks_beside_one_that_is_replaced() -> None:
    user = {"annotations": {"audience": ["user"]}}
    # The rest is as long as may be shown: the server's threshold.
    content = [text("before" + "." * 244), text(LONG, **user), text("after" + "." * 245)]
    async with connected(server({"content": content, "isError": True})) as (host, _):
        short = await called(host)
    preview, *rest = short["content"]
    assert short["isError"]
    assert preview["annotations"] == user["annotations"]
    assert rest == [content[0], content[2]]


async def test_a_preview_of_texts_for_different_readers_is_said_to_be_for_none() -> None:
    content = [text(LONG, annotations={"audience": [reader]}) for reader in ("user", "assistant")]
    async with connected(server({"content": content})) as (host, _):
        short = await called(host)
    [preview] = short["content"]
    assert "annotations" not in preview


async def test_many_links_to_resources_are_kept_as_lines() -> None:
    links = [
        {"type": "resource_link", "uri": f"file:///{number}", "name": f"file {number}"}
        for number in range(300)
    ]
    async with connected(server({"content": links})) as (host, stash):
        short = await called(host)
        [facts] = short["_meta"]["fetchstash/artifact"]
        kept = await (await stash.get(facts["artifact_ref"])).text()
    assert len(short["content"]) == 1
    assert [json.loads(line) for line in kept.splitlines()] == links


@pytest.mark.parametrize("edge", [40, 2_000], ids=["within the bounds", "too large"])
async def test_a_picture_read_as_a_resource_stays_a_picture(edge: int) -> None:
    blob = base64.b64encode(png(Image.effect_noise((edge, edge), 50))).decode()
    contents = [{"uri": "data://a", "mimeType": "image/png", "blob": blob}]
    pictures = Server("pictures", {"resources/read": {"contents": contents}}, threshold=500)
    async with connected(pictures) as (host, _):
        answer = await host.call("resources/read", {"uri": "data://a"})
    read = answer["result"]["contents"]
    [picture] = [item for item in read if "blob" in item]
    with Image.open(io.BytesIO(base64.b64decode(picture["blob"]))) as image:
        assert max(image.size) == min(edge, 1_568)
    assert (read == contents) is (edge == 40)


@pytest.mark.parametrize(
    ("uri", "leave", "is_whole"),
    [("data://a", False, False), ("data://a", True, True), ("ui://rows/page", False, True)],
    ids=["long", "left alone", "the page of an app"],
)
async def test_a_long_resource_is_kept_unless_it_is_left_alone(
    uri: str, *, leave: bool, is_whole: bool
) -> None:
    contents = [{"uri": uri, "text": LONG}, {"uri": "data://b", "text": "short"}]
    answers = {"resources/read": {"contents": contents}}
    rows = Server("rows", answers, threshold=500, leave_resources=leave)
    async with connected(rows) as (host, _):
        long, short = (await host.call("resources/read", {"uri": uri}))["result"]["contents"]
    assert (long == contents[0]) is is_whole
    assert ("art_" in long["text"]) is not is_whole
    assert short == contents[1]


@pytest.mark.parametrize("is_structured", [False, True], ids=["JSON", "structured"])
async def test_a_text_in_json_under_one_name_is_kept_once_as_a_text(*, is_structured: bool) -> None:
    result: dict[str, Any] = {"content": [text(json.dumps({"output": LONG}))]}
    if is_structured:
        result = {"content": [text(LONG)], "structuredContent": {"output": LONG}}
    async with connected(server(result)) as (host, stash):
        [facts] = (await called(host))["_meta"]["fetchstash/artifact"]
        assert await (await stash.get(facts["artifact_ref"])).text() == LONG


async def test_an_artifact_is_called_as_its_call_and_calls_are_logged(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    arguments: dict[str, Any] = {"path": "/x/y.log", "api_key": "do-not-show", "deep": {"n": [1]}}
    both = server({"content": [text(LONG)]})
    async with connected(both, folder=folder) as (host, _):
        short = await called(host, **arguments)
        both.answers["tools/call"] = {"content": [text("short")]}
        await called(host, path="/z")
        both.answers["tools/call"] = {"content": [text("no")], "isError": True}
        await called(host)
        del both.answers["tools/call"]
        await host.call("tools/call", {"name": "read", "arguments": {}})
    [facts] = short["_meta"]["fetchstash/artifact"]
    assert facts["name"] == 'rows: read(path=/x/y.log, api_key=***, deep={"n": [1]})'
    assert "do-not-show" not in short["content"][0]["text"]
    logged = list(logged_calls(load({"store.folder": str(folder)})))
    long_call, short_call, *failed = logged
    assert [call["error"] for call in failed] == ["tool", "-32601"]
    assert all(call["ms"] > 0 for call in logged)
    assert len({call["run"] for call in logged}) == 1
    assert (long_call["server"], long_call["tool"]) == ("rows", "read")
    assert long_call["asked"] == {"path": "/x/y.log", "api_key": "***", "deep": '{"n": [1]}'}
    assert [item["ref"] for item in long_call["shown"]] == [facts["artifact_ref"]]
    assert (short_call["asked"], short_call["shown"]) == ({"path": "/z"}, [])


async def test_each_task_is_asked_of_its_server_and_its_result_made_short() -> None:
    async def works(line: Line, message: Message) -> None:
        own = as_object(message.get("params")).get("taskId", "")
        answers: dict[str, dict[str, Any]] = {
            "tools/call": {"task": {"taskId": f"of {name_of[line]}"}},
            "tasks/list": {"tasks": [{"taskId": f"of {name_of[line]}"}]},
            "tasks/get": {"taskId": own, "status": "completed"},
            "tasks/result": {"content": [text(f"{own}\n{LONG}")]},
        }
        await line.send({"id": message["id"], "result": answers[message["method"]]})

    capable: dict[str, Any] = {
        "capabilities": {"tools": {}, "tasks": {}},
        "protocolVersion": "2025-11-25",
    }
    servers = [
        Server(name, {**tools(name), "initialize": capable}, works, threshold=500)
        for name in ("one", "two")
    ]
    name_of: dict[Line, str] = {}
    async with connected(*servers) as (host, _):
        name_of.update({item.line: item.settings.name for item in servers if item.line})
        for name in ("one", "two"):
            task = (await called(host, name))["task"]
            state = await host.call("tasks/get", task)
            result = (await host.call("tasks/result", task))["result"]
            assert state["result"]["taskId"] == f"of {name}"
            assert f"of {name}" in result["content"][0]["text"]
            assert "artifact_ref=art_" in result["content"][0]["text"]
        listed = (await host.call("tasks/list"))["result"]["tasks"]
    assert [item["taskId"] for item in listed] == ["of one", "of two"]


@pytest.mark.parametrize("reads", [True, False])
async def test_a_host_that_reads_no_preview_is_told_once_that_it_may_hide_our_tools(
    *, reads: bool
) -> None:
    own: dict[str, Any] = {"name": "artifact_grep", "arguments": {}}
    async with connected(server({"content": [text(LONG)]})) as (host, _):
        if reads:
            await host.ask("tools/call", own)
        results = [await called(host) for _ in range(6)]
    told = [result for result in results if "none was read on" in result["content"][-1]["text"]]
    assert told == ([] if reads else [results[2]])


def test_all_tools_that_read_an_artifact_are_named() -> None:
    named = {tool["name"] for tool in listed_tools(load())}
    assert named == {"fetch_content", *ARTIFACT_TOOLS}


# --- A long result becomes a preview and a reference, whatever it holds.


def texts(result: Any) -> str:
    """Return all the text that a model sees."""
    return "\n".join(block.text for block in result.content if block.type == "text")


def refs(result: Any) -> list[str]:
    return [facts["artifact_ref"] for facts in result.meta["fetchstash/artifact"]]


@pytest.mark.slow
@pytest.mark.long
@both_eras
@any_mix
async def test_a_long_text_is_read_on_by_its_reference(shared: Shared, mode: str, era: str) -> None:
    client = await shared(mode, era)
    result = await client.call_tool("long", {"size": 20_000})
    [ref] = refs(result)
    found = await client.call_tool("artifact_grep", {"artifact_ref": ref, "pattern": "line 19999 "})
    assert len(texts(result)) < 4_000
    assert ref in texts(result)
    assert "20000:line 19999 of the log" in texts(found)


@pytest.mark.slow
@both_eras
async def test_structured_content_is_shown_by_its_shape_and_read_by_path(
    shared: Shared, mode: str
) -> None:
    client = await shared(mode, "modern")
    result = await client.call_tool("rows", {"size": 5_000})
    [ref] = refs(result)
    part = await client.call_tool(
        "artifact_slice", {"artifact_ref": ref, "path": "/rows/4321/name"}
    )
    assert result.structured_content is None
    assert "rows: array of 5,000 objects" in texts(result)
    assert "All rows." in texts(result)  # what is short stays
    assert "name 4321" in texts(part)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("lines", [3_000, 60_000], ids=["held", "on disk"])
@both_eras
async def test_text_and_structured_copies_are_one_artifact(
    wrapped: Wrapped, mode: str, lines: int
) -> None:
    async with wrapped(mode, *plain("legacy")) as client:
        result = await client.call_tool("both", {"size": lines})
        listed = await client.call_tool("artifact_info", {})
    assert len(refs(result)) == 1
    assert ": 1 artifact, newest first]" in texts(listed)


@pytest.mark.slow
@pytest.mark.long
async def test_a_large_picture_is_bounded_and_kept(shared: Shared) -> None:
    data = base64.b64encode(png(Image.effect_noise((3_000, 2_000), 50))).decode()
    client = await shared("legacy", "legacy")
    result = await client.call_tool("image", {"data": data})
    [picture] = [block for block in result.content if isinstance(block, types.ImageContent)]
    with Image.open(io.BytesIO(base64.b64decode(picture.data))) as image:
        assert max(image.size) <= 1_568
    assert len(picture.data) * 3 / 4 <= 2_097_152
    assert "3000×2000 px" in texts(result)


def dds() -> bytes:
    """Return a DirectDraw surface of a pixel format that does not exist, which Pillow raises at."""
    head = struct.pack("<4s7I44x", b"DDS ", 124, 0x1007, 16, 16, 0, 0, 0)
    return head + struct.pack("<2I4s5I5I", 32, 0x4, b"NONE", 0, 0, 0, 0, 0, 0x1000, 0, 0, 0, 0)


PICTURES = {
    "an unknown pixel format": dds(),
    "a PNG without its head": b"\x89PNG\r\n\x1a\n",
    "a JPEG of fill bytes": b"\xff\xd8" + b"\xff" * 60_000,
    "a JPEG of empty segments": b"\xff\xd8" + b"\xff\xe0\0\0" * 15_000,
    "a TIFF": b"II*\0\xff\xff\xff\x7f",
    "no picture": b"\0" * 100,
}


@pytest.mark.slow
@pytest.mark.parametrize("data", PICTURES.values(), ids=PICTURES.keys())
async def test_a_broken_picture_costs_no_text_beside_it(shared: Shared, data: bytes) -> None:
    client = await shared("legacy", "legacy")
    arguments = {"data": base64.b64encode(data).decode(), "beside": ["The gate is open."]}
    result = await client.call_tool("image", arguments)
    assert [block.type for block in result.content] == ["text", "image"]
    assert texts(result) == "The gate is open."


@pytest.mark.slow
async def test_long_sound_and_embedded_resources_become_artifacts(shared: Shared) -> None:
    client = await shared("legacy", "legacy")
    sound = await client.call_tool("sound", {"size": 50_000})
    table = await client.call_tool("large-resource", {"size": 50_000})
    assert not [block for block in sound.content if block.type == "audio"]
    assert sound.meta
    assert sound.meta["fetchstash/artifact"][0]["size_bytes"] == 150_000
    assert "CSV" in texts(table)


@pytest.mark.slow
async def test_base64_may_have_line_breaks(shared: Shared) -> None:
    data = png(Image.effect_noise((2_000, 1_500), 100))
    client = await shared("legacy", "legacy")
    arguments = {"data": base64.encodebytes(data).decode()}
    result = await client.call_tool("image", arguments)
    assert len(data) > 2_500_000  # more than one piece
    assert (result.meta or {})["fetchstash/artifact"][0]["size_bytes"] == len(data)
    assert "2000×1500 px" in texts(result)


@pytest.mark.slow
@both_eras
@any_mix
async def test_an_error_of_the_protocol_is_made_short_too(
    shared: Shared, mode: str, era: str
) -> None:
    client = await shared(mode, era)
    result = await client.call_tool("long-error", {"size": 50_000})
    assert result.is_error
    assert len(texts(result)) < 4_000
    arguments = {"artifact_ref": refs(result)[0], "pattern": "why"}
    assert '{"why": ["because"]}' in texts(await client.call_tool("artifact_grep", arguments))


@pytest.mark.slow
@both_eras
@any_mix
async def test_what_is_no_json_or_no_message_cannot_break_the_session(
    shared: Shared, mode: str, era: str
) -> None:
    client = await shared(mode, era)
    result = await client.call_tool("not-a-number", {})
    assert result.structured_content == {"values": [None, None, None, 2]}
    with pytest.raises(MCPError, match=r"plain\.py sent a line that is no JSON"):
        await client.call_tool("unreadable", {})
    assert texts(await client.call_tool("surrogate", {})) == "half � of a pair"
    assert texts(await client.call_tool("garbage", {})) == "after the garbage"
    assert texts(await client.call_tool("long", {"size": 1})) == "line 0 of the log\n"

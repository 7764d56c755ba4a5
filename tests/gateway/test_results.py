"""A long result becomes a preview and a reference, whatever it holds."""

import base64
import io
import json
import struct
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from PIL import Image

from tests.gateway.conftest import Shared, Wrapped, any_mix, both_eras, plain

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


def texts(result: Any) -> str:
    """Return all the text that a model sees."""
    return "\n".join(block.text for block in result.content if block.type == "text")


def refs(result: Any) -> list[str]:
    return [facts["artifact_ref"] for facts in result.meta["fetchstash/artifact"]]


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


@pytest.mark.parametrize("name", ["result", "content"])
async def test_a_text_that_is_structured_under_one_name_is_one_artifact(
    shared: Shared, name: str
) -> None:
    client = await shared("legacy", "legacy")
    result = await client.call_tool("named", {"size": 5_000, "as": name})
    kept = (result.meta or {})["fetchstash/artifact"]
    assert [facts["content_kind"] for facts in kept] == ["text"]


@both_eras
async def test_text_and_structured_copies_are_one_artifact(wrapped: Wrapped, mode: str) -> None:
    async with wrapped(mode, *plain("legacy")) as client:
        result = await client.call_tool("both", {"size": 3_000})
        listed = await client.call_tool("artifact_info", {})
    assert len(refs(result)) == 1
    assert ": 1 artifact, newest first]" in texts(listed)


async def test_a_small_structured_result_stays_structured(shared: Shared) -> None:
    client = await shared("legacy", "legacy")
    result = await client.call_tool("rows", {"size": 3})
    assert result.structured_content
    assert len(result.structured_content["rows"]) == 3


async def test_a_large_picture_is_bounded_and_kept(shared: Shared) -> None:
    file = io.BytesIO()
    Image.effect_noise((3_000, 2_000), 50).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    client = await shared("legacy", "legacy")
    result = await client.call_tool("image", {"data": data})
    [picture] = [block for block in result.content if isinstance(block, types.ImageContent)]
    with Image.open(io.BytesIO(base64.b64decode(picture.data))) as image:
        assert max(image.size) <= 1_568
    assert len(picture.data) * 3 / 4 <= 2_097_152
    assert "3000×2000 px" in texts(result)


@pytest.mark.parametrize("size", [(20, 10), (400, 300)], ids=["small", "over 256 KiB"])
async def test_a_picture_within_the_bounds_passes_through(
    shared: Shared, size: tuple[int, int]
) -> None:
    file = io.BytesIO()
    Image.effect_noise(size, 100).convert("RGBA").save(file, "BMP")
    data = base64.b64encode(file.getvalue()).decode()
    client = await shared("legacy", "legacy")
    [block] = (await client.call_tool("image", {"data": data})).content
    assert isinstance(block, types.ImageContent)
    assert block.data == data


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


@pytest.mark.parametrize("data", PICTURES.values(), ids=PICTURES.keys())
async def test_a_broken_picture_costs_no_text_beside_it(shared: Shared, data: bytes) -> None:
    client = await shared("legacy", "legacy")
    arguments = {"data": base64.b64encode(data).decode(), "beside": ["The gate is open."]}
    result = await client.call_tool("image", arguments)
    assert [block.type for block in result.content] == ["text", "image"]
    assert texts(result) == "The gate is open."


async def test_long_sound_and_embedded_resources_become_artifacts(shared: Shared) -> None:
    client = await shared("legacy", "legacy")
    sound = await client.call_tool("sound", {"size": 50_000})
    table = await client.call_tool("large-resource", {"size": 50_000})
    assert not [block for block in sound.content if block.type == "audio"]
    assert sound.meta
    assert sound.meta["fetchstash/artifact"][0]["size_bytes"] == 150_000
    assert "CSV" in texts(table)


async def test_base64_may_have_line_breaks(shared: Shared) -> None:
    file = io.BytesIO()
    Image.effect_noise((2_000, 1_500), 100).save(file, "PNG")
    client = await shared("legacy", "legacy")
    arguments = {"data": base64.encodebytes(file.getvalue()).decode()}
    result = await client.call_tool("image", arguments)
    assert len(file.getvalue()) > 2_500_000  # more than one piece
    assert (result.meta or {})["fetchstash/artifact"][0]["size_bytes"] == len(file.getvalue())
    assert "2000×1500 px" in texts(result)


async def test_an_error_stays_an_error_when_it_is_made_short(shared: Shared) -> None:
    client = await shared("legacy", "legacy")
    result = await client.call_tool("error", {"size": 50_000})
    assert result.is_error
    assert len(texts(result)) < 4_000


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


async def test_a_tool_left_alone_is_passed_on_whatever_its_size(wrapped: Wrapped) -> None:
    python, *rest = plain("legacy")
    settings = (
        f"[wrap.servers.plain]\ncommand = {json.dumps(python)}\nargs = {json.dumps(rest)}\n"
        'leave_alone = ["rows"]\nthreshold = 500\n'
    )
    async with wrapped("legacy", settings=settings) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        alone = await client.call_tool("rows", {"size": 10_000})  # its line is over 256 KiB
        table = await client.call_tool("both", {"size": 20})
    assert tools["rows"].output_schema
    assert alone.structured_content
    assert len(alone.structured_content["rows"]) == 10_000
    assert refs(table)  # over the threshold of 500 characters


@both_eras
async def test_long_resources_and_short_ones(shared: Shared, mode: str) -> None:
    client = await shared(mode, "modern")
    short = await client.read_resource("data://a")
    long = await client.read_resource("data://l")
    assert short.contents[0].model_dump()["text"] == "words\n"
    assert "art_" in long.contents[0].model_dump()["text"]


async def test_what_is_short_of_a_resource_stays_beside_the_preview(shared: Shared) -> None:
    client = await shared("legacy", "legacy")
    preview, short = (await client.read_resource("data://list")).contents
    assert "art_" in preview.model_dump()["text"]
    assert short.model_dump()["text"] == "the short one"


async def test_the_page_of_an_app_is_left_whole(shared: Shared) -> None:
    client = await shared("legacy", "legacy")
    [page] = (await client.read_resource("ui://plain/page")).contents
    assert page.model_dump()["text"] == "words\n" * 60_000


@any_mix
async def test_numbers_that_json_does_not_have_become_null(shared: Shared, era: str) -> None:
    client = await shared("legacy", era)
    result = await client.call_tool("not-a-number", {})
    assert result.structured_content == {"values": [None, None, None, 2]}


async def test_an_answer_that_cannot_be_read_is_told_at_once(shared: Shared) -> None:
    client = await shared("legacy", "legacy")
    with pytest.raises(MCPError, match=r"plain\.py sent a line that is no JSON"):
        await client.call_tool("unreadable", {})


@both_eras
async def test_half_a_surrogate_pair_cannot_break_the_session(shared: Shared, mode: str) -> None:
    client = await shared(mode, "legacy")
    assert texts(await client.call_tool("surrogate", {})) == "half � of a pair"


@both_eras
async def test_garbage_between_messages_is_passed_over(shared: Shared, mode: str) -> None:
    client = await shared(mode, "legacy")
    assert texts(await client.call_tool("garbage", {})) == "after the garbage"
    assert texts(await client.call_tool("long", {"size": 1})) == "line 0 of the log\n"

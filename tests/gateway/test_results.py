"""A long result becomes a preview and a reference, whatever it holds."""

import base64
import io
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


@pytest.mark.long
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

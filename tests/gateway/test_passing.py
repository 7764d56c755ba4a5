"""What is short passes through the gateway as it is, in both eras and in any mix of them."""

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPDeprecationWarning

from tests.gateway.conftest import Shared, Wrapped, any_mix, both_eras, plain

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


def text_of(result: Any) -> str:
    """Return the text of a result's first block."""
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


@both_eras
@any_mix
async def test_a_short_result_is_the_same_json(shared: Shared, mode: str, era: str) -> None:
    arguments = {"word": "“ünï” 😀", "deep": {"n": [1, 2.5, None]}}
    command = plain(era)
    direct = StdioServerParameters(command=command[0], args=command[1:])
    own_mode = "legacy" if era == "legacy" else "2026-07-28"
    async with Client(direct, mode=own_mode) as alone:
        expected = (await alone.call_tool("echo", arguments)).model_dump(mode="json")
    client = await shared(mode, era)
    result = (await client.call_tool("echo", arguments)).model_dump(mode="json")
    # The echo tells which keys of _meta came with the request: those of its own era alone.
    assert result.pop("result_type", None) == expected.pop("result_type", None)
    assert result == expected


@both_eras
@any_mix
async def test_lists_pass_through_with_all_their_pages(shared: Shared, mode: str, era: str) -> None:
    client = await shared(mode, era)
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    resources = (await client.list_resources()).resources
    templates = (await client.list_resource_templates()).resource_templates
    prompts = (await client.list_prompts()).prompts
    assert "Be plain." in str(client.instructions)
    echo = tools["echo"]
    assert (echo.title, echo.description) == ("Echo", "echo.")
    assert echo.annotations
    assert echo.annotations.read_only_hint
    assert echo.icons
    assert echo.output_schema is None  # a preview could not satisfy it
    assert {"environment", "artifact_slice", "get_search_content"} <= set(tools)
    assert not {"fetch_content", "stash_file"} & set(tools)
    assert "data://a" in {str(resource.uri) for resource in resources}
    assert "data://{x}" in {template.uri_template for template in templates}
    assert "greet" in {prompt.name for prompt in prompts}


@pytest.mark.long
@both_eras
@any_mix
async def test_the_server_may_ask_the_person_who_is_told_which_server_asks(
    wrapped: Wrapped, mode: str, era: str
) -> None:
    asked: list[str] = []

    async def answer(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={})

    async with wrapped(mode, *plain(era), elicitation_callback=answer) as client:
        result = await client.call_tool("ask", {})
        assert text_of(await client.call_tool("echo", {})).startswith('{"arguments"')
    assert text_of(result) == "said accept"
    assert asked == ["The server plain.py asks: Sure?"]


@both_eras
@any_mix
async def test_progress_reaches_the_host(shared: Shared, mode: str, era: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None = None, message: str | None = None) -> None:
        seen.append((progress, total, message))

    client = await shared(mode, era)
    await client.call_tool("progress", {}, progress_callback=note)
    assert seen == [(0, 3, "on"), (1, 3, "on"), (2, 3, "on")]


@pytest.mark.long
@any_mix
async def test_changes_reach_a_host_of_an_earlier_era(wrapped: Wrapped, era: str) -> None:
    told: list[str] = []
    both = anyio.Event()

    async def note(message: Any) -> None:
        told.append(message.method)
        if len(set(told)) == 2:
            both.set()

    async with wrapped("legacy", *plain(era), message_handler=note) as client:
        with pytest.warns(MCPDeprecationWarning):
            await client.session.subscribe_resource("data://a")  # pyright: ignore[reportDeprecated]
        await client.call_tool("change", {})
        with anyio.fail_after(60):
            await both.wait()
    assert set(told) == {"notifications/tools/list_changed", "notifications/resources/updated"}


@pytest.mark.long
@any_mix
async def test_changes_reach_a_host_of_the_2026_era(wrapped: Wrapped, era: str) -> None:
    async with wrapped("2026-07-28", *plain(era)) as client:
        await client.list_tools()
        listening = client.listen(tools_list_changed=True, resource_subscriptions=["data://a"])
        async with listening as changes:
            await client.call_tool("change", {})
            with anyio.fail_after(60):
                kinds = {type(await anext(changes)).__name__ for _ in range(2)}
    assert kinds == {"ToolsListChanged", "ResourceUpdated"}


@both_eras
async def test_tools_that_are_asked_for_come_and_others_are_named(
    wrapped: Wrapped, mode: str
) -> None:
    async with wrapped(mode, *plain("modern"), flags=("--with-fetch",)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        unknown = await client.call_tool("ecko", {})
    assert "fetch_content" in names
    assert unknown.is_error
    assert text_of(unknown) == "[bad_argument] There is no tool 'ecko'. Did you mean echo?"

"""The view as an MCP App."""

from typing import Any

import pytest
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp_types import TextResourceContents

from fetchstash.server import EXTENSION
from fetchstash.server.ui import view_html
from tests.server.conftest import Connect

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

both_eras = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


@both_eras
async def test_the_tools_that_open_documents_name_the_view(connect: Connect, mode: str) -> None:
    async with connect(mode=mode) as client:
        tools = (await client.list_tools()).tools
    views: dict[str, Any] = {
        tool.name: meta["ui"]["resourceUri"] for tool in tools if "ui" in (meta := tool.meta or {})
    }
    assert set(views) == {"fetch_content", "artifact_info"}
    assert len(set(views.values())) == 1
    assert all(uri.startswith("ui://") for uri in views.values())
    assert {tool.name for tool in tools if "ui/resourceUri" in (tool.meta or {})} == set(views)


@both_eras
async def test_the_view_is_one_file_that_loads_nothing(connect: Connect, mode: str) -> None:
    async with connect(mode=mode) as client:
        tools = (await client.list_tools()).tools
        (uri,) = {meta["ui"]["resourceUri"] for tool in tools if "ui" in (meta := tool.meta or {})}
        (page,) = (await client.read_resource(uri)).contents
    assert isinstance(page, TextResourceContents)
    assert page.text == view_html()
    assert page.mime_type == APP_MIME_TYPE
    assert (page.meta or {})["ui"]["csp"] == {"connectDomains": [], "resourceDomains": []}
    for sign in ('src="', 'href="', "@import", "url(", "innerHTML", "<form", "eval("):
        assert sign not in page.text


async def test_the_server_says_that_it_has_an_app(connect: Connect) -> None:
    async with connect() as client:  # the handshake era has no place for it
        capabilities = client.server_capabilities
    assert EXTENSION == EXTENSION_ID
    assert capabilities is not None
    assert EXTENSION in (capabilities.extensions or {})

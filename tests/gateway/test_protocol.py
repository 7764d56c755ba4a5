"""The gateway's own words of MCP are those of the SDK, and of the server that it speaks for."""

import mcp_types
import pytest
from mcp import Client
from mcp.server.apps import EXTENSION_ID
from mcp_types import version

from fetchstash.config import load
from fetchstash.gateway import _protocol
from fetchstash.gateway._serve import OWN_ABOUT
from fetchstash.server import LazyStash, build_server, listed_tools


def test_codes_keys_and_versions_are_those_of_the_sdk() -> None:
    ours = {name: value for name, value in vars(_protocol).items() if name.isupper()}
    theirs = {
        **{f"{name}_KEY": getattr(mcp_types, f"{name}_META_KEY") for name in _META_KEYS},
        "SUBSCRIPTION_ID_KEY": "io.modelcontextprotocol/subscriptionId",
        "HANDSHAKE_VERSIONS": version.HANDSHAKE_PROTOCOL_VERSIONS,
        "UI_EXTENSION": EXTENSION_ID,
        "MODERN_VERSIONS": version.MODERN_PROTOCOL_VERSIONS,
    }
    codes = {name for name, value in ours.items() if isinstance(value, int)}
    theirs |= {name: getattr(mcp_types, name) for name in codes}
    theirs |= {name: getattr(version, name) for name in ours if name.startswith("LATEST")}
    assert {name: ours[name] for name in theirs} == theirs
    assert set(ours) - {"_META", "_DECODER"} == set(theirs)


_META_KEYS = ("PROTOCOL_VERSION", "CLIENT_INFO", "CLIENT_CAPABILITIES", "LOG_LEVEL", "SERVER_INFO")


@pytest.mark.anyio
async def test_what_is_said_of_the_artifact_tools_beforehand_is_what_their_server_says() -> None:
    settings = load()
    stated = OWN_ABOUT["capabilities"]
    async with Client(build_server(LazyStash(settings))) as client:
        offered = client.session.server_capabilities
        listed = (await client.list_tools()).model_dump(by_alias=True, exclude_none=True)
    assert offered
    # Its prompts are of the web, and the gateway shows none.
    assert set(stated) == set(offered.model_dump(exclude_none=True)) - {"prompts"}
    assert listed["tools"] == listed_tools(settings)

"""Fetch a document through a team's service, and print the lines that match.

STASH_TOKEN=fstash_… python examples/agent_client_http.py https://fetch.example.org/mcp URL PATTERN
"""

import asyncio
import os
import sys
from typing import cast

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent


async def main(service: str, url: str, pattern: str) -> None:
    headers = {"authorization": f"Bearer {os.environ['STASH_TOKEN']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(service, http_client=http)) as client,
    ):
        fetched = await client.call_tool("fetch_content", {"url": url, "maxChars": 500})
        print(text_of(fetched).partition("\n")[0])
        query = {"artifact_ref": url, "pattern": pattern}
        print(text_of(await client.call_tool("artifact_grep", query)))


def text_of(result: CallToolResult) -> str:
    return cast("TextContent", result.content[0]).text


asyncio.run(main(*sys.argv[1:]))

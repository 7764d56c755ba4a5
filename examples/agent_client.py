"""Start the server, fetch a document, find a place in it, and read just that.

python examples/agent_client.py URL PATTERN [FLAGS OF fetchstash serve ...]
"""

import re
import sys

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import CallToolResult, TextContent


def shown(result: object) -> str:
    """Return the text of a tool's result, as a model sees it."""
    assert isinstance(result, CallToolResult)
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


async def main(url: str, pattern: str, *flags: str) -> None:
    server = StdioServerParameters(command="fetchstash", args=["serve", *flags])
    async with Client(server) as client:
        fetched = await client.call_tool("fetch_content", {"url": url, "maxChars": 1_000})
        assert isinstance(fetched, CallToolResult)
        assert fetched.meta is not None
        ref = fetched.meta["fetchstash/artifact"][0]["artifact_ref"]
        matches = shown(
            await client.call_tool(
                "artifact_grep", {"artifact_ref": ref, "pattern": pattern, "context": 0}
            )
        )
        print(matches)
        line = re.search(r"^(\d+):", matches, re.MULTILINE)
        if line:
            around = {
                "artifact_ref": ref,
                "start": max(int(line[1]) - 3, 1),
                "end": int(line[1]) + 3,
            }
            print(shown(await client.call_tool("artifact_slice", around)))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], *sys.argv[3:])

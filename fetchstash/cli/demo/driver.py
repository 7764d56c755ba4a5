"""Start the real server over stdio as a host does, and count the tokens of its answers."""

import asyncio
import os
import shutil
import sysconfig
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, cast

from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from fetchstash.cli.demo.site import Site
from fetchstash.errors import Internal
from fetchstash.text import tokens
from fetchstash.text.tokens import TokenCount

__all__ = ["Answer", "ask", "command", "started"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a call: its text, the tokens of the text, the facts of its artifacts."""

    text: str
    tokens: int
    facts: tuple[dict[str, Any], ...]
    is_error: bool

    @property
    def ref(self) -> str:
        """The artifact's reference, "" if the call failed."""
        return str(self.facts[0]["artifact_ref"]) if self.facts else ""

    @property
    def whole(self) -> TokenCount:
        """The tokens of the whole documents."""
        exact = all(facts.get("text_tokens_exact", True) for facts in self.facts)
        return TokenCount(sum(facts.get("text_tokens") or 0 for facts in self.facts), exact)


def command() -> str:
    """Return the path of the command beside this Python. Raises Internal if it is missing."""
    path = shutil.which("fetchstash", path=sysconfig.get_path("scripts"))
    if path is None:
        raise Internal(
            "The command fetchstash is not installed beside this Python.",
            "Install the package there.",
        )
    return path


@asynccontextmanager
async def started(site: Site, *flags: str, mode: str = "auto") -> AsyncGenerator[Client]:
    """Start the server as a host does; it may fetch from ``site`` and keeps a temporary store.

    ``mode`` is the protocol era, as mcp's Client names it.
    """
    temporary = tempfile.TemporaryDirectory(prefix="fetchstash-demo-", ignore_cleanup_errors=True)
    with temporary as folder:
        # The null device is an empty settings file, in place of the user's own.
        options = {
            "--config": os.devnull,
            "--folder": str(Path(folder, "store")),
            "--allow-host": f"127.0.0.1:{site.port}",
        }
        arguments = ["serve", "--ephemeral", *chain.from_iterable(options.items()), *flags]
        server = StdioServerParameters(command=command(), args=arguments, cwd=folder)
        async with Client(server, mode=mode) as client:
            yield client


async def ask(client: Client, tool: str, **arguments: Any) -> Answer:
    """Call a tool and count the tokens of its answer."""
    result = await client.call_tool(tool, arguments)
    text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    counted = await asyncio.to_thread(tokens.count, text)
    facts = cast("list[dict[str, Any]]", (result.meta or {}).get("fetchstash/artifact", []))
    return Answer(text, counted.tokens, tuple(facts), bool(result.is_error))

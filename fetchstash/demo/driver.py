"""The real server, started over stdio as a host starts it, and what its answers cost in tokens."""

import asyncio
import os
import shutil
import sysconfig
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from fetchstash import tokens
from fetchstash.demo.site import Site
from fetchstash.errors import Internal
from fetchstash.tokens import TokenCount

__all__ = ["Answer", "ask", "command", "started"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call brought: its text, the tokens of that, and the facts of the artifacts that it speaks of."""

    text: str
    tokens: int
    facts: tuple[dict[str, Any], ...]
    is_error: bool

    @property
    def ref(self) -> str:
        """The artifact's reference; "" where the call failed."""
        return str(self.facts[0]["artifact_ref"]) if self.facts else ""

    @property
    def whole(self) -> TokenCount:
        """The tokens of the whole documents."""
        exact = all(facts.get("text_tokens_exact", True) for facts in self.facts)
        return TokenCount(sum(facts.get("text_tokens") or 0 for facts in self.facts), exact)


def command() -> str:
    """Return the path of the command ``fetchstash`` beside this Python. Raises Internal where it is not installed."""
    found = shutil.which("fetchstash", path=sysconfig.get_path("scripts"))
    if found is None:
        raise Internal(
            "The command fetchstash is not installed beside this Python.",
            "Install the package, and run it from there.",
        )
    return found


@asynccontextmanager
async def started(site: Site, *flags: str, mode: str = "auto") -> AsyncGenerator[Client]:
    """Start the command as a host does, over stdio, allowed to fetch from ``site`` and to keep things in a passing folder alone.

    ``mode`` is the protocol era that the client asks for, as mcp's Client has it.
    """
    with tempfile.TemporaryDirectory(
        prefix="fetchstash-demo-", ignore_cleanup_errors=True
    ) as folder:
        store = str(Path(folder, "store"))
        # The null device is an empty settings file: the user's own has no say here.
        arguments = [
            "serve",
            "--config",
            os.devnull,
            "--folder",
            store,
            "--ephemeral",
            "--allow-host",
            f"127.0.0.1:{site.port}",
        ]
        async with Client(
            StdioServerParameters(command=command(), args=[*arguments, *flags], cwd=folder),
            mode=mode,
        ) as client:
            yield client


async def ask(client: Client, tool: str, **arguments: Any) -> Answer:
    """Call a tool and count what came."""
    result = await client.call_tool(tool, arguments)
    text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    counted = await asyncio.to_thread(tokens.count, text)
    facts = cast("list[dict[str, Any]]", (result.meta or {}).get("fetchstash/artifact", []))
    return Answer(text, counted.tokens, tuple(facts), bool(result.is_error))

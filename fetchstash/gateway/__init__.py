"""The gateway: other MCP servers behind fetchstash, their long results made short."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fetchstash.config import Settings, WrappedServer
from fetchstash.errors import ServerFailed
from fetchstash.gateway._start import start

if TYPE_CHECKING:
    from anyio.abc import Process

__all__ = ["serve_gateway"]


async def serve_gateway(
    settings: Settings, servers: Sequence[WrappedServer], *, with_fetch: bool
) -> None:
    """Serve over stdin and stdout what ``servers`` offer, until the host ends it.

    ``with_fetch`` adds fetch_content. A server that cannot be started is told of on stderr, and
    tried again.
    """
    started: dict[str, Process] = {}
    for server in servers:
        try:
            if server.command:
                started[server.name] = await start(server)
        except ServerFailed:
            continue  # told when it is tried again
    # Imports mcp, which takes half a second: the servers start meanwhile.
    from fetchstash.gateway._serve import serve  # noqa: PLC0415

    await serve(settings, servers, started, with_fetch=with_fetch)

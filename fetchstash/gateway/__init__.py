"""The gateway: other MCP servers behind fetchstash, their long results made short."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fetchstash.gateway._start import Process, name_of, start_early, stop

if TYPE_CHECKING:
    from fetchstash.config import Settings, WrappedServer

__all__ = ["Process", "name_of", "serve_gateway", "start_early", "stop"]


async def serve_gateway(
    settings: "Settings",
    servers: "Sequence[WrappedServer]",
    started: Mapping[str, Process],
    *,
    with_fetch: bool,
) -> None:
    """Serve over stdin and stdout what ``servers`` offer, until the host ends it.

    ``started`` has the processes that run already, by the names of their servers. ``with_fetch``
    adds fetch_content. A server that cannot be started is told of on stderr, and tried again.
    """
    from fetchstash.gateway._serve import serve  # noqa: PLC0415 - heavy: the servers start first

    await serve(settings, servers, started, with_fetch=with_fetch)

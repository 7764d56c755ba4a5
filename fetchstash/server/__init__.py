"""The MCP face of Stash."""

from fetchstash.server._asking import Answers
from fetchstash.server._lazy import Context, LazyStash, StashSource
from fetchstash.server._server import build_server
from fetchstash.server._stdio import hide_memory, serve_stdio
from fetchstash.server._wire import relayed

__all__ = [
    "Answers",
    "Context",
    "LazyStash",
    "StashSource",
    "build_server",
    "hide_memory",
    "relayed",
    "serve_stdio",
]

"""The MCP face of Stash. Names are imported when they are first used: the SDK is heavy."""

from typing import TYPE_CHECKING

from fetchstash.system.lazy import lazy_names

if TYPE_CHECKING:
    from fetchstash.server._app import EXTENSION
    from fetchstash.server._asking import Answers
    from fetchstash.server._lazy import Context, LazyStash, StashSource
    from fetchstash.server._listing import listed_tools
    from fetchstash.server._memory import hide_memory
    from fetchstash.server._server import build_server
    from fetchstash.server._stdio import serve_stdio
    from fetchstash.server._streams import LineWriter, claim_streams, read_lines
    from fetchstash.server._wire import is_request_id, no_message

__all__ = [
    "EXTENSION",
    "Answers",
    "Context",
    "LazyStash",
    "LineWriter",
    "StashSource",
    "build_server",
    "claim_streams",
    "hide_memory",
    "is_request_id",
    "listed_tools",
    "no_message",
    "read_lines",
    "serve_stdio",
]

_MODULES = {
    "_app": "EXTENSION",
    "_asking": "Answers",
    "_lazy": "Context LazyStash StashSource",
    "_listing": "listed_tools",
    "_memory": "hide_memory",
    "_server": "build_server",
    "_stdio": "serve_stdio",
    "_streams": "LineWriter claim_streams read_lines",
    "_wire": "is_request_id no_message",
}
__getattr__ = lazy_names(__name__, _MODULES)

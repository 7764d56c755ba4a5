"""The MCP front end of Stash. Names are imported lazily, because the SDK is heavy."""

from typing import TYPE_CHECKING

from fetchstash.system import lazy_names

if TYPE_CHECKING:
    from fetchstash.server._lazy import Answers, Context, LazyStash, StashSource
    from fetchstash.server._listing import EXTENSION, listed_tools
    from fetchstash.server._stdio import build_server, serve_stdio
    from fetchstash.server._streams import LineWriter, claim_streams, hide_memory, read_lines
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
    "_lazy": "Answers Context LazyStash StashSource",
    "_listing": "EXTENSION listed_tools",
    "_stdio": "build_server serve_stdio",
    "_streams": "LineWriter claim_streams hide_memory read_lines",
    "_wire": "is_request_id no_message",
}
__getattr__ = lazy_names(__name__, _MODULES)

"""The MCP face of Stash. Names are imported when they are first used: the SDK is heavy."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fetchstash.server._app import EXTENSION
    from fetchstash.server._asking import Answers
    from fetchstash.server._lazy import Context, LazyStash, StashSource
    from fetchstash.server._listing import listed_tools
    from fetchstash.server._memory import hide_memory
    from fetchstash.server._server import build_server
    from fetchstash.server._stdio import serve_stdio
    from fetchstash.server._wire import is_request_id, no_message

__all__ = [
    "EXTENSION",
    "Answers",
    "Context",
    "LazyStash",
    "StashSource",
    "build_server",
    "hide_memory",
    "is_request_id",
    "listed_tools",
    "no_message",
    "serve_stdio",
]

_MODULES = {
    "EXTENSION": "_app",
    "Answers": "_asking",
    **dict.fromkeys(("Context", "LazyStash", "StashSource"), "_lazy"),
    "build_server": "_server",
    "hide_memory": "_memory",
    "listed_tools": "_listing",
    "serve_stdio": "_stdio",
    **dict.fromkeys(("is_request_id", "no_message"), "_wire"),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

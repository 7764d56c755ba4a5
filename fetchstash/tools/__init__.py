"""The tools without a protocol: their table, the check of their arguments, and their answers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fetchstash.tools._answer import Reports, answer, tool_named
    from fetchstash.tools._arguments import HOST_ARGUMENTS
    from fetchstash.tools._functions import tool_functions
    from fetchstash.tools._log import log_call, log_of, logged_calls
    from fetchstash.tools._specs import ToolSpec, tool_specs

__all__ = [
    "HOST_ARGUMENTS",
    "Reports",
    "ToolSpec",
    "answer",
    "log_call",
    "log_of",
    "logged_calls",
    "tool_functions",
    "tool_named",
    "tool_specs",
]

_MODULES = {
    "_answer": ("Reports", "answer", "tool_named"),
    "_arguments": ("HOST_ARGUMENTS",),
    "_functions": ("tool_functions",),
    "_log": ("log_call", "log_of", "logged_calls"),
    "_specs": ("ToolSpec", "tool_specs"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562): a list of the tools needs no stash."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)

"""The tools without a protocol: their table, the check of their arguments, and their answers."""

from typing import TYPE_CHECKING

from fetchstash.system import lazy_names

if TYPE_CHECKING:
    from fetchstash.server.tools._answer import LoggedCall, answer, tool_functions, tool_named
    from fetchstash.server.tools._arguments import HOST_ARGUMENTS, meant
    from fetchstash.server.tools._specs import Reports, ToolSpec, tool_specs

__all__ = [
    "HOST_ARGUMENTS",
    "LoggedCall",
    "Reports",
    "ToolSpec",
    "answer",
    "meant",
    "tool_functions",
    "tool_named",
    "tool_specs",
]

_MODULES = {
    "_answer": "LoggedCall answer tool_functions tool_named",
    "_arguments": "HOST_ARGUMENTS meant",
    "_specs": "Reports ToolSpec tool_specs",
}
__getattr__ = lazy_names(__name__, _MODULES)

"""The tools without a protocol: their table, the check of their arguments, and their answers."""

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

"""The only place where a result is framed: ceilings, notices, fences and next calls."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fetchstash.render._frame import FRAME_CHARS
    from fetchstash.render._shown import Value, as_shown, view_of
    from fetchstash.render._texts import size
    from fetchstash.render._view import Block, Host, View, error_line, error_view
    from fetchstash.render._words import MODEL, PROGRAM, Face, as_tool

__all__ = [
    "FRAME_CHARS",
    "MODEL",
    "PROGRAM",
    "Block",
    "Face",
    "Host",
    "Value",
    "View",
    "as_shown",
    "as_tool",
    "error_line",
    "error_view",
    "size",
    "view_of",
]

_MODULES = {
    "_frame": ("FRAME_CHARS",),
    "_shown": ("Value", "as_shown", "view_of"),
    "_texts": ("size",),
    "_view": ("Block", "Host", "View", "error_line", "error_view"),
    "_words": ("MODEL", "PROGRAM", "Face", "as_tool"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562): the frame needs no stash."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)

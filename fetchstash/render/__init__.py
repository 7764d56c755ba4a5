"""The only place where a result is framed: ceilings, notices, fences and next calls."""

from typing import TYPE_CHECKING

from fetchstash.system import lazy_names

if TYPE_CHECKING:
    from fetchstash.render._shown import Value, as_shown, view_of
    from fetchstash.render._texts import size
    from fetchstash.render._view import Block, Host, View, error_line, error_record, error_view
    from fetchstash.render._words import FRAME_CHARS, MODEL, FrontEnd, as_tool

__all__ = [
    "FRAME_CHARS",
    "MODEL",
    "Block",
    "FrontEnd",
    "Host",
    "Value",
    "View",
    "as_shown",
    "as_tool",
    "error_line",
    "error_record",
    "error_view",
    "size",
    "view_of",
]

_MODULES = {
    "_shown": "Value as_shown view_of",
    "_texts": "size",
    "_view": "Block Host View error_line error_record error_view",
    "_words": "FRAME_CHARS FrontEnd MODEL as_tool",
}
__getattr__ = lazy_names(__name__, _MODULES)

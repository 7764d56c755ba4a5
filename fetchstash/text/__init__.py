"""Cut texts: windows, bounds and limits that handlers, store, client and front ends share."""

from typing import TYPE_CHECKING

from fetchstash.system import lazy_names

if TYPE_CHECKING:
    from fetchstash.text._limits import (
        MIN_MAX_CHARS,
        TRUNCATIONS,
        Measure,
        PreviewLimits,
        Setting,
        Truncation,
        ViewLimits,
        clip,
        clip_middle,
        counted,
        head_and_tail,
        json_length,
        largest,
        picture_size,
        prefix_length,
        setting,
        split,
        utf8_length,
        whole_lines,
        window,
    )
    from fetchstash.text.tokens import TruncationInfo

__all__ = [
    "MIN_MAX_CHARS",
    "TRUNCATIONS",
    "Measure",
    "PreviewLimits",
    "Setting",
    "Truncation",
    "TruncationInfo",
    "ViewLimits",
    "clip",
    "clip_middle",
    "counted",
    "head_and_tail",
    "json_length",
    "largest",
    "picture_size",
    "prefix_length",
    "setting",
    "split",
    "utf8_length",
    "whole_lines",
    "window",
]

_MODULES = {
    "_limits": " ".join(name for name in __all__ if name != "TruncationInfo"),
    "tokens": "TruncationInfo",
}
__getattr__ = lazy_names(__name__, _MODULES)

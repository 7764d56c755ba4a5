"""Cut texts: windows, bounds and limits that handlers, store, client and faces share."""

from typing import TYPE_CHECKING

from fetchstash.system import lazy_names

if TYPE_CHECKING:
    from fetchstash.text._cut import (
        Measure,
        clip,
        clip_middle,
        head_and_tail,
        json_length,
        largest,
        picture_size,
        prefix_length,
        split,
        utf8_length,
        whole_lines,
        window,
    )
    from fetchstash.text._limits import (
        MIN_MAX_CHARS,
        TRUNCATIONS,
        PreviewLimits,
        Setting,
        Truncation,
        ViewLimits,
        setting,
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
    "_cut": (
        "Measure clip clip_middle head_and_tail json_length largest picture_size prefix_length "
        "split utf8_length whole_lines window"
    ),
    "_limits": "MIN_MAX_CHARS PreviewLimits Setting TRUNCATIONS Truncation ViewLimits setting",
    "tokens": "TruncationInfo",
}
__getattr__ = lazy_names(__name__, _MODULES)

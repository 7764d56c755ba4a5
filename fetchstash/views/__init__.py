"""The only place where a result is cut: ceilings, previews, passages, head and tail notices, fences."""

from fetchstash.views._body import Arrival
from fetchstash.views._cut import clip, clip_middle, head_and_tail, largest, split, window
from fetchstash.views._fetched import Failure, fetched, fetched_several
from fetchstash.views._found import Found, Hit, grep, passages, search
from fetchstash.views._info import info, listing, picture
from fetchstash.views._limits import (
    FRAME_CHARS,
    MIN_MAX_CHARS,
    TRUNCATIONS,
    PreviewLimits,
    Truncation,
    ViewLimits,
)
from fetchstash.views._read import Reading, read
from fetchstash.views._shown import TruncationInfo
from fetchstash.views._texts import Subject, size
from fetchstash.views._view import Block, Host, View, error_line, error_view

__all__ = [
    "FRAME_CHARS",
    "MIN_MAX_CHARS",
    "TRUNCATIONS",
    "Arrival",
    "Block",
    "Failure",
    "Found",
    "Hit",
    "Host",
    "PreviewLimits",
    "Reading",
    "Subject",
    "Truncation",
    "TruncationInfo",
    "View",
    "ViewLimits",
    "clip",
    "clip_middle",
    "error_line",
    "error_view",
    "fetched",
    "fetched_several",
    "grep",
    "head_and_tail",
    "info",
    "largest",
    "listing",
    "passages",
    "picture",
    "read",
    "search",
    "size",
    "split",
    "window",
]

"""The only place where a result is cut: ceilings, previews, passages, head and tail notices, fences."""

from fetchstash.render._body import Arrival
from fetchstash.render._fetched import Failure, fetched, fetched_several
from fetchstash.render._found import Found, Hit, grep, passages, search
from fetchstash.render._frame import FRAME_CHARS
from fetchstash.render._info import info, listing, picture
from fetchstash.render._read import Reading, read
from fetchstash.render._texts import Subject, size
from fetchstash.render._view import Block, Host, View, error_line, error_view
from fetchstash.render._words import as_tool

__all__ = [
    "FRAME_CHARS",
    "Arrival",
    "Block",
    "Failure",
    "Found",
    "Hit",
    "Host",
    "Reading",
    "Subject",
    "View",
    "as_tool",
    "error_line",
    "error_view",
    "fetched",
    "fetched_several",
    "grep",
    "info",
    "listing",
    "passages",
    "picture",
    "read",
    "search",
    "size",
]

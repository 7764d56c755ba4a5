"""What tests of web pages and of parts share."""

from typing import Protocol, cast

from fetchstash.handlers import Handler, PartRequest, PartText, Picture, built_in
from fetchstash.handlers._registry import handler_of

PAGE_URL = "https://example.org/guide/page.html"
PROSE = (
    "The reservoir fills slowly in spring, and the wardens open the lower gate "
    "when the mark is reached. "
) * 3


class PartHandler(Handler, Protocol):
    def part(self, request: PartRequest) -> PartText | Picture: ...


def handler_named(name: str) -> PartHandler:
    """Return the built-in handler of a name, to read in this process. Some have no ``part``."""
    handlers = {handler.name: handler for handler in map(handler_of, built_in().all)}
    return cast("PartHandler", handlers[name])


def text_part(name: str, request: PartRequest) -> PartText:
    """Return the part of a document that the handler of this name answers with."""
    part = handler_named(name).part(request)
    assert isinstance(part, PartText)
    return part

"""What tests of web pages and of parts share."""

from fetchstash.handlers import PartRequest, PartText, handler_named

PAGE_URL = "https://example.org/guide/page.html"
PROSE = (
    "The reservoir fills slowly in spring, and the wardens open the lower gate "
    "when the mark is reached. "
) * 3


def text_part(name: str, request: PartRequest) -> PartText:
    """Return the part of a document that the handler of this name answers with."""
    part = handler_named(name).part(request)
    assert isinstance(part, PartText)
    return part

"""Ask a handler for a part that is text."""

from fetchstash.handlers import PartRequest, PartText, handler_named


def text_part(name: str, request: PartRequest) -> PartText:
    """Return the part of a document that the handler of this name answers with."""
    part = handler_named(name).part(request)
    assert isinstance(part, PartText)
    return part

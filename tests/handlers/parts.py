"""What tests of web pages and of parts share."""

from pathlib import Path
from typing import Any, Protocol, cast

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


def text_part(name: str, source: Path, path: str = "", **asked: Any) -> PartText:
    """Return the part of a document that the handler of this name answers with."""
    part = handler_named(name).part(PartRequest(source=source, path=path, **asked))
    assert isinstance(part, PartText)
    return part


def data_file(name: str) -> bytes:
    """Return a document of ``data/cases``."""
    return (Path(__file__).parent / "data" / "cases" / name).read_bytes()

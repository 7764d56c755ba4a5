"""HTML: web pages."""

from enum import unique

from fetchstash.errors import BadArgument, OutOfRange
from fetchstash.handlers._contract import Format, family
from fetchstash.handlers._reasons import KEPT, PAGE_PATHS, ReasonTable
from fetchstash.handlers._sniffers import sniff_html


@unique
class PageReason(ReasonTable):
    """Why a web page is not read."""

    PAGE_WITHOUT_TEXT = "the page has no text of its own", KEPT
    PAGE_TAGS = "it has no text before its tag {limit:,}, and the rest is not read", KEPT
    PAGE_NO_PICTURE = (
        "A web page is not rendered as an image.",
        'Take render="text", or a picture of path="images", such as "images/1".',
        BadArgument,
    )
    PAGE_PICTURES = (
        "No picture has that number: the page has {count}.",
        'List them with path="images"; take one as "images/1".',
        OutOfRange,
    )
    PAGE_PICTURE_HELD = (
        "This is no picture on the web.",
        'List them with path="images".',
        OutOfRange,
    )
    PAGE_NO_PART = "The page has no such part.", PAGE_PATHS, OutOfRange
    PAGE_NO_SECTION = "The page has no section of that name.", PAGE_PATHS, OutOfRange


FORMATS = tuple(
    family(
        Format(
            kind="html",
            word="HTML page",
            handler="fetchstash.handlers._html._handler:HtmlHandler",
            media_types=(),
            sniff=sniff_html,
            is_markup=True,
            paths=("page", "left_out", "links", "tables", "images", "images/*", "data", "#*"),
        ),
        ("HTML page", "text/html", "html htm"),
        ("HTML page", "application/xhtml+xml", "xhtml"),
    )
)

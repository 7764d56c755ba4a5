"""HTML: web pages."""

from fetchstash.handlers._format import Format, family
from fetchstash.handlers._routing._structure import sniff_html

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

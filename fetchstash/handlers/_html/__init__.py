"""HTML: pages, feeds and sitemaps."""

from fetchstash.handlers._html._handler import HtmlHandler

__all__ = ["HtmlHandler"]

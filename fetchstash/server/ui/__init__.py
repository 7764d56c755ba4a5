"""The view: one page for people, in a browser of this machine and as an MCP App."""

from fetchstash.server.ui._plot import Totals, origins, plot, totals
from fetchstash.server.ui._serve import ViewServer, view_html
from fetchstash.server.ui._text import Person
from fetchstash.server.ui._timeline import costs, took

__all__ = [
    "Person",
    "Totals",
    "ViewServer",
    "costs",
    "origins",
    "plot",
    "took",
    "totals",
    "view_html",
]

"""The view: one page for people, in a browser of this machine and as an MCP App."""

from fetchstash.server.ui._plot import Totals, origins, plot, totals
from fetchstash.server.ui._serve import ViewServer, view_html
from fetchstash.server.ui._text import Person

__all__ = ["Person", "Totals", "ViewServer", "origins", "plot", "totals", "view_html"]

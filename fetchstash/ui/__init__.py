"""The view: one page for people, in a browser of this machine and as an MCP App."""

from fetchstash.ui._faces import Person
from fetchstash.ui._page import view_html
from fetchstash.ui._plot import Totals, plot, totals
from fetchstash.ui._serve import ViewServer

__all__ = ["Person", "Totals", "ViewServer", "plot", "totals", "view_html"]

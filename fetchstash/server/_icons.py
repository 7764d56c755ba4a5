"""Icons for lists of people, as data URIs: nothing is loaded for them. Models never see them."""

from collections.abc import Mapping
from urllib.parse import quote

# Strokes in a square of 16: an arrow into a box, lines, a lens, scissors, a lens on lines, an i.
_STROKES = {
    "fetchstash": "M8 1v8M5 6l3 3 3-3M2 10v4h12v-4",
    "fetch_content": "M8 1v8M5 6l3 3 3-3M2 14h12",
    "get_search_content": "M2 4h12M2 8h8M13 7l-3 5h6z",
    "artifact_grep": "M11 11l4 4M7 12a5 5 0 1 1 0-10 5 5 0 0 1 0 10z",
    "artifact_slice": "M2 3h12M2 13h12M2 8h3M7 8h3M12 8h2",
    "artifact_search": "M2 3h12M2 7h5M2 11h4M13 13l2 2M11 14a3 3 0 1 1 0-6 3 3 0 0 1 0 6z",
    "artifact_info": "M8 7v6M8 3v1",
    "stash_file": "M3 1h7l3 3v11H3z",
}


def _icon(strokes: str) -> Mapping[str, str]:
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path d='{strokes}'"
    svg += " fill='none' stroke='#777'/></svg>"
    return {"src": "data:image/svg+xml," + quote(svg, safe="'/=:")}


ICONS = {name: _icon(strokes) for name, strokes in _STROKES.items()}
"""The icon of the server and of each tool, as MCP has it."""

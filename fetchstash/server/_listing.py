"""The listings for a host: tools with their icons, and the view as an MCP App.

The names are those of ``mcp.server.apps``, whose import would cost the start of the server 0.1 s.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fetchstash.config import Settings
from fetchstash.render import FRAME_CHARS
from fetchstash.server.tools import ToolSpec, tool_specs

if TYPE_CHECKING:
    import mcp_types as types


def icon(strokes: str) -> Mapping[str, str]:
    """Return an icon as MCP has it, of strokes in a square of 16."""
    path = f"<path d='{strokes}' fill='none' stroke='#777'/>"
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>{path}</svg>"
    return {"src": "data:image/svg+xml," + quote(svg, safe="'/=:")}


ICON = icon("M8 1v8M5 6l3 3 3-3M2 10v4h12v-4")
"""The server's: an arrow into a box."""

EXTENSION = "io.modelcontextprotocol/ui"
VIEW_URI = "ui://fetchstash/view.html"
MEDIA_TYPE = "text/html;profile=mcp-app"

TOOL_META: dict[str, Any] = {
    "ui": {"resourceUri": VIEW_URI},
    "ui/resourceUri": VIEW_URI,  # as hosts read it before the extension was settled
}
_RESOURCE_META: dict[str, Any] = {
    # It loads nothing and asks nobody but its host.
    "ui": {"csp": {"connectDomains": [], "resourceDomains": []}, "prefersBorder": False}
}


def view_resource() -> "types.TextResourceContents":
    """Return the page."""
    import mcp_types as types  # noqa: PLC0415 - heavy; the names above are read without it

    from fetchstash.server.ui import view_html  # noqa: PLC0415 - imports a web server

    return types.TextResourceContents(
        uri=VIEW_URI, mime_type=MEDIA_TYPE, text=view_html(), _meta=_RESOURCE_META
    )


_OUTPUT = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}


def listed_tools(settings: Settings) -> list[dict[str, Any]]:
    """Return all tools."""
    return [_listed(spec, settings) for spec in tool_specs(settings)]


def _listed(spec: ToolSpec, settings: Settings) -> dict[str, Any]:
    meta: dict[str, Any] = {"anthropic/searchHint": spec.search_hint}
    if settings.profile in ("auto", "claude-code") and spec.body and not settings.output_is_bounded:
        # Claude Code spills longer results to a file; this raises its limit to ours, and above
        # the one that its user may have set. Other hosts do not read it.
        meta["anthropic/maxResultSizeChars"] = settings.views.max_chars_ceiling + FRAME_CHARS
    if spec.in_view:
        meta |= TOOL_META
    hints = {
        "readOnlyHint": not spec.deletes,
        **({"destructiveHint": True} if spec.deletes else {}),
        "idempotentHint": True,
        "openWorldHint": spec.open_world,
    }
    return {
        "name": spec.name,
        "title": spec.title,
        "icons": [icon(spec.icon)],
        "description": spec.description,
        "inputSchema": spec.input_schema,
        "annotations": hints,
        "_meta": meta,
        **({"outputSchema": _OUTPUT} if settings.views.structured else {}),
    }

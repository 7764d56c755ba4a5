"""The view as an MCP App (ext-apps, 2026-01-26): a page that hosts show beside a result.

The names are those of ``mcp.server.apps``, whose import would cost the start of the server 0.1 s.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import mcp_types as types

EXTENSION = "io.modelcontextprotocol/ui"
VIEW_URI = "ui://fetchstash/view.html"
TOOLS = ("fetch_content", "artifact_info")
"""The tools whose results the view opens."""
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

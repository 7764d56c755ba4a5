"""The tools as ``tools/list`` shows them: the JSON of MCP, without the SDK, which is heavy."""

from typing import Any

from fetchstash.config import Settings
from fetchstash.render import FRAME_CHARS
from fetchstash.server._app import TOOL_META, TOOLS
from fetchstash.server._icons import ICONS
from fetchstash.server.tools import ToolSpec, tool_specs

_OUTPUT = {
    "type": "object",
    "properties": {"result": {"type": "string"}},
    "required": ["result"],
}


def listed_tools(settings: Settings) -> list[dict[str, Any]]:
    """Return all tools."""
    return [_tool(spec, settings) for spec in tool_specs(settings)]


def _tool(spec: ToolSpec, settings: Settings) -> dict[str, Any]:
    meta: dict[str, Any] = {"anthropic/searchHint": spec.search_hint}
    if settings.profile in ("auto", "claude-code") and spec.body and not settings.output_is_bounded:
        # Claude Code spills longer results to a file; this raises its limit to ours, and above
        # the one that its user may have set. Other hosts do not read it.
        meta["anthropic/maxResultSizeChars"] = settings.views.max_chars_ceiling + FRAME_CHARS
    if spec.name in TOOLS:
        meta |= TOOL_META
    hints = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": spec.open_world}
    return {
        "name": spec.name,
        "title": spec.title,
        "icons": [ICONS[spec.name]],
        "description": spec.description,
        "inputSchema": spec.input_schema,
        "annotations": hints,
        "_meta": meta,
        **({"outputSchema": _OUTPUT} if settings.views.structured else {}),
    }

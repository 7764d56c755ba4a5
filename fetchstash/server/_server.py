"""The server: MCP requests in, views of a Stash's values out."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import mcp_types as types
from mcp.server import CacheHint, Server

from fetchstash import __version__
from fetchstash.server import _resources
from fetchstash.server._lazy import Context, StashSource
from fetchstash.server._listing import EXTENSION, ICON, listed_tools
from fetchstash.server.tools import tool_specs

# The lists of tools, prompts and templates never change while the server runs; artifacts belong to
# the caller.
_LASTING = CacheHint(ttl_ms=3_600_000, scope="public")
_INSTRUCTIONS = (
    "Fetch with fetch_content. What does not fit comes as a preview and an artifact_ref: find the "
    "place with artifact_grep or artifact_search, and read just that with artifact_slice or "
    "get_search_content."
)


def build_server(stash: StashSource, *, announces: bool = True) -> Server[StashSource]:
    """Return a server of both protocol eras; when it ends it closes ``stash``.

    ``announces``: its clients are told of new artifacts. Those of several tenants are not.
    """
    settings = stash.settings
    specs = {spec.name: spec for spec in tool_specs(settings)}
    tools = [types.Tool.model_validate(tool) for tool in listed_tools(settings)]
    announcer = _resources.Announcer() if announces else None

    @asynccontextmanager
    async def lifespan(_: Server[StashSource]) -> AsyncGenerator[StashSource]:
        try:
            yield stash
        finally:
            await stash.aclose()

    async def list_tools(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        from fetchstash.server._call import answer_call  # noqa: PLC0415 - imports all the rooms

        return await answer_call(specs, announcer, ctx, params)

    async def roots_changed(ctx: Context, _: types.NotificationParams) -> None:
        ctx.lifespan_context.forget_roots()

    server = Server(
        "fetchstash",
        version=__version__,
        title="fetchstash",
        icons=[types.Icon.model_validate(ICON)],
        instructions=_INSTRUCTIONS,
        lifespan=lifespan,
        # No schema of ours binds an argument to a header (x-mcp-header): the SDK need not look for
        # one in them with each call over HTTP.
        get_tool_input_schema=lambda _: None,
        cache_hints={
            "tools/list": _LASTING,
            "prompts/list": _LASTING,
            "resources/templates/list": _LASTING,
            "server/discover": _LASTING,
        },
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=_resources.list_resources,
        on_list_resource_templates=_resources.list_templates,
        on_read_resource=_resources.read_resource,
        on_subscriptions_listen=announcer.listen if announcer else None,
        on_list_prompts=_resources.list_prompts,
        on_get_prompt=_resources.get_prompt,
        on_completion=_resources.complete,
    )
    server.extensions[EXTENSION] = {}
    # Not as an argument: roots are of the handshake era, and the SDK warns of them.
    changed = "notifications/roots/list_changed"
    server.add_notification_handler(changed, types.NotificationParams, roots_changed)
    return server

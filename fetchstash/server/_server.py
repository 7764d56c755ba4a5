"""The server: MCP requests in, views of a Stash's values out."""

import logging
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server import CacheHint, Server

from fetchstash import __version__, telemetry
from fetchstash.errors import FetchstashError, Internal, Refused, StoreError
from fetchstash.render import View, error_view
from fetchstash.server import _prompts, _resources
from fetchstash.server._app import EXTENSION
from fetchstash.server._asking import InputNeeded
from fetchstash.server._icons import ICONS
from fetchstash.server._lazy import Context, StashSource
from fetchstash.server._listing import listed_tools
from fetchstash.server._progress import reports_to
from fetchstash.stash import with_views
from fetchstash.tools import Reports, ToolSpec, answer, tool_named, tool_specs

_TAKING_IN = ("fetch_content", "stash_file")
# The lists of tools, prompts and templates never change while the server runs; artifacts belong to
# the caller.
_LASTING = CacheHint(ttl_ms=3_600_000, scope="public")
_INSTRUCTIONS = (
    "Fetch with fetch_content. What does not fit comes as a preview and an artifact_ref: find the "
    "place with artifact_grep or artifact_search, and read just that with artifact_slice or "
    "get_search_content."
)
_log = logging.getLogger("fetchstash.server")


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
        async with anyio.create_task_group() as tasks:

            def send(progress: float, total: float | None, message: str) -> None:
                tasks.start_soon(ctx.session.report_progress, progress, total, message)

            try:
                view, meta = await _answer(specs, ctx, params, reports_to(send))
            except InputNeeded as needed:
                return needed.result
            if announcer and params.name in _TAKING_IN:
                await announcer.fetched(ctx, view.facts)
            return _result(view, meta, structured=settings.views.structured)
        raise AssertionError  # a task group passes every exception on; type checkers cannot know

    async def roots_changed(ctx: Context, _: types.NotificationParams) -> None:
        ctx.lifespan_context.forget_roots()

    server = Server(
        "fetchstash",
        version=__version__,
        title="fetchstash",
        icons=[types.Icon.model_validate(ICONS["fetchstash"])],
        instructions=_INSTRUCTIONS,
        lifespan=lifespan,
        # Else the SDK makes and checks the whole list of tools for each call over HTTP.
        get_tool_input_schema=lambda name: specs[name].input_schema if name in specs else None,
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
        on_list_prompts=_prompts.list_prompts,
        on_get_prompt=_prompts.get_prompt,
        on_completion=_resources.complete,
    )
    server.extensions[EXTENSION] = {}
    # Not as an argument: roots are of the handshake era, and the SDK warns of them.
    changed = "notifications/roots/list_changed"
    server.add_notification_handler(changed, types.NotificationParams, roots_changed)
    return server


async def _answer(
    tools: Mapping[str, ToolSpec],
    ctx: Context,
    params: types.CallToolRequestParams,
    reports: Reports,
) -> tuple[View, dict[str, Any]]:
    """Answer a call. Every failure becomes one line, with its facts for ``_meta``."""
    host, arguments = ctx.lifespan_context.host(ctx), params.arguments or {}
    try:
        tool = tool_named(params.name, tools)
        stash = await ctx.lifespan_context.get(ctx, params.input_responses)
        stash = with_views(stash, host.limits)
        return await _with_person(
            ctx, params, lambda: answer(stash, host, tool, arguments, reports)
        ), {}
    except InputNeeded:
        raise
    except FetchstashError as caught:
        telemetry.count("refusals", code=caught.code)
        if isinstance(caught, StoreError):
            _log.warning("%s: %s", params.name, caught)
        error = host.shown(caught)
    except Exception:  # noqa: BLE001 - a fault of ours must not end the server
        _log.exception("%s failed", params.name)
        error = Internal(
            "Something went wrong inside fetchstash.",
            "Try again; the server's log has the details.",
        )
    return error_view(error), {"fetchstash/error": {"code": error.code, **error.details}}


async def _with_person(
    ctx: Context, params: types.CallToolRequestParams, run: Callable[[], Awaitable[View]]
) -> View:
    """Answer a call; where a private host is refused, ask the person, and answer it again."""
    allows, answers = ctx.lifespan_context.person_allows, params.input_responses
    try:
        view = await run()
    except Refused as refused:
        if not await allows(ctx, answers, [refused.details]):
            raise
        return await run()
    failures = [cast("Mapping[str, Any]", r["error"]) for r in view.records if "error" in r]
    return await run() if await allows(ctx, answers, failures) else view


def _result(view: View, meta: dict[str, Any], *, structured: bool) -> types.CallToolResult:
    # The SDK dies of a lone surrogate. Stored text has none; an error may quote what the model
    # sent.
    data = view.text.encode("utf-8", "replace")
    telemetry.count("bytes_out", len(data))
    text = data.decode("utf-8")
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    content += [
        types.ImageContent(
            type="image", data=b64encode(picture).decode("ascii"), mime_type=media_type
        )
        for picture, media_type in view.pictures
    ]
    return types.CallToolResult(
        content=content,
        structured_content={"result": text} if structured and not view.is_error else None,
        is_error=view.is_error,
        _meta={"fetchstash/artifact": list(view.facts), **meta},
    )

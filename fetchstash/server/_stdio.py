"""The server: MCP requests in, views of a Stash's values out; served over stdio."""

import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import cache
from importlib import import_module

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server import CacheHint, NotificationOptions, Server
from mcp.server.context import HandlerResult
from mcp.shared.message import SessionMessage

from fetchstash import __version__
from fetchstash.config import Settings
from fetchstash.server import _resources
from fetchstash.server._lazy import Context, LazyStash, StashSource
from fetchstash.server._listing import EXTENSION, ICON, listed_tools
from fetchstash.server._streams import LineWriter, claim_streams, hide_memory, read_lines
from fetchstash.server._wire import Received, Write, relayed
from fetchstash.server.tools import ToolSpec, tool_specs

# The lists of tools, prompts and templates never change while the server runs. What tools there are
# may differ from tenant to tenant.
_LASTING = CacheHint(ttl_ms=3_600_000, scope="public")
_LASTING_FOR_ONE = CacheHint(ttl_ms=3_600_000, scope="private")
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
    announcer = _resources.Announcer() if announces else None

    @cache
    def tools(*, delete: bool) -> tuple[Mapping[str, ToolSpec], list[types.Tool]]:
        offered = replace(settings, tenant=replace(settings.tenant, delete=delete))
        listed = [types.Tool.model_validate(tool) for tool in listed_tools(offered)]
        return {spec.name: spec for spec in tool_specs(offered)}, listed

    def tools_of(ctx: Context) -> tuple[Mapping[str, ToolSpec], list[types.Tool]]:
        return tools(delete=ctx.lifespan_context.may_delete(ctx))

    tools(delete=settings.tenant.delete)  # before the first host asks

    @asynccontextmanager
    async def lifespan(_: Server[StashSource]) -> AsyncGenerator[StashSource]:
        try:
            yield stash
        finally:
            await stash.aclose()

    async def list_tools(
        ctx: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools_of(ctx)[1])

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> HandlerResult:
        from fetchstash.server._call import answer_call  # noqa: PLC0415 - imports all the rooms

        return await answer_call(tools_of(ctx)[0], announcer, ctx, params)

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
            "tools/list": _LASTING_FOR_ONE if settings.tools_differ else _LASTING,
            "prompts/list": _LASTING,
            "resources/templates/list": _LASTING,
            "server/discover": _LASTING,
        },
        on_list_tools=list_tools,
        on_list_resources=_resources.list_resources,
        on_list_resource_templates=_resources.list_templates,
        on_read_resource=_resources.read_resource,
        on_subscriptions_listen=announcer.listen if announcer else None,
        on_list_prompts=_resources.list_prompts,
        on_get_prompt=_resources.get_prompt,
        on_completion=_resources.complete,
    )
    # Not as arguments: a result that is no type of the SDK, and roots, of which it warns.
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    server.extensions[EXTENSION] = {}
    changed = "notifications/roots/list_changed"
    server.add_notification_handler(changed, types.NotificationParams, roots_changed)
    return server


@contextmanager
def transport() -> Generator[tuple[AsyncIterator[Received], Write]]:
    """Yield the streams of incoming and outgoing messages; restore stdin and stdout at the end.

    Writing raises OSError when the host has closed our stdout.
    """
    streams = stdin, stdout = claim_streams()
    writer = LineWriter(stdout)

    async def write(messages: Sequence[SessionMessage]) -> None:
        await writer.write(*map(_line, messages))

    try:
        yield _messages(stdin), write
    finally:
        for standard, stream in enumerate(streams):
            os.dup2(stream, standard)


async def _messages(stdin: int) -> AsyncGenerator[Received]:
    """Yield incoming messages; for an invalid line, its error."""
    async for line in read_lines(stdin):
        try:
            text = line.decode("utf-8", "replace")
            message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
            yield SessionMessage(message)
        except ValueError as error:
            yield error


def _line(message: SessionMessage) -> bytes:
    json = message.message.model_dump_json(by_alias=True, exclude_unset=True)
    return json.encode() + b"\n"


_log = logging.getLogger("fetchstash.server")


async def serve_stdio(settings: Settings) -> None:
    """Serve until the host closes our stdin or ends us, then close the store."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("fetchstash.fetch").setLevel(logging.INFO)  # what a refused request was told
    hide_memory()
    stash = LazyStash(settings, owns_process=True)
    server = build_server(stash)
    try:
        async with anyio.create_task_group() as tasks:
            if sys.platform != "win32":
                tasks.start_soon(_end_on_signal, stash)
            with transport() as streams:
                async with relayed(*streams) as (incoming, outgoing, listed):
                    tasks.start_soon(_import_rooms, listed, settings)
                    changes = NotificationOptions(resources_changed=True)
                    options = server.create_initialization_options(changes)
                    await server.run(incoming, outgoing, options)
            tasks.cancel_scope.cancel()
    except* BrokenPipeError:
        _log.info("The host has closed our stdout: nobody is left to answer.")
        await stash.aclose()
        os._exit(0)  # for the same reason as in _end_on_signal


async def _import_rooms(listed: anyio.Event, settings: Settings) -> None:
    """Import the packages that a call needs, after the host was sent its tools."""
    await listed.wait()
    await anyio.to_thread.run_sync(import_module, "fetchstash.server._call")
    handlers = await anyio.to_thread.run_sync(import_module, "fetchstash.handlers")
    handlers.warn_unconfined(settings.extract)


async def _end_on_signal(stash: LazyStash) -> None:
    """Close the stash and exit at once.

    The thread that reads stdin blocks until the host writes, so no task could end it.
    """
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            await stash.aclose()
            os._exit(128 + number)

"""Serve over stdin and stdout. Only JSON-RPC goes to stdout."""

import logging
import os
import signal
import sys
from importlib import import_module

import anyio
import anyio.to_thread
from mcp.server import NotificationOptions

from fetchstash.config import Settings
from fetchstash.server._lazy import LazyStash
from fetchstash.server._memory import hide_memory
from fetchstash.server._server import build_server
from fetchstash.server._transport import transport
from fetchstash.server._wire import relayed

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
            async with transport() as streams, relayed(*streams) as (incoming, outgoing, listed):
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
    """Import what a call needs once the host has the tools, so that neither waits for it."""
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

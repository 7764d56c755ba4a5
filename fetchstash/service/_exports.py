"""What leaves the service beside its answers: metrics on an address of their own, and traces."""

import contextlib
import logging
import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from fetchstash.config import Settings
from fetchstash.fetch import join_host_port
from fetchstash.service._bounds import bounded_server
from fetchstash.service._listen import host_and_port, listener
from fetchstash.service._metrics import METRICS_PATH, Metrics
from fetchstash.service._traces import tracer_provider
from fetchstash.system import telemetry

_log = logging.getLogger("fetchstash.service")
_FLUSH_SECONDS = 5
"""For the last spans to reach a collector, which may be gone."""


@asynccontextmanager
async def exports(settings: Settings) -> AsyncGenerator[str]:
    """Serve metrics and send traces while the context is open; yield the URL of the metrics or "".

    Raises BadArgument for an address that cannot be had, and where a library is missing.
    """
    address = settings.http.metrics
    metrics = Metrics.open(settings.http.hosts) if address else None
    tracers = tracer_provider(os.environ)
    provider = metrics.provider if metrics else None
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(telemetry.exporting(provider, tracers))
        place = await stack.enter_async_context(_served(metrics, address)) if metrics else ""
        if place:
            _log.info("The metrics are at %s.", place)
        try:
            yield place
        finally:
            if tracers:
                # The end of the process waits for every thread that is no daemon.
                flush = threading.Thread(target=tracers.shutdown, daemon=True)
                flush.start()
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(flush.join, _FLUSH_SECONDS)


@asynccontextmanager
async def _served(metrics: Metrics, address: str) -> AsyncGenerator[str]:
    """Answer requests for metrics; yield their URL."""
    host, port = host_and_port(address, "http.metrics")
    opened = listener(host, port, "http.metrics")
    place = join_host_port(host, opened.getsockname()[1])
    server = bounded_server(metrics, lifespan="off")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [opened])
        try:
            yield f"http://{place}{METRICS_PATH}"
        finally:
            server.should_exit = True

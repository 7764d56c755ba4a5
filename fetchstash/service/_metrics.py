"""Metrics: what telemetry measures, as Prometheus reads it, on an address of its own.

The text names tools, error codes, kinds of documents and the tenants of the settings; no content,
no URL and no principal.
"""

import ipaddress
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from fetchstash.errors import BadArgument
from fetchstash.service._resource import resource

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from prometheus_client import CollectorRegistry

METRICS_PATH = "/metrics"


class Metrics:
    """An ASGI application that answers ``GET /metrics``; ``provider`` takes what is measured.

    Whoever reaches its address may read it, so it asks for no token.
    """

    def __init__(
        self, provider: "MeterProvider", registry: "CollectorRegistry", hosts: Sequence[str]
    ) -> None:
        self.provider = provider
        self._registry = registry
        self._hosts = frozenset(map(_name, hosts)) | {"localhost"}

    @classmethod
    def open(cls, hosts: Sequence[str]) -> "Metrics":
        """Make the instruments' provider; ``hosts`` are the names that a request may use.

        Raises BadArgument where OpenTelemetry is missing.
        """
        try:
            from opentelemetry.exporter.prometheus import (  # noqa: PLC0415 - extra
                PrometheusMetricReader,
            )
            from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - extra
            from prometheus_client import CollectorRegistry  # noqa: PLC0415 - extra
        except ImportError:
            what = "http.metrics is set, and OpenTelemetry's exporter is not installed."
            raise BadArgument(what, 'Run: pip install "fetchstash[team]".') from None
        registry = CollectorRegistry()
        reader = PrometheusMetricReader(scope_info_enabled=False, registry=registry)
        provider = MeterProvider([reader], resource(), shutdown_on_exit=False)
        _watch_process(provider)
        return cls(provider, registry, hosts)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        from prometheus_client import generate_latest  # noqa: PLC0415 - extra

        return generate_latest(self._registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        assert scope["type"] == "http"  # the server sends no lifespan events
        await (await self._answer(scope))(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response:
        if scope["path"] != METRICS_PATH:
            return PlainTextResponse(f"The metrics are at {METRICS_PATH}.\n", 404)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("Use GET.\n", 405, {"allow": "GET, HEAD"})
        host = _name(Headers(scope=scope).get("host", ""))
        if host not in self._hosts and not _is_address(host):
            # A page in a browser that rebinds its name to our address sends that name.
            return PlainTextResponse("Ask by an address, or a name of http.hosts.\n", 421)
        content = await anyio.to_thread.run_sync(self.text)
        return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")


def _watch_process(provider: "MeterProvider") -> None:
    """Measure this process: prometheus_client's own collector needs more of /proc than a unit has.

    The names are OpenTelemetry's.
    """
    from opentelemetry.metrics import CallbackOptions, Observation  # noqa: PLC0415 - with the SDK

    def memory(_: CallbackOptions) -> Iterable[Observation]:
        with suppress(OSError):  # other systems than Linux have no such file
            resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            yield Observation(resident * os.sysconf("SC_PAGE_SIZE"))

    def cpu(_: CallbackOptions) -> Iterable[Observation]:
        yield Observation(time.process_time())

    def uptime(_: CallbackOptions) -> Iterable[Observation]:
        yield Observation(time.monotonic() - started)

    started, meter = time.monotonic(), provider.get_meter("fetchstash")
    meter.create_observable_up_down_counter("process.memory.usage", [memory], "By", "Resident")
    meter.create_observable_counter("process.cpu.time", [cpu], "s", "Processor time")
    meter.create_observable_gauge("process.uptime", [uptime], "s", "Time since the start")


def _name(host: str) -> str:
    """Return a host without its port and brackets."""
    name, _, port = host.rpartition(":")
    return (name if port.isdecimal() else host).strip("[]").lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

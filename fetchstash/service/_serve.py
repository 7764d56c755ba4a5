"""The application with its layers, and the server that runs it.

An id, a span and a line of log (``Observed``), Host and Origin (``HostCheck``), then by path.
/healthz and /readyz are open to everybody, and so is the metadata of OAuth. /mcp: ``Endpoint``, and
the SDK's own transport, without sessions.
"""

import gc
import logging
import math
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from fetchstash.config import HttpLimits, Settings
from fetchstash.errors import BadArgument, FetchstashError, Internal
from fetchstash.fetch import HttpFetcher, tls_context
from fetchstash.handlers import ExtractLimits, Hints, WorkerPool, route_file, warn_unconfined
from fetchstash.server import build_server, hide_memory
from fetchstash.server.tools import tool_specs
from fetchstash.service._endpoint import CancelElsewhere, Endpoint
from fetchstash.service._exports import Measure, exports, serving_metrics
from fetchstash.service._listen import (
    IDLE_SECONDS,
    allow_files,
    backlog,
    bounded_server,
    check_certificate,
    check_exposure,
    check_names,
    host_and_port,
    invalid_now,
    is_loopback,
    listener,
    protocol_of,
    security_of,
)
from fetchstash.service._observed import HostCheck, Observed, ObservedCalls, log_to
from fetchstash.service._quota import Quotas
from fetchstash.service._request import AuditLog
from fetchstash.service._tenants import Tenants
from fetchstash.service._upkeep import Upkeep
from fetchstash.service._workers import Channel, Job, Parent, end_signals, worker_count
from fetchstash.service.access import (
    OwnTokens,
    Verifier,
    metadata_paths,
    resource_metadata,
    verifier as verifier_by,
)
from fetchstash.store import DEFAULT_RUN, Objects, open_objects
from fetchstash.text.untyped import as_object
from fetchstash.text.urls import join_host_port

_log = logging.getLogger("fetchstash.service")

_STORE_SECONDS, _WORKER_SECONDS = 5.0, 60.0
"""An answer holds so long: whoever asks /readyz needs no token, and every check costs."""


class Readiness:
    """Checks the dependencies of calls; each check is repeated when its last result is old."""

    def __init__(self, objects: Objects, limits: ExtractLimits, audit: AuditLog) -> None:
        self._objects = objects
        self._audit = audit
        self._limits = limits
        self._lock = anyio.Lock()
        self._answers: dict[object, tuple[float, str]] = {}

    async def reason(self) -> str:
        """Return the failing dependency's code, "" if none fails. The log has the details."""
        async with self._lock:
            for check, seconds in (
                (self._use_store, _STORE_SECONDS),
                (self._start_worker, _WORKER_SECONDS),
            ):
                made_at, reason = self._answers.get(check, (-math.inf, ""))
                if time.monotonic() - made_at >= seconds:
                    try:
                        reason = await check()
                    except (FetchstashError, OSError) as error:
                        _log.warning("Not ready: %s", error)
                        reason = getattr(error, "code", "store_error")
                    else:
                        if reason:
                            _log.warning("Not ready: %s", reason)
                    self._answers[check] = time.monotonic(), reason
                if reason:
                    return reason
        return ""

    async def _use_store(self) -> str:
        if not self._audit.takes_lines():
            return "audit_log"
        return await self._objects.failing()

    async def _start_worker(self) -> str:
        with tempfile.TemporaryDirectory() as name:
            text = Path(name, "text")
            await anyio.Path(text).write_text("a line\n", encoding="utf-8")
            pool = WorkerPool(self._limits)
            try:
                decision = route_file(text, {}, "a.txt")
                read = await pool.extract(text, decision, Hints(), Path(name))
            finally:
                await pool.aclose()
        return "worker_failed" if read.extraction_error or read.chars == 0 else ""


MCP_PATH = "/mcp"
_PROBES = frozenset({"/healthz", "/readyz"})


@dataclass(frozen=True, slots=True)
class Service:
    """The ASGI application, with the lifespan that closes the stashes and the app for /mcp."""

    app: ASGIApp
    endpoint: Endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


def build_app(
    tenants: Tenants,
    security: TransportSecuritySettings,
    *,
    verifier: Verifier | None = None,
    ready: Callable[[], Awaitable[str]] | None = None,
    audit: AuditLog | None = None,
    name: str = "",
    cancel_elsewhere: CancelElsewhere | None = None,
) -> Service:
    """Return the application. Its lifespan closes ``tenants``.

    Without ``verifier`` everybody is the tenant "local". ``ready`` says why calls cannot be
    answered now, "" if they can. ``name`` is that of a worker, which /readyz names, and
    ``cancel_elsewhere`` is given the calls that a client cancels and that do not run here.
    """
    http, oauth = tenants.settings.http, tenants.settings.oauth
    server = build_server(tenants, announces=False)
    # In place of the SDK's own span, which quotes errors.
    every = replace(tenants.settings, tenant=replace(tenants.settings.tenant, delete=True))
    tools = {spec.name: spec for spec in tool_specs(every)}
    server.middleware[:] = [ObservedCalls(frozenset(tools), audit)]
    manager = partial(
        StreamableHTTPSessionManager,
        server,
        stateless=True,
        # HostCheck has looked at Host and Origin.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=http.max_body_bytes,
    )
    answers, streams = manager(json_response=True), manager()

    def stream_for(message: Mapping[str, Any]) -> ASGIApp | None:
        params: dict[str, Any] = message.get("params") or {}
        meta, tool = params.get("_meta"), tools.get(str(params.get("name")))
        if tool is None or not isinstance(meta, dict) or "progressToken" not in meta:
            return None
        arguments = as_object(params.get("arguments"))
        return streams.asgi_app if tool.reports(arguments) else None

    endpoint = Endpoint(
        answers.asgi_app, http, oauth, tenants, verifier, cancel_elsewhere, stream_for
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with answers.run(), streams.run():
            yield

    async def metadata(_: Request) -> Response:  # where to get a token (RFC 9728, section 3)
        return JSONResponse(resource_metadata(oauth))

    async def alive(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readiness(_: Request) -> Response:
        reason = "shutting down" if endpoint.is_draining else ""
        if ready and not reason:
            reason = await ready()
        line = f"{name}: {reason}" if reason and name else reason or "ok"
        return PlainTextResponse(f"{line}\n", 503 if reason else 200)

    others = Starlette(
        routes=[
            Route("/healthz", alive),
            Route("/readyz", readiness),
            *(Route(path, metadata) for path in metadata_paths(oauth)),
            Route(MCP_PATH, endpoint),  # for those who add a slash
        ],
        lifespan=lifespan,
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # Starlette's layers for errors and routes would take as long as ours together.
        is_mcp = scope["type"] == "http" and scope["path"] == MCP_PATH
        await (endpoint if is_mcp else others)(scope, receive, send)

    shared: ASGIApp = app
    if http.origins:
        shared = CORSMiddleware(
            app,
            allow_origins=http.origins,
            allow_methods=["POST"],
            allow_headers=["*"],
            expose_headers=["mcp-session-id", "www-authenticate"],
        )
    return Service(Observed(HostCheck(shared, security, _PROBES)), endpoint)


_SWITCH_SECONDS = 0.0005
"""In which a thread that searches lets the event loop on. A request needs the loop some twenty
times, and with Python's own 5 ms each search of another would cost it 0.1 s.
"""

_CLOSE_SECONDS = 2
"""For connections to close once their calls have ended."""


async def verifier_of(settings: Settings, objects: Objects) -> Verifier | None:
    """Return the verifier of tokens, None if no token was ever made and no provider is set."""
    known = verifier_by(settings, objects)
    return known if settings.oauth.issuer or await OwnTokens(objects).were_made() else None


def warnings_of(settings: Settings, host: str) -> Iterator[str]:
    """Yield warnings for the operator at the start."""
    http, store = settings.http, settings.store
    if http.tls_cert and (reason := invalid_now(http.tls_cert)):
        yield f"Clients will refuse the certificate {http.tls_cert}: {reason}."
    if not (http.tls_cert or http.forwarded or is_loopback(host)):
        yield f"Tokens reach {host} in clear: set http.tls_cert, or name a proxy in http.forwarded."
    if store.catalog and not store.url:
        yield f"No other machine sees the bytes in {store.folder}: name a place in store.url."


async def serve_http(settings: Settings, address: str, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP, and let calls in flight end.

    ``announce`` is given one line once the service answers. Raises BadArgument for an address that
    cannot be had, a certificate that cannot be read, and what would let in anybody.
    """
    log_to()
    allow_files()
    http = settings.http
    host, port = host_and_port(address)
    workers = worker_count(settings)
    check_names(http)
    check_certificate(http)
    check_tenants(settings)
    settings = for_clients_elsewhere(settings)
    objects = await open_objects(settings.store)
    asks_for_tokens = await verifier_of(settings, objects) is not None
    await objects.aclose()
    check_exposure(http, host, asks_for_tokens=asks_for_tokens)
    for warning in warnings_of(settings, host):
        _log.warning("%s", warning)
    opened = listener(host, port)
    AuditLog.of(http.audit_log)
    warn_unconfined(settings.extract)
    place = join_host_port(host, opened.getsockname()[1])
    scheme = "https" if http.tls_cert else "http"
    whom = (
        "who sends a token" if asks_for_tokens else "the one user of this machine, without tokens"
    )
    line = f"fetchstash serves MCP at {scheme}://{place}{MCP_PATH} to {whom}."

    def ready() -> None:
        try:
            announce(line)
        except OSError as error:  # a full disk behind stdout ends no service
            _log.warning("The address of the service was not printed: %s.", error.strerror)

    if workers > 1:
        await Parent(settings, host, opened, workers).run(ready)
        return
    async with exports(settings) as measure, serving_metrics(http, measure):
        with end_signals() as ends:
            await _serve(settings, host, opened, ends, ready)


async def serve_as_worker(job: Job, channel: Channel, opened: socket.socket) -> None:
    """Serve as a worker of a service, until the parent stops it or ends."""
    log_to(worker=job.number)
    send, ends = anyio.create_memory_object_stream[str](100)
    services: list[Service] = []
    measure: Measure | None = None

    def take(kind: str, value: Any) -> None:
        if kind == "end":
            with suppress(anyio.ClosedResourceError):  # this worker ends already
                send.send_nowait(kind)
        elif kind == "cancel":
            for service in services:
                service.endpoint.cancel(value)
        elif kind == "measure":
            tasks.start_soon(tell)

    async def tell() -> None:
        channel.send("measured", await measure() if measure else "")

    async with anyio.create_task_group() as tasks, send, ends:
        channel.listen(take, lambda: os._exit(1))  # the parent was killed, and the service with it
        try:
            async with exports(job.settings) as measure:
                place = job.settings, job.host, opened, ends
                await _serve(*place, lambda: channel.send("ready"), (job, channel), services.append)
        except FetchstashError as error:
            channel.send("failed", error)
        tasks.cancel_scope.cancel()
    channel.close()


async def _serve(
    settings: Settings,
    host: str,
    opened: socket.socket,
    ends: AsyncIterator[object],
    ready: Callable[[], None],
    worker: tuple[Job, Channel] | None = None,
    on_service: Callable[[Service], None] = lambda _: None,
) -> None:
    """Serve on a socket that listens until ``ends`` has something. Calls in flight end."""
    hide_memory()
    allow_files()
    sys.setswitchinterval(_SWITCH_SECONDS)
    http = settings.http
    objects = await open_objects(settings.store)
    verifier = await verifier_of(settings, objects)
    audit = AuditLog.of(http.audit_log, begins=False)
    workers = worker[0].workers if worker else 1
    quotas = Quotas(objects.counts)
    tenants = Tenants(settings, quotas, audit=audit, apart=verifier is not None, workers=workers)
    service = build_app(
        tenants,
        security_of(http, host, opened.getsockname()[1]),
        verifier=verifier,
        ready=Readiness(objects, settings.extract, audit).reason,
        audit=audit,
        name=f"worker {worker[0].number}" if worker else "",
        cancel_elsewhere=partial(worker[1].send, "cancel") if worker else None,
    )
    on_service(service)
    server = server_of(service, http, **({"backlog": 1} if worker else {}))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on, ends, server, service)
        tasks.start_soon(_announce, server, opened, ready)
        if verifier:
            tasks.start_soon(tenants.run)
        if settings.store.url != "memory:":
            tasks.start_soon(Upkeep(settings, objects).run)
        await server.serve([opened])
        tasks.cancel_scope.cancel()
    await objects.aclose()
    if not server.started:
        raise Internal("The service could not be started.", "Its log has the details.")


def check_tenants(settings: Settings) -> None:
    """Refuse rules of fetching that cannot be read, and quotas that the store does not allow.

    Over such a quota it would evict what is kept before its date, and never refuse. Both hold for
    each tenant. Raises BadArgument.
    """
    tls_context(settings.fetch.ca_file)
    for name in ("", *settings.tenants):
        own = settings.for_tenant(name) if name else settings
        try:
            HttpFetcher(own.fetch)
        except BadArgument as error:
            what = f"The table [tenants.{name}] is wrong: {error.what}" if name else error.what
            raise BadArgument(what, error.next_step) from None
        for quota, limit in (("stored_bytes", "max_total_bytes"), ("artifacts", "max_artifacts")):
            asked, most = getattr(own.quota, quota), getattr(own.store, limit)
            if asked > most:
                where = f"tenants.{name}." if name else ""
                what = f"{where}quota.{quota} is {asked:,}, and store.{limit} is {most:,}."
                raise BadArgument(what, "Raise the limit of the store, or lower the quota.")


def server_of(service: Service, http: HttpLimits, **options: Any) -> uvicorn.Server:
    """Return a uvicorn server that leaves signals alone and bounds its connections.

    X-Forwarded-For and -Proto of the proxies of the settings are believed. ``options`` are
    uvicorn's.
    """
    app: Any = service
    return bounded_server(
        ProxyHeadersMiddleware(app, list(http.forwarded)) if http.forwarded else app,
        protocol_of(http),
        lifespan="on",
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=_CLOSE_SECONDS,
        **options,
    )


def for_clients_elsewhere(settings: Settings) -> Settings:
    """Return settings for remote clients: without a person to ask, a project or local files.

    Unless the operator says otherwise, workers must be confined and no browser is started.
    """
    values, extract = settings.values, settings.extract
    fetch = replace(settings.fetch, ask=False)
    if settings.origins["fetch.browser"] == "default":
        values = {**values, "fetch.browser": ("off",)}
        fetch = replace(fetch, browser=("off",))
    if settings.origins["extract.confine"] == "default":
        values = {**values, "extract.confine": "required"}
        extract = replace(extract, confine="required")
    return replace(
        settings,
        values=values,
        extract=extract,
        fetch=fetch,
        ingest=replace(settings.ingest, read_roots=()),
        store=replace(settings.store, run=DEFAULT_RUN, ephemeral=False),
    )


async def _announce(
    server: uvicorn.Server, opened: socket.socket, ready: Callable[[], None]
) -> None:
    while not server.started:  # noqa: ASYNC110 - it has no event
        await anyio.sleep(0.01)
    with suppress(OSError):  # the service ended meanwhile
        opened.listen(backlog())  # a worker has said 1, so that it accepts one at a time
    gc.freeze()  # modules stay: a full collection of them would stop every call for 0.1 s
    gc.set_threshold(10_000, 10, 10)  # at Python's 700, a fortieth of a short call
    ready()


async def _end_on(ends: AsyncIterator[object], server: uvicorn.Server, service: Service) -> None:
    """Drain at the first signal, end at the second."""
    async with anyio.create_task_group() as tasks:

        async def drain() -> None:
            await service.endpoint.drain()
            server.should_exit = True

        async for _ in ends:
            if service.endpoint.is_draining:
                server.should_exit = True
            else:
                tasks.start_soon(drain)

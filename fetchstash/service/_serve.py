"""Serve MCP over HTTP until SIGTERM, for one machine or for a team."""

import contextlib
import gc
import logging
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from typing import Any

import anyio
import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from fetchstash.config import HttpLimits, Settings
from fetchstash.errors import Internal
from fetchstash.fetch import HttpFetcher, browser_of, join_host_port
from fetchstash.handlers import warn_unconfined
from fetchstash.server import hide_memory
from fetchstash.service._app import MCP_PATH, Readiness, Service, build_app
from fetchstash.service._audit import AuditedFetcher, AuditedRenderer, AuditLog
from fetchstash.service._auth import security_of, verifier_of
from fetchstash.service._exports import exports
from fetchstash.service._listen import (
    IDLE_SECONDS,
    allow_files,
    bounded_server,
    check_certificate,
    check_exposure,
    check_fetching,
    check_names,
    host_and_port,
    invalid_now,
    listener,
    protocol_of,
    sends_tokens_in_clear,
)
from fetchstash.service._observed import log_to
from fetchstash.service._quota import Quotas
from fetchstash.service._tenant_store import metered
from fetchstash.service._tenants import Stashes, Tenants, TenantSource
from fetchstash.stash import Stash, open_stash
from fetchstash.store import DEFAULT_RUN, open_objects, open_store

_SWITCH_SECONDS = 0.0005
"""In which a thread that searches lets the event loop on. A request needs the loop some twenty
times, and with Python's own 5 ms each search of another would cost it 0.1 s.
"""

_CLOSE_SECONDS = 2
"""For connections to close once their calls have ended."""

_log = logging.getLogger("fetchstash.service")


class OneStash:
    """The Stash of a service without tenants."""

    def __init__(self, settings: Settings, audit: AuditLog | None = None) -> None:
        self._settings = settings
        self._audit = audit or AuditLog(None)
        self._stack = contextlib.AsyncExitStack()
        self._lock = anyio.Lock()
        self._stash: Stash | None = None

    async def stash(self, tenant: str) -> Stash:  # noqa: ARG002 - there is one
        """Return it, opened if need be."""
        if self._stash:
            return self._stash
        async with self._lock:
            if self._stash is None:
                self._stash = await self._stack.enter_async_context(self._opened())
            return self._stash

    @contextlib.asynccontextmanager
    async def _opened(self) -> AsyncGenerator[Stash]:
        limits, audit = self._settings.fetch, self._audit
        fetcher, store = HttpFetcher(limits), await open_store(self._settings.store)
        renderer = browser_of(fetcher, limits)
        opened = open_stash(
            self._settings,
            store=metered(store),
            fetcher=AuditedFetcher(fetcher, audit),
            renderer=AuditedRenderer(renderer, audit) if renderer else None,
        )
        try:
            async with opened as stash:
                yield stash
        finally:
            with anyio.CancelScope(shield=True):
                await store.aclose()
                await fetcher.aclose()

    def settings_of(self, tenant: str) -> Settings:  # noqa: ARG002 - as above
        """Return the settings."""
        return self._settings

    async def aclose(self) -> None:
        """Close it."""
        await self._stack.aclose()


async def serve_http(settings: Settings, address: str, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP, and let calls in flight end.

    ``announce`` is given one line once the service answers. Raises BadArgument for an address that
    cannot be had, a certificate that cannot be read, and what would let in anybody.
    """
    log_to()
    hide_memory()
    allow_files()
    sys.setswitchinterval(_SWITCH_SECONDS)
    http = settings.http
    host, port = host_and_port(address)
    check_names(http)
    check_certificate(http)
    if http.tls_cert and (reason := invalid_now(http.tls_cert)):
        _log.warning("Clients will refuse the certificate %s: %s.", http.tls_cert, reason)
    check_fetching(settings)
    settings = for_clients_elsewhere(settings)
    objects = await open_objects(settings.store)
    verifier = await verifier_of(settings, objects)
    check_exposure(http, host, asks_for_tokens=verifier is not None)
    if sends_tokens_in_clear(http, host):
        _log.warning(
            "Tokens reach %s unencrypted. Set http.tls_cert and http.tls_key, or name the proxy "
            "that ends TLS in http.forwarded.",
            host,
        )
    opened = listener(host, port)
    port = opened.getsockname()[1]
    audit = AuditLog.of(http.audit_log)
    warn_unconfined(settings.extract)
    tenants = Tenants(settings, Quotas(objects), audit=audit) if verifier else None
    stashes: Stashes = tenants or OneStash(settings, audit)
    service = build_app(
        TenantSource(settings, stashes),
        security_of(http, host, port),
        verifier=verifier,
        ready=Readiness(objects, settings.extract, audit).reason,
        audit=audit,
        tenants=tenants,
    )
    server = server_of(service, http)
    scheme = "https" if http.tls_cert else "http"
    whom = "who sends a token" if verifier else "the one user of this machine, without tokens"
    line = f"fetchstash serves MCP at {scheme}://{join_host_port(host, port)}{MCP_PATH} to {whom}."
    async with exports(settings), anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on_signal, server, service)
        tasks.start_soon(_announce, server, lambda: announce(line))
        if tenants:
            tasks.start_soon(tenants.run)
        await server.serve([opened])
        tasks.cancel_scope.cancel()
    await objects.aclose()
    if not server.started:
        raise Internal("The service could not be started.", "Its log has the details.")


def server_of(service: Service, http: HttpLimits) -> uvicorn.Server:
    """Return a server that leaves signals alone, and is bounded in what it takes."""
    return bounded_server(
        _behind(service, http.forwarded) if http.forwarded else service,
        protocol_of(http),
        lifespan="on",
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=_CLOSE_SECONDS,
    )


def _behind(service: Service, proxies: Sequence[str]) -> Any:
    """Return the service behind proxies, whose X-Forwarded-For and -Proto are believed."""
    inner: Any = service
    return ProxyHeadersMiddleware(inner, list(proxies))


def for_clients_elsewhere(settings: Settings) -> Settings:
    """Return the settings without what needs a person, a project or files at the server.

    Workers must be confined unless the operator says otherwise.
    """
    values, extract = settings.values, settings.extract
    if settings.origins["extract.confine"] == "default":
        values = {**values, "extract.confine": "required"}
        extract = replace(extract, confine="required")
    return replace(
        settings,
        values=values,
        extract=extract,
        fetch=replace(settings.fetch, ask=False),
        ingest=replace(settings.ingest, read_roots=()),
        store=replace(settings.store, run=DEFAULT_RUN, ephemeral=False),
    )


async def _announce(server: uvicorn.Server, announce: Callable[[], None]) -> None:
    while not server.started:  # noqa: ASYNC110 - it has no event
        await anyio.sleep(0.01)
    gc.freeze()  # modules stay: a full collection of them would stop every call for 0.1 s
    try:
        announce()
    except OSError as error:  # a full disk behind stdout ends no service
        _log.warning("The address of the service was not printed: %s.", error.strerror)


async def _end_on_signal(server: uvicorn.Server, service: Service) -> None:
    """Drain at the first signal, end at the second."""
    if sys.platform == "win32":
        return
    ends = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        ends.append(signal.SIGHUP)
    with anyio.open_signal_receiver(*ends) as signals:
        async with anyio.create_task_group() as tasks:

            async def drain() -> None:
                await service.drain()
                server.should_exit = True

            async for _ in signals:
                if service.is_draining:
                    server.should_exit = True
                else:
                    tasks.start_soon(drain)

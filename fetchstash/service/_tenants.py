"""The stashes of tenants: opened when asked for, shared, closed.

A tenant and a person are what the verified token says, and nothing else: no header, argument or
URL. A person has a run of the tenant's store, which _tenant_store.py lets others see or not. What a
tenant has of its own: settings, store (folder or prefix, with its key for the hashes of URLs, its
search index and spool), fetcher (connections, robots.txt, granted hosts), worker pools, call log
and event log. What it shares with others it takes turns at (_fair.py, _work.py).
"""

import gc
import logging
from collections.abc import Generator
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from fetchstash.config import QuotaLimits, Settings
from fetchstash.errors import Busy, Call, FetchstashError, Internal
from fetchstash.handlers import WorkerPool
from fetchstash.render import MODEL, Host, as_tool
from fetchstash.server import Answers, Context
from fetchstash.service._fair import RequestQueue
from fetchstash.service._quota import EXCHANGE_SECONDS, Quotas, limits_of
from fetchstash.service._request import REFUSAL, AuditLog, client_of, principal_of
from fetchstash.service._work import OfPerson, SharedLimits, open_service_stash
from fetchstash.service.access import FETCH, FOR_MORE, grants_scopes
from fetchstash.stash import Stash
from fetchstash.system import telemetry
from fetchstash.system.processes import processors

MAX_OPEN = 200
"""Tenants whose Stash is open. One more closes the one that was used least recently."""

IDLE_SECONDS = 300
_HERE = 128
_MOST_PERSONS = 1_000
"""Of one tenant, whose Stash is kept for the next call; it costs little to make."""

_log = logging.getLogger("fetchstash.service")
_WARM_POOLS = 8


def _as_reading_tool(call: Call) -> str:
    """Word a next step for a read-only token, which cannot get more rights by itself."""
    return FOR_MORE if call.action in ("fetch", "fetch_site", "delete") else as_tool(call)


_READER = replace(MODEL, word=_as_reading_tool)


@dataclass(slots=True)
class _Tenant:
    """A tenant that was asked for: its settings, and its Stash once it is open."""

    settings: Settings
    users: int = 0
    last: float = 0.0
    of_person: OfPerson | None = None
    stashes: dict[str, Stash] = field(default_factory=dict[str, Stash])
    pools: tuple[WorkerPool, ...] = ()
    opened: AsyncExitStack = field(default_factory=AsyncExitStack)
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class Tenants:
    """Gives each request the Stash of the tenant that its token names, and decides when it runs.

    If they are not ``apart``, all are the one user of this machine, without limits.
    """

    def __init__(
        self,
        settings: Settings,
        quotas: Quotas | None = None,
        *,
        audit: AuditLog | None = None,
        slots: int | None = None,
        max_open: int = MAX_OPEN,
        apart: bool = True,
        workers: int = 1,
    ) -> None:
        """``workers`` serve beside each other on this machine, and share its processors."""
        unlimited = QuotaLimits(requests_per_minute=0, fetched_bytes_per_day=0, hosts_per_minute=0)
        self.settings = settings if apart else replace(settings, quota=unlimited)
        self._quotas = quotas or Quotas()
        self._audit = audit or AuditLog(None)
        self.queue = RequestQueue(max(_HERE // workers, 8))
        self._shared = SharedLimits.of(
            slots or processors(), workers, self._quotas, settings.fetch, apart=apart
        )
        self._apart = apart
        self._max_open = max_open
        self._tenants: dict[str, _Tenant] = {}  # in the order of their last use
        self._closed = False

    def may_delete(self, ctx: Context) -> bool:
        """Return ``tenant.delete`` of the tenant that asks."""
        return self._tenant(principal_of(ctx).tenant).settings.tenant.delete

    def host(self, ctx: Context) -> Host:
        """Return the host that asks. No HTTP client shares our file system."""
        principal = principal_of(ctx)
        settings = self._tenant(principal.tenant).settings
        can_get_more = principal.issuer and grants_scopes(settings.oauth)
        front_end = MODEL if principal.may(FETCH) or can_get_more else _READER
        return Host(settings.views_for(client_of(ctx)), False, settings.context, front_end)

    async def get(self, ctx: Context, answers: Answers = None) -> Stash:  # noqa: ARG002 - none asked
        """Return the Stash of the request's principal. Raises Busy and OverQuota."""
        if ctx.request and (refusal := ctx.request.scope.get(REFUSAL)):
            raise refusal
        principal = principal_of(ctx)
        return await self.stash(principal.tenant, principal.run)

    async def person_allows(self, *_: Any, **__: Any) -> bool:
        """Return False: the network of a service is not its clients' to open."""
        return False

    def forget_roots(self) -> None:
        """No-op: remote clients are not asked for their roots."""

    def admit(self, tenant: str, person: str = "") -> None:
        """Count a request. Raises OverQuota, and Busy where too many of them are here.

        The one user of this machine has no limits.
        """
        if not self._apart:
            return
        quota = self._tenant(tenant).settings.quota
        self.queue.check(tenant, person, quota.person_part)
        limit, part = quota.requests_per_minute, quota.person_part
        self._quotas.request(limits_of(tenant, person, limit, part))

    @contextmanager
    def entered(self, tenant: str) -> Generator[None]:
        """Keep a tenant open meanwhile, and write the events of this task to its log alone."""
        known = self._tenant(tenant)
        known.users += 1
        try:
            with self._logging(known.settings):
                yield
        finally:
            known.users -= 1
            known.last = anyio.current_time()

    async def stash(self, tenant: str, person: str = "") -> Stash:
        """Return the Stash of the person of a run, or of the whole tenant, opened if need be.

        After a failure the next call tries. Raises Busy where too many tenants are in use.
        """
        known, person = self._tenant(tenant), person if self._apart else ""
        if known.of_person is None:
            with self.entered(tenant):
                async with known.lock:
                    if known.of_person is None:
                        known.of_person = await self._open(tenant, known)
        known.last = anyio.current_time()
        stash = known.stashes.pop(person, None) or known.of_person(person)
        known.stashes[person] = stash
        if len(known.stashes) > _MOST_PERSONS:
            del known.stashes[next(iter(known.stashes))]
        return stash

    async def _open(self, tenant: str, known: _Tenant) -> OfPerson:
        if self._closed:
            raise Internal("The service is ending.", "Try again: another will answer.")
        await self._make_room()
        opened, settings = AsyncExitStack(), known.settings
        of_person, known.pools = await opened.enter_async_context(
            open_service_stash(tenant, settings, self._shared, self._audit)
        )
        known.opened = opened
        return of_person

    def _logging(self, settings: Settings) -> AbstractContextManager[None]:
        log = settings.telemetry
        if not self._apart:  # the process has one log
            return nullcontext()
        return telemetry.logging_to(log.event_log, log.event_log_max_bytes)

    async def run(self) -> None:
        """Exchange counts with the other replicas and close what is idle, until cancelled."""
        is_frozen = False
        while True:
            await self._quotas.exchange()
            await self.close_idle(IDLE_SECONDS)
            used = any(known.of_person for known in self._tenants.values())
            await anyio.sleep(EXCHANGE_SECONDS)
            if used and not is_frozen:
                gc.freeze()  # the modules that the first calls have imported, too (_serve.py)
                is_frozen = True

    async def close_idle(self, seconds: float) -> None:
        """Close the tenants that nobody has used for so long. A store in memory would lose all."""
        if self.settings.store.url == "memory:":
            return
        before = anyio.current_time() - seconds
        for name, known in list(self._tenants.items()):
            if not known.users and known.last <= before:
                await self._close(name)

    async def aclose(self) -> None:
        """Close all tenants, and leave what was counted to the other replicas."""
        self._closed = True
        for name in list(self._tenants):
            await self._close(name)
        await self._quotas.exchange()  # the next replica goes on from there

    def _tenant(self, name: str) -> _Tenant:
        known = self._tenants.pop(name, None) or _Tenant(
            self.settings.for_tenant(name) if self._apart else self.settings
        )
        self._tenants[name] = known
        return known

    async def _make_room(self) -> None:
        """Close the tenant that was used least recently, if one more would be too many.

        Workers wait for documents in the pools of those alone that were used last.
        """
        opened = {name: known for name, known in self._tenants.items() if known.of_person}
        for known in list(opened.values())[:-_WARM_POOLS]:
            for pool in known.pools:
                pool.end_idle()
        if len(opened) < self._max_open:
            return
        idle = [name for name, known in opened.items() if not known.users]
        if not idle or self.settings.store.url == "memory:":
            what = f"{self._max_open} other tenants are in use at the moment."
            raise Busy(what, "Try again in 5 s.", retry_after_seconds=5)
        await self._close(idle[0])

    async def _close(self, name: str) -> None:
        """Close a tenant. While the service runs, one that is in use or being opened has users."""
        known = self._tenants.pop(name)
        opened, known.opened = known.opened, AsyncExitStack()
        known.of_person, known.pools = None, ()
        known.stashes.clear()
        with anyio.CancelScope(shield=True):
            try:
                await opened.aclose()
            except FetchstashError as error:  # the others are closed all the same
                _log.warning("The store of the tenant %s did not close: %s", name, error)

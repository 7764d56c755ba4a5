"""Let a tenant's requests in as far as its quota goes, and each in its turn."""

from starlette.types import ASGIApp, Receive, Scope, Send

from fetchstash.errors import Busy, OverQuota
from fetchstash.service._context import REFUSAL, principal_in
from fetchstash.service._replies import reply
from fetchstash.service._tenants import Tenants
from fetchstash.system import telemetry


class Admission:
    """Counts and orders the requests that have a principal.

    One that is over a quota goes on with its refusal, which the tool answers as ``[quota]`` or
    ``[busy]``, so that a model reads it; of many in a second most get HTTP's 429 (RFC 6585, section
    4) with ``Retry-After``.
    """

    def __init__(self, app: ASGIApp, tenants: Tenants) -> None:
        self._app = app
        self._tenants = tenants

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, now or in its turn, or refuse it."""
        tenant = principal_in(scope).tenant
        if scope["method"] != "POST":  # a stream of the client's, which may last
            async with self._tenants.entered(tenant):
                await self._app(scope, receive, send)
            return
        try:
            self._tenants.admit(tenant)
        except (OverQuota, Busy) as error:
            telemetry.count("quota_refusals", tenant=self._tenants.label(tenant))
            if not await self._tenants.pace.refused(tenant):
                seconds = str(error.details["retry_after_seconds"])
                answer = reply(429, error, headers={"retry-after": seconds})
                await answer(scope, receive, send)
                return
            scope[REFUSAL] = error
        async with self._tenants.pace.request(tenant), self._tenants.entered(tenant):
            await self._app(scope, receive, send)

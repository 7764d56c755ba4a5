"""Where the server over HTTP takes the Stash of a request from: its tenant's, and no other."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from fetchstash.config import Settings
from fetchstash.render import Host
from fetchstash.server import Answers, Context
from fetchstash.service._context import client_of, principal_of, refusal_of
from fetchstash.stash import Stash


class Stashes(Protocol):
    """The Stash of each tenant."""

    async def stash(self, tenant: str) -> Stash:
        """Return the Stash of a tenant, opened if need be."""
        ...

    def settings_of(self, tenant: str) -> Settings:
        """Return the settings of a tenant."""
        ...

    async def aclose(self) -> None:
        """Close all of them."""
        ...


class TenantSource:
    """Gives each request the Stash of the tenant that its verified token names."""

    def __init__(self, settings: Settings, stashes: Stashes) -> None:
        self.settings = settings
        self._stashes = stashes

    def host(self, ctx: Context) -> Host:
        """Return the host that asks. Nobody over HTTP shares our file system."""
        settings = self._stashes.settings_of(principal_of(ctx).tenant)
        return Host(settings.views_for(client_of(ctx)), False, settings.context)

    async def get(self, ctx: Context, answers: Answers = None) -> Stash:  # noqa: ARG002 - none asked
        """Return the Stash of the request's tenant. Raises Busy and OverQuota."""
        if refusal := refusal_of(ctx):
            raise refusal
        return await self._stashes.stash(principal_of(ctx).tenant)

    async def person_allows(
        self,
        ctx: Context,  # noqa: ARG002 - as above
        answers: Answers,  # noqa: ARG002 - as above
        refusals: Iterable[Mapping[str, Any]],  # noqa: ARG002 - as above
    ) -> bool:
        """Return False: the network of a service is not its clients' to open."""
        return False

    def forget_roots(self) -> None:
        """Do nothing: no client's folders are asked for."""

    async def aclose(self) -> None:
        """Close what was opened."""
        await self._stashes.aclose()

"""Who sends a request, as its verified token says."""

import re
from dataclasses import dataclass
from typing import Protocol

READ = "read"
"""Scope: the tools that read what is kept."""
FETCH = "fetch"
"""Scope: all tools."""

LOCAL_TENANT = "local"
"""The tenant of a service on loopback without tokens."""

_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


@dataclass(frozen=True, slots=True)
class Principal:
    """A person or program of a tenant, and what it may do. ``name`` is for logs and quotas."""

    tenant: str
    name: str
    scopes: frozenset[str]


LOCAL = Principal(LOCAL_TENANT, "local", frozenset({READ, FETCH}))
"""Who sends the requests of a service on loopback without tokens."""


class Rejected(Exception):
    """A token that opens nothing. ``reason`` is a code for the log, and holds no secret.

    ``error`` and ``scope`` are for ``WWW-Authenticate`` (RFC 6750, section 3): "invalid_token", or
    "insufficient_scope" with the scopes that would do.
    """

    def __init__(self, reason: str, *, error: str = "invalid_token", scope: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error
        self.scope = scope


class Verifier(Protocol):
    """Tells whose a token is."""

    async def verify(self, token: str) -> Principal:
        """Return the principal of a token. Raises Rejected."""
        ...


def is_tenant(name: str) -> bool:
    """Return whether a name can be a tenant's: it becomes part of folders and object keys."""
    return _TENANT.fullmatch(name) is not None

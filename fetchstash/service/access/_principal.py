"""The principal of a request, and the answers to bad tokens."""

import re
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from fetchstash.config import ARTIFACT_TOOLS, OAuthLimits
from fetchstash.store import person_run

READ = "read"
"""Scope: the tools that read what is kept."""
FETCH = "fetch"
"""Scope: all tools."""
SCOPES = (READ, FETCH)

READ_TOOLS = frozenset(ARTIFACT_TOOLS)
"""The tools of the scope "read". Every other one needs the scope "fetch"."""

FOR_MORE = "whoever runs the service can give a token of the scope fetch"
"""What a token that may only read is told in place of a call that fetches."""

_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")

Reason = Literal[
    "no_token",
    "malformed",
    "unknown",
    "expired",
    "not_yet_valid",
    "algorithm",
    "header",
    "key",
    "signature",
    "issuer",
    "audience",
    "claim",
    "tenant",
    "scope",
]


class Rejected(Exception):
    """A token that opens nothing. ``reason`` is a code for the log, ``description`` a sentence.

    Neither holds anything of the token. "unknown" is a token that never was and one that was
    revoked. ``error`` and ``scope`` are for ``WWW-Authenticate`` (RFC 6750, section 3):
    "invalid_token", or "insufficient_scope" with the scope that would do. "access_denied" is a
    good token of an account that is not let in: logging in again would not help.
    """

    def __init__(
        self,
        reason: Reason,
        description: str = "",
        *,
        error: str = "invalid_token",
        scope: str = "",
    ) -> None:
        super().__init__(reason, description)
        self.reason: Reason = reason
        self.description = description
        self.error = error
        self.scope = scope

    @property
    def status(self) -> int:
        """The HTTP status of the answer (RFC 6750, section 3.1)."""
        return 401 if self.error == "invalid_token" else 403


@dataclass(frozen=True, slots=True)
class Principal:
    """A person or program of a tenant, with its scopes: FETCH includes READ.

    ``name`` is that of the token, or what the provider calls the person. ``issuer`` vouches for
    it, "" for a token of our own, whose id is ``token``. Tokens of one name are one person.
    """

    tenant: str
    name: str
    scopes: frozenset[str]
    issuer: str = ""
    token: str = ""

    @property
    def run(self) -> str:
        """The run that holds the person's artifacts."""
        return person_run(self.name, self.issuer)

    def may(self, scope: str) -> bool:
        """Return whether a call that needs ``scope`` is allowed."""
        return scope in self.scopes or (scope == READ and FETCH in self.scopes)


LOCAL = Principal("local", "local", frozenset({READ, FETCH}))
"""Who sends the requests of a service on loopback without tokens."""


class Verifier(Protocol):
    """Verifies tokens."""

    async def verify(self, token: str) -> Principal:
        """Return the principal of ``token``.

        Raises Rejected for a token that proves nothing, and FetchstashError where it cannot be
        known now: the store or the identity provider does not answer.
        """
        ...


def is_tenant(name: str) -> bool:
    """Return whether a name can be a tenant's: it becomes part of folders and object keys."""
    return _TENANT.fullmatch(name) is not None


def scope_of(message: Any) -> str:
    """Return the scope that a JSON-RPC message needs."""
    match message:
        case {"method": "tools/call", "params": {"name": str(name)}} if name not in READ_TOOLS:
            return FETCH
        case _:
            return READ


def check_scope(principal: Principal, scope: str) -> None:
    """Raise Rejected if a principal may not make a call that needs ``scope``."""
    if not principal.may(scope):
        granted = ", ".join(sorted(principal.scopes)) or "none"
        description = f"This call needs the scope {scope}; the token has {granted}."
        raise Rejected("scope", description, error="insufficient_scope", scope=scope)


def grants_scopes(limits: OAuthLimits) -> bool:
    """Return whether the provider grants scopes that a client can ask for, and not roles."""
    return not limits.scope_claim and limits.default_scope == "none"


WELL_KNOWN = "/.well-known/oauth-protected-resource"


def resource_of(limits: OAuthLimits) -> str:
    """Return the service's own URL, as clients write it."""
    return limits.resource or limits.audience


def metadata_url(limits: OAuthLimits) -> str:
    """Return where the metadata is: the well-known path before the resource's own (RFC 9728, 3.1).

    "" where no identity provider is set.
    """
    if not limits.issuer:
        return ""
    parts = urlsplit(resource_of(limits))
    return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}"


def metadata_paths(limits: OAuthLimits) -> tuple[str, ...]:
    """Return the paths that answer with the metadata: the one of the resource, and the bare one.

    Clients that were told no URL try both.
    """
    if not limits.issuer:
        return ()
    return tuple(dict.fromkeys((urlsplit(metadata_url(limits)).path, WELL_KNOWN)))


def resource_metadata(limits: OAuthLimits) -> dict[str, object]:
    """Return the metadata of this resource server (RFC 9728, section 2)."""
    by_scope = grants_scopes(limits)
    return {
        "resource": resource_of(limits),
        "authorization_servers": [limits.issuer],
        **({"scopes_supported": [limits.read_scope, limits.fetch_scope]} if by_scope else {}),
        "bearer_methods_supported": ["header"],
        "resource_name": "fetchstash",
    }


def challenge(limits: OAuthLimits, rejected: Rejected | None = None) -> str:
    """Return the WWW-Authenticate of an answer 401 or 403.

    A request that brought no token is told no error (RFC 6750, section 3.1). The scope is named
    where a provider can grant it, because clients ask for it as it is.
    """
    names = {READ: limits.read_scope, FETCH: limits.fetch_scope}
    scope = names[rejected.scope if rejected and rejected.scope else FETCH]
    parameters = {
        "resource_metadata": metadata_url(limits),
        "scope": scope if limits.issuer and grants_scopes(limits) else "",
        "error": rejected.error if rejected else "",
        "error_description": rejected.description if rejected and rejected.error else "",
    }
    shown = ", ".join(f'{name}="{_quotable(text)}"' for name, text in parameters.items() if text)
    return f"Bearer {shown}".rstrip()


def _quotable(text: str) -> str:
    """Return a value without characters that a quoted parameter cannot hold (RFC 6750, 3)."""
    return "".join(c for c in text if " " <= c <= "~" and c not in '"\\')

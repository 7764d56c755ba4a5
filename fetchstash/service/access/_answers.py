"""What a client without the right token is told: RFC 6750, RFC 9728, and MCP's authorization."""

from urllib.parse import urlsplit

from fetchstash.config import OAuthLimits
from fetchstash.service.access._principal import FETCH, READ, Rejected

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
    return {
        "resource": resource_of(limits),
        "authorization_servers": [limits.issuer],
        "scopes_supported": [limits.read_scope, limits.fetch_scope],
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
        "scope": scope if limits.issuer else "",
        "error": rejected.error if rejected else "",
        "error_description": rejected.description if rejected and rejected.error else "",
    }
    shown = ", ".join(f'{name}="{_quotable(text)}"' for name, text in parameters.items() if text)
    return f"Bearer {shown}".rstrip()


def _quotable(text: str) -> str:
    """Return what may stand between quotes in a parameter (RFC 6750, section 3)."""
    return "".join(c for c in text if " " <= c <= "~" and c not in '"\\')

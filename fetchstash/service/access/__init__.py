"""Who sends a request: tokens of our own, and those of an identity provider.

``verifier`` returns what turns a token into a Principal: its tenant, its name and its scopes.
Knows no HTTP: the status, the challenge (WWW-Authenticate) and the metadata document are values
that ``service`` sends.
"""

from fetchstash.service.access._oauth import Issuer, OAuthTokens, count_keys, verifier
from fetchstash.service.access._own import OwnTokens, Token, TokenRecord, looks_like_ours
from fetchstash.service.access._principal import (
    FETCH,
    LOCAL,
    LOCAL_TENANT,
    READ,
    READ_TOOLS,
    SCOPES,
    Principal,
    Rejected,
    Verifier,
    challenge,
    check_scope,
    is_tenant,
    metadata_paths,
    metadata_url,
    resource_metadata,
    scope_of,
)

__all__ = [
    "FETCH",
    "LOCAL",
    "LOCAL_TENANT",
    "READ",
    "READ_TOOLS",
    "SCOPES",
    "Issuer",
    "OAuthTokens",
    "OwnTokens",
    "Principal",
    "Rejected",
    "Token",
    "TokenRecord",
    "Verifier",
    "challenge",
    "check_scope",
    "count_keys",
    "is_tenant",
    "looks_like_ours",
    "metadata_paths",
    "metadata_url",
    "resource_metadata",
    "scope_of",
    "verifier",
]

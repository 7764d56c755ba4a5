"""Authentication: tokens of our own, and those of an identity provider.

``verifier`` returns what turns a token into a Principal: its tenant, its name and its scopes.
Knows no HTTP: the status, the challenge (WWW-Authenticate) and the metadata document are values
that ``service`` sends.
"""

from fetchstash.service.access._oauth import count_keys, verifier
from fetchstash.service.access._own import OwnTokens, TokenRecord
from fetchstash.service.access._principal import (
    FETCH,
    FOR_MORE,
    LOCAL,
    READ,
    SCOPES,
    Principal,
    Rejected,
    Verifier,
    challenge,
    check_scope,
    grants_scopes,
    is_tenant,
    metadata_paths,
    resource_metadata,
    scope_of,
)

__all__ = [
    "FETCH",
    "FOR_MORE",
    "LOCAL",
    "READ",
    "SCOPES",
    "OwnTokens",
    "Principal",
    "Rejected",
    "TokenRecord",
    "Verifier",
    "challenge",
    "check_scope",
    "count_keys",
    "grants_scopes",
    "is_tenant",
    "metadata_paths",
    "resource_metadata",
    "scope_of",
    "verifier",
]

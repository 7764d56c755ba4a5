"""Who sends a request: tokens of our own, and those of an identity provider."""

from fetchstash.access._principal import (
    FETCH,
    LOCAL,
    LOCAL_TENANT,
    READ,
    Principal,
    Rejected,
    Verifier,
    is_tenant,
)

__all__ = [
    "FETCH",
    "LOCAL",
    "LOCAL_TENANT",
    "READ",
    "Principal",
    "Rejected",
    "Verifier",
    "is_tenant",
]

"""Many agents over HTTP: each tenant apart, bounded, counted and logged.

`serve_http` is the whole service. Who serves it in a process of their own puts it together from the
same parts: `build_app` takes the `Tenants` and what it is to check, `server_of` runs it.
"""

from fetchstash.service._exports import exports
from fetchstash.service._listen import security_of
from fetchstash.service._quota import Quotas
from fetchstash.service._request import AuditLog, principal_of
from fetchstash.service._serve import (
    build_app,
    for_clients_elsewhere,
    serve_http,
    server_of,
    verifier_of,
)
from fetchstash.service._tenant_store import TenantStore
from fetchstash.service._tenants import Tenants
from fetchstash.service._upkeep import Upkeep, remove_logs

__all__ = [
    "AuditLog",
    "Quotas",
    "TenantStore",
    "Tenants",
    "Upkeep",
    "build_app",
    "exports",
    "for_clients_elsewhere",
    "principal_of",
    "remove_logs",
    "security_of",
    "serve_http",
    "server_of",
    "verifier_of",
]

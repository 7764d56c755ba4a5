"""Many agents over HTTP: each tenant apart, bounded, counted and logged.

`serve_http` is the whole service. Who serves it in a process of their own puts it together from the
same parts: `build_app` takes the `Tenants` and what it is to check, `server_of` runs it.
"""

from typing import TYPE_CHECKING

from fetchstash.system import lazy_names

if TYPE_CHECKING:
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

# `fetchstash token` needs `service.access` alone, and the HTTP server takes a second to import.
_MODULES = {
    "_exports": "exports",
    "_listen": "security_of",
    "_quota": "Quotas",
    "_request": "AuditLog principal_of",
    "_serve": "build_app for_clients_elsewhere serve_http server_of verifier_of",
    "_tenant_store": "TenantStore",
    "_tenants": "Tenants",
    "_upkeep": "Upkeep remove_logs",
}
__getattr__ = lazy_names(__name__, _MODULES)

"""A service for each test, with a store of its own."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.server.transport_security import TransportSecuritySettings

from fetchstash.config import Settings, load
from fetchstash.service import Tenants, build_app, for_clients_elsewhere
from tests.service.asgi import HOST, Service, running


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return for_clients_elsewhere(load({"store.folder": str(tmp_path / "store")}))


@pytest.fixture
def service(settings: Settings) -> Service:
    """Open a service in this process."""

    def opened(**parts: Any) -> AbstractAsyncContextManager[httpx2.AsyncClient]:
        security = TransportSecuritySettings(allowed_hosts=[HOST])
        source = Tenants(settings, apart=False)
        return running(build_app(source, security, **parts))

    return opened

"""A service for each test, with a store of its own."""

import ssl
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trustme
from mcp.server.transport_security import TransportSecuritySettings

from fetchstash.config import HttpLimits, Settings, load
from fetchstash.service import Tenants, build_app, for_clients_elsewhere
from tests.loopback import Site
from tests.service.access.provider import Provider
from tests.service.asgi import HOST, Clock, Service, running
from tests.service.sockets import Tls


@pytest.fixture
def settings(site: Site, tmp_path: Path) -> Settings:
    own = {"store__folder": str(tmp_path / "store"), "ingest__read_roots": [str(tmp_path)]}
    return for_clients_elsewhere(load(site.settings(**own, extract__confine="auto")))


@pytest.fixture
def provider(site: Site) -> Provider:
    return Provider(site)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(settings: Settings) -> Service:
    """Open a service in this process."""

    def opened(**parts: Any) -> AbstractAsyncContextManager[httpx2.AsyncClient]:
        security = TransportSecuritySettings(allowed_hosts=[HOST])
        source = Tenants(settings, apart=False)
        return running(build_app(source, security, **parts))

    return opened


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    trusting = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
    return Tls(HttpLimits(tls_cert=str(cert), tls_key=str(key)), trusting)

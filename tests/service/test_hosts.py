"""Whose requests are answered at all: by Host and Origin, whatever the address is."""

import json
from dataclasses import replace

import pytest

from fetchstash.config import HttpLimits, Settings
from fetchstash.service import Tenants, build_app, security_of
from tests.service.asgi import Service, Tokens, running
from tests.service.test_messages import HEADERS, PING

pytestmark = [pytest.mark.anyio, pytest.mark.whole]

BODY = json.dumps(PING).encode()


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1.evil.example:8080", "[::1]", "a@"]
)
async def test_a_foreign_host_is_served_nothing_on_loopback(service: Service, host: str) -> None:
    async with service() as http:
        answer = await http.post("/mcp", content=BODY, headers=HEADERS | {"host": host})
    assert answer.status_code == 421
    assert "http.hosts" in answer.text


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9"])
async def test_a_foreign_page_is_served_nothing(service: Service, origin: str) -> None:
    async with service() as http:
        answer = await http.post("/mcp", content=BODY, headers=HEADERS | {"origin": origin})
        preflight = await http.options(
            "/mcp", headers={"origin": origin, "access-control-request-method": "POST"}
        )
    assert (answer.status_code, preflight.status_code) == (403, 403)
    assert "access-control-allow-origin" not in answer.headers


async def test_a_form_of_a_page_is_no_request(service: Service) -> None:
    async with service() as http:
        answer = await http.post("/mcp", content=BODY, headers={"content-type": "text/plain"})
    assert answer.status_code == 400


@pytest.mark.parametrize("path", ["/mcp", "/healthz", "/none"])
async def test_a_head_over_16_kib_is_refused_though_it_comes_at_once(
    service: Service, path: str
) -> None:
    long = {f"x-{n}": "a" * 4_096 for n in range(5)}
    async with service() as http:
        by_headers = await http.get(path, headers=long)
        by_query = await http.get(f"{path}?{'a' * 20_000}")
    assert (by_headers.status_code, by_query.status_code) == (431, 431)


async def test_probes_may_come_by_any_name(service: Service) -> None:
    async with service() as http:
        assert (await http.get("/healthz", headers={"host": "10.1.2.3"})).status_code == 200


def test_hosts_that_are_named_are_let_in_beside_the_own_address() -> None:
    http = HttpLimits(hosts=("stash.example.org", "other.example:8443"), tls_cert="x")
    security = security_of(http, "192.0.2.7", 443)
    assert security.allowed_hosts == [
        "192.0.2.7:443",
        "stash.example.org",
        "stash.example.org:*",
        "other.example:8443",
    ]
    assert security.allowed_origins == ["https://192.0.2.7:443"]
    assert security_of(HttpLimits(), "0.0.0.0", 80).allowed_hosts == []


async def test_a_host_is_one_name_in_upper_and_in_lower_case(settings: Settings) -> None:
    security = security_of(HttpLimits(hosts=("fetch.example.org",)), "127.0.0.1", 8080)
    app = build_app(Tenants(settings, apart=False), security)
    async with running(app) as http:
        headers = HEADERS | {"host": "Fetch.Example.ORG:443"}
        answer = await http.post("/mcp", content=BODY, headers=headers)
    assert answer.status_code == 200


async def test_a_page_that_the_operator_names_may_call(settings: Settings) -> None:
    page = "https://app.example.org"
    settings = replace(settings, http=replace(settings.http, origins=(page,)))
    security = security_of(settings.http, "127.0.0.1", 8080)
    app = build_app(Tenants(settings, apart=False), security, verifier=Tokens())
    asked = {"access-control-request-method": "POST"}
    asked["access-control-request-headers"] = "authorization, mcp-protocol-version"
    async with running(app) as http:
        preflight = await http.options("/mcp", headers={"origin": page, **asked})
        called = await http.post("/mcp", content=BODY, headers=HEADERS | {"origin": page})
    assert preflight.status_code == 200
    assert "authorization" in preflight.headers["access-control-allow-headers"]
    assert called.status_code == 401
    assert called.headers["access-control-allow-origin"] == page
    assert "www-authenticate" in called.headers["access-control-expose-headers"].lower()

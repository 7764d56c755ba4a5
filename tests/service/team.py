"""A service of several tenants in this process, with pages and documents of its own."""

import hashlib
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
from mcp.server.transport_security import TransportSecuritySettings

from fetchstash.access import FETCH, READ, Principal
from fetchstash.config import Settings
from fetchstash.errors import FetchFailed
from fetchstash.fetch import Fetched, FetchLimits
from fetchstash.handlers import Extraction
from fetchstash.service import build_app
from fetchstash.service._source import TenantSource
from fetchstash.service._tenants import Tenants
from tests.service.asgi import HOST, Tokens, running

TENANTS = ("acme", "globex", "flood")


def principals() -> dict[str, Principal]:
    """Return a principal of each tenant; its token is the tenant's name."""
    return {name: Principal(name, "agent", frozenset({READ, FETCH})) for name in TENANTS}


@dataclass
class Web:
    """Texts by URL, and which were asked for."""

    pages: dict[str, str] = field(default_factory=dict[str, str])
    asked: list[str] = field(default_factory=list[str])


@asynccontextmanager
async def team(
    settings: Settings, **parts: Any
) -> AsyncGenerator[tuple[httpx2.AsyncClient, Tenants]]:
    """Run a service of these tenants."""
    audit = parts.get("audit")
    tenants = parts.pop("tenants", None) or Tenants(settings, **parts)
    security = TransportSecuritySettings(allowed_hosts=[HOST])
    source = TenantSource(settings, tenants)
    verifier = Tokens(**principals())
    app = build_app(source, security, verifier=verifier, tenants=tenants, audit=audit)
    async with running(app) as http:
        yield http, tenants


def of(token: str, **headers: str) -> dict[str, str]:
    """Return the headers of a tenant's request in the handshake era."""
    return {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
        **headers,
    }


async def ask(
    http: httpx2.AsyncClient, tenant: str, method: str, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Send a request as a tenant and return its result or error."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = await http.post("/mcp", json=message, headers=of(tenant))
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json() if answer.text.startswith("{") else _event(answer.text)
    return {key: data[key] for key in ("result", "error") if key in data}


def _event(text: str) -> dict[str, Any]:
    [line] = [line for line in text.splitlines() if line.startswith("data: {")][-1:]
    data: dict[str, Any] = json.loads(line.removeprefix("data: "))
    return data


async def call(
    http: httpx2.AsyncClient, who: str, tool: str, /, **arguments: Any
) -> dict[str, Any]:
    """Call a tool as a tenant and return its result."""
    answer = await ask(http, who, "tools/call", {"name": tool, "arguments": arguments})
    result: dict[str, Any] = answer["result"]
    return result


def text_of(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's result."""
    return "\n".join(str(block["text"]) for block in result["content"])


class FakeFetcher:
    """A Fetcher of the pages of a Web, without a network."""

    web = Web()

    def __init__(self, limits: FetchLimits) -> None:
        self.limits = limits

    async def fetch(self, url: str, folder: Path, **_: Any) -> Fetched:
        """Spool a page."""
        self.web.asked.append(url)
        if url not in self.web.pages:
            raise FetchFailed("There is no such page.", "Look elsewhere.")
        data = self.web.pages[url].encode()
        path = folder / f"fetched-{len(self.web.asked)}"
        path.write_bytes(data)
        path.chmod(0o600)
        return Fetched(
            path=path,
            url=url,
            final_url=url,
            masked_url=url,
            masked_final_url=url,
            status=200,
            headers={"content-type": "text/plain"},
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            fetched_at=datetime.now(UTC),
            name="page.txt",
        )

    async def check(self, url: str, final_url: str = "") -> None:
        """Refuse nothing."""

    async def aclose(self) -> None:
        """Do nothing."""


class FakePool:
    """An Extractor that takes a text as it is, in this process."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.ended = 0

    async def extract(self, source: Path, _: Any, __: Any, folder: Path, **___: Any) -> Extraction:
        """Copy the text."""
        text = folder / f"text-{source.name}"
        data = source.read_bytes()
        text.write_bytes(data)
        text.chmod(0o600)
        words = data.decode()
        return Extraction(
            text=text, handler="text", chars=len(words), lines=words.count("\n"), tokens=1
        )

    async def part(self, *_: Any) -> Any:
        """Have none."""
        raise AssertionError

    def end_idle(self) -> None:
        """Count."""
        self.ended += 1

    async def aclose(self) -> None:
        """Do nothing."""

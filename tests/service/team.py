"""A service of several tenants in this process, with pages and documents of its own."""

import hashlib
import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
from mcp.server.transport_security import TransportSecuritySettings

from fetchstash.config import Settings
from fetchstash.errors import FetchFailed
from fetchstash.fetch import Fetched, HttpFetcher
from fetchstash.handlers import Extraction, WorkerPool
from fetchstash.service import Tenants, build_app
from fetchstash.service.access import FETCH, READ, Principal
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
    verifier = Tokens(**principals())
    app = build_app(tenants, security, verifier=verifier, audit=audit)
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


async def fetched(http: httpx2.AsyncClient, tenant: str, url: str) -> str:
    """Fetch a page as a tenant, and return its reference."""
    result = await call(http, tenant, "fetch_content", url=url)
    assert not result.get("isError"), result
    ref: str = result["_meta"]["fetchstash/artifact"][0]["artifact_ref"]
    return ref


def text_of(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's result."""
    return "\n".join(str(block["text"]) for block in result["content"])


@contextmanager
def web_of(pages: Mapping[str, str] | None = None) -> Generator[Web]:
    """Put pages where fetchers find them: no network, and no worker processes."""
    web = Web(dict(pages or {}))

    async def fetch(_: HttpFetcher, url: str, folder: Path, **__: Any) -> Fetched:
        web.asked.append(url)
        if url not in web.pages:
            raise FetchFailed("There is no such page.", "Look elsewhere.")
        return spooled(url, web.pages[url].encode(), folder / f"fetched-{len(web.asked)}")

    async def check(*_: object) -> None:
        pass

    with (
        mock.patch.multiple(HttpFetcher, fetch=fetch, check=check),
        mock.patch.object(WorkerPool, "extract", copied),
    ):
        yield web


def spooled(url: str, data: bytes, path: Path) -> Fetched:
    """Return a text that was fetched."""
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


async def copied(
    _: object, source: Path, __: Any, ___: Any, folder: Path, **____: Any
) -> Extraction:
    """Take a text as it is, in this process."""
    text = folder / f"text-{source.name}"
    data = source.read_bytes()
    text.write_bytes(data)
    text.chmod(0o600)
    words = data.decode()
    return Extraction(
        text=text, handler="text", chars=len(words), lines=words.count("\n"), tokens=1
    )

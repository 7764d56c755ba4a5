"""The proxy between a browser and the web: every address is vetted, and only the page may ask."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field

import pytest

from fetchstash.errors import Refused
from fetchstash.fetch import FetchLimits, plain
from fetchstash.fetch._addresses import Interfaces, Machine, SystemResolver
from fetchstash.fetch._browser._proxy import USER, PageProxy
from fetchstash.fetch._guard import Guard
from fetchstash.fetch._policy import Policy
from fetchstash.text.urls import parse

pytestmark = [pytest.mark.anyio, pytest.mark.whole]
Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]

INSIDE = (
    "127.0.0.1",
    "127.1",
    "0x7f000001",
    "2130706433",
    "0177.0.0.1",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "[fe80::1]",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "ip6-localhost",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "[fd00:ec2::254]",
    "100.100.100.200",
    "metadata.google.internal",
    "router",
    "printer.local",
    "kubernetes.default.svc",
)


@dataclass
class Listener:
    """A server on loopback that notes what it is sent, and answers with HTTP."""

    port: int = 0
    address: str = ""
    heads: list[str] = field(default_factory=list[str])
    body: bytes = b"hello"

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.read(65_536)).decode("latin-1"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self.body) + self.body)
        await writer.drain()
        writer.close()


@pytest.fixture
async def listener() -> AsyncGenerator[Listener]:
    it = Listener()
    server = await asyncio.start_server(it.accept, "127.0.0.1", 0)
    it.port = server.sockets[0].getsockname()[1]
    it.address = f"127.0.0.1:{it.port}"
    yield it
    server.close()


@asynccontextmanager
async def listening(max_bytes: int = 10**6, **limits: object) -> AsyncGenerator[PageProxy]:
    settings = FetchLimits(**limits)  # type: ignore[arg-type]
    policy = Policy.of(settings)
    guard = Guard(policy, SystemResolver(), Interfaces(), settings.max_header_bytes)
    async with PageProxy.listening(policy, guard.tunnel, max_bytes, 8_192) as proxy:
        yield proxy


@asynccontextmanager
async def asked(
    proxy: PageProxy, request: str, token: str | None = None, behind: str = ""
) -> AsyncGenerator[Pipe]:
    """Send a request with the page's token, or with another; yield the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    shown = b64encode(f"{USER}:{proxy.token if token is None else token}".encode()).decode()
    writer.write(f"{request}\r\nProxy-Authorization: Basic {shown}\r\n\r\n{behind}".encode())
    yield reader, writer
    writer.close()


async def sent(proxy: PageProxy, request: str, token: str | None = None) -> bytes:
    """Send a request and return all that comes back."""
    async with asked(proxy, request, token) as (reader, _):
        return await asyncio.wait_for(reader.read(), 10)


@pytest.mark.parametrize("host", INSIDE)
async def test_no_spelling_of_an_address_inside_is_dialled(host: str, listener: Listener) -> None:
    async with listening(ports=(listener.port,)) as proxy:
        for request in (
            f"CONNECT {host}:{listener.port} HTTP/1.1",
            f"GET http://{host}:{listener.port}/ HTTP/1.1",
        ):
            assert (await sent(proxy, request)).split(b" ")[1] in (b"400", b"403")
        assert proxy.refused == 2
    assert listener.heads == []


async def test_without_the_token_nothing_is_asked(listener: Listener) -> None:
    allowed = listener.address
    async with listening(allow_hosts=(allowed,)) as proxy:
        for token in ("", "guess", proxy.token[:-1]):
            answer = await sent(proxy, f"CONNECT {allowed} HTTP/1.1", token=token)
            assert answer.startswith(b"HTTP/1.1 407 ")
        assert proxy.connections == 0
    assert listener.heads == []


async def test_a_plain_request_arrives_without_what_is_the_proxy_s(listener: Listener) -> None:
    allowed = listener.address
    async with listening(allow_hosts=(allowed,)) as proxy:
        request = f"GET http://{allowed}/a?b=c HTTP/1.1\r\nHost: other\r\nX-One: 1"
        answer = await sent(proxy, f"{request}\r\nProxy-Connection: keep-alive")
    assert answer.endswith(b"hello")
    (head,) = listener.heads
    assert head.startswith(f"GET /a?b=c HTTP/1.1\r\nHost: {allowed}\r\nX-One: 1\r\n")
    assert "proxy" not in head.lower()
    assert "Connection: close" in head


async def test_bytes_behind_a_plain_request_go_nowhere(listener: Listener) -> None:
    request = f"GET http://{listener.address}/ HTTP/1.1"
    behind = "GET http://10.0.0.1/second HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n"
    async with (
        listening(allow_hosts=(listener.address,)) as proxy,
        asked(proxy, request, behind=behind) as (reader, _),
    ):
        await asyncio.wait_for(reader.read(), 10)
    assert "second" not in "".join(listener.heads)


async def test_a_tunnel_carries_bytes_both_ways(listener: Listener) -> None:
    request = f"CONNECT {listener.address} HTTP/1.1"
    async with (
        listening(allow_hosts=(listener.address,)) as proxy,
        asked(proxy, request) as (reader, writer),
    ):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        writer.write(b"opaque")
        assert (await asyncio.wait_for(reader.read(), 10)).endswith(b"hello")
    assert listener.heads == ["opaque"]


async def test_a_page_gets_no_more_bytes_than_its_limit(listener: Listener) -> None:
    listener.body = b"x" * 300_000
    allowed = listener.address
    async with listening(100_000, allow_hosts=(allowed,)) as proxy:
        answer = await sent(proxy, f"GET http://{allowed}/ HTTP/1.1")
        again = await sent(proxy, f"GET http://{allowed}/ HTTP/1.1")
    assert len(answer) <= 100_000
    assert again == b""


async def test_the_operator_s_domains_and_ports_hold_for_all_that_a_page_loads(
    listener: Listener,
) -> None:
    allowed = listener.address
    async with listening(allow_hosts=(allowed,), deny_domains=("127.0.0.1",)) as proxy:
        answer = await sent(proxy, f"CONNECT {allowed} HTTP/1.1")
    assert answer.startswith(b"HTTP/1.1 403 ")
    async with listening() as proxy:
        answer = await sent(proxy, "CONNECT 93.184.216.34:22 HTTP/1.1")
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert listener.heads == []


@pytest.mark.parametrize(
    "request_line",
    [
        "CONNECT 127.0.0.1 HTTP/1.1",
        "CONNECT :80 HTTP/1.1",
        "CONNECT a:99999 HTTP/1.1",
        "GET / HTTP/1.1",
        "GET ftp://example.org/ HTTP/1.1",
        "GET https://example.org/ HTTP/1.1",
        "GET http://user:pw@example.org/ HTTP/1.1",
        "CONNECT",
        "nonsense",
    ],
)
async def test_what_is_no_request_for_a_proxy_is_refused(request_line: str) -> None:
    async with listening() as proxy:
        answer = await sent(proxy, request_line)
    assert not answer or answer.split(b" ")[1] in (b"400", b"403")


async def test_the_end_of_a_page_closes_its_connections(listener: Listener) -> None:
    allowed = listener.address
    async with AsyncExitStack() as stack:
        async with listening(allow_hosts=(allowed,)) as proxy:
            tunnel = asked(proxy, f"CONNECT {allowed} HTTP/1.1")
            reader, _ = await stack.enter_async_context(tunnel)
            await reader.readuntil(b"\r\n\r\n")
            port = proxy.port
        assert await asyncio.wait_for(reader.read(), 10) == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)


@pytest.mark.parametrize(
    ("page", "addresses", "reaches"),
    [
        ("http://public.example/", ["93.184.216.34"], False),
        ("http://app.example:8000/", ["10.0.0.7"], True),
        ("http://app.example/", ["93.184.216.34"], False),
        ("http://inside.example/", ["10.1.2.3"], True),
        ("http://granted.example/", ["192.168.0.9"], True),
    ],
)
def test_scripts_of_a_public_page_cannot_use_what_is_allowed_inside(
    page: str, addresses: list[str], reaches: bool
) -> None:
    limits = FetchLimits(allow_hosts=("app.example:8000", "10.9.9.9"), allow_nets=("10.1.0.0/16",))
    policy = Policy.of(limits)
    policy.grant("granted.example", 80)
    rules = policy.for_page(parse(page, 100), [plain(address) for address in addresses])
    inside = {
        "http://10.9.9.9/": "10.9.9.9",
        "http://10.1.7.7/": "10.1.7.7",
        "http://granted.example/": "192.168.0.9",
    }
    for url, address in inside.items():
        with nullcontext() if reaches else pytest.raises(Refused):
            rules.vet(parse(url, 100), [plain(address)], Machine())

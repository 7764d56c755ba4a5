"""The guard step by step: look-up, race, the peer's address, the bounded head, the proxy."""

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import anyio
import httpcore2
import pytest
from anyio.abc import SocketAttribute, SocketStream

from fetchstash.errors import BadArgument, FetchFailed, Refused, TooLarge
from fetchstash.fetch import Address, FetchLimits, HttpFetcher, plain
from fetchstash.fetch._addresses import Interfaces, SystemResolver
from fetchstash.fetch._framing import GuardedStream
from fetchstash.fetch._guard import Guard, Proxy, interleaved, race
from fetchstash.fetch._policy import Policy
from fetchstash.system import telemetry
from tests.fetch.sending import Make
from tests.loopback import Site

pytestmark = [pytest.mark.anyio, pytest.mark.whole]
V4, V4B, V6, V6B = (
    plain(text) for text in ("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2")
)


class Stream(httpcore2.AsyncNetworkStream):
    """A connection that receives ``parts``, and then ends or ``waits``."""

    def __init__(self, *parts: bytes, peer: object = None, waits: bool = False) -> None:
        self.parts = list(parts)
        self.waits = waits
        self.written = b""
        self.peer = peer
        self.closed = False

    async def read(self, max_bytes: int, *_: Any, **__: Any) -> bytes:
        if self.waits and not self.parts:
            await anyio.sleep_forever()
        part = self.parts.pop(0) if self.parts else b""
        self.parts[:0] = [part[max_bytes:]] if part[max_bytes:] else []
        return part[:max_bytes]

    async def write(self, buffer: bytes, *_: Any, **__: Any) -> None:
        self.written += buffer

    async def aclose(self) -> None:
        self.closed = True

    def get_extra_info(self, info: str) -> Any:
        return self.peer if info == "server_addr" else None


class Resolver:
    """Answers a name with what comes next."""

    def __init__(self, *answers: list[Address]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def look_up(self, host: str) -> list[Address]:
        self.asked.append(host)
        return self.answers.pop(0)


class Network(httpcore2.AsyncNetworkBackend):
    """Connects to wherever it says, and remembers who was dialled."""

    def __init__(self, peer: str | None = None, *, names_peer: bool = True) -> None:
        self.dialled: list[str] = []
        self.peer = peer
        self.names_peer = names_peer
        self.stream = Stream()

    async def connect_tcp(
        self, host: str, port: int, *_: Any, **__: Any
    ) -> httpcore2.AsyncNetworkStream:
        self.dialled.append(f"{host} {port}")
        self.stream.peer = (self.peer or host, port) if self.names_peer else None
        return self.stream


async def connect(
    host: str, answers: str, network: Network, port: int = 80, granted: str = ""
) -> Resolver:
    """Connect by a guard to a name with these addresses; return the resolver that was asked."""
    policy, resolver = Policy.of(FetchLimits()), Resolver([plain(a) for a in answers.split()])
    if granted:
        policy.grant(granted, 80)
    guard = Guard(policy, resolver, Interfaces(), 65_536, network=network)
    await guard.connect_tcp(host, port)
    return resolver


async def test_a_name_is_looked_up_once_and_its_vetted_address_is_dialled() -> None:
    network = Network()
    resolver = await connect("example.org", "93.184.216.34", network)
    assert (resolver.asked, network.dialled) == (["example.org"], ["93.184.216.34 80"])


@pytest.mark.parametrize("answers", ["10.0.0.1", "93.184.216.34 10.0.0.1", "93.184.216.34 ::1"])
async def test_one_forbidden_answer_is_enough_to_dial_none(answers: str) -> None:
    network = Network()
    with pytest.raises(Refused):
        await connect("example.org", answers, network)
    assert network.dialled == []


@pytest.mark.parametrize(
    ("answers", "is_dialled"),
    [
        *((address, True) for address in ("10.0.0.5", "100.64.0.1", "127.0.0.2", "198.18.0.1")),
        *((address, True) for address in ("fd00::5", "::1", "93.184.216.34 10.0.0.5")),
        *((address, False) for address in ("169.254.169.254", "100.100.100.200", "192.0.0.192")),
        *((address, False) for address in ("168.63.129.16", "fd00:ec2::254", "fd20:ce::254")),
        *((address, False) for address in ("0.0.0.0", "169.254.0.9", "fe80::9", "::", "fec0::1")),
        *((address, False) for address in ("224.0.0.1", "255.255.255.255", "ff02::1", "100::1")),
        *((address, False) for address in ("64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "192.0.2.1")),
        *((address, False) for address in ("10.0.0.5 169.254.169.254", "169.254.169.254 8.8.8.8")),
    ],
)
async def test_a_granted_host_is_dialled_inside_and_never_where_keys_are_handed_out(
    answers: str, *, is_dialled: bool
) -> None:
    network = Network()
    try:
        await connect("intranet.example", answers, network, granted="intranet.example")
    except Refused:
        assert not is_dialled
    assert bool(network.dialled) is is_dialled


@pytest.mark.parametrize(
    ("host", "port"),
    [("intranet.example", 8080), ("other.example", 80), ("a.intranet.example", 80)],
)
async def test_a_grant_is_for_one_host_and_port(host: str, port: int) -> None:
    network = Network()
    with pytest.raises(Refused):
        await connect(host, "10.0.0.5", network, port, granted="intranet.example")
    assert network.dialled == []


@pytest.mark.parametrize(
    "network",
    [Network(peer="10.0.0.1"), Network(names_peer=False)],
    ids=["another address", "no address"],
)
async def test_a_peer_without_the_address_that_was_dialled_is_disconnected(
    network: Network,
) -> None:
    with pytest.raises(FetchFailed, match="went elsewhere"):
        await connect("example.org", "93.184.216.34", network)
    assert network.stream.closed


async def test_connections_are_counted_by_how_they_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[str, str]] = []

    def count(name: str, *, outcome: str) -> None:
        counted.append((name, outcome))

    monkeypatch.setattr(telemetry, "count", count)
    await connect("example.org", "93.184.216.34", Network())
    with pytest.raises(Refused):
        await connect("example.org", "10.0.0.1", Network())
    with pytest.raises(FetchFailed):
        await connect("example.org", "93.184.216.34", Network(peer="93.184.216.35"))
    assert counted == [("connections", outcome) for outcome in ("opened", "refused", "failed")]


async def test_an_address_that_is_written_as_mapped_is_dialled_as_what_it_is() -> None:
    network = Network()
    await connect("::ffff:8.8.8.8", "", network)
    assert network.dialled == ["8.8.8.8 80"]


def test_no_test_connects_to_another_machine() -> None:
    with socket.socket() as own, pytest.raises(AssertionError, match="tests stay on loopback"):
        own.connect(("192.0.2.1", 9))  # an address of documentation: nobody is there (RFC 5737)


async def test_no_socket_in_the_file_system_is_connected_to() -> None:
    guard = Guard(Policy.of(FetchLimits()), Resolver(), Interfaces(), 100)
    with pytest.raises(NotImplementedError):
        await guard.connect_unix_socket("/run/docker.sock")


def test_address_families_alternate_from_the_resolver_s_first_on() -> None:
    assert interleaved([V6, V6B, V4, V4B]) == [V6, V4, V6B, V4B]
    assert interleaved([V4, V4B, V6]) == [V4, V6, V4B]


def dialer(outcomes: dict[Address, Stream | Exception | None]) -> Callable[[Address], Any]:
    """Connect, fail or hang, as the table says."""

    async def dial(address: Address) -> Stream:
        outcome = outcomes[address]
        if outcome is None:
            await anyio.sleep_forever()
        if isinstance(outcome, Stream):
            return outcome
        assert isinstance(outcome, Exception)
        raise outcome

    return dial


async def test_an_address_that_hangs_does_not_hold_up_the_next() -> None:
    good = Stream()
    with anyio.fail_after(60):
        assert await race([V6, V4], dialer({V6: None, V4: good})) is good


async def test_an_address_that_fails_gives_way_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fetchstash.fetch._guard._NEXT_ATTEMPT_SECONDS", 600)
    good = Stream()
    with anyio.fail_after(60):  # below the wait between attempts
        assert await race([V6, V4], dialer({V6: httpcore2.ConnectError(), V4: good})) is good


async def test_when_all_attempts_fail_the_first_failure_is_raised() -> None:
    first = httpcore2.ConnectError("first")
    with pytest.raises(httpcore2.ConnectError, match="first"):
        await race([V6, V4], dialer({V6: first, V4: httpcore2.ConnectError("second")}))


async def test_a_head_is_bounded_and_a_body_after_it_is_not() -> None:
    begin = b"HTTP/" + b"a" * 55
    stream = GuardedStream(Stream(begin, b"b" * 60, b"c" * 60), max_header_bytes=100)
    assert await stream.read(1000) == begin
    assert await stream.read(1000) == b"b" * 40
    with pytest.raises(TooLarge):
        await stream.read(1000)
    stream.end_head(200, {})
    assert await stream.read(1000) == b"b" * 20
    assert await stream.read(1000) == b"c" * 60
    assert stream.received == 180


async def used(inner: Stream) -> GuardedStream:
    """Return a connection over which one request was answered."""
    stream = GuardedStream(inner, max_header_bytes=100)
    await stream.read(1000)
    stream.end_head(200, {"content-length": "2"})
    assert await stream.read(1000) == b"ok"
    return stream


async def test_each_head_of_a_connection_has_the_whole_limit() -> None:
    inner = Stream(b"HTTP/" + b"a" * 55, b"ok", waits=True)
    stream = await used(inner)
    await stream.write(b"next request")
    inner.parts = [b"HTTP/" + b"b" * 85]
    assert len(await stream.read(1000)) == 90


async def test_a_connection_that_has_ended_is_not_written_to() -> None:
    inner = Stream(b"HTTP/", b"ok")
    stream = await used(inner)
    with pytest.raises(httpcore2.ReadError):
        await stream.write(b"next request")
    assert inner.written == b""


async def test_a_name_server_that_never_answers_is_given_up_and_its_thread_holds_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, answered = threading.Event(), threading.Event()

    def hang(*_: Any, **__: Any) -> list[Any]:
        asked.set()
        answered.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    resolver = SystemResolver()
    with anyio.move_on_after(0.1) as scope:
        await resolver.look_up("stuck.example")
    assert scope.cancelled_caught
    assert asked.wait(30)
    monkeypatch.undo()
    assert await resolver.look_up("127.0.0.1") == [plain("127.0.0.1")]
    answered.set()


async def test_a_name_that_does_not_exist_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(FetchFailed, match="no address for the name"):
        await SystemResolver().look_up("nowhere.example")


@pytest.mark.parametrize(
    ("setting", "host", "port", "tls", "login"),
    [
        ("http://proxy.example:3128", "proxy.example", 3128, False, ""),
        ("http://proxy.example", "proxy.example", 80, False, ""),
        ("https://joe:p%40ss@[2001:db8::1]:8443/", "2001:db8::1", 8443, True, "am9lOnBAc3M="),
    ],
)
def test_a_proxy_is_read_from_its_url(
    setting: str, host: str, port: int, tls: bool, login: str
) -> None:
    assert Proxy.of(FetchLimits(proxy=setting)) == Proxy(host, port, tls, login)


@pytest.mark.parametrize(
    "setting",
    ["socks5://joe:s3cret@a:1", "proxy.example:3128", "http://:s3cret@", "http://a:b:s3cret"],
)
def test_a_proxy_that_cannot_be_read_is_an_error_that_does_not_repeat_it(setting: str) -> None:
    with pytest.raises(BadArgument) as failed:
        HttpFetcher(FetchLimits(proxy=setting))
    assert "s3cret" not in failed.value.line()


async def test_a_tunnel_is_asked_for_by_number_with_the_proxy_s_login() -> None:
    stream = Stream(b"HTTP/1.1 200 Connection", b" established\r\n\r\n")
    await Proxy("p", 80, tls=False, credentials="abc").connect(stream, str(V6), 443)
    assert stream.written == (
        b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n"
        b"Proxy-Authorization: Basic abc\r\n\r\n"
    )


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 407 No\r\n\r\n",
        b"SSH-2.0\r\n\r\n",
        b"",
        b"HTTP/1.1 200 " + b"a" * 20_000,
        b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\nstray",
    ],
)
async def test_a_proxy_that_makes_no_tunnel_is_an_error(answer: bytes) -> None:
    with pytest.raises(FetchFailed, match="The proxy"):
        await Proxy("p", 80, tls=False, credentials="").connect(Stream(answer), str(V4), 80)


async def test_a_proxy_that_resolves_gets_names_as_they_are_and_numbers_that_were_vetted(
    fetcher: Make, tmp_path: Path
) -> None:
    asked: list[str] = []

    async def proxy(stream: SocketStream) -> None:
        async with stream:
            for answer in (b"", b"Content-Length: 2\r\n"):
                asked.append((await stream.receive()).partition(b"\r\n")[0].decode())
                await stream.send(b"HTTP/1.1 200 OK\r\n" + answer + b"\r\n" + b"ok" * bool(answer))

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    http = fetcher(proxy=f"http://127.0.0.1:{port}", proxy_resolves=True, allow_hosts=())
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, proxy)
        fetched = await http.fetch("http://nobody-but-the-proxy-knows.example/page", tmp_path)
        assert fetched.size_bytes == 2
        for refused in ("http://10.0.0.1/", "http://localhost/", "http://[::1]/"):
            with pytest.raises(Refused):
                await http.fetch(refused, tmp_path)
        with pytest.raises(BadArgument, match=r"odd spelling of 127\.0\.0\.1"):
            await http.fetch("http://0x7f.1/", tmp_path)
        tasks.cancel_scope.cancel()
    assert asked == ["CONNECT nobody-but-the-proxy-knows.example:80 HTTP/1.1", "GET /page HTTP/1.1"]
    with pytest.raises(BadArgument, match=r"proxy_resolves is set, and fetch\.proxy is not"):
        HttpFetcher(FetchLimits(proxy_resolves=True))


async def test_a_hundred_and_fifty_cancelled_fetches_leave_the_pool_as_good_as_new(
    site: Site, fetcher: Make, tmp_path: Any
) -> None:
    release = threading.Event()

    def script(_: BaseHTTPRequestHandler) -> None:
        release.wait(10)

    slow, http = site.put("/slow", script=script), fetcher(per_host_concurrency=200)
    for _ in range(3):
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(http.fetch, slow, tmp_path)
                if number % 10 == 0:
                    await anyio.sleep(0.01)  # so that they are stopped at different points
            tasks.cancel_scope.cancel()
    release.set()
    with anyio.fail_after(60):
        fetched = await http.fetch(site.put("/x", b"x"), tmp_path)
    assert fetched.size_bytes == 1


@pytest.mark.parametrize(("count", "code"), [(21, "leads to"), (65, "too many to check")])
async def test_every_answer_of_a_name_is_vetted_or_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch, count: int, code: str
) -> None:
    answers = [(2, 1, 6, "", (f"93.184.216.{number}", 0)) for number in range(1, count)]
    answers.append((2, 1, 6, "", ("10.0.0.1", 0)))

    def getaddrinfo(*_: object, **__: object) -> list[object]:
        return [*answers]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    guard = Guard(Policy.of(FetchLimits()), SystemResolver(), Interfaces(), 100)
    with pytest.raises(Refused, match=code):
        await guard.connect_tcp("many.test", 80)

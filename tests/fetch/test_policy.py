"""What may be fetched: ports, domains, names, addresses, and the operator's exceptions."""

from types import SimpleNamespace

import ifaddr
import pytest

from fetchstash.errors import BadArgument, Call, Refused
from fetchstash.fetch import FetchLimits, HttpFetcher
from tests.fetch.sending import Answers

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the machine no address of its own."""
    monkeypatch.setattr(ifaddr, "get_adapters", list[object])


async def decide(url: str, *addresses: str, limits: FetchLimits | None = None) -> None:
    """Raise Refused as a fetch of ``url`` would whose name has these addresses."""
    await HttpFetcher(limits or FetchLimits(), resolver=Answers(*addresses)).check(url)


@pytest.mark.parametrize(
    ("url", "addresses", "says"),
    [
        ("http://127.0.0.1/", (), "127.0.0.1 is loopback"),
        ("http://[::ffff:10.0.0.1]/", (), "in a private network"),
        (
            "http://inside.example.org/",
            ("10.0.0.5",),
            "inside.example.org leads to an address that is in a private network",
        ),
        ("http://mixed.example.org/", ("93.184.216.34", "10.0.0.5"), "mixed.example.org leads to"),
        ("http://example.org:22/", ("93.184.216.34",), "Port 22 of example.org"),
        ("http://localhost/", ("127.0.0.1",), "localhost is a name of this machine"),
        ("http://localhost./", ("127.0.0.1",), "localhost is a name of this machine"),
        ("http://a.localhost/", ("127.0.0.1",), "a.localhost is a name of this machine"),
        ("http://printer/", ("93.184.216.34",), "printer is a name without a dot"),
        ("http://nas.local/", ("93.184.216.34",), "a name of the local network"),
        ("http://metadata.google.internal/", ("93.184.216.34",), "a name of a private network"),
    ],
)
async def test_a_refusal_names_what_was_refused_and_why(
    url: str, addresses: tuple[str, ...], says: str
) -> None:
    with pytest.raises(Refused, match=says):
        await decide(url, *addresses)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://127.0.0.1/", "127.0.0.1:80"),
        ("https://[::1]/", "[::1]:443"),
        ("http://localhost:8000/", "localhost:8000"),
        ("http://[::ffff:127.0.0.1]/", "127.0.0.1:80"),
        ("http://[::ffff:7f00:1]:22/", "127.0.0.1:22"),
    ],
)
async def test_a_refusal_carries_the_setting_that_allows_it(url: str, host: str) -> None:
    with pytest.raises(Refused) as refused:
        await decide(url, "127.0.0.1")
    assert refused.value.calls == (Call("setting", {"name": "fetch.allow_hosts", "value": [host]}),)
    await decide(url, "127.0.0.1", limits=FetchLimits(allow_hosts=(host,)))


async def test_the_address_behind_a_name_is_in_the_details_and_not_in_the_sentence() -> None:
    with pytest.raises(Refused) as refused:
        await decide("http://inside.example.org/", "10.0.0.5")
    assert "10.0.0.5" not in refused.value.line()
    assert refused.value.details["address"] == "10.0.0.5"


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("localhost", "http://localhost:9999/"),
        ("LOCALHOST.", "http://localhost/"),
        ("intranet:8000", "http://intranet:8000/"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000/"),
        ("::1", "http://[::1]:1234/"),
        ("[::1]:8080", "http://[::1]:8080/"),
        ("bücher.example", "http://xn--bcher-kva.example:22/"),
        ("::ffff:127.0.0.1", "http://127.0.0.1/"),
        ("127.0.0.1", "http://[::ffff:7f00:1]/"),
    ],
)
async def test_a_host_can_be_excepted_from_the_address_and_port_rules(entry: str, url: str) -> None:
    await decide(url, "127.0.0.1", limits=FetchLimits(allow_hosts=(entry,)))


@pytest.mark.parametrize(
    ("entry", "url"), [("localhost:8000", "http://localhost:8080/"), ("a.org", "http://b.a.org/")]
)
async def test_an_exception_is_for_that_host_and_port_alone(entry: str, url: str) -> None:
    with pytest.raises(Refused):
        await decide(url, "127.0.0.1", limits=FetchLimits(allow_hosts=(entry,)))


async def test_a_net_can_be_excepted_and_ports_stay_as_they_are() -> None:
    limits = FetchLimits(allow_nets=("198.18.0.0/15",))
    await decide("http://example.org/", "198.18.3.4", limits=limits)
    with pytest.raises(Refused, match="Port 22"):
        await decide("http://example.org:22/", "198.18.3.4", limits=limits)
    with pytest.raises(Refused):
        await decide("http://example.org/", "10.0.0.1", limits=limits)


async def test_domain_lists_hold_for_sub_domains_and_go_before_exceptions() -> None:
    only = FetchLimits(allow_domains=("example.org",), allow_hosts=("other.org",))
    await decide("http://www.example.org/", "93.184.216.34", limits=only)
    for url in ("http://other.org/", "http://badexample.org/"):
        with pytest.raises(Refused, match="not among the domains"):
            await decide(url, "93.184.216.34", limits=only)
    never = FetchLimits(deny_domains=("example.org",), allow_hosts=("example.org",))
    with pytest.raises(Refused, match="denies"):
        await decide("http://www.example.org/", "93.184.216.34", limits=never)


async def test_the_machine_s_own_addresses_and_neighbours_are_refused_though_they_are_public(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = SimpleNamespace(ip="93.184.216.34", network_prefix=24)
    monkeypatch.setattr(ifaddr, "get_adapters", lambda: [SimpleNamespace(ips=[address])])
    with pytest.raises(Refused, match="this machine's own address"):
        await decide("http://example.org/", "93.184.216.34")
    with pytest.raises(Refused, match="on this machine's own network"):
        await decide("http://example.org/", "93.184.216.99")
    await decide("http://example.org/", "93.184.217.1")


async def test_the_interfaces_name_loopback_as_the_machine_s_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    with pytest.raises(Refused, match="this machine's own address"):
        await decide("http://127.0.0.1/")


@pytest.mark.parametrize(
    "limits",
    [
        FetchLimits(allow_hosts=("a b",)),
        FetchLimits(allow_hosts=("a.org:99999",)),
        FetchLimits(allow_nets=("10.0.0.0/99",)),
        FetchLimits(deny_domains=("*",)),
    ],
)
def test_a_setting_that_cannot_be_read_is_an_error_and_never_ignored(limits: FetchLimits) -> None:
    with pytest.raises(BadArgument, match=r"fetch\."):
        HttpFetcher(limits)

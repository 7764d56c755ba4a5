"""What may be fetched: addresses, ports, domains, names, and the operator's exceptions."""

from types import SimpleNamespace

import ifaddr
import pytest

from fetchstash.errors import BadArgument, Call, Refused
from fetchstash.fetch import FetchLimits, HttpFetcher, plain, why_not_public
from tests.fetch.sending import Answers

pytestmark = [pytest.mark.anyio, pytest.mark.whole]


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


FORBIDDEN = [
    "0.0.0.0", "0.255.255.255", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255",
    "127.0.0.1", "127.255.255.254", "169.254.0.1", "169.254.169.254", "172.16.0.1",
    "172.31.255.255", "192.0.0.1", "192.0.0.171", "192.0.2.1", "192.88.99.1", "192.168.0.1",
    "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
    "240.0.0.1", "255.255.255.255", "168.63.129.16", "100.100.100.200", "192.0.0.192", "::", "::1",
    "::2", "64:ff9b:1::1", "100::1", "100:0:0:1::1", "2001::1", "2001:2::1", "2001:10::1",
    "2001:db8::1", "2002::1", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254",
    "fe80::1", "fec0::1", "ff02::1", "0:1::1", "1fff::1", "e000::1",
]  # fmt: skip
PUBLIC = [
    "1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
    "126.255.255.255", "128.0.0.1", "169.253.255.255", "169.255.0.0", "172.15.255.255",
    "172.32.0.0", "192.0.0.9", "192.0.1.1", "192.31.196.1", "192.167.255.255", "198.17.255.255",
    "198.20.0.0", "203.0.112.255", "223.255.255.255", "168.63.129.15", "2000::1", "2001:1::1",
    "2001:3::1", "2001:20::1", "2001:200::1", "2001:db7::1", "2003::1", "2600::", "2606:4700::1111",
    "2620:4f:8000::1", "2a00:1450:4001:80b::200e", "3ffe:ffff::1",
]  # fmt: skip
FORMS = {
    "IPv4-mapped": "::ffff:{0:02x}{1:02x}:{2:02x}{3:02x}",
    "IPv4-translated": "::ffff:0:{0:02x}{1:02x}:{2:02x}{3:02x}",
    "NAT64": "64:ff9b::{0:02x}{1:02x}:{2:02x}{3:02x}",
    "IPv4-compatible": "::{0:02x}{1:02x}:{2:02x}{3:02x}",
    "6to4": "2002:{0:02x}{1:02x}:{2:02x}{3:02x}::1",
    "ISATAP": "2606:4700::5efe:{0:02x}{1:02x}:{2:02x}{3:02x}",
    "ISATAP, of a universal address": "2606:4700::200:5efe:{0:02x}{1:02x}:{2:02x}{3:02x}",
}


@pytest.mark.parametrize("address", FORBIDDEN)
def test_an_address_that_is_not_of_the_public_internet_is_named_for_what_it_is(
    address: str,
) -> None:
    assert why_not_public(plain(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_public_internet_passes(address: str) -> None:
    assert why_not_public(plain(address)) == ""


@pytest.mark.parametrize(
    "inner",
    ["10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1", "198.18.0.1", "168.63.129.16"],
)
@pytest.mark.parametrize("form", FORMS)
def test_a_forbidden_ipv4_address_stays_forbidden_in_every_ipv6_form(form: str, inner: str) -> None:
    dressed = plain(FORMS[form].format(*(int(part) for part in inner.split("."))))
    assert why_not_public(dressed)


def test_nat64_of_a_public_address_is_public_because_networks_without_ipv4_have_no_other_way() -> (
    None
):
    assert why_not_public(plain("64:ff9b::808:808")) == ""


@pytest.mark.parametrize(
    "address", ["::808:808", "::ffff:0:808:808", "2002:808:808::1", "64:ff9b:1::808:808"]
)
def test_other_tunnels_and_translations_are_refused_even_to_public_addresses(address: str) -> None:
    assert why_not_public(plain(address))


def test_a_mapped_address_is_the_ipv4_address_that_it_dials_and_a_zone_is_dropped() -> None:
    assert str(plain("::ffff:8.8.8.8")) == "8.8.8.8"
    assert str(plain("fe80::1%eth0")) == "fe80::1"


def test_the_unspecified_address_and_loopback_carry_no_ipv4_address() -> None:
    assert why_not_public(plain("::")) == "the unspecified address (RFC 4291)"
    assert why_not_public(plain("::1")).startswith("loopback: ")

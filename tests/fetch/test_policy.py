"""What may be fetched: ports, domains, names, addresses, and the operator's exceptions."""

from ipaddress import ip_network

import pytest

from fetchstash.errors import BadArgument, Call, Refused
from fetchstash.fetch import FetchLimits
from fetchstash.fetch._addresses import plain
from fetchstash.fetch._machine import read_interfaces
from fetchstash.fetch._policy import Machine, Policy
from fetchstash.fetch._url import parse

NOWHERE = Machine()


def decide(
    url: str, *addresses: str, machine: Machine = NOWHERE, limits: FetchLimits | None = None
) -> None:
    """Raise Refused as a fetch of ``url`` would whose name has these addresses."""
    policy = Policy.of(limits or FetchLimits())
    target = parse(url, 8_192)
    policy.check(target)
    policy.vet(
        target,
        [plain(target.host)] if target.address else [plain(address) for address in addresses],
        machine,
    )


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
def test_a_refusal_names_what_was_refused_and_why(
    url: str, addresses: tuple[str, ...], says: str
) -> None:
    with pytest.raises(Refused, match=says):
        decide(url, *addresses)


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
def test_a_refusal_carries_the_setting_that_allows_it(url: str, host: str) -> None:
    with pytest.raises(Refused) as refused:
        decide(url, "127.0.0.1")
    assert refused.value.calls == (Call("setting", {"name": "fetch.allow_hosts", "value": [host]}),)
    decide(url, "127.0.0.1", limits=FetchLimits(allow_hosts=(host,)))


def test_the_address_behind_a_name_is_in_the_details_and_not_in_the_sentence() -> None:
    with pytest.raises(Refused) as refused:
        decide("http://inside.example.org/", "10.0.0.5")
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
def test_a_host_can_be_excepted_from_the_address_and_port_rules(entry: str, url: str) -> None:
    decide(url, "127.0.0.1", limits=FetchLimits(allow_hosts=(entry,)))


@pytest.mark.parametrize(
    ("entry", "url"), [("localhost:8000", "http://localhost:8080/"), ("a.org", "http://b.a.org/")]
)
def test_an_exception_is_for_that_host_and_port_alone(entry: str, url: str) -> None:
    with pytest.raises(Refused):
        decide(url, "127.0.0.1", limits=FetchLimits(allow_hosts=(entry,)))


def test_a_net_can_be_excepted_and_ports_stay_as_they_are() -> None:
    limits = FetchLimits(allow_nets=("198.18.0.0/15",))
    decide("http://example.org/", "198.18.3.4", limits=limits)
    with pytest.raises(Refused, match="Port 22"):
        decide("http://example.org:22/", "198.18.3.4", limits=limits)
    with pytest.raises(Refused):
        decide("http://example.org/", "10.0.0.1", limits=limits)


def test_domain_lists_hold_for_sub_domains_and_go_before_exceptions() -> None:
    only = FetchLimits(allow_domains=("example.org",), allow_hosts=("other.org",))
    decide("http://www.example.org/", "93.184.216.34", limits=only)
    for url in ("http://other.org/", "http://badexample.org/"):
        with pytest.raises(Refused, match="not among the domains"):
            decide(url, "93.184.216.34", limits=only)
    never = FetchLimits(deny_domains=("example.org",), allow_hosts=("example.org",))
    with pytest.raises(Refused, match="denies"):
        decide("http://www.example.org/", "93.184.216.34", limits=never)


def test_the_machine_s_own_addresses_and_neighbours_are_refused_though_they_are_public() -> None:
    machine = Machine(frozenset({plain("93.184.216.34")}), (ip_network("93.184.216.0/24"),))
    with pytest.raises(Refused, match="this machine's own address"):
        decide("http://example.org/", "93.184.216.34", machine=machine)
    with pytest.raises(Refused, match="on this machine's own network"):
        decide("http://example.org/", "93.184.216.99", machine=machine)
    decide("http://example.org/", "93.184.217.1", machine=machine)


def test_the_interfaces_name_loopback_as_the_machine_s_own() -> None:
    assert plain("127.0.0.1") in read_interfaces().addresses


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
        Policy.of(limits)

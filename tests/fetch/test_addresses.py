"""Which addresses are public: a table of each block and each form that carries an address."""

import pytest

from fetchstash.fetch import plain, why_not_public

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

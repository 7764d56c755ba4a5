"""Decide which addresses are public, read this machine's own, and look names up.

Public is decided from the IANA registries alone: the IPv4 and IPv6 Special-Purpose Address
Registries (as of 2024-10-22, with RFC 9780 of 2025 added), the IPv6 Address Space registry (only
2000::/3 is global unicast), and the multicast registries. ``ipaddress.is_global`` is not used: it
lags behind these, differs between Python versions and looks at no embedded address.

Names are looked up in threads of their own, so that a dead name server delays no other look-up.
"""

import socket
import threading
import time
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_interface,
    ip_network,
)
from typing import Protocol

import anyio
import anyio.from_thread
import anyio.lowlevel

from fetchstash.errors import FetchFailed, Refused
from fetchstash.text.urls import Target

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# The first block that holds an address decides, so a reachable exception stands before the block
# around it. An empty reason: globally reachable.
_V4 = (
    ("168.63.129.16/32", "a cloud platform's own service (Azure WireServer)"),
    ("192.0.0.9/32", ""),  # Port Control Protocol anycast, RFC 7723
    ("192.0.0.10/32", ""),  # TURN anycast, RFC 8155
    ("192.0.0.192/32", "a cloud platform's metadata service"),  # Oracle Cloud's older address
    ("100.100.100.200/32", "a cloud platform's metadata service"),  # Alibaba Cloud
    ("169.254.169.254/32", "a cloud platform's metadata service"),
    ("0.0.0.0/8", "this host itself (RFC 791)"),
    ("10.0.0.0/8", "in a private network (RFC 1918)"),
    ("100.64.0.0/10", "in a provider's shared address space (RFC 6598)"),
    ("127.0.0.0/8", "loopback: the machine fetchstash runs on (RFC 1122)"),
    ("169.254.0.0/16", "link-local (RFC 3927)"),
    ("172.16.0.0/12", "in a private network (RFC 1918)"),
    ("192.0.0.0/24", "reserved for protocols (RFC 6890)"),
    ("192.0.2.0/24", "reserved for documentation (RFC 5737)"),
    ("192.88.99.0/24", "the deprecated 6to4 relay anycast (RFC 7526)"),
    ("192.168.0.0/16", "in a private network (RFC 1918)"),
    ("198.18.0.0/15", "reserved for benchmarks, and used by fake-IP proxies (RFC 2544)"),
    ("198.51.100.0/24", "reserved for documentation (RFC 5737)"),
    ("203.0.113.0/24", "reserved for documentation (RFC 5737)"),
    ("224.0.0.0/4", "multicast (RFC 5771)"),
    ("240.0.0.0/4", "reserved (RFC 1112)"),
)

_V6 = (
    ("::1/128", "loopback: the machine fetchstash runs on (RFC 4291)"),
    ("::/128", "the unspecified address (RFC 4291)"),
    ("fd00:ec2::254/128", "a cloud platform's metadata service"),
    ("fd20:ce::254/128", "a cloud platform's metadata service"),
    ("100::/64", "discard-only (RFC 6666)"),
    ("100:0:0:1::/64", "a dummy prefix (RFC 9780)"),
    ("2001:1::1/128", ""),  # Port Control Protocol anycast, RFC 7723
    ("2001:1::2/128", ""),  # TURN anycast, RFC 8155
    ("2001:1::3/128", ""),  # DNS-SD service registration anycast, RFC 9665
    ("2001:3::/32", ""),  # AMT, RFC 7450
    ("2001:4:112::/48", ""),  # AS112-v6, RFC 7535
    ("2001:20::/28", ""),  # ORCHIDv2, RFC 7343
    ("2001:30::/28", ""),  # drone remote identification, RFC 9374
    ("2001::/23", "reserved for protocols, Teredo included (RFC 2928, RFC 4380)"),
    ("2001:db8::/32", "reserved for documentation (RFC 3849)"),
    ("2002::/16", "a 6to4 address, which tunnels to an IPv4 address (RFC 3056)"),
    ("3fff::/20", "reserved for documentation (RFC 9637)"),
    ("5f00::/16", "reserved for segment routing (RFC 9602)"),
    ("fc00::/7", "in a private network (RFC 4193)"),
    ("fe80::/10", "link-local (RFC 4291)"),
    ("fec0::/10", "the deprecated site-local space (RFC 3879)"),
    ("ff00::/8", "multicast (RFC 4291)"),
    ("2000::/3", ""),  # global unicast
    ("::/0", "outside the global unicast space (RFC 4291)"),
)

_BLOCKS: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(block), why) for block, why in _V4 + _V6
)

# Prefixes whose last 32 bits are an IPv4 address that the packet, or a translator on its way,
# really goes to.
_LAST_32_BITS = (
    (IPv6Network("::ffff:0:0/96"), "IPv4-mapped"),  # RFC 4291, section 2.5.5.2
    (IPv6Network("::ffff:0:0:0/96"), "IPv4-translated"),  # RFC 2765
    (IPv6Network("64:ff9b::/96"), "NAT64"),  # RFC 6052
    (IPv6Network("::/96"), "IPv4-compatible"),  # RFC 4291, section 2.5.5.1
)
_NAT64_WELL_KNOWN = _LAST_32_BITS[2][0]
# RFC 8215: the local network chooses what this prefix translates to.
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_ISATAP = (0x00005EFE, 0x02005EFE)  # RFC 5214, section 6.1: upper half of the interface ID

_KEEP_SECONDS = 30
# A point-to-point or tunnel interface may claim half of the internet: that is no local network.
_WIDEST_PREFIX = {4: 8, 6: 16}

_TIMEOUT_SECONDS = 10
# getaddrinfo cannot be interrupted: a thread lives on after its caller has given up.
_MAX_THREADS = 128
_MAX_ADDRESSES = 64  # all are vetted; the largest sites have some twenty


def _embedded_ipv4(address: IPv6Address) -> tuple[IPv4Address, str] | None:
    """Return the IPv4 address that ``address`` carries and the name of the form, or None."""
    number = int(address)
    for network, form in _LAST_32_BITS:
        if address in network and number > 1:  # :: and ::1 are addresses of their own
            return IPv4Address(number & 0xFFFFFFFF), form
    if address in _SIX_TO_FOUR:
        return IPv4Address((number >> 80) & 0xFFFFFFFF), "6to4"
    if (number >> 32) & 0xFFFFFFFF in _ISATAP:
        return IPv4Address(number & 0xFFFFFFFF), "ISATAP"
    return None


def why_not_public(address: Address) -> str:
    """Return why ``address`` is no public internet address, or "" if it is one.

    Both an address and the IPv4 address that it carries have to be public. NAT64 of a public IPv4
    address is public: a network without IPv4 has no other way there. Every other translation and
    tunnel is refused whatever it carries, except ISATAP-shaped global unicast, where the shape may
    be chance.
    """
    if isinstance(address, IPv6Address):
        if address in _LOCAL_NAT64:
            return "an address that the local network translates (RFC 8215)"
        inner = _embedded_ipv4(address)
        if inner is not None:
            if why := why_not_public(inner[0]):
                return f"an {inner[1]} form of an address that is {why}"
            if address in _NAT64_WELL_KNOWN:
                return ""
    blocks = ((why, block) for block, why in _BLOCKS if block.version == address.version)
    return next((why for why, block in blocks if address in block), "")


def plain(text: str) -> Address:
    """Return the numeric address in ``text``, without its zone; IPv4-mapped becomes IPv4.

    Raises ValueError if ``text`` is no address.
    """
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def target_of(scheme: str, host: str, port: int) -> Target:
    """Return the target of a connection to a parsed host, for which no path is known."""
    try:
        return Target(scheme, host, plain(host), port, "/")
    except ValueError:
        return Target(scheme, host, None, port, "/")


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine's own addresses, and the networks that it reaches without a router."""

    addresses: frozenset[Address] = frozenset()
    networks: tuple[Network, ...] = ()


class Interfaces:
    """Reads the interfaces every half minute at most, because a laptop changes its network."""

    def __init__(self) -> None:
        self._machine = Machine()
        self._read_at = -float(_KEEP_SECONDS)

    def machine(self) -> Machine:
        """Return the addresses and on-link networks. Blocks for about a millisecond."""
        import ifaddr  # noqa: PLC0415 -- not needed before the first fetch

        now = time.monotonic()
        if now - self._read_at < _KEEP_SECONDS:
            return self._machine
        addresses: set[Address] = set()
        networks: list[Network] = []
        # Its last version is of 2022, because it has no more to do: it calls getifaddrs, on Windows
        # GetAdaptersAddresses. Ours would be the same 440 lines of ctypes for three systems.
        # Not the route table: it also lists networks behind a router.
        for ip in (ip for adapter in ifaddr.get_adapters() for ip in adapter.ips):
            address = plain(ip.ip if isinstance(ip.ip, str) else ip.ip[0])
            addresses.add(address)
            if ip.network_prefix >= _WIDEST_PREFIX[address.version]:
                networks.append(ip_interface(f"{address}/{ip.network_prefix}").network)
        self._machine, self._read_at = Machine(frozenset(addresses), tuple(networks)), now
        return self._machine


class Resolver(Protocol):
    """Looks up names."""

    async def look_up(self, host: str) -> list[Address]:
        """Return all addresses of ``host``, best first. Raises FetchFailed and Refused."""
        ...


async def addresses_of(target: Target, resolver: Resolver | None) -> list[Address]:
    """Return the addresses that ``target`` leads to; a numeric one needs no look-up.

    Without a resolver the proxy looks names up (fetch.proxy_resolves), and none is known here.
    """
    if target.address is not None:
        return [plain(target.host)]
    return await resolver.look_up(target.host) if resolver else []


class SystemResolver:
    """The system's resolver: hosts file, name servers and all."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(_MAX_THREADS)

    async def look_up(self, host: str) -> list[Address]:
        """Return all addresses of ``host``.

        Raises FetchFailed if there are none within 10 s, and Refused if there are more than 64.
        """
        lookup = _Lookup(host, self._limiter)
        with anyio.move_on_after(_TIMEOUT_SECONDS):
            await self._limiter.acquire_on_behalf_of(lookup)
            await lookup.run()
        if len(lookup.addresses) > _MAX_ADDRESSES:
            what = f"{host} leads to {len(lookup.addresses)} addresses, too many to check."
            raise Refused(what, "Look for the document elsewhere.", rule="address", host=host)
        if lookup.addresses:
            return lookup.addresses
        if lookup.error in {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", None)}:
            what = f"There is no address for the name {host}."
            step = "Check the spelling, or look for the document elsewhere."
            raise FetchFailed(what, step, unreached=True)
        what = f"No name server answered for {host}."
        raise FetchFailed(what, "Try again later.", unreached=True)


class _Lookup:
    """One look-up in a daemon thread, which does not delay the end of the interpreter."""

    def __init__(self, host: str, limiter: anyio.CapacityLimiter) -> None:
        self._host = host
        self._limiter = limiter
        self._done = anyio.Event()
        self.addresses: list[Address] = []
        self.error: int | None = None

    async def run(self) -> None:
        token = anyio.lowlevel.current_token()
        thread = threading.Thread(
            target=self._look_up, args=(token,), name=f"look-up of {self._host}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # no more threads
            self._finish()
        await self._done.wait()

    def _look_up(self, token: anyio.lowlevel.EventLoopToken) -> None:
        try:
            # Bytes keep Python's own IDNA codec out: the host is in its final form.
            answers = socket.getaddrinfo(self._host.encode("ascii"), None, type=socket.SOCK_STREAM)
            self.addresses = list(dict.fromkeys(plain(str(answer[4][0])) for answer in answers))
        except socket.gaierror as error:
            self.error = error.errno
        except (OSError, UnicodeError, ValueError):
            self.error = socket.EAI_FAIL
        try:
            anyio.from_thread.run_sync(self._finish, token=token)
        except RuntimeError:  # the loop has ended meanwhile, and nobody waits
            return

    def _finish(self) -> None:
        self._limiter.release_on_behalf_of(self)
        self._done.set()

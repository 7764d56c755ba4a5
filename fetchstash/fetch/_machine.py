"""The addresses and networks of the machine's own interfaces."""

import time
from ipaddress import ip_interface

from fetchstash.fetch._addresses import Address, Network, plain
from fetchstash.fetch._policy import Machine

_KEEP_SECONDS = 30
# A point-to-point or tunnel interface may claim half of the internet: that is no local network.
_WIDEST_PREFIX = {4: 8, 6: 16}


class Interfaces:
    """Reads the interfaces every half minute at most, because a laptop changes its network."""

    def __init__(self) -> None:
        self._machine = Machine()
        self._read_at = -float(_KEEP_SECONDS)

    def machine(self) -> Machine:
        """Return the addresses and on-link networks. Blocks for about a millisecond."""
        now = time.monotonic()
        if now - self._read_at >= _KEEP_SECONDS:
            self._machine, self._read_at = read_interfaces(), now
        return self._machine


def read_interfaces() -> Machine:
    """Read all interfaces. Not the route table: it also lists networks behind a router."""
    import ifaddr  # noqa: PLC0415 -- not needed before the first fetch

    addresses: set[Address] = set()
    networks: list[Network] = []
    for adapter in ifaddr.get_adapters():
        for ip in adapter.ips:
            text = ip.ip if isinstance(ip.ip, str) else ip.ip[0]
            address = plain(text)
            addresses.add(address)
            if ip.network_prefix >= _WIDEST_PREFIX[address.version]:
                networks.append(ip_interface(f"{address}/{ip.network_prefix}").network)
    return Machine(frozenset(addresses), tuple(networks))

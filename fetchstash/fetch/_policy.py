"""The operator's rules: which URLs and addresses may be fetched.

Pure functions. Every refusal says what was refused and why; only the operator can allow it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from typing import NoReturn

from fetchstash.errors import BadArgument, Call, Refused
from fetchstash.fetch._addresses import Address, Machine, Network, plain, why_not_public
from fetchstash.fetch._contract import FetchLimits
from fetchstash.fetch._rules import MEANINGS
from fetchstash.text.urls import BadHost, Target, join_host_port, parse_host

# Names that have a meaning only inside a machine or a network, whatever a resolver answers.
_INSIDE_NAMES = {
    "localhost": "this machine (RFC 6761)",
    "local": "the local network (RFC 6762)",
    "internal": "a private network (reserved by ICANN)",
    "home.arpa": "a home network (RFC 8375)",
    "onion": "Tor (RFC 7686)",
    "svc": "a Kubernetes cluster",
    "consul": "a Consul cluster",
    "metadata.tencentyun.com": "a cloud platform's metadata service",
}
# What a person may allow for a session: hosts of their own. Never a platform's metadata service,
# which hands out keys, nor what no server answers on.
_MAY_BE_ASKED = (
    "in a private network",
    "in a provider's shared address space",
    "loopback",
    "on this machine's own network",
    "reserved for benchmarks",
    "this machine's own address",
)
_INSIDE_NAMES_TO_ASK = frozenset({"localhost", "local", "internal", "home.arpa", "svc", "consul"})


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one fetcher, parsed once from its limits.

    ``granted`` are the hosts and ports that a person allowed since.
    """

    ports: frozenset[int]
    hosts: frozenset[tuple[str, int | None]]
    nets: tuple[Network, ...]
    only_domains: tuple[str, ...]
    never_domains: tuple[str, ...]
    granted: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]], compare=False)

    @classmethod
    def of(cls, limits: FetchLimits) -> "Policy":
        """Parse the rules. Raises BadArgument for an invalid host, net, domain or rule's name."""
        for entry in limits.browser:
            if entry not in ("off", "auto"):
                _domain(entry, "browser")
        for name in limits.rules_off:
            if name not in MEANINGS:
                what = f"fetch.rules_off names {name!r}, and there is no such rule."
                raise BadArgument(what, f"The rules are {', '.join(sorted(MEANINGS))}.")
        return cls(
            ports=frozenset(limits.ports),
            hosts=frozenset(map(_host_and_port, limits.allow_hosts)),
            nets=tuple(map(_net, limits.allow_nets)),
            only_domains=tuple(_domain(entry, "allow_domains") for entry in limits.allow_domains),
            never_domains=tuple(_domain(entry, "deny_domains") for entry in limits.deny_domains),
        )

    def is_exempt(self, host: str, port: int) -> bool:
        """Return whether the operator exempted this host and port from address and port rules."""
        name = _plain_name(host)
        return (name, None) in self.hosts or (name, port) in self.hosts

    def grant(self, host: str, port: int) -> None:
        """Let a private host pass the address and port rules, on this port alone."""
        self.granted.add((_plain_name(host), port))

    def for_page(self, page: Target, addresses: Sequence[Address]) -> "Policy":
        """Return the policy for a rendered page's requests; ``addresses`` are the page's own.

        The scripts of a public page must not use what the operator or a person allowed inside.
        """
        if self.is_inside(page, addresses):
            return self
        return replace(self, hosts=frozenset(), nets=(), granted=set[tuple[str, int]]())

    def is_inside(self, page: Target, addresses: Sequence[Address]) -> bool:
        """Return whether the operator or a person exempted the page's host."""
        return (
            self.is_exempt(page.host, page.port)
            or self._is_granted(page)
            or any(_is_in(address, self.nets) for address in addresses)
        )

    def _is_granted(self, target: Target) -> bool:
        return (_plain_name(target.host), target.port) in self.granted

    def check(self, target: Target) -> None:
        """Raise Refused unless domain, host name and port are allowed. Looks up no name."""
        name = target.host.removesuffix(".")
        if any(_is_in_domain(name, domain) for domain in self.never_domains):
            what = f"{name} is among the domains that the operator denies."
            raise Refused(what, "Only the operator can change that.", rule="domain_denied")
        only = self.only_domains
        if only and not any(_is_in_domain(name, domain) for domain in only):
            what = f"{name} is not among the domains that the operator allows."
            allow = Call("setting", {"name": "fetch.allow_domains", "value": [name]})
            raise Refused(what, "{}.", allow, rule="domain_not_allowed")
        if self.is_exempt(target.host, target.port) or self._is_granted(target):
            return
        private = _private_by_name(target)
        if target.port not in self.ports:
            allowed = ", ".join(str(port) for port in sorted(self.ports))
            what = f"Port {target.port} of {name} is not among the allowed ports ({allowed})."
            _refuse(target, what, private, rule="port")
        if target.address is None:
            if "." not in name and name != "localhost":
                what = f"{name} is a name without a dot, and such names are of a local network."
                _refuse(target, what, private, rule="name")
            for inside, what in _INSIDE_NAMES.items():
                if _is_in_domain(name, inside):
                    _refuse(target, f"{name} is a name of {what}.", private, rule="name")

    def vet(self, target: Target, addresses: Sequence[Address], machine: Machine) -> None:
        """Raise Refused unless all ``addresses`` may be dialled for ``target``.

        One forbidden answer is enough: an attacker who mixes a public and a private answer could
        choose the private one by making the public one fail.
        """
        if self.is_exempt(target.host, target.port):
            return
        forbidden: dict[Address, str] = {}
        for address in addresses:
            if address in machine.addresses:
                why = "this machine's own address"
            elif not (why := why_not_public(address)) and _is_in(address, machine.networks):
                why = "on this machine's own network"
            if why and not _is_in(address, self.nets):
                forbidden[address] = why
        may_be_asked = all(why.startswith(_MAY_BE_ASKED) for why in forbidden.values())
        if may_be_asked and self._is_granted(target):
            return
        for address, why in forbidden.items():
            name = target.host.removesuffix(".")
            what = f"{'leads to an address that is' if target.address is None else 'is'} {why}"
            private = what if may_be_asked else ""
            _refuse(target, f"{name} {what}.", private, address=str(address), rule="address")


def _private_by_name(target: Target) -> str:
    """Return why a name is private and a person may be asked about it; "" otherwise."""
    name = target.host.removesuffix(".")
    if target.address is not None:
        why = why_not_public(target.address)
        return f"is {why}" if why.startswith(_MAY_BE_ASKED) else ""
    if "." not in name:
        return "is a name of a local network"
    inside = (i for i in _INSIDE_NAMES_TO_ASK if _is_in_domain(name, i))
    return next((f"is a name of {_INSIDE_NAMES[i]}" for i in inside), "")


def _refuse(target: Target, what: str, private: str, *, rule: str, **details: str) -> NoReturn:
    name = target.host.removesuffix(".")
    if private:
        details["private"] = private
    entry = join_host_port(_plain_name(name), target.port)
    allow = Call("setting", {"name": "fetch.allow_hosts", "value": [entry]})
    raise Refused(what, "{}.", allow, rule=rule, host=name, port=target.port, **details)


def _plain_name(host: str) -> str:
    """Return a host as the operator's exceptions have it: an IPv4-mapped address as IPv4."""
    try:
        return str(plain(host))
    except ValueError:
        return host.removesuffix(".")


def _is_in_domain(name: str, domain: str) -> bool:
    return name == domain or name.endswith("." + domain)


def _is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _host_and_port(entry: str) -> tuple[str, int | None]:
    """Parse ``NAME``, ``NAME:PORT``, ``1.2.3.4:PORT``, ``::1``, ``[::1]`` or ``[::1]:PORT``."""
    host, port = entry.strip(), ""
    if host.startswith("["):
        bracketed, _, port = host.partition("]")
        host, port = bracketed + "]", port.removeprefix(":")
    elif host.count(":") == 1:
        host, _, port = host.partition(":")
    elif ":" in host:
        host = f"[{host}]"
    advice = "Give NAME, NAME:PORT or [::1]:PORT."
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise BadArgument(f"fetch.allow_hosts has {entry!r}, and {port!r} is no port.", advice)
    try:
        parsed = parse_host(host)
    except BadHost as bad:
        raise BadArgument(f"fetch.allow_hosts has {entry!r}, which {bad}.", advice) from None
    return _plain_name(str(parsed)), int(port) if port else None


def _net(entry: str) -> Network:
    try:
        return ip_network(entry.strip(), strict=False)
    except ValueError:
        what = f"fetch.allow_nets has {entry!r}, which is no network."
        raise BadArgument(what, "Give one such as 10.1.0.0/16 or fd00::/8.") from None


def _domain(entry: str, setting: str) -> str:
    try:
        parsed = parse_host(entry.strip().removeprefix("*").removeprefix("."))
    except BadHost as bad:
        what = f"fetch.{setting} has {entry!r}, which {bad}."
        raise BadArgument(what, "Give a domain such as example.org.") from None
    return str(parsed).removesuffix(".")

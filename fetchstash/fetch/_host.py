"""Parse hosts by the WHATWG URL Standard (section 3.5), as a browser does.

One parser decides what is vetted, dialled, named in TLS and sent as Host, so that these cannot
differ.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import unquote_to_bytes

# URL Standard, forbidden domain code points: C0 controls, space, DEL, % and a URL's delimiters.
_FORBIDDEN = re.compile(r"[\x00-\x20\"#%/:<>?@\[\\\]^`{|}\x7f]")
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)\Z")
_MAX_INPUT_CHARS = 1_024  # no name of 253 ASCII characters is written with more


class BadHost(ValueError):
    """An invalid host. Its text is half a sentence; ``better`` is the right spelling, or ""."""

    def __init__(self, why: str, better: str = "") -> None:
        super().__init__(why)
        self.better = better


def parse_host(text: str) -> str | IPv4Address | IPv6Address:
    """Return a URL's host: a numeric address, or a lower-case ASCII name with its trailing dot.

    Raises BadHost where the URL Standard fails, and for names that DNS cannot hold (RFC 1035,
    section 2.3.4).
    """
    if not text:
        raise BadHost("is missing")
    if len(text) > _MAX_INPUT_CHARS:
        raise BadHost("is too long for a host name")
    if text.startswith("["):
        return _ipv6(text)
    try:
        decoded = unquote_to_bytes(text).decode("utf-8")
    except UnicodeError:
        raise BadHost("is not valid text") from None
    name = _to_ascii(decoded)
    if not name or _FORBIDDEN.search(name):
        raise BadHost("holds characters that no host name has")
    labels = name.removesuffix(".").split(".")
    if _NUMBER.match(labels[-1]) or labels[-1].isdigit():
        return _ipv4(name)
    if any(not 0 < len(label) <= 63 for label in labels) or len(name.removesuffix(".")) > 253:
        raise BadHost("has an empty or overlong part")
    return name


def join_host_port(host: str, port: int) -> str:
    """Return both as a URL has them: an IPv6 address in brackets (RFC 3986, section 3.2.2)."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _ipv6(text: str) -> IPv6Address:
    if not text.endswith("]") or "%" in text:
        raise BadHost("is no IPv6 address (zones are not fetched from)")
    try:
        return IPv6Address(text[1:-1])
    except AddressValueError:
        raise BadHost("is no IPv6 address") from None


def _ipv4(name: str) -> IPv4Address:
    """Read one to four numbers, decimal, octal (0…) or hexadecimal (0x…), as an address.

    The last number fills all bytes that are left. A browser accepts every such spelling; here only
    four decimal numbers pass, because the others serve to get past checks.
    """
    labels = name.removesuffix(".").split(".")
    if len(labels) > 4 or not all(_NUMBER.match(label) for label in labels):
        raise BadHost("ends in a number and is no IPv4 address")
    try:
        numbers = [_number(label) for label in labels]
    except ValueError:
        raise BadHost("ends in a number and is no IPv4 address") from None
    *head, last = numbers
    if any(number > 255 for number in head) or last >= 256 ** (5 - len(numbers)):
        raise BadHost("ends in a number and is no IPv4 address")
    address = IPv4Address(
        last + sum(number << (24 - 8 * place) for place, number in enumerate(head))
    )
    if str(address) != name:
        raise BadHost(f"is an odd spelling of {address}", str(address))
    return address


def _number(label: str) -> int:
    if label[:2] in ("0x", "0X"):
        return int(label[2:] or "0", 16)
    return int(label, 8) if len(label) > 1 and label.startswith("0") else int(label)


def _to_ascii(domain: str) -> str:
    """Return ``domain`` in ASCII by UTS #46: non-transitional, no STD3 rules, no hyphen check."""
    if domain.isascii() and "xn--" not in domain.lower():
        return domain.lower()
    import idna  # noqa: PLC0415 -- its tables take milliseconds to load, and most hosts are ASCII

    try:
        mapped = idna.uts46_remap(domain, std3_rules=False)
        labels = [_label(label) for label in mapped.split(".")]
    except (UnicodeError, ValueError, IndexError):
        raise BadHost("is no valid internationalised name") from None
    return ".".join(labels)


def _label(label: str) -> str:
    """Validate one mapped label (UTS #46, section 4.1) and return it in ASCII."""
    import idna  # noqa: PLC0415 -- see above

    text = label
    if label.startswith("xn--"):
        text = label[4:].encode("ascii").decode("punycode")
        if not text or text.isascii() or idna.uts46_remap(text, std3_rules=False) != text:
            raise BadHost("is no valid internationalised name")
    if text.isascii():
        return text
    idna.check_nfc(text)
    idna.check_initial_combiner(text)
    idna.check_bidi(text)
    if any(
        char in "\u200c\u200d" and not idna.valid_contextj(text, place)
        for place, char in enumerate(text)
    ):
        raise BadHost("is no valid internationalised name")
    return "xn--" + text.encode("punycode").decode("ascii")

"""Parse http and https URLs and their hosts by the WHATWG URL Standard, strict where it guesses.

A URL is refused, not repaired, if it has line breaks or control characters, no ``//`` after the
scheme, a user name, or a backslash before its path: parsers disagree on the host of such URLs. One
parser decides what is vetted, dialled, named in TLS and sent as Host, so that these cannot differ.
"""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote, unquote_to_bytes, urljoin

from fetchstash.errors import BadArgument, Call, FetchFailed, FetchstashError, Refused

# URL Standard, forbidden domain code points: C0 controls, space, DEL, % and a URL's delimiters.
_FORBIDDEN = re.compile(r"[\x00-\x20\"#%/:<>?@\[\\\]^`{|}\x7f]")
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)\Z")
_MAX_INPUT_CHARS = 1_024  # no name of 253 ASCII characters is written with more

_DEFAULT_PORTS = {"http": 80, "https": 443}
_ABSOLUTE = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
# C0 and C1 controls, lone surrogates, and the tag characters, which spell invisible ASCII.
_NEVER = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\U000e0000-\U000e007f]")
_PATH_SAFE = "!$%&'()*+,-./:;=@[\\]^_|~"  # outside URL Standard's path percent-encode set
_QUERY_SAFE = "!$%&()*+,-./:;=?@[\\]^_`{|}~"  # outside its special-query percent-encode set
_HOST_FIRST = re.compile(r"[\w-]+(?:\.[\w-]+)+(?:[/?#]|\Z)")
_HOST_AND_PORT = re.compile(r"(?:(?:[\w-]+\.)+[\w-]+|localhost):\d{1,5}(?:[/?#]|\Z)")
_TWICE = re.compile(r"https?://(?=https?:?//)", re.IGNORECASE)
_ONE_DOT = re.compile(r"(?:\.|%2e)\Z", re.IGNORECASE)
_ENCODED = re.compile("%([0-9a-fA-F]{2})")
_TWO_DOTS = re.compile(r"(?:\.|%2e){2}\Z", re.IGNORECASE)
_REWRITE = "Give the whole URL, such as https://example.org/page."


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
        if not text.endswith("]") or "%" in text:
            raise BadHost("is no IPv6 address (zones are not fetched from)")
        try:
            return IPv6Address(text[1:-1])
        except AddressValueError:
            raise BadHost("is no IPv6 address") from None
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


def _ipv4(name: str) -> IPv4Address:
    """Read one to four numbers, decimal, octal (0…) or hexadecimal (0x…), as an address.

    The last number fills all bytes that are left. A browser accepts every such spelling; here only
    four decimal numbers pass, because the others serve to get past checks.
    """
    labels = name.removesuffix(".").split(".")
    try:
        numbers = [_number(label) for label in labels]
    except ValueError:
        numbers = []
    *head, last = numbers or [-1]
    is_valid = 0 < len(numbers) <= 4 and all(number <= 255 for number in head)
    if not is_valid or last >= 256 ** (5 - len(numbers)):
        raise BadHost("ends in a number and is no IPv4 address")
    address = IPv4Address(
        last + sum(number << (24 - 8 * place) for place, number in enumerate(head))
    )
    if str(address) != name:
        raise BadHost(f"is an odd spelling of {address}", str(address))
    return address


def _number(label: str) -> int:
    if not _NUMBER.match(label):
        raise ValueError
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


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed URL. ``host`` is a lower-case ASCII name or a numeric address.

    ``path`` is the request target: path and query, percent-encoded.
    """

    scheme: str
    host: str
    address: IPv4Address | IPv6Address | None
    port: int
    path: str

    @property
    def host_and_port(self) -> str:
        """Return host and port, the default port included."""
        return join_host_port(self.host, self.port)

    @property
    def authority(self) -> str:
        """Return host and port as in a URL and in the Host header (RFC 9110, section 7.2)."""
        return self.host_and_port.removesuffix(f":{_DEFAULT_PORTS[self.scheme]}")

    @property
    def origin(self) -> str:
        """Return scheme, host and port."""
        return f"{self.scheme}://{self.authority}"

    @property
    def text(self) -> str:
        """Return the whole URL in normal form, without its fragment."""
        return self.origin + self.path


def host_of(url: str) -> str:
    """Return the host of a URL as a fetch would parse it, "" if the text is no URL."""
    try:
        return parse(url, 2**20).host.removesuffix(".")
    except FetchstashError:
        return ""


def parse(text: str, max_chars: int) -> Target:
    """Parse an absolute http or https URL.

    Raises Refused for another scheme or a user name, and BadArgument if ``text`` is no URL or
    longer than ``max_chars``.
    """
    text = text.strip(" ")
    if len(text) > max_chars:
        what = f"The URL has {len(text)} characters, and at most {max_chars} are taken."
        raise BadArgument(what, "Give a shorter URL.")
    if _NEVER.search(text):
        what = "The URL holds line breaks, control characters or invisible characters."
        raise BadArgument(what, "Give it without them.")
    scheme_match = _ABSOLUTE.match(text)
    if scheme_match is None or _HOST_AND_PORT.match(text):
        raise _no_scheme(text)
    scheme = scheme_match[1].lower()
    if scheme not in _DEFAULT_PORTS:
        if known := _known(text):
            raise BadArgument("This is no URL of a page.", "Try {}.", known)
        what = "The URL's scheme is neither http nor https."
        raise Refused(what, "Give an http or https URL.", rule="scheme")
    rest = text[scheme_match.end() :].partition("#")[0]
    before_query, mark, query = rest.partition("?")
    if not before_query.startswith("//"):
        what, known = "The URL has no // after its scheme.", _known(text)
        raise BadArgument(what, "Try {}.", known) if known else BadArgument(what, _REWRITE)
    if _TWICE.match(text):
        rest = _TWICE.sub("", text)
        call = _known(rest) or Call("fetch", {"url": rest})
        raise BadArgument("The URL has its scheme twice.", "Try {}.", call)
    authority, slash, path = before_query[2:].partition("/")
    host, address, port = _authority(authority, scheme)
    target = _dotless(slash + path.replace("\\", "/")) + (
        f"?{quote(query, safe=_QUERY_SAFE)}" if mark else ""
    )
    return Target(scheme, host, address, port, target)


def _no_scheme(text: str) -> BadArgument:
    """Return the error for a text that does not start like a URL but may contain one."""
    found = urls_in(text)
    if len(found) == 1 and found[0] != text and _WEB.match(found[0]):
        return BadArgument("There is more than a URL.", "Try {}.", Call("fetch", {"url": found[0]}))
    if known := _known(text):
        return BadArgument("This is no absolute URL.", "Try {}.", known)
    if _HOST_FIRST.match(text) or _HOST_AND_PORT.match(text):
        whole = Call("fetch", {"url": f"https://{text}"})
        return BadArgument("This is no absolute URL: it has no scheme.", "Try {}.", whole)
    has_scheme = "://" in text
    what = "It does not begin with http:// or https://." if has_scheme else "It has no scheme."
    return BadArgument(f"This is no absolute URL. {what}", _REWRITE)


_MISSPELT = re.compile(
    r"(?:h?t{1,3}p|hpp?tp?)(s?)\s?(?::\s?[/\\]{0,3}|/{2})(?=[\w\[])", re.IGNORECASE
)
_NO_SCHEME = re.compile(r"//(?=[\w-]+\.)")
_REGISTERED = (
    (re.compile(r"(?:doi:\s?)?(?=10\.\d{4,9}/\S)", re.IGNORECASE), "https://doi.org/"),
    (re.compile(r"arxiv:\s?(?=[\w./-]+\Z)", re.IGNORECASE), "https://arxiv.org/abs/"),
)


def _known(text: str) -> Call | None:
    """Return the fetch of a URL whose scheme is misspelt, or of a registered identifier."""
    for begins, url in _REGISTERED:
        if found := begins.match(text):
            return Call("fetch", {"url": url + text[found.end() :]})
    if found := _NO_SCHEME.match(text):
        return Call("fetch", {"url": f"https:{text}"})
    if (found := _MISSPELT.match(text)) and not _WEB.match(text):
        rest = text[found.end() :].replace("\\", "/")
        return Call("fetch", {"url": f"http{found[1].lower()}://{rest}"})
    return None


_WEB = re.compile(r"https?://", re.IGNORECASE)
_LINK = re.compile(
    r"!?\[[^\]\n]{0,1000}\]\(\s{0,9}<?(https?://[^\s<>]{1,9000}?)>?(?:\s+\"[^\"]*\")?\s{0,9}\)"
)
"""A Markdown link, up to the bracket that closes it."""
_AROUND = "\"'`*,;<>\u201c\u201d\u2018\u2019\u00ab\u00bb"
"""What stands around a URL in a text, and is not at the end of one."""
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))
_MOST_URLS = 100


def urls_in(text: str) -> list[str]:
    """Return the URLs in an argument, without Markdown link text, quotes and angle brackets.

    What has none is returned as it is. Blanks, and commas outside of a query, separate several.
    """
    text = text.translate(_INVISIBLE).strip()
    if links := _LINK.findall(text):
        return [_balanced(text, url) for url in links[:_MOST_URLS]]
    bare = text.strip(_AROUND + " ")
    if not _WEB.search(bare):
        return [bare if "." in bare else text]
    # A URL in a path or a query follows a "/", "=" or "%": it is no other URL.
    begins = [0, *(m.start() for m in _WEB.finditer(bare) if m.start() and _parts(bare, m.start()))]
    if len(begins) > _MOST_URLS:
        return [text]
    pieces = [bare[a:b] for a, b in zip(begins, [*begins[1:], len(bare)], strict=True)]
    if len(pieces) > 1:
        pieces = [piece.split()[0].strip(_AROUND + "[]{}") for piece in pieces if piece.strip()]
        pieces = [piece if "(" in piece else piece.strip(")") for piece in pieces]
    pieces = [re.split('["<>]', piece)[0] for piece in pieces]  # which no URL has
    return [piece for piece in pieces if _WEB.match(piece)] or [bare]


def _parts(text: str, place: int) -> bool:
    """Return whether another URL may begin here: after a blank, a sign, or a comma in no query."""
    before = text[place - 1]
    if not re.search("[/?.]", text[:place]):
        return True  # the first one, behind words that begin no URL: url=, view-source:, @
    return before.isspace() or before in "<\"'`([" or (before in ",;|" and "?" not in text[:place])


def _balanced(text: str, url: str) -> str:
    """Return the URL of a Markdown link with the bracket that belongs to it: ``…/Wall_(sea)``."""
    after = text[text.index(url) + len(url) :]
    return f"{url})" if url.count("(") > url.count(")") and after.startswith("))") else url


_ENDING = re.compile(
    r"(?:[.,;:!?)\]}>*'\"`\u2019\u201d]|\\[nrt]|%20|%22|%0[AD])+\Z|\s+\(.*\Z",
    re.IGNORECASE | re.DOTALL,
)


def without_ending(url: str) -> str:
    """Return a URL without the signs at its end that may be a sentence's; "" if it has none."""
    ending = _ENDING.search(url)
    if ending is None:
        return ""
    shorter = url[: ending.start()]
    # A bracket that opens in the URL closes in it: …/Wall_(sea).
    if ending[0].startswith(")") and shorter.count("(") > shorter.count(")"):
        shorter += ")"
    return shorter if shorter != url and _WEB.match(shorter) else ""


def join(base: Target, reference: str, max_chars: int) -> Target:
    """Resolve the ``reference`` of a Location header (RFC 9110, section 10.2.2) against ``base``.

    Raises Refused as ``parse`` does, and FetchFailed if it is no URL.
    """
    reference = reference.strip(" \t")
    try:
        if len(reference) > max_chars:
            raise BadArgument("The URL is too long.", _REWRITE)  # noqa: TRY301 -- caught below
        if _ABSOLUTE.match(reference) or _NEVER.search(reference):
            return parse(reference, max_chars)
        head, mark, query = reference.partition("?")
        return parse(urljoin(base.text, head.replace("\\", "/") + mark + query), max_chars)
    except Refused:
        what = f"{base.host} redirected to a URL that is not http or https, or has a user name."
        raise Refused(what, "Look for the document elsewhere.", rule="url") from None
    except (BadArgument, ValueError):  # urllib looks into brackets by itself
        what = f"{base.host} redirected to something that is no URL."
        raise FetchFailed(what, "Look for the document under another URL.") from None


def _authority(text: str, scheme: str) -> tuple[str, IPv4Address | IPv6Address | None, int]:
    if "@" in text:
        what = "URLs with a user name or password in them are not fetched."
        raise Refused(what, "Give the URL without what stands before the @.", rule="user_name")
    match = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::([0-9]{0,5}))?", text)
    if match is None:
        raise BadArgument("The URL's host and port cannot be read.", _REWRITE)
    try:
        host = parse_host(match[1])
    except BadHost as bad:
        advice = f"Write the host as {bad.better}." if bad.better else _REWRITE
        raise BadArgument(f"The URL's host {bad}.", advice) from None
    port = int(match[2]) if match[2] else _DEFAULT_PORTS[scheme]
    if not 0 < port < 65_536:
        raise BadArgument(f"There is no port {port}.", _REWRITE)
    return (host, None, port) if isinstance(host, str) else (str(host), host, port)


def _dotless(path: str) -> str:
    """Return ``path`` percent-encoded and without dot segments (URL Standard, path state)."""
    kept: list[str] = []
    segments = path.split("/")[1:] or [""]
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        if _TWO_DOTS.match(segment):
            del kept[-1:]
        elif not _ONE_DOT.match(segment):
            kept.append(quote(segment, safe=_PATH_SAFE))
            continue
        if last:
            kept.append("")
    return "/" + "/".join(kept)


def normal_url(text: str, max_chars: int = 8_192) -> str:
    """Return a URL in normal form, without its fragment; "" if it may not be fetched.

    Encoded characters that need not be encoded are not (RFC 3986, section 6.2.2).
    """
    try:
        return _ENCODED.sub(_least_encoded, parse(text, max_chars).text)
    except (BadArgument, Refused):
        return ""


def _least_encoded(encoded: re.Match[str]) -> str:
    char = chr(int(encoded[1], 16))
    return char if char.isascii() and (char.isalnum() or char in "-._~") else encoded[0].upper()


def key_of(ref_or_url: str) -> str:
    """Return the key of a document: a URL in normal form, any other text without white space."""
    text = ref_or_url.strip()
    return normal_url(text, 2**20) or text


def is_below(url: str, prefix: str) -> bool:
    """Return whether a URL in normal form is ``prefix``, which ends in "/", or lies below it."""
    return f"{url.partition('?')[0]}/".startswith(prefix)

"""The lab's servers: a lying name server, and a web server on every address that names itself.

Run inside the lab's network namespace, where all of IPv4 and IPv6 is local: ``python lab_servers.py
NAMES_JSON CA_PEM``.
"""

import json
import re
import socket
import ssl
import struct
import sys
import tempfile
import threading
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PUBLIC_V4, PUBLIC_V6 = "93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"
INSIDE = "10.0.0.9"
NAME_SERVER = "127.0.0.53"
PLAIN_PORTS = (
    80,
    8080,
    22,
    23,
    25,
    53,
    1080,
    2375,
    2379,
    3128,
    4194,
    5000,
    8500,
    9001,
    9200,
    10250,
    10100,
    12456,
    32526,
    65535,
)
TLS_PORTS = (443, 8443)
_NUMBERS = re.compile(
    r"(?:^|\.|-)(\d{1,3})[.-](\d{1,3})[.-](\d{1,3})[.-](\d{1,3})\.(?:nip|sslip|xip)\.io$"
)
_INSIDE_NAME = re.compile(r"(?:^[^.]+|\.(?:internal|local|svc|consul|localhost))$")


class Names:
    """The addresses of the lab's names, by the table or else by their endings."""

    def __init__(self, table: dict[str, list[str]]) -> None:
        self._table = table
        self._asked: Counter[str] = Counter()

    def addresses(self, name: str) -> list[str] | None:
        """Return the current addresses of ``name``, or None to leave the query unanswered."""
        numbers = _NUMBERS.search(name)
        if name in self._table:
            return self._table[name]
        if name.endswith("blackhole.test"):
            return None
        if name.endswith("rebind.test"):
            return self._turning(name, "127.0.0.1")
        if name.endswith("rebindmeta.test"):
            return self._turning(name, "169.254.169.254")
        if name.endswith("mixed.test"):
            return [PUBLIC_V4, "10.0.0.5"]
        if name.endswith("dual.test"):
            return [PUBLIC_V4, PUBLIC_V6]
        if name.endswith("metadata.tencentyun.com"):
            return ["169.254.0.23"]
        if numbers:
            return [".".join(numbers.groups())]
        return [INSIDE] if _INSIDE_NAME.search(name) else [PUBLIC_V4]

    def _turning(self, name: str, inside: str) -> list[str]:
        """Return a public address first, and ``inside`` from the second query for IPv4 on."""
        self._asked[name] += 1
        return [PUBLIC_V4] if self._asked[name] == 1 else [inside]


def answer(query: bytes, names: Names) -> bytes | None:
    """Return the answer to a DNS query for A or AAAA (RFC 1035, section 4), with a TTL of 0."""
    end = query.index(b"\0", 12)
    labels: list[str] = []
    at = 12
    while at < end:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace"))
        at += 1 + query[at]
    kind = struct.unpack("!H", query[end + 1 : end + 3])[0]
    version = {1: 4, 28: 6}.get(kind)
    name = ".".join(labels).lower()
    # A rebinding name counts queries for IPv4 only: a look-up asks for both families.
    if version == 6 and "rebind" in name:
        addresses: list[str] | None = []
    else:
        addresses = names.addresses(name)
    if addresses is None:
        return None
    packed = [ip_address(text).packed for text in addresses if ip_address(text).version == version]
    header = query[:2] + struct.pack("!HHHHH", 0x8180, 1, len(packed), 0, 0)
    records = b"".join(
        b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(data)) + data for data in packed
    )
    return header + query[12 : end + 5] + records


def serve_names(names: Names) -> None:
    """Answer DNS over UDP for ever."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((NAME_SERVER, 53))
        while True:
            query, sender = server.recvfrom(4096)
            reply = answer(query, names)
            if reply is not None:
                server.sendto(reply, sender)


class Certificates:
    """Makes a certificate for any name, also with emoji or underscores, which trustme refuses."""

    def __init__(self, authority: trustme.CA) -> None:
        self._issuer = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
        self._issuer_key = serialization.load_pem_private_key(
            authority.private_key_pem.bytes(), None
        )
        issuer_id = self._issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        self._issuer_id = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_id)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._lock = threading.Lock()

    def context(self, name: str) -> ssl.SSLContext:
        """Return a server's context for ``name``; it switches to the name in the client's SNI."""
        with self._lock:
            if name not in self._contexts:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                with tempfile.NamedTemporaryFile(suffix=".pem") as file:
                    file.write(self._pem(name))
                    file.flush()
                    context.load_cert_chain(file.name)
                context.sni_callback = self._switch
                self._contexts[name] = context
            return self._contexts[name]

    def _pem(self, name: str) -> bytes:
        try:
            identity: x509.GeneralName = x509.IPAddress(ip_address(name))
        except ValueError:
            identity = x509.DNSName(name)
        now = datetime.now(UTC)
        assert isinstance(self._issuer_key, ec.EllipticCurvePrivateKey)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self._issuer.subject)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([identity]), critical=True)
            .add_extension(self._issuer_id, critical=False)  # Python 3.13 and later insist on it
            .sign(self._issuer_key, hashes.SHA256())
        )
        key = self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        return key + certificate.public_bytes(serialization.Encoding.PEM)

    def _switch(
        self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext
    ) -> None:
        if name:
            connection.context = self.context(name)


def serve_web(family: socket.AddressFamily, port: int, certificates: Certificates | None) -> None:
    """Accept connections to ``port`` of every address for ever."""
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.bind(("", port))
        server.listen(200)
        while True:
            connection, _ = server.accept()
            threading.Thread(
                target=one_connection, args=(connection, certificates), daemon=True
            ).start()


def one_connection(connection: socket.socket, certificates: Certificates | None) -> None:
    """Send the address and tunnels that were reached; redirect ``/to/URL`` (percent-encoded)."""
    reached, port = connection.getsockname()[:2]
    tunnels: list[str] = []
    with suppress(OSError, ValueError):
        if certificates is not None:
            connection = certificates.context(str(reached)).wrap_socket(
                connection, server_side=True
            )
        while (head := read_head(connection)).startswith(
            "CONNECT "
        ):  # a proxy that plays the server behind it, too
            tunnels.append(head.partition("\r\n")[0])
            connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        if head:
            connection.sendall(
                page_of(head)
                or respond(head.split(" ")[1], {"reached": f"{reached} {port}", "tunnels": tunnels})
            )
    connection.close()


def read_head(connection: socket.socket) -> str:
    """Return a request's head, or "" where the connection ends."""
    head = b""
    while b"\r\n\r\n" not in head:
        some = connection.recv(65_536)
        if not some:
            return ""
        head += some
    return head.decode("latin-1")


VECTORS: dict[str, str] = {}
_WORDS = "<h1>A page</h1><p>" + "Words that a reader came for. " * 40
# The pages of a host that names the vector, in each way that a page or a site has: header, body.
_PAGES = {
    "/redirect": ("Location: {}", ""),
    "/refresh": ("Refresh: 0; url={}", ""),
    "/meta": ("", "<meta http-equiv=refresh content='0; url={}'>"),
    "/frame": ("", "<!DOCTYPE html><title>t</title><iframe src='{}'></iframe>"),
    "/script": ("", "<script>location.href = '{}'</script>"),
    "/embed": ("", "<!DOCTYPE html><title>t</title><embed src='{}' type='application/pdf'>"),
    "/alternate": (
        "",
        "<link rel=alternate type=text/markdown href='{}'><div id=r></div><script src=/a></script>",
    ),
    "/twin": ("", f"<link rel=alternate type=text/markdown href='{{}}'>{_WORDS}"),
    "/next": ("Link: <{}>; rel=next", _WORDS),
    "/robots.txt": ("Content-Type: text/plain", "Sitemap: {}\nSitemap: /sitemap.xml\n"),
    "/sitemap.xml": (
        "Content-Type: application/xml",
        "<urlset>{own}<url><loc>{}</loc></url></urlset>",
    ),
    "/llms.txt": ("Content-Type: text/plain", "# A site\n\n- [A page]({}): words\n"),
    "/a/b/raw/branch/main/c": ("Location: {}", ""),
    "/api/v1/repos/a/b": ("Content-Type: application/json", '{"full_name": "a/b"}'),
    "/api/v1/repos/a/b/contents/README.md": ("Location: {}", ""),
    "/": ("", f"{_WORDS}<a href='{{}}'>on</a>"),
}


def page_of(head: str) -> bytes:
    """Return the page of a host that names a vector, b"" for any other host or page."""
    path = head.split(" ")[1]
    host = re.search(r"\r\nhost: *([^\r:]+)", head, re.IGNORECASE)
    vector = VECTORS.get(host[1].lower() if host else "")
    if vector is None:
        return b""
    if path == "/cookies" and "seen=1" not in head:  # which it wants back
        return answer_with(302, "Location: /cookies\r\nSet-Cookie: seen=1; Path=/", "")
    field, body = _PAGES.get("/redirect" if path == "/cookies" else path, ("", ""))
    is_redirect = field.startswith("Location")
    if path != "/" and not field and not body:
        return answer_with(404, "X-A: b", "")
    quoted = vector.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;")
    own = f"<url><loc>http://{host[1]}/redirect</loc></url>" if host else ""  # of the site itself
    body = body.replace("{own}", own).replace("{}", quoted)
    return answer_with(302 if is_redirect else 200, field.replace("{}", vector), body)


def answer_with(status: int, field: str, body: str) -> bytes:
    """Return a response with one header field; of a page, unless the field says otherwise."""
    data = body.encode("utf-8", "surrogatepass")
    kind = "" if "Content-Type" in field else "Content-Type: text/html; charset=utf-8\r\n"
    lines = f"HTTP/1.1 {status} X\r\n{kind}{field}" + ("\r\n" if field else "")
    length = f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    return (lines + length).encode("utf-8", "surrogatepass") + data


def respond(path: str, facts: dict[str, object]) -> bytes:
    """Return the response of the lab's one site."""
    if path == "/robots.txt":
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    if path.startswith("/to/"):
        location = unquote(path.removeprefix("/to/")).encode("utf-8", "surrogatepass")
        return (
            b"HTTP/1.1 302 Found\r\nLocation: "
            + location
            + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
    body = json.dumps(facts).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body


def main() -> None:
    """Serve until standard input closes."""
    names, pem = Path(sys.argv[1]), Path(sys.argv[2])
    VECTORS.update(json.loads(Path(sys.argv[3]).read_text()))
    authority = trustme.CA()
    pem.write_bytes(authority.cert_pem.bytes())
    certificates = Certificates(authority)
    table = Names(json.loads(names.read_text()))
    threads = [threading.Thread(target=serve_names, args=(table,), daemon=True)]
    ports = [(port, None) for port in PLAIN_PORTS] + [(port, certificates) for port in TLS_PORTS]
    threads += [
        threading.Thread(target=serve_web, args=(family, port, context), daemon=True)
        for family in (socket.AF_INET, socket.AF_INET6)
        for port, context in ports
    ]
    for thread in threads:
        thread.start()
    print("ready", flush=True)  # noqa: T201 -- the lab waits for it
    sys.stdin.read()


if __name__ == "__main__":
    main()

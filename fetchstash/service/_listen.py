"""Where the service listens: its address, its certificate, and who may be let in there."""

import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path

from fetchstash.config import HttpLimits
from fetchstash.errors import BadArgument
from fetchstash.service._bounds import READ_SECONDS
from fetchstash.service._doors import is_loopback


def host_and_port(address: str, setting: str = "--http") -> tuple[str, int]:
    """Return host and port of HOST:PORT or [ADDRESS]:PORT. Raises BadArgument."""
    host, _, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not bare or not port.isdecimal() or int(port) > 65_535 or (":" in bare and bare == host):
        what = f"{setting} is {address!r}, which is no HOST:PORT."
        raise BadArgument(what, "Write one such as 127.0.0.1:8080.")
    return bare, int(port)


def check_exposure(http: HttpLimits, host: str, *, asks_for_tokens: bool) -> None:
    """Refuse to serve other machines without tokens, or under no name. Raises BadArgument."""
    if not asks_for_tokens:
        step = "Create a token with these settings (fetchstash token create), or set oauth.issuer."
        if not is_loopback(host):
            raise BadArgument(f"Other machines reach {host}, and nobody needs a token.", step)
        if http.hosts or http.forwarded:
            key = "http.hosts" if http.hosts else "http.forwarded"
            what = f"{key} is set, as for a proxy in front, and nobody needs a token."
            raise BadArgument(what, step)
    if host in ("0.0.0.0", "::") and not http.hosts:  # noqa: S104 - as above
        raise BadArgument(
            f"{host} is no name that a request can have, and http.hosts names none.",
            'Name the hosts of the service: http.hosts = ["stash.example.org"].',
        )


def sends_tokens_in_clear(http: HttpLimits, host: str) -> bool:
    """Return whether tokens reach ``host`` unencrypted, and no proxy in front is named."""
    return not (http.tls_cert or http.forwarded or is_loopback(host))


def check_certificate(http: HttpLimits) -> None:
    """Read the certificate and its key. Raises BadArgument where they cannot be used."""
    if not http.tls_cert and not http.tls_key:
        return
    for key, path in (("http.tls_cert", http.tls_cert), ("http.tls_key", http.tls_key)):
        if not path:
            raise BadArgument(f"{key} is not set, but its other half is.", "Set both or none.")
        try:
            Path(path).open("rb").close()
        except OSError as error:
            what = f"{key} {path} cannot be read: {error.strerror}."
            raise BadArgument(what, "Name a file that this user may read.") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # A key with a passphrase would be asked for on the terminal.
        context.load_cert_chain(http.tls_cert, http.tls_key, password="")
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or "no PEM, or with a passphrase"
        what = f"{http.tls_cert} and {http.tls_key} are no certificate and its key: {reason}."
        next_step = "Name a chain in PEM and its private key without a passphrase."
        raise BadArgument(what, next_step) from None


def invalid_now(path: str) -> str:
    """Return why a certificate is not valid at this time, "" where it is."""
    from cryptography import x509  # noqa: PLC0415 - it takes 0.05 s

    try:
        certificate = x509.load_pem_x509_certificate(Path(path).read_bytes())
    except ValueError:  # stricter than OpenSSL, which has read it
        return ""
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    now = datetime.now(UTC)
    if begin > now:
        return f"it is valid from {begin:%Y-%m-%d %H:%M} UTC on"
    return f"it ended at {end:%Y-%m-%d %H:%M} UTC" if end < now else ""


def listener(host: str, port: int, setting: str = "--http") -> socket.socket:
    """Return a socket that listens. Raises BadArgument where the address cannot be had."""
    try:
        flags = socket.AI_PASSIVE
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
        family, kind, protocol, _, address = addresses[0]
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; what is accepted inherits it
                milliseconds = int(READ_SECONDS * 1_000)
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
            opened.bind(address)
            opened.listen()  # else two could bind the address (SO_REUSEADDR), and one fail later
        except OSError:
            opened.close()
            raise
    except OSError as error:
        what = f"{host}:{port} cannot be used: {error.strerror or error}."
        raise BadArgument(what, f"Choose another {setting}.") from error
    return opened

"""Load the certificates that servers are verified by, and say plainly what is wrong with them."""

import os
import ssl

from fetchstash.errors import BadArgument


def tls_context() -> ssl.SSLContext:
    """Return the TLS context of all connections. Takes some 20 ms.

    SSL_CERT_FILE or SSL_CERT_DIR replace the system's certificates. Raises BadArgument if what
    they name cannot be read.
    """
    import httpx2  # noqa: PLC0415 -- it takes 0.1 s, and is not needed before the first fetch

    file, folder = (os.environ.get(name, "") for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    try:
        if folder and not file:
            os.scandir(folder).close()
        return httpx2.create_ssl_context()
    except ssl.SSLError:
        why = "holds no certificates in PEM format"
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
    name, path = ("SSL_CERT_FILE", file) if file else ("SSL_CERT_DIR", folder)
    if not path:
        what = f"The system's certificates: the file or folder {why}."
        raise BadArgument(what, "Install the system's certificates (ca-certificates).")
    raise BadArgument(f"{name} is {path}, which {why}.", "The operator has to correct or unset it.")


def certificate_fault() -> str:
    """Return what is wrong with the certificates that servers are verified by, or ""."""
    try:
        tls_context()
    except BadArgument as error:
        return error.what
    return ""

"""Refuse at the start the settings with which a service would only fail at its requests."""

import ipaddress
import re

from fetchstash.config import HttpLimits, Settings
from fetchstash.errors import BadArgument
from fetchstash.fetch import HttpFetcher

_HOST = r"(?:[a-z0-9_][a-z0-9_.-]*|\[[0-9a-f:.]+\])(?::\d{1,5})?"
_ORIGIN = rf"[a-z][a-z0-9+.-]*://{_HOST}"


def check_names(http: HttpLimits) -> None:
    """Refuse hosts, origins and proxies that no request can have. Raises BadArgument."""
    for name in http.hosts:
        if not re.fullmatch(_HOST, name):
            what = f"http.hosts has {name[:200]!r}, which no request names as its host."
            raise BadArgument(what, "Give NAME, NAME:PORT or [ADDRESS]:PORT, in lower case.")
    for origin in http.origins:
        if not re.fullmatch(_ORIGIN, origin):
            what = f"http.origins has {origin[:200]!r}, which is no origin of a web page."
            raise BadArgument(what, "Give one such as https://app.example.org, without a path.")
    for entry in http.forwarded:
        try:
            ipaddress.ip_network(entry)
        except ValueError:
            what = f"http.forwarded has {entry[:200]!r}, which is no address and no network."
            raise BadArgument(what, "Give those of the proxies, such as 10.0.0.0/8.") from None


def check_fetching(settings: Settings) -> None:
    """Refuse rules of fetching that cannot be read, of a tenant too. Raises BadArgument."""
    HttpFetcher(settings.fetch)
    for name in settings.tenants:
        try:
            HttpFetcher(settings.for_tenant(name).fetch)
        except BadArgument as error:
            what = f"The table [tenants.{name}] is wrong: {error.what}"
            raise BadArgument(what, error.next_step) from None

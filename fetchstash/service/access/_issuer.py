"""The keys of an identity provider, found by its metadata and read again as they change."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import anyio

from fetchstash.errors import BadArgument, Busy, FetchFailed
from fetchstash.service.access._own import MOST_WAITING

if TYPE_CHECKING:
    import httpx2
    import jwt

MAX_AGE = 600.0
"""Seconds after which one request reads the keys again: a key that is withdrawn holds so long."""
EARLIEST = 30.0
"""Seconds between two reads that an unknown key causes, or a read that failed."""
STALE = 3_600.0
"""Seconds for which keys hold while the provider does not answer."""
MAX_BYTES = 512 * 1024
MAX_KEYS = 100
SECONDS = 5.0
"""For the metadata and the keys together."""
_MIN_RSA_BITS = 2_048


class Issuer:
    """The identity provider ``url``, which the operator trusts to name its keys.

    Its documents are read over HTTPS, or over HTTP on loopback; redirects are not followed.
    ``proxy`` is the setting fetch.proxy. Private addresses are allowed: many providers have one.
    """

    def __init__(
        self,
        url: str,
        *,
        proxy: str = "",
        transport: "httpx2.AsyncBaseTransport | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not is_safe(url) or urlsplit(url).query or urlsplit(url).fragment:
            what = f"oauth.issuer is {url[:200]!r}, which no issuer can be."
            raise BadArgument(what, "It must be https://… (RFC 8414), or http:// on loopback.")
        self._url = url
        self._proxy = proxy
        self._transport = transport
        self._clock = clock
        self._keys: list[Mapping[str, Any]] = []
        self._read_at = self._ended_at = float("-inf")
        self._lock = anyio.Lock()

    async def key(
        self, key_id: str | None, algorithm: str, kind: tuple[str, str]
    ) -> "jwt.PyJWK | None":
        """Return the key of that name for an algorithm, None if the provider has none.

        ``kind`` has the type and the curve. A token that names no key gets the only one that
        fits. Raises FetchFailed if the keys cannot be read.
        """
        age = self._clock() - self._read_at
        key = self._find(key_id, algorithm, kind) if age < STALE else None
        if key is None or (age >= MAX_AGE and not self._lock.locked()):
            if age < STALE and self._lock.statistics().tasks_waiting >= MOST_WAITING:
                raise Busy("Too many tokens of unknown keys are tried.", "Try again in a second.")
            await self._refresh()
            key = self._find(key_id, algorithm, kind)
        return key

    async def count(self) -> int:
        """Read the keys and return how many there are. Raises FetchFailed."""
        self._keys = await self._read_keys()
        return len(self._keys)

    def _find(
        self, key_id: str | None, algorithm: str, kind: tuple[str, str]
    ) -> "jwt.PyJWK | None":
        import jwt  # noqa: PLC0415 - of the extra team

        fitting = [
            key
            for key in self._keys
            if (key.get("kty"), key.get("crv", "")) == kind
            and key_id in (None, key.get("kid"))
            and key.get("use", "sig") == "sig"
            and key.get("alg", algorithm) == algorithm
        ]
        if len(fitting) != 1:  # two keys of one name, or no name and several keys
            return None
        try:
            key = jwt.PyJWK(dict(fitting[0]), algorithm)
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        bits = getattr(key.key, "key_size", _MIN_RSA_BITS)
        return None if kind[0] == "RSA" and bits < _MIN_RSA_BITS else key

    async def _refresh(self) -> None:
        """Read the keys again, unless that was done, or failed, within EARLIEST seconds."""
        async with self._lock:
            if self._clock() - self._ended_at >= EARLIEST:
                begin = self._clock()
                try:
                    self._keys = await self._read_keys()
                    self._read_at = begin
                except FetchFailed:
                    if begin - self._read_at >= STALE:
                        raise
                finally:
                    self._ended_at = self._clock()
            elif self._clock() - self._read_at >= STALE:
                raise self._failed("does not answer")

    async def _read_keys(self) -> list[Mapping[str, Any]]:
        import httpx2  # noqa: PLC0415 - it takes 0.1 s

        from fetchstash.fetch import tls_context  # noqa: PLC0415 - as above

        transport = self._transport
        if transport is None:
            on_loopback = urlsplit(self._url).scheme == "http"
            proxy = None if on_loopback else self._proxy or None
            transport = httpx2.AsyncHTTPTransport(
                verify=tls_context(), trust_env=False, proxy=proxy
            )
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        client = httpx2.AsyncClient(
            transport=transport, trust_env=False, timeout=SECONDS, headers=headers
        )
        document = None
        try:
            # A client that leaves meanwhile does not interrupt it for others.
            with anyio.CancelScope(shield=True), anyio.fail_after(SECONDS):
                async with client:
                    metadata = await self._metadata(client)
                    place = metadata.get("jwks_uri")
                    if not isinstance(place, str) or not is_safe(place):
                        raise self._failed("names no jwks_uri that is https")
                    document = await self._document(client, place)
        except TimeoutError:
            raise self._failed("does not answer") from None
        keys: Any = (document or {}).get("keys")
        if not isinstance(keys, list):
            raise self._failed("has no keys at its jwks_uri")
        items = cast("Sequence[Any]", keys)[:MAX_KEYS]
        return [cast("Mapping[str, Any]", key) for key in items if isinstance(key, dict)]

    async def _metadata(self, client: "httpx2.AsyncClient") -> Mapping[str, Any]:
        """Return the issuer's metadata (RFC 8414, section 3, and OpenID Connect Discovery)."""
        parts = urlsplit(self._url)
        origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        places = (
            f"{origin}/.well-known/oauth-authorization-server{path}",
            f"{origin}{path}/.well-known/openid-configuration",
            f"{origin}/.well-known/openid-configuration{path}",
        )
        for place in dict.fromkeys(places):
            document = await self._document(client, place)
            if document is not None:
                # RFC 8414, section 3.3: metadata of another issuer must not be used.
                if document.get("issuer") != self._url:
                    raise self._failed("calls itself otherwise in its metadata")
                return document
        raise self._failed("publishes no metadata")

    async def _document(self, client: "httpx2.AsyncClient", place: str) -> Mapping[str, Any] | None:
        """Return a JSON object, None if it is not there. Raises FetchFailed."""
        import httpx2  # noqa: PLC0415 - as above

        try:
            async with client.stream("GET", place) as response:
                if response.status_code >= 500 or response.status_code == 429:
                    raise self._failed(f"answers with {response.status_code}")
                if response.status_code != 200:
                    return None
                data = b""
                async for piece in response.aiter_raw():  # never decoded, so never inflated
                    data += piece
                    if len(data) > MAX_BYTES:
                        raise self._failed(f"sends more than {MAX_BYTES:,} bytes")
            document: Any = json.loads(data)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise self._failed(f"cannot be reached: {reason}") from None
        except (ValueError, RecursionError):
            raise self._failed("sends what is no JSON") from None
        return cast("Mapping[str, Any]", document) if isinstance(document, dict) else None

    def _failed(self, reason: str) -> FetchFailed:
        what = f"The identity provider {self._url} {reason}."
        return FetchFailed(what, "Try again; if that does not help, the operator has to see to it.")


def is_safe(url: str) -> bool:
    """Return whether a URL is https, or http on loopback; none has a password."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if "@" in parts.netloc or not host:
        return False
    return parts.scheme == "https" or (
        parts.scheme == "http" and host in ("localhost", "127.0.0.1", "::1")
    )

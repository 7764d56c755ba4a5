"""An identity provider: its keys (RFC 7517), and its introspection (RFC 7662)."""

import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import anyio

from fetchstash.errors import BadArgument, Busy, FetchFailed
from fetchstash.fetch import FetchLimits
from fetchstash.service.access._own import MOST_WAITING
from fetchstash.text.untyped import as_objects, is_array, is_object

if TYPE_CHECKING:
    import httpx2
    import jwt

MAX_AGE = 600.0
"""Seconds after which one request reads the keys again: a key that is withdrawn holds so long."""
RETRY = 30.0
"""Seconds after which a read that failed, or a key that was not there, is tried again."""
STALE = 3_600.0
"""Seconds for which keys hold while the provider does not answer."""
LOOKUPS = 10
"""Unknown keys that are looked up in a minute; where forged ones took all, one in six seconds."""
BELIEVED = 30.0
"""Seconds for which what the provider said of an opaque token is believed."""
MAX_BELIEVED = 1_000
MAX_BYTES = 512 * 1024
MAX_KEYS = 100
SECONDS = 5.0
"""For the metadata and the keys together, or for one opaque token."""
_MIN_RSA_BITS = 2_048


class Issuer:
    """The identity provider ``url``, which the operator trusts to name its keys.

    Its documents are read over HTTPS, or over HTTP on loopback; redirects are not followed.
    ``fetch`` says by which proxy, and which certificates are trusted. Private addresses are
    allowed: many providers have one.
    ``client`` has the id and secret by which it is asked about opaque tokens, "" and "" if never.
    """

    def __init__(
        self,
        url: str,
        *,
        fetch: FetchLimits = FetchLimits(),  # noqa: B008 - it is frozen
        client: tuple[str, str] = ("", ""),
        transport: "httpx2.AsyncBaseTransport | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not is_safe(url) or urlsplit(url).query or urlsplit(url).fragment:
            what = f"oauth.issuer is {url[:200]!r}, which no issuer can be."
            raise BadArgument(what, "It must be https://… (RFC 8414), or http:// on loopback.")
        self._url = url
        self._fetch = fetch
        self._client = client
        self._transport = transport
        self._clock = clock
        self._keys: list[dict[str, Any]] = []
        self._read_at = self._failed_at = float("-inf")
        self._failure: FetchFailed | None = None
        self._reads: int = 0
        self._lookups: dict[str | None, float] = {}
        self._lock = anyio.Lock()
        self._introspection = ""
        self._asking = anyio.CapacityLimiter(16)
        self._believed: dict[bytes, tuple[float, Mapping[str, Any]]] = {}

    async def key(
        self, key_id: str | None, algorithm: str, kind: tuple[str, str]
    ) -> "jwt.PyJWK | None":
        """Return the key of that name for an algorithm, None if the provider has none.

        ``kind`` has the type and the curve. A token that names no key gets the only one that
        fits. Raises FetchFailed and Busy where that cannot be known now.
        """
        age = self._clock() - self._read_at
        key = self._find(key_id, algorithm, kind) if age < STALE else None
        if key is None:
            if age < STALE:
                if self._lock.statistics().tasks_waiting >= MOST_WAITING:
                    what = "Too many tokens of unknown keys are tried."
                    raise Busy(what, "Try again in a second.")
                if self._failure is None and not self._may_look_up(key_id):
                    return None
            await self._refresh()
        elif age >= MAX_AGE and not self._lock.locked():
            with suppress(FetchFailed):  # the keys are good for a while yet
                await self._refresh()
        return self._find(key_id, algorithm, kind)

    async def count(self) -> int:
        """Read the keys and return how many there are. Raises FetchFailed."""
        self._keys = await self._read_keys()
        return len(self._keys)

    def _may_look_up(self, key_id: str | None) -> bool:
        """Return whether an unknown key was not looked up just now. Raises Busy for too many."""
        now = self._clock()
        self._lookups = {name: at for name, at in self._lookups.items() if now - at < 60}
        if now - self._lookups.get(key_id, float("-inf")) < RETRY:
            return self._lock.locked()  # the read that is under way may be the one for it
        if len(self._lookups) >= LOOKUPS and now - self._read_at < 60 / LOOKUPS:
            raise Busy("Too many unknown keys are looked up.", "Try again in a few seconds.")
        self._lookups[key_id] = now
        return True

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
        """Read the keys again, unless another did so meanwhile. Raises FetchFailed."""
        reads = self._reads
        async with self._lock:
            if self._reads == reads and self._clock() - self._failed_at >= RETRY:
                begin, self._failure = self._clock(), None
                try:
                    self._keys = await self._read_keys()
                    self._read_at = begin
                except FetchFailed as failure:
                    self._failure, self._failed_at = failure, self._clock()
                self._reads += 1
        if self._failure is not None:
            raise FetchFailed(self._failure.what, self._failure.next_step)

    async def _read_keys(self) -> list[dict[str, Any]]:
        async with self._asked() as client:
            document = await self._document(client, "GET", await self._place(client, "jwks_uri"))
        keys: Any = (document or {}).get("keys")
        if not is_array(keys):
            raise self._failed("has no keys at its jwks_uri")
        return as_objects(keys[:MAX_KEYS])

    @property
    def introspects(self) -> bool:
        """Whether the provider may be asked about opaque tokens."""
        return bool(self._client[0])

    async def introspect(self, token: str) -> Mapping[str, Any]:
        """Introspect an opaque token at the provider; return its claims, {} if it is not active.

        Raises FetchFailed and Busy where that cannot be known now.
        """
        name, now = sha256(token.encode()).digest(), self._clock()
        known = self._believed.get(name)
        if known and now - known[0] < BELIEVED:
            return known[1]
        if self._asking.statistics().tasks_waiting >= MOST_WAITING:
            raise Busy("Too many opaque tokens are tried.", "Try again in a second.")
        user, secret = (quote(part, safe="") for part in self._client)  # RFC 6749, section 2.3.1
        async with self._asking, self._asked() as client:
            if not self._introspection:
                self._introspection = await self._place(client, "introspection_endpoint")
            form = {"token": token, "token_type_hint": "access_token"}
            said = await self._document(
                client, "POST", self._introspection, data=form, auth=(user, secret)
            )
        if said is None or not isinstance(said.get("active"), bool):
            self._introspection = ""  # it may have moved
            raise self._failed("does not introspect tokens for this client")
        self._believed.pop(name, None)
        if not said["active"]:
            return {}
        self._believed[name] = now, said
        if len(self._believed) > MAX_BELIEVED:
            del self._believed[next(iter(self._believed))]
        return said

    @asynccontextmanager
    async def _asked(self) -> AsyncGenerator["httpx2.AsyncClient"]:
        """Yield an HTTP client. A cancelled caller does not interrupt the request for others."""
        import httpx2  # noqa: PLC0415 - it takes 0.1 s

        from fetchstash.fetch import tls_context  # noqa: PLC0415 - as above

        transport = self._transport
        if transport is None:
            on_loopback = urlsplit(self._url).scheme == "http"
            proxy = None if on_loopback else self._fetch.proxy or None
            transport = httpx2.AsyncHTTPTransport(
                verify=tls_context(self._fetch.ca_file), trust_env=False, proxy=proxy
            )
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        client = httpx2.AsyncClient(
            transport=transport, trust_env=False, timeout=SECONDS, headers=headers
        )
        try:
            with anyio.CancelScope(shield=True), anyio.fail_after(SECONDS):
                async with client:
                    yield client
        except TimeoutError:
            raise self._failed("does not answer") from None

    async def _place(self, client: "httpx2.AsyncClient", name: str) -> str:
        """Return a URL that the issuer's metadata names (RFC 8414, 3; OpenID Connect Discovery)."""
        parts = urlsplit(self._url)
        origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        places = (
            f"{origin}/.well-known/oauth-authorization-server{path}",
            f"{origin}{path}/.well-known/openid-configuration",
            f"{origin}/.well-known/openid-configuration{path}",
        )
        for place in dict.fromkeys(places):
            document = await self._document(client, "GET", place)
            if document is not None:
                # RFC 8414, section 3.3: metadata of another issuer must not be used.
                if document.get("issuer") != self._url:
                    raise self._failed("calls itself otherwise in its metadata")
                if is_safe(url := str(document.get(name))):
                    return url
                raise self._failed(f"names no {name} that is https")
        raise self._failed("publishes no metadata")

    async def _document(
        self, client: "httpx2.AsyncClient", method: str, place: str, **sent: Any
    ) -> Mapping[str, Any] | None:
        """Return a JSON object, None if it is not there. Raises FetchFailed."""
        import httpx2  # noqa: PLC0415 - as above

        try:
            async with client.stream(method, place, **sent) as response:
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
        return document if is_object(document) else None

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

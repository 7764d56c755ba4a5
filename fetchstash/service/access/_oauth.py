"""Tokens of an identity provider: its keys, what a token must say; and how any token is verified.

A resource server of OAuth 2.1 (draft-ietf-oauth-v2-1, section 5.2) that takes RFC 9068's tokens
and those of providers that leave out its type. Opaque tokens (RFC 7662) are not taken.
"""

import importlib.util
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import anyio

from fetchstash.config import OAuthLimits, Settings
from fetchstash.errors import BadArgument, Busy, FetchFailed
from fetchstash.service.access._own import MOST_WAITING, OwnTokens, looks_like_ours
from fetchstash.service.access._principal import (
    FETCH,
    READ,
    Principal,
    Reason,
    Rejected,
    Verifier,
    is_tenant,
    resource_of,
)
from fetchstash.store import Objects

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


LEEWAY = 30.0
"""Seconds by which the provider's clock may differ from ours."""
MAX_CHARS = 8_192
"""Of a token; with its header line it must fit what servers take of a request's head."""

ALGORITHMS: Mapping[str, tuple[str, str]] = {
    **{f"{family}{bits}": ("RSA", "") for family in ("RS", "PS") for bits in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""What may sign a token, with the type and the curve of its keys: none of them has a secret that
the verifier shares (RFC 8725, section 3.1)."""

_KEYS_OF_ITS_OWN = ("jku", "jwk", "x5u", "x5c")  # RFC 8725, section 3.10: never follow them
_TYPES = ("", "jwt", "at+jwt", "application/at+jwt")
_SCOPE = re.compile(r"[!#-\[\]-~]+")
_REQUIRED = ("iss", "aud", "exp")


class OAuthTokens:
    """Verifies the JWTs of one issuer."""

    def __init__(
        self, limits: OAuthLimits, issuer: Issuer, *, now: Callable[[], float] = time.time
    ) -> None:
        self._limits = limits
        self._issuer = issuer
        self._now = now

    async def verify(self, token: str) -> Principal:
        """Return whom a token stands for. Raises Rejected, or FetchFailed without its keys."""
        import jwt  # noqa: PLC0415 - of the extra team

        header = _header(token)
        algorithm, key_id = str(header["alg"]), header.get("kid")
        kind = ALGORITHMS[algorithm]
        key = await self._issuer.key(key_id, algorithm, kind)
        if key is None:
            raise Rejected("key", "The provider publishes no such key.")
        # PyJWT's own clock cannot be replaced, so the times are checked here.
        checks: Any = {"require": list(_REQUIRED)}
        checks |= {f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "sub", "jti")}
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._limits.audience,
                issuer=self._limits.issuer,
                options=checks,
            )
        except jwt.PyJWTError as error:
            raise _rejected(error) from None
        except (ValueError, TypeError, OverflowError, RecursionError):
            raise Rejected("malformed", "The token is no JWT that can be read.") from None
        self._check_times(claims)
        return self._principal(claims)

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self._now()
        if _seconds(claims, "exp", now) <= now - LEEWAY:
            raise Rejected("expired", "The token has expired.")
        for claim in ("nbf", "iat"):
            if _seconds(claims, claim, now) > now + LEEWAY:
                raise Rejected("not_yet_valid", "The token is not valid yet.")

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        limits = self._limits
        tenant, name = claims.get(limits.tenant_claim), claims.get(limits.principal_claim)
        if not isinstance(tenant, str) or not is_tenant(tenant):
            raise Rejected("tenant", "The token's claim of the tenant names none.")
        if not isinstance(name, str) or not _is_name(name):
            raise Rejected("claim", "The token's claim of the principal names none.")
        granted = _scopes(claims)
        names = {READ: limits.read_scope, FETCH: limits.fetch_scope}
        scopes = frozenset(scope for scope, its_name in names.items() if its_name in granted)
        return Principal(tenant, name, scopes, limits.issuer)


def _header(token: str) -> Mapping[str, Any]:
    """Return the header of a JWT that may be verified at all. Raises Rejected."""
    import jwt  # noqa: PLC0415 - of the extra team

    if len(token) > MAX_CHARS:
        raise Rejected("malformed", f"The token is longer than {MAX_CHARS} characters.")
    if token.count(".") != 2 or not token.isascii():  # five parts: encrypted (RFC 7516)
        raise Rejected("malformed", "The token is no signed JWT.")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise Rejected("malformed", "The token is no signed JWT.") from None
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise Rejected("algorithm", "The token's algorithm is none that is taken.")
    if any(name in header for name in _KEYS_OF_ITS_OWN):
        raise Rejected("header", "The token's header brings its own key.")
    if "crit" in header:  # RFC 7515, section 4.1.11: none is understood
        raise Rejected("header", "The token's header asks for an extension.")
    # A token in a token says so (RFC 7519, section 5.2). ID tokens, logout tokens and proofs have
    # types of their own (RFC 8725, section 3.11).
    if "cty" in header or str(header.get("typ", "")).lower() not in _TYPES:
        raise Rejected("header", "The token's type is no access token.")
    key_id = header.get("kid")
    if key_id is not None and (not isinstance(key_id, str) or len(key_id) > 256):
        raise Rejected("header", "The token's key has a wrong name.")
    return header


def _rejected(error: Exception) -> Rejected:
    """Return what PyJWT's error says, as ours."""
    import jwt  # noqa: PLC0415 - of the extra team

    table: tuple[tuple[type[Exception], Reason, str], ...] = (
        (jwt.InvalidSignatureError, "signature", "The token's signature is wrong."),
        (jwt.InvalidIssuerError, "issuer", "The token is of another issuer."),
        (jwt.InvalidAudienceError, "audience", "The token is for another audience."),
        (jwt.MissingRequiredClaimError, "claim", "The token lacks a claim that is required."),
        (jwt.InvalidAlgorithmError, "algorithm", "The token's algorithm is not that of its key."),
    )
    for kind, reason, description in table:
        if isinstance(error, kind):
            return Rejected(reason, description)
    return Rejected("malformed", "The token is no JWT that can be read.")


def _seconds(claims: Mapping[str, Any], claim: str, default: float) -> float:
    """Return a NumericDate (RFC 7519, section 2), ``default`` if it is not there."""
    value = claims.get(claim, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        raise Rejected("claim", f"The token's claim {claim} is no time.")
    return float(value)


def _is_name(text: str) -> bool:
    """Return whether logs can show a text on one line: no controls, none that change direction."""
    return 0 < len(text) <= 255 and text.isprintable()


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the granted scopes: ``scope`` (RFC 9068, section 2.2.3), or the ``scp`` of others."""
    value = claims.get("scope", claims.get("scp", ""))
    if isinstance(value, str):
        return frozenset(value.split())
    items: Sequence[Any] = cast("Sequence[Any]", value) if isinstance(value, list) else ()
    return frozenset(item for item in items if isinstance(item, str))


def check_limits(limits: OAuthLimits) -> None:
    """Raise BadArgument for settings that cannot be right."""
    if not limits.audience:
        what = "oauth.issuer is set, and oauth.audience is not."
        raise BadArgument(what, "Set it to what the provider writes into aud: the service's URL.")
    resource = resource_of(limits)
    if not is_safe(resource) or "?" in resource or "#" in resource:  # RFC 9728, section 1.2
        key = "oauth.resource" if limits.resource else "oauth.audience"
        what = f"{key} is {resource[:200]!r}, which is no https:// URL without ? and #."
        raise BadArgument(what, "Set oauth.resource to the URL at which clients reach /mcp.")
    for name in ("tenant_claim", "principal_claim"):
        if not getattr(limits, name):
            raise BadArgument(f"oauth.{name} is empty.", "Give the name of the claim.")
    for name in ("read_scope", "fetch_scope"):
        scope = getattr(limits, name)
        if not _SCOPE.fullmatch(scope):
            what = f"oauth.{name} is {scope[:200]!r}, which is no scope."
            raise BadArgument(what, 'Give one without blanks, " and \\ (RFC 6749, section 3.3).')
    if limits.read_scope == limits.fetch_scope:
        what = "oauth.read_scope and oauth.fetch_scope are the same."
        raise BadArgument(what, "Give each a name of its own.")


def verifier(settings: Settings, objects: Objects) -> Verifier:
    """Return what verifies tokens: our own, and those of oauth.issuer where that is set.

    Raises BadArgument for settings that cannot be right, and where PyJWT is missing.
    """
    issuer = _issuer(settings)
    provider = OAuthTokens(settings.oauth, issuer) if issuer else None
    return _Verifiers(OwnTokens(objects), provider)


async def count_keys(settings: Settings) -> int:
    """Ask the provider of oauth.issuer for its keys and return how many it has.

    Raises BadArgument as ``verifier`` does, and FetchFailed.
    """
    issuer = _issuer(settings)
    return await issuer.count() if issuer else 0


def _issuer(settings: Settings) -> Issuer | None:
    limits = settings.oauth
    if not limits.issuer:
        if limits != OAuthLimits():
            what = "oauth.issuer is not set, and another setting of oauth is."
            raise BadArgument(what, "Set it to the provider's issuer, or leave out [oauth].")
        return None
    check_limits(limits)
    if importlib.util.find_spec("jwt") is None:
        what = "oauth.issuer is set, and PyJWT, which verifies its tokens, is not installed."
        raise BadArgument(what, 'Run: pip install "fetchstash[team]".')
    return Issuer(limits.issuer, proxy=settings.fetch.proxy)


class _Verifiers:
    def __init__(self, own: OwnTokens, provider: OAuthTokens | None) -> None:
        self._own = own
        self._provider = provider

    async def verify(self, token: str) -> Principal:
        """Return whom a token stands for. Raises Rejected, or FetchstashError (see Verifier)."""
        if looks_like_ours(token):
            return await self._own.verify(token)
        if self._provider is None:
            raise Rejected("malformed", "This is no token of this service.")
        return await self._provider.verify(token)

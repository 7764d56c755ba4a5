"""Access tokens of an identity provider: JWTs for our audience, by keys that it publishes.

A resource server of OAuth 2.1 (draft-ietf-oauth-v2-1, section 5.2) that takes RFC 9068's tokens
and those of providers that leave out its type. Opaque tokens (RFC 7662) are not taken.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from fetchstash.config import OAuthLimits
from fetchstash.errors import BadArgument
from fetchstash.service.access._answers import resource_of
from fetchstash.service.access._issuer import Issuer, is_safe
from fetchstash.service.access._principal import FETCH, READ, Principal, Reason, Rejected, is_tenant

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

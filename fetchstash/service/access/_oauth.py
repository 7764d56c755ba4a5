"""Tokens of an identity provider: their required claims; and the verifier of any token.

A resource server of OAuth 2.1 (draft-ietf-oauth-v2-1, section 5.2) that takes RFC 9068's tokens,
those of providers that leave out its type, and opaque ones that the provider explains (RFC 7662).
"""

import importlib.util
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from fetchstash.config import OAuthLimits, Settings, resolved
from fetchstash.errors import BadArgument
from fetchstash.service.access._issuer import Issuer, is_safe
from fetchstash.service.access._own import OwnTokens
from fetchstash.service.access._principal import (
    FETCH,
    READ,
    Principal,
    Reason,
    Rejected,
    is_tenant,
    resource_of,
)
from fetchstash.store import Objects
from fetchstash.text.untyped import is_array

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
    """Verifies the tokens of one issuer."""

    def __init__(
        self, limits: OAuthLimits, issuer: Issuer, *, now: Callable[[], float] = time.time
    ) -> None:
        self._limits = limits
        self._issuer = issuer
        self._now = now

    async def verify(self, token: str) -> Principal:
        """Return the principal of a token.

        Raises Rejected, and FetchFailed or Busy while the provider cannot be asked.
        """
        if len(token) > MAX_CHARS:
            raise Rejected("malformed", f"The token is longer than {MAX_CHARS} characters.")
        if not token.isascii():
            raise Rejected("malformed", "The token is no signed JWT.")
        if self._issuer.introspects and token.count(".") != 2:
            claims = await self._issuer.introspect(token)
            self._check_introspected(claims)
        else:
            claims = await self._verify_jwt(token)
        now = self._now()
        if _seconds(claims, "exp", now) <= now - LEEWAY:
            raise Rejected("expired", "The token has expired.")
        for claim in ("nbf", "iat"):
            if _seconds(claims, claim, now) > now + LEEWAY:
                raise Rejected("not_yet_valid", "The token is not valid yet.")
        return self._principal(claims)

    async def _verify_jwt(self, token: str) -> Mapping[str, Any]:
        import jwt  # noqa: PLC0415 - of the extra team

        header = _header(token)
        algorithm = str(header["alg"])
        key = await self._issuer.key(header.get("kid"), algorithm, ALGORITHMS[algorithm])
        if key is None:
            raise Rejected("key", "The provider publishes no such key.")
        # PyJWT's own clock cannot be replaced, so the times are checked elsewhere.
        checks: Any = {"require": list(_REQUIRED)}
        checks |= {f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "sub", "jti")}
        table: tuple[tuple[type[Exception], Reason, str], ...] = (
            (jwt.InvalidSignatureError, "signature", "The token's signature is wrong."),
            (jwt.InvalidIssuerError, "issuer", "The token is of another issuer."),
            (jwt.InvalidAudienceError, "audience", "The token is for another audience."),
            (jwt.MissingRequiredClaimError, "claim", "The token lacks a claim that is required."),
            (jwt.InvalidAlgorithmError, "algorithm", "The token's algorithm is not its key's."),
        )
        try:
            return jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._limits.audience,
                issuer=self._limits.issuer,
                options=checks,
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            for kind, reason, description in table:
                if isinstance(error, kind):
                    raise Rejected(reason, description) from None
            raise Rejected("malformed", "The token is no JWT that can be read.") from None

    def _check_introspected(self, claims: Mapping[str, Any]) -> None:
        """Check the provider's claims about an opaque token (RFC 7662, section 2.2)."""
        if not claims:
            raise Rejected("unknown", "The provider does not know the token, or not any more.")
        if claims.get("iss", self._limits.issuer) != self._limits.issuer:
            raise Rejected("issuer", "The token is of another issuer.")
        if self._limits.audience not in _texts(claims.get("aud")):
            raise Rejected("audience", "The token is for another audience.")

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        limits = self._limits
        name = _claim(claims, limits.principal_claim)
        tenant = limits.tenant or self._tenant(claims)
        # One line of a log shows it: no controls, none that change direction.
        if not isinstance(name, str) or not 0 < len(name) <= 255 or not name.isprintable():
            raise _not_let_in("claim", limits.principal_claim, "names no person or program")
        claim = limits.scope_claim
        value = _claim(claims, claim) if claim else claims.get("scope", claims.get("scp"))
        granted = value.split() if isinstance(value, str) else _texts(value)
        names = {READ: limits.read_scope, FETCH: limits.fetch_scope}
        scopes = frozenset(scope for scope, its_name in names.items() if its_name in granted)
        if not scopes and limits.default_scope != "none":
            scopes = frozenset({limits.default_scope})
        if not scopes and claim:  # a role is not got by logging in again
            raise _not_let_in("scope", claim, f"has neither {' nor '.join(names.values())}")
        return Principal(tenant, name, scopes, limits.issuer)

    def _tenant(self, claims: Mapping[str, Any]) -> str:
        """Return the tenant that a claim names: the first of the map, else its only name."""
        values = _texts(_claim(claims, self._limits.tenant_claim))
        if self._limits.tenant_map:
            pairs = (entry.rpartition("=") for entry in self._limits.tenant_map)
            found = [tenant for value, _, tenant in pairs if value in values][:1]
        else:
            found = list({name for name in map(_normalized, values) if is_tenant(name)})
        if len(found) == 1:
            return found[0]
        reason = "names several tenants" if found else "names no tenant of this service"
        raise _not_let_in("tenant", self._limits.tenant_claim, reason if values else "is missing")


def _not_let_in(reason: Reason, claim: str, what: str) -> Rejected:
    """Return the answer to a good token of an account that the settings do not let in."""
    line = f"This account is not let in: the claim {claim} of its token {what}."
    return Rejected(reason, line, error="access_denied")


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """Return a claim by its name, or by its path with dots between the names, None for none."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        value = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
    return value


def _texts(value: Any) -> list[str]:
    """Return the texts of a claim that may be one or a list of them."""
    items = value if is_array(value) else [value]
    return [item for item in items if isinstance(item, str)]


def _normalized(value: str) -> str:
    """Return a provider's group name as a tenant's name: "/Team A" becomes "team-a"."""
    return re.sub(r"[ ._]+", "-", value.strip().removeprefix("/").lower())


def _header(token: str) -> Mapping[str, Any]:
    """Return the header of a JWT that may be verified at all. Raises Rejected."""
    import jwt  # noqa: PLC0415 - of the extra team

    try:
        if token.count(".") != 2:  # five parts: encrypted (RFC 7516)
            raise ValueError(token)  # noqa: TRY301 - as PyJWT does
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise Rejected("malformed", "The token is no signed JWT.") from None
    algorithm, key_id = header.get("alg"), header.get("kid")
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
    if key_id is not None and (not isinstance(key_id, str) or len(key_id) > 256):
        raise Rejected("header", "The token's key has a wrong name.")
    return header


def _seconds(claims: Mapping[str, Any], claim: str, default: float) -> float:
    """Return a NumericDate (RFC 7519, section 2), ``default`` if it is not there."""
    value = claims.get(claim, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        raise Rejected("claim", f"The token's claim {claim} is no time.")
    return float(value)


def _check_limits(limits: OAuthLimits) -> None:
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
        # A role or a group may have any name.
        if not scope or (not limits.scope_claim and not _SCOPE.fullmatch(scope)):
            what = f"oauth.{name} is {scope[:200]!r}, which is no scope."
            raise BadArgument(what, 'Give one without blanks, " and \\ (RFC 6749, section 3.3).')
    if limits.read_scope == limits.fetch_scope:
        what = "oauth.read_scope and oauth.fetch_scope are the same."
        raise BadArgument(what, "Give each a name of its own.")
    names = [entry.rpartition("=")[2] for entry in limits.tenant_map if "=" in entry[1:]]
    if not all(map(is_tenant, names)) or len(names) != len(limits.tenant_map):
        what = "oauth.tenant_map has an item that is no VALUE=TENANT."
        raise BadArgument(what, "A tenant has a-z, 0-9 and -, at most 63, the first no -.")
    if limits.tenant and not is_tenant(limits.tenant):
        what = f"oauth.tenant is {limits.tenant[:80]!r}, which is no name of a tenant."
        raise BadArgument(what, "Take a-z, 0-9 and -, at most 63, the first no -.")
    secret = limits.client_secret
    if bool(limits.client_id) != bool(secret) or (secret and not secret.startswith("env:")):
        what = "oauth.client_id needs oauth.client_secret, which names a variable: env:NAME."
        raise BadArgument(what, "Set both or none.")


def verifier(settings: Settings, objects: Objects) -> OwnTokens:
    """Return the verifier of our own tokens, and of oauth.issuer's where that is set.

    Raises BadArgument for settings that cannot be right, and where PyJWT is missing.
    """
    issuer = _issuer(settings)
    return OwnTokens(objects, OAuthTokens(settings.oauth, issuer) if issuer else None)


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
    _check_limits(limits)
    if importlib.util.find_spec("jwt") is None:
        what = "oauth.issuer is set, and PyJWT, which verifies its tokens, is not installed."
        raise BadArgument(what, 'Run: pip install "fetchstash[team]".')
    secret = resolved("the service", {"oauth.client_secret": limits.client_secret})
    client = limits.client_id, secret["oauth.client_secret"]
    return Issuer(limits.issuer, fetch=settings.fetch, client=client)

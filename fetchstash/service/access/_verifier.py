"""Ask the one who can know a token: it says by its beginning whose it is."""

import importlib.util

from fetchstash.config import OAuthLimits, Settings
from fetchstash.errors import BadArgument
from fetchstash.service.access._issuer import Issuer
from fetchstash.service.access._oauth import OAuthTokens, check_limits
from fetchstash.service.access._own import OwnTokens, looks_like_ours
from fetchstash.service.access._principal import Principal, Rejected, Verifier
from fetchstash.store import Objects


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

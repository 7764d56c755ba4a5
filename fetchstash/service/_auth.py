"""Let in requests with a bearer token that a Verifier knows (RFC 6750, section 2.1)."""

import logging
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from fetchstash.config import OAuthLimits, Settings
from fetchstash.errors import Busy, FetchstashError
from fetchstash.service import _request
from fetchstash.service._context import PRINCIPAL
from fetchstash.service._replies import reply
from fetchstash.service.access import (
    LOCAL,
    OwnTokens,
    Rejected,
    Verifier,
    challenge,
    metadata_paths,
    resource_metadata,
    verifier,
)
from fetchstash.store import Objects
from fetchstash.system import telemetry

_log = logging.getLogger("fetchstash.service")


async def verifier_of(settings: Settings, objects: Objects) -> Verifier | None:
    """Return what verifies tokens, None where none ever was and no provider is configured."""
    known = verifier(settings, objects)
    return known if settings.oauth.issuer or await OwnTokens(objects).were_made() else None


def metadata_routes(oauth: OAuthLimits) -> Sequence[Route]:
    """Return what tells clients where to get a token (RFC 9728, section 3)."""

    async def metadata(_: Request) -> Response:
        return JSONResponse(resource_metadata(oauth))

    return [Route(path, metadata) for path in metadata_paths(oauth)]


class Authentication:
    """Puts the principal of each request into its scope, or answers 401.

    Without a verifier everybody is the one user of this machine.
    """

    def __init__(self, app: ASGIApp, verifier: Verifier | None, oauth: OAuthLimits) -> None:
        self._app = app
        self._verifier = verifier
        self._oauth = oauth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Verify a request's token and pass it on."""
        try:
            scope[PRINCIPAL] = (
                await self._verifier.verify(_token(scope)) if self._verifier else LOCAL
            )
        except Rejected as rejected:
            await refusal(rejected, self._oauth)(scope, receive, send)
            return
        except FetchstashError as error:
            # Nobody knows yet who asks, so the answer names neither the store nor the provider.
            _log.warning("Tokens cannot be verified: %s", error.line())
            busy = Busy("Tokens cannot be verified now.", "Try again in a few seconds.")
            await reply(503, busy, headers={"retry-after": "1"})(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _token(scope: Scope) -> str:
    """Return the token of a request. Raises Rejected if it has none, or several."""
    sent = Headers(scope=scope).getlist("authorization")
    scheme, _, token = sent[0].partition(" ") if len(sent) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        raise Rejected("no_token")
    return token.strip()


def refusal(rejected: Rejected, oauth: OAuthLimits) -> Response:
    """Return the answer to a request whose token is missing, wrong, or of too small a scope."""
    telemetry.count("token_rejections", reason=rejected.reason)
    if record := _request.current():
        record.code = rejected.reason
    if rejected.reason == "no_token":
        line, header = "This service needs a token: Authorization: Bearer TOKEN.", challenge(oauth)
    else:
        line, header = rejected.description, challenge(oauth, rejected)
    problem = {"error": rejected.error, "error_description": line}
    return JSONResponse(problem, rejected.status, {"www-authenticate": header})

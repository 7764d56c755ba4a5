"""Let in requests with a bearer token that a Verifier knows (RFC 6750, section 2.1)."""

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fetchstash.access import LOCAL, Rejected, Verifier
from fetchstash.config import Settings
from fetchstash.service._context import PRINCIPAL


async def verifier_of(_: Settings) -> Verifier | None:
    """Return what verifies tokens, None where none were made and no provider is configured."""
    return None


class Authentication:
    """Puts the principal of each request into its scope, or answers 401.

    Without a verifier everybody is the one user of this machine.
    """

    def __init__(self, app: ASGIApp, verifier: Verifier | None) -> None:
        self._app = app
        self._verifier = verifier

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Verify a request's token and pass it on."""
        if self._verifier is None:
            scope[PRINCIPAL] = LOCAL
        else:
            try:
                scope[PRINCIPAL] = await self._verifier.verify(_token(scope))
            except Rejected as rejected:
                await _refusal(rejected)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _token(scope: Scope) -> str:
    """Return the token of a request. Raises Rejected if it has none, or several."""
    sent = Headers(scope=scope).getlist("authorization")
    scheme, _, token = sent[0].partition(" ") if len(sent) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        raise Rejected("no_token", error="")
    return token.strip()


def _refusal(rejected: Rejected) -> JSONResponse:
    challenge = "Bearer"
    if rejected.error:
        challenge += f' error="{rejected.error}"'
    lines = {
        "": "This service needs a token. Send it as Authorization: Bearer TOKEN.",
        "insufficient_scope": "This token does not allow that. Ask for one that does.",
    }
    line = lines.get(rejected.error, "This token is not valid here. Ask for a new one.")
    status = 403 if rejected.error == "insufficient_scope" else 401
    return JSONResponse({"error": line}, status, {"www-authenticate": challenge})

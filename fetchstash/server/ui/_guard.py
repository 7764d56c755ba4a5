"""Who may speak to the view: the browser that was given the link, from our own page alone.

Cookies are shared by all ports of a host name. So the page lives beneath a path of random letters
that the cookie is bound to (RFC 6265 §5.1.4), and every request must come from our own origin.
"""

import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import SimpleCookie

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_COOKIE = "fetchstash"
_COOKIE_SECONDS = 12 * 3_600
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_CLOSED = "default-src 'none'; frame-ancestors 'none'; sandbox"
EXPIRED = (
    "This link was used already, or fetchstash ui was started again since. "
    "Start fetchstash ui again, and open the link that it prints."
)


def _secret() -> str:
    return secrets.token_urlsafe(24)


@dataclass(slots=True)
class Pass:
    """The secrets of one run of the server. ``token`` opens the page once, "" afterwards."""

    port: int
    base: str = field(default_factory=lambda: "/" + secrets.token_hex(8))
    token: str = field(default_factory=_secret)
    cookie: str = field(default_factory=_secret)

    @property
    def link(self) -> str:
        """The link that opens the page in one browser."""
        return f"http://127.0.0.1:{self.port}{self.base}/?token={self.token}"

    def admits(self, request: Request) -> bool:
        """Return whether a request has the cookie, or the token, which is spent by that."""
        token = request.query_params.get("token", "")
        if self.token and hmac.compare_digest(token.encode(), self.token.encode()):
            self.token = ""
            return True
        return self.knows(request.headers)

    def knows(self, headers: Headers) -> bool:
        """Return whether a request has the cookie."""
        cookies = SimpleCookie(headers.get("cookie", ""))
        sent = cookies[_COOKIE].value if _COOKIE in cookies else ""
        return hmac.compare_digest(sent.encode(), self.cookie.encode())

    def give_cookie(self, response: Response) -> None:
        """Let the browser in from now on."""
        response.set_cookie(
            _COOKIE,
            self.cookie,
            max_age=_COOKIE_SECONDS,
            path=self.base + "/",
            httponly=True,
            samesite="strict",
        )


class Guard:
    """Refuses requests of other hosts, of other pages, and without the cookie."""

    def __init__(self, app: ASGIApp, entry: Pass) -> None:
        self._app = app
        self._entry = entry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with the headers that every answer has."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                have = {name for name, _ in message["headers"]}
                headers = {**_HEADERS, "content-security-policy": _CLOSED}
                message["headers"] += [
                    (name.encode(), value.encode())
                    for name, value in headers.items()
                    if name.encode() not in have
                ]
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that must not be answered, else None."""
        headers, base = Headers(scope=scope), self._entry.base
        host = headers.get("host", "")
        port = self._entry.port
        # A name that leads here is not ours: DNS rebinding.
        if host not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            return PlainTextResponse("This is not the host of the view.", 421)
        if not scope["path"].startswith(base + "/"):
            return PlainTextResponse(EXPIRED, 404)  # most likely of an earlier run at this port
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        is_page = scope["path"] == base + "/" and scope["method"] == "GET"
        own = f"http://{host}"
        if origin not in (None, own) or (scope["method"] != "GET" and origin != own):
            return PlainTextResponse("Another page asks.", 403)
        if not is_page and site not in ("same-origin", "none"):
            return PlainTextResponse("Another page asks.", 403)
        # The page itself takes the token, too.
        if not is_page and not self._entry.knows(headers):
            return JSONResponse({"code": "expired", "line": EXPIRED}, 401)
        return None

"""Bounds of messages and calls over HTTP.

Whatever comes after reads the message that was read here, written again: no two parsers can
disagree about it.
"""

import json
from typing import Any, cast

import anyio
from mcp_types import PARSE_ERROR, RequestId, jsonrpc_message_adapter
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fetchstash.config import OAuthLimits
from fetchstash.errors import BadArgument, Busy, FetchstashError, Refused, TimedOut, TooLarge
from fetchstash.server import is_request_id, no_message
from fetchstash.service._auth import refusal
from fetchstash.service._request import REFUSAL, SESSION_HEADER, new_session, principal_in, reply
from fetchstash.service.access import Principal, Rejected, check_scope, scope_of

MAX_CALLS = 512
"""Requests that are handled at a time by one process."""


class Calls:
    """Passes requests on while there is room, and none once it drains."""

    def __init__(self, app: ASGIApp, grace_seconds: float) -> None:
        self._app = app
        self._grace_seconds = grace_seconds
        self._running: set[anyio.CancelScope] = set()
        self._ended = anyio.Event()
        self.is_draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 503."""
        if self.is_draining or len(self._running) >= MAX_CALLS:
            await self._unavailable(scope, receive, send)
            return
        has_begun = False

        async def begin(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        with anyio.CancelScope() as running:
            self._running.add(running)
            try:
                await self._app(scope, receive, begin)
            finally:
                self._running.remove(running)
                self._ended.set()
        if running.cancelled_caught and not has_begun:
            await self._unavailable(scope, receive, send)

    async def drain(self) -> None:
        """Take no more requests, and return when those in flight have ended.

        What has not ended within the grace is cancelled.
        """
        self.is_draining = True
        with anyio.move_on_after(self._grace_seconds):
            await self._wait()
        for running in self._running:
            running.cancel()
        await self._wait()

    async def _wait(self) -> None:
        while self._running:
            self._ended = anyio.Event()
            await self._ended.wait()

    async def _unavailable(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = "is shutting down" if self.is_draining else f"handles {MAX_CALLS} requests already"
        error = Busy(f"This server {state}.", "Try again in a second.")
        headers = {"retry-after": "1", "connection": "close"}
        await reply(503, error, headers=headers)(scope, receive, send)


BODY_SECONDS = 30.0
"""Within which a client must have sent its request."""

_REQUEST_CANCELLED = -32800


def _refuse(constant: str) -> None:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_Call = tuple[Principal, str, RequestId]


class Messages:
    """Passes on requests whose body is one message of MCP."""

    def __init__(self, app: ASGIApp, max_body_bytes: int, oauth: OAuthLimits) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._oauth = oauth
        self._calls: dict[_Call, anyio.CancelScope] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] != "POST":
            # There is no stream from the server to a client, and no session to delete.
            await Response(status_code=405, headers={"allow": "POST"})(scope, receive, send)
            return
        try:
            body = await self._body(scope, receive)
        except FetchstashError as error:
            status = 413 if isinstance(error, TooLarge) else 408
            refused = reply(status, error, headers={"connection": "close"})
            await refused(scope, receive, send)
            return
        if body is None:
            return
        read = _message(body)
        if isinstance(read, Response):
            await read(scope, receive, send)
            return
        message, written = read
        principal = principal_in(scope)
        session = Headers(scope=scope).get(SESSION_HEADER, "")
        try:
            check_scope(principal, scope_of(message))
        except Rejected as rejected:
            if principal.source == self._oauth.issuer:
                # The client can log in again for more (MCP's authorization: step-up).
                await refusal(rejected, self._oauth)(scope, receive, send)
                return
            # Nobody can widen a token of our own, so its model is told, as by any tool.
            scope[REFUSAL] = Refused(
                "This token may read what is kept, and fetch nothing.",
                "Whoever runs the service can give a token of the scope fetch.",
            )
        receive = _replay(written, receive)
        match message:
            case {"id": request, "method": "initialize"}:
                await self._app(scope, receive, _naming(send, new_session(message)))
            case {"id": request, "method": _} if session:
                await self._call((principal, session, request), scope, receive, send)
            case {"method": "notifications/cancelled", "params": {"requestId": request}} if (
                isinstance(request, int | str)
            ):
                if call := self._calls.get((principal, session, request)):
                    call.cancel()
                await self._app(scope, receive, send)
            case _:
                await self._app(scope, receive, send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the body of a request, None if the client went away. Raises TooLarge, TimedOut."""
        limit = self._max_body_bytes
        too_large = TooLarge(f"A request has at most {limit} bytes.", "Send a shorter one.")
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > limit:
            raise too_large
        body = bytearray()
        with anyio.move_on_after(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                body += message.get("body", b"")
                if len(body) > limit:
                    raise too_large
                if not message.get("more_body", False):
                    return bytes(body)
        raise TimedOut(
            f"The request did not come within {BODY_SECONDS:.0f} seconds.", "Send it again."
        )

    async def _call(self, call: _Call, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request that its client may cancel by a message of its own."""
        response = _Response(send)
        with anyio.CancelScope() as cancelling:
            self._calls[call] = cancelling
            try:
                await self._app(scope, receive, response.send)
            finally:
                if self._calls.get(call) is cancelling:
                    del self._calls[call]
        if cancelling.cancelled_caught:
            await response.end(call[2], scope, receive)


class _Response:
    """Knows how far the answer to a request is."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_stream: bool | None = None
        self._ended = False

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            kind = Headers(raw=message["headers"]).get("content-type", "")
            self._is_stream = kind.startswith("text/event-stream")
        else:
            self._ended = not message.get("more_body", False)
        await self._send(message)

    async def end(self, request: RequestId, scope: Scope, receive: Receive) -> None:
        """Say that the request was cancelled, in what is left of the answer."""
        problem = {"code": _REQUEST_CANCELLED, "message": "Request cancelled"}
        text = json.dumps({"jsonrpc": "2.0", "id": request, "error": problem})
        if self._is_stream is None:
            await Response(text, media_type="application/json")(scope, receive, self._send)
        elif not self._ended:
            event = f"event: message\r\ndata: {text}\r\n\r\n".encode() if self._is_stream else b""
            await self._send({"type": "http.response.body", "body": event})


def _message(body: bytes) -> tuple[dict[str, Any], bytes] | Response:
    """Return the message of a body and how it is passed on, or the answer to what is none.

    JSON is as in RFC 8259, without Python's NaN and Infinity.
    """
    try:
        message: Any = _DECODER.decode(body.decode())
    except (ValueError, RecursionError):
        error = BadArgument("The request is no JSON.", "Send one JSON-RPC message in UTF-8.")
        return reply(400, error, number=PARSE_ERROR)
    if isinstance(message, list):
        error = BadArgument("The request is a batch.", "Send each message in a request of its own.")
        return reply(400, error)
    try:
        written = _ENCODER.encode(message).encode()
        jsonrpc_message_adapter.validate_python(message, by_name=False)
    except (ValueError, RecursionError):  # ValidationError and UnicodeEncodeError are ValueErrors
        return _no_message(message)
    if "method" in message and not is_request_id(message.get("id", 0)):
        return _no_message(message)
    return cast("dict[str, Any]", message), written


def _no_message(message: Any) -> Response:
    request = cast("dict[str, Any]", message).get("id") if isinstance(message, dict) else None
    return reply(400, no_message(), request=request if is_request_id(request) else None)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive that gives the body again, then what the client does."""
    is_given = False

    async def replayed() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _naming(send: Send, session: str) -> Send:
    """Return a send that adds the session id to an answer."""

    async def named(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(raw=message["headers"])[SESSION_HEADER] = session
        await send(message)

    return named

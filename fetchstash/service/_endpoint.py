"""The layer before the SDK at /mcp: capacity, token, quota and message of a request.

The SDK reads the message that was read here, written again: no two parsers can disagree about it.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, cast

import anyio
from mcp_types import PARSE_ERROR, RequestId, jsonrpc_message_adapter
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fetchstash.config import HttpLimits, OAuthLimits
from fetchstash.errors import (
    BadArgument,
    Busy,
    FetchstashError,
    OverQuota,
    Refused,
    TimedOut,
    TooLarge,
)
from fetchstash.server import is_request_id, no_message
from fetchstash.server.tools import tool_specs
from fetchstash.service import _request
from fetchstash.service._request import PRINCIPAL, REFUSAL, SESSION_HEADER, new_session, reply
from fetchstash.service._tenants import Tenants
from fetchstash.service.access import (
    FOR_MORE,
    LOCAL,
    Principal,
    Rejected,
    Verifier,
    challenge,
    check_scope,
    grants_scopes,
    scope_of,
)
from fetchstash.system import telemetry
from fetchstash.text.untyped import as_object

MAX_CALLS = 512
"""Requests that are handled at a time by one process."""

BODY_SECONDS = 30.0
"""Within which a client must have sent its request."""

DROPPED_BYTES, DROP_SECONDS = 2**26, 10.0
"""At most so much of a body that is too long is read and dropped, for so long."""

PING_SECONDS = 15.0
"""A proxy closes a connection on which nothing comes for a minute."""

WATCH_SECONDS = 0.2
"""After which a call is watched for a client that leaves."""

EARLY_BYTES = 16_384
"""Of a body that is read before its request's turn: whether it takes long stands in it."""

_REQUEST_CANCELLED = -32800
Call = tuple[Principal, str, RequestId]
CancelElsewhere = Callable[[Call], object]
_log = logging.getLogger("fetchstash.service")


_DECODER = json.JSONDecoder(parse_constant=int)  # which refuses NaN and Infinity
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


class _Refusal(Exception):
    """A request that is not passed on, and the answer to it."""

    def __init__(self, response: ASGIApp) -> None:
        self.response = response


class _Answer:
    """Sends an answer, with the id of a new ``session``, and knows how far it is."""

    def __init__(self, receive: Receive, send: Send, cancel: Callable[[], None]) -> None:
        self._receive = receive
        self._send = send
        self._cancel = cancel
        self._is_kept_alive = False
        self._is_stream = False
        self._ended = False
        self.has_begun = False
        self.is_unwanted = False
        self.session = ""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if self._is_kept_alive:
                return
            headers = MutableHeaders(raw=message["headers"])
            if self.session:
                headers[SESSION_HEADER] = self.session
            self.has_begun = True
            self._is_stream = headers.get("content-type", "").startswith("text/event-stream")
        else:
            self._ended = not message.get("more_body", False)
            if self._is_kept_alive:
                message = {**message, "body": _event(message["body"])}
        await self._send(message)

    @contextmanager
    def watched(self, *, pings: bool = True) -> Generator[None]:
        """Cancel the request if its client leaves; keep the connection of a long one busy.

        The SDK does so where it streams. A request that is answered soon costs one timer.
        """
        loop, tasks = asyncio.get_running_loop(), list[asyncio.Task[None]]()

        def watch() -> None:
            tasks.append(loop.create_task(self._watch(pings=pings)))

        timer = loop.call_later(WATCH_SECONDS, watch)
        try:
            yield
        finally:
            timer.cancel()
            for task in tasks:
                task.cancel()

    async def _watch(self, *, pings: bool) -> None:
        while not self._ended:
            with anyio.move_on_after(PING_SECONDS if pings else None):
                if (await self._receive())["type"] == "http.disconnect":
                    self.is_unwanted = True
                    self._cancel()
                return
            if not self.has_begun:
                self._is_kept_alive = self._is_stream = self.has_begun = True
                headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
                await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            if self._is_kept_alive and not self._ended:
                ping = {"type": "http.response.body", "body": b": ping\r\n\r\n", "more_body": True}
                await self._send(ping)

    async def cancelled(self, request: RequestId, scope: Scope) -> None:
        """Complete the answer with the error of a cancelled request."""
        problem = {"code": _REQUEST_CANCELLED, "message": "Request cancelled"}
        text = json.dumps({"jsonrpc": "2.0", "id": request, "error": problem}).encode()
        if not self.has_begun:
            await Response(text, media_type="application/json")(scope, self._receive, self._send)
        elif not self._ended:
            event = _event(text) if self._is_stream else b""
            await self._send({"type": "http.response.body", "body": event})


def _event(message: bytes) -> bytes:
    """Return a message as an event of a stream (WHATWG HTML, section 9.2)."""
    return b"event: message\r\ndata: " + message + b"\r\n\r\n"


class Endpoint:
    """Passes on requests that may come in and bring one message of MCP, none once it drains.

    ``app`` answers by one JSON document. ``stream_for`` returns what answers a message during which
    something else may be sent, None for any other: a stream costs the SDK two tasks, a third of the
    time of a short call. Without ``verifier`` everybody is the one user of this machine.
    ``tenants`` counts and orders the requests of each tenant.
    """

    def __init__(
        self,
        app: ASGIApp,
        http: HttpLimits,
        oauth: OAuthLimits,
        tenants: Tenants,
        verifier: Verifier | None = None,
        cancel_elsewhere: CancelElsewhere | None = None,
        stream_for: Callable[[Mapping[str, Any]], ASGIApp | None] = lambda _: None,
    ) -> None:
        self._app = app
        self._stream_for = stream_for
        self._http = http
        self._oauth = oauth
        self._verifier = verifier
        self._tenants = tenants
        self._long_tools = {spec.name for spec in tool_specs(tenants.settings) if spec.is_long}
        self._running: set[anyio.CancelScope] = set()
        self._ended = anyio.Event()
        self._cancel_elsewhere = cancel_elsewhere
        self._calls: dict[Call, anyio.CancelScope] = {}
        self.is_draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.is_draining or len(self._running) >= MAX_CALLS:
            await self._unavailable()(scope, receive, send)
            return
        running = anyio.CancelScope()
        answer = _Answer(receive, send, running.cancel)
        with running:
            self._running.add(running)
            try:
                await self._admitted(scope, receive, answer)
            except _Refusal as refusal:
                await refusal.response(scope, receive, answer.send)
            finally:
                self._running.remove(running)
                self._ended.set()
        if running.cancelled_caught and not (answer.has_begun or answer.is_unwanted):
            await self._unavailable()(scope, receive, send)

    async def drain(self) -> None:
        """Refuse new requests; return when those in flight have ended.

        What has not ended within the grace is cancelled.
        """
        self.is_draining = True
        with anyio.move_on_after(self._http.grace_seconds):
            await self._wait()
        for running in self._running:
            running.cancel()
        await self._wait()

    async def _wait(self) -> None:
        while self._running:
            self._ended = anyio.Event()
            await self._ended.wait()

    def _unavailable(self) -> Response:
        state = "is shutting down" if self.is_draining else f"handles {MAX_CALLS} requests already"
        error = Busy(f"This server {state}.", "Try again in a second.")
        return reply(503, error, headers={"retry-after": "1", "connection": "close"})

    async def _admitted(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        """Verify a request's token, and pass the request on in its turn, counted.

        One that is over a quota goes on with its refusal, which the tool answers as ``[quota]`` or
        ``[busy]``, so that a model reads it; of many in a second most get HTTP's 429 (RFC 6585,
        section 4) with ``Retry-After``.
        """
        principal = scope[PRINCIPAL] = await self._verified(scope)
        if scope["method"] != "POST":
            # There is no stream from the server to a client, and no session to delete.
            raise _Refusal(Response(status_code=405, headers={"allow": "POST"}))
        tenants, tenant, person = self._tenants, principal.tenant, principal.run
        try:
            tenants.admit(tenant, person)
        except (OverQuota, Busy) as error:
            label = _request.tenant_label(tenants.settings, tenant)
            telemetry.count("quota_refusals", tenant=label)
            if not await tenants.queue.refused(tenant):
                seconds = str(error.details["retry_after_seconds"])
                answer_429 = reply(429, error, headers={"retry-after": seconds})
                raise _Refusal(answer_429) from None
            scope[REFUSAL] = error
        with tenants.queue.request(tenant, person) as begin, tenants.entered(tenant):
            declared = Headers(scope=scope).get("content-length", "")
            is_short = declared.isdecimal() and int(declared[:20]) <= EARLY_BYTES
            message = await self._message(scope, receive) if is_short else None
            if message:
                params: dict[str, Any] = message[0].get("params") or {}
                is_long = str(params.get("name")) in self._long_tools
                await begin(is_long, partial(answer.watched, pings=False))
            elif not is_short:
                await begin(True, nullcontext)
                message = await self._message(scope, receive)
            if message:
                await self._pass_on(message, principal, scope, receive, answer)

    async def _verified(self, scope: Scope) -> Principal:
        """Return the principal that sends a request. Raises _Refusal."""
        if self._verifier is None:
            return LOCAL
        sent = Headers(scope=scope).getlist("authorization")
        scheme, _, token = sent[0].partition(" ") if len(sent) == 1 else ("", "", "")
        if scheme.lower() != "bearer" or not token.strip():
            raise _Refusal(self._rejection(Rejected("no_token")))
        try:
            return await self._verifier.verify(token.strip())
        except Rejected as rejected:
            raise _Refusal(self._rejection(rejected)) from None
        except FetchstashError as error:
            # Nobody knows yet who asks, so the answer names neither the store nor the provider.
            _log.warning("Tokens cannot be verified: %s", error.line())
            step = "Try again in a few seconds; if that does not help, the operator's log says why."
            busy = Busy("Tokens cannot be verified now.", step)
            raise _Refusal(reply(503, busy, headers={"retry-after": "1"})) from None

    def _rejection(self, rejected: Rejected) -> Response:
        """Return the answer to a request whose token is missing, wrong, or of too small a scope."""
        telemetry.count("token_rejections", reason=rejected.reason)
        if record := _request.current():
            record.code = rejected.reason
        line, header = rejected.description, challenge(self._oauth, rejected)
        if rejected.reason == "no_token":
            line = "This service needs a token: Authorization: Bearer TOKEN."
            header = challenge(self._oauth)
        problem = {"error": rejected.error, "error_description": line}
        if rejected.error == "access_denied":  # a challenge would let the client log in again
            return JSONResponse(problem, rejected.status)
        return JSONResponse(problem, rejected.status, {"www-authenticate": header})

    async def _message(self, scope: Scope, receive: Receive) -> "_Message | None":
        """Return the message of a request, None if the client went away. Raises _Refusal."""
        limit, closing = self._http.max_body_bytes, {"connection": "close"}
        declared = Headers(scope=scope).get("content-length", "")
        size = int(declared[:20]) if declared.isdecimal() else 0
        body = bytearray()
        with suppress(TimeoutError):
            async with asyncio.timeout(BODY_SECONDS):
                while max(size, len(body)) <= limit:
                    part = await receive()
                    if part["type"] != "http.request":
                        return None
                    body += part.get("body", b"")
                    if not part.get("more_body", False) and len(body) <= limit:
                        return _message(bytes(body))
                long = TooLarge(f"A request has at most {limit} bytes.", "Send a shorter one.")
                raise _Refusal(partial(_read_on, reply(413, long, headers=closing)))
        late = f"The request did not come within {BODY_SECONDS:.0f} seconds."
        raise _Refusal(reply(408, TimedOut(late, "Send it again."), headers=closing))

    async def _pass_on(
        self,
        sent: "_Message",
        principal: Principal,
        scope: Scope,
        receive: Receive,
        answer: _Answer,
    ) -> None:
        """Pass a message on, where its principal may send it."""
        message, written = sent
        try:
            check_scope(principal, scope_of(message))
        except Rejected as rejected:
            if principal.issuer and grants_scopes(self._oauth):
                # The client can log in again for more (MCP's authorization: step-up).
                raise _Refusal(self._rejection(rejected)) from None
            # Nobody can widen a token of our own, or a role: its model is told, as by any tool.
            what = "This token may read what is kept, and fetch nothing."
            scope[REFUSAL] = Refused(what, f"{FOR_MORE.capitalize()}.")
        session = Headers(scope=scope).get(SESSION_HEADER, "")
        stream = self._stream_for(message)
        again = _replay(written, receive)

        async def passed_on() -> None:
            if stream:
                await stream(scope, again, answer.send)
                return
            with answer.watched():
                await self._app(scope, again, answer.send)

        method, request = message.get("method"), message.get("id")
        if method == "initialize" and request is not None:
            answer.session = new_session(message)
        elif method and request is not None and session:
            await self._cancellable((principal, session, request), passed_on, scope, answer)
            return
        elif method == "notifications/cancelled":
            params: dict[str, Any] = message.get("params") or {}
            number = params.get("requestId")
            if isinstance(number, int | str):
                call = principal, session, number
                if not self.cancel(call) and self._cancel_elsewhere and session:
                    self._cancel_elsewhere(call)
        await passed_on()

    def cancel(self, call: Call) -> bool:
        """Cancel a call that runs here; return whether one does."""
        running = self._calls.get(call)
        if running:
            running.cancel()
        return running is not None

    async def _cancellable(
        self, call: Call, passed_on: Callable[[], Awaitable[None]], scope: Scope, answer: _Answer
    ) -> None:
        """Pass on a request that its client may cancel by a message of its own."""
        with anyio.CancelScope() as cancelling:
            self._calls[call] = cancelling
            try:
                await passed_on()
            finally:
                if self._calls.get(call) is cancelling:
                    del self._calls[call]
        if cancelling.cancelled_caught:
            await answer.cancelled(call[2], scope)


async def _read_on(response: Response, _: Scope, receive: Receive, send: Send) -> None:
    """Answer a request whose body is still arriving; discard the rest before closing.

    Most clients send all before they read, and bytes that are unread at the end would reset the
    connection and lose them the answer (RFC 9112, section 9.6).
    """
    start = {"type": "http.response.start", "status": response.status_code}
    await send({**start, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    left, goes_on = DROPPED_BYTES, True
    with anyio.move_on_after(DROP_SECONDS):
        while left > 0 and goes_on:
            part = await receive()
            left, goes_on = left - len(part.get("body", b"")), part.get("more_body", False)
    await send({"type": "http.response.body", "body": b""})


_Message = tuple[dict[str, Any], bytes]
"""A message of JSON-RPC, and how it is passed on."""


def _message(body: bytes) -> _Message:
    """Parse a body; return its message and how to pass it on. Raises _Refusal if it is none.

    JSON is as in RFC 8259, without Python's NaN and Infinity.
    """
    try:
        message: Any = _DECODER.decode(body.decode())
    except (ValueError, RecursionError):
        error = BadArgument("The request is no JSON.", "Send one JSON-RPC message in UTF-8.")
        raise _Refusal(reply(400, error, number=PARSE_ERROR)) from None
    if isinstance(message, list):
        error = BadArgument("The request is a batch.", "Send each message in a request of its own.")
        raise _Refusal(reply(400, error))
    try:
        written = _ENCODER.encode(message).encode()
        match message:
            case {"jsonrpc": "2.0", "method": str(), "id": int() | str(), "params": dict()}:
                pass  # nearly all are so, and the models take ten times as long to see it
            case _:
                jsonrpc_message_adapter.validate_python(message, by_name=False)
        is_message = "method" not in message or is_request_id(message.get("id", 0))
    except (ValueError, RecursionError):  # ValidationError and UnicodeEncodeError are ValueErrors
        is_message, written = False, b""
    if not is_message:
        request = as_object(message).get("id")
        request = request if is_request_id(request) else None
        raise _Refusal(reply(400, no_message(), request=request))
    return cast("dict[str, Any]", message), written


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that yields the body again, then the client's further events."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed

"""The anthropic SDK: a client middleware, for plain, streamed and asynchronous requests.

    client = Anthropic(middleware=[recovery_middleware(Recovery())])

The SDK runs its middleware for each HTTP attempt, and makes its typed errors afterwards. An
overflow that was not cured is raised as that error by the middleware itself, because only so can it
carry the report; every other answer is returned. An error may also come as an event of a stream
that began with status 200, so that a stream is read event by event until a content block begins.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from inspect import getclosurevars
from typing import Any, Unpack

from fetchstash.client._policy import Request
from fetchstash.client._recovery import Recovery, overflow_report
from fetchstash.client._streams import failure, is_list, is_object
from fetchstash.client.adapters import Needs, Options, Shape, account_of, configured

with Needs("anthropic", "anthropic", "2.10"):
    import httpx2
    from anthropic import Middleware

MESSAGES = Shape(
    "messages", "anthropic", ("max_tokens",), ("system", "tools", "mcp_servers"), ("container",)
)

# A server-sent event ends with a blank line (WHATWG HTML, section 9.2.6).
_EVENT_END = re.compile(rb"\r?\n\r?\n")
_DATA = re.compile(rb"^data: ?(.*?)\r?$", re.MULTILINE)


class RecoveryMiddleware(Middleware):
    """Sends a request that was too large once more, smaller."""

    def __init__(self, recovery: Recovery) -> None:
        self.recovery = recovery

    def handle(self, request: Any, call_next: Any) -> Any:
        """Return the answer of a synchronous client's request."""
        if not _has_messages(request):
            return call_next(request)
        refused = _Refused(request)

        def send(body: dict[str, Any]) -> Any:
            for answer in refused.answers.values():
                answer.close()
            response = call_next(_changed(request, body))
            if refused.has_to_read(response):
                response.read()
            return refused.checked(response)

        try:
            if not request.stream:
                return self.recovery.call(*_arguments(request, call_next, send))
            return _with_body(self.recovery.open(*_arguments(request, call_next, send), read=_read))
        except Exception as error:  # noqa: BLE001 - raised again, unless the SDK is to make its own of it
            return refused.returned(error)

    async def handle_async(self, request: Any, call_next: Any) -> Any:
        """Return the answer of an asynchronous client's request."""
        if not _has_messages(request):
            return await call_next(request)
        refused = _Refused(request)

        async def send(body: dict[str, Any]) -> Any:
            for answer in refused.answers.values():
                await answer.close()
            response = await call_next(_changed(request, body))
            if refused.has_to_read(response):
                await response.read()
            return refused.checked(response)

        try:
            if not request.stream:
                return await self.recovery.acall(*_arguments(request, call_next, send))
            opened = self.recovery.aopen(*_arguments(request, call_next, send), read=_read)
            return _with_body(await opened)
        except Exception as error:  # noqa: BLE001 - as in handle
            return refused.returned(error)


def recovery_middleware(
    recovery: Recovery | None = None, **options: Unpack[Options]
) -> RecoveryMiddleware:
    """Return a middleware for ``Anthropic`` and ``AsyncAnthropic``."""
    return RecoveryMiddleware(configured(recovery, options))


def _has_messages(request: Any) -> bool:
    """Return whether this asks for an answer, and not for a count of its tokens."""
    body = request.json
    return is_object(body) and is_list(body.get("messages")) and "/count_tokens" not in request.url


def _arguments(
    request: Any, call_next: Any, send: Callable[[dict[str, Any]], Any]
) -> tuple[Callable[..., Any], Request]:
    """Return a function that sends this request with other messages, and the request itself."""
    body, headers, client = request.json, request.headers, _client_of(call_next)
    # Beta features decide a model's window, too.
    endpoint = (
        f"{getattr(client, 'base_url', '')} {request.url} {headers.get('anthropic-beta', '')}"
    )
    keys = (getattr(client, name, None) for name in ("api_key", "auth_token"))
    account = account_of(*keys, headers.get("anthropic-workspace-id"))
    made = MESSAGES.request(body, body["messages"], endpoint, account=account)
    return MESSAGES.sending(send, body), made


MAX_MIDDLEWARE = 32
"""How many layers of middleware are looked through for the client."""


def _client_of(call_next: Any) -> Any:
    """Return the client that sends this request, None where it cannot be found.

    A middleware is given neither the client nor its key and address; the innermost function that it
    calls holds the client.
    """
    for _ in range(MAX_MIDDLEWARE):
        try:
            held = getclosurevars(call_next).nonlocals
        except TypeError:  # no function of Python's
            return None
        if "call_next" not in held:
            return held.get("self")
        call_next = held["call_next"]
    return None


def _changed(request: Any, body: dict[str, Any]) -> Any:
    """Return a request with another body, itself if nothing changed."""
    if body == request.json:
        return request
    # ``copy`` copies the old body in depth (1 ms for a megabyte) before it takes the new one.
    options, original = request.options, request.options.json_data
    options.json_data = None
    try:
        return request.copy(body=body)
    finally:
        options.json_data = original


class _NothingAnsweredError(Exception):
    """An answer that ended for the model's window before it began."""


class _Refused:
    """The answers that refused a request, by the SDK's error that each became."""

    def __init__(self, request: Any) -> None:
        self.request = request
        self.answers: dict[Exception, Any] = {}

    def has_to_read(self, response: Any) -> bool:
        """Return whether an answer is read here, and not passed on as a stream."""
        return response.status_code >= 400 or not self.request.stream

    def checked(self, response: Any) -> Any:
        """Return an answer, or its events; raise what the SDK makes of one that refuses."""
        if response.status_code >= 400:
            client = response._client  # noqa: SLF001 - nothing public leads to what makes the SDK's own errors
            error = client._make_status_error_from_response(response.http_response)  # noqa: SLF001 - as above
            self.answers[error] = response
            raise error
        if self.request.stream:
            # A compressed stream cannot be read here.
            compressed = response.http_response.headers.get("content-encoding")
            return response if compressed else _Events(response)
        try:
            reason = failure(json.loads(response.http_response.content))
        except ValueError:
            return response
        if reason is not None:  # status 200, and nothing fitted
            error = _NothingAnsweredError(str(reason))
            self.answers[error] = response
            raise error
        return response

    def returned(self, error: Any) -> Any:
        """Return the answer behind ``error``, or raise an error with a report or a cause."""
        if error not in self.answers:
            raise error
        if isinstance(error, _NothingAnsweredError):
            return self.answers[error]
        if overflow_report(error):
            # The SDK obeys this header, whatever the status is.
            error.response.headers["x-should-retry"] = "false"
            raise error
        if error.__cause__:
            raise error
        return self.answers[error]


class _Event:
    """One server-sent event as it came, and the answer that it is of."""

    def __init__(self, raw: bytes, response: Any) -> None:
        self.raw = raw
        self.response = response


def _read(event: _Event) -> Any:
    """Return the data of an event. Raises the SDK's error for an event that reports one."""
    data = b"\n".join(_DATA.findall(event.raw)).decode("utf-8", "replace")
    try:
        said = json.loads(data)
    except ValueError:
        said = None
    if is_object(said) and said.get("type") == "error":
        client = event.response._client  # noqa: SLF001 - as in _Refused.checked
        response = event.response.http_response
        raise client._make_status_error(str(said), body=said, response=response)  # noqa: SLF001 - as above
    return said


class _Events:
    """The events of a streamed answer, split where they end and otherwise as they came."""

    def __init__(self, response: Any) -> None:
        self.response = response
        self._stream = response.http_response.stream
        self._rest = b""

    def __iter__(self) -> Iterator[_Event]:
        for chunk in self._stream:
            yield from self._split(chunk)
        if self._rest:
            yield _Event(self._rest, self.response)

    async def __aiter__(self) -> AsyncIterator[_Event]:
        async for chunk in self._stream:
            for event in self._split(chunk):
                yield event
        if self._rest:
            yield _Event(self._rest, self.response)

    def close(self) -> None:
        """Close the answer's body."""
        self._stream.close()

    async def aclose(self) -> None:
        """Close the answer's body."""
        await self._stream.aclose()

    def _split(self, chunk: bytes) -> Iterator[_Event]:
        self._rest += chunk
        while end := _EVENT_END.search(self._rest):
            yield _Event(self._rest[: end.end()], self.response)
            self._rest = self._rest[end.end() :]


class _Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The body of an answer whose events may come to be those of its retry."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened

    def __iter__(self) -> Iterator[bytes]:
        for event in self._opened:
            yield event.raw

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for event in self._opened:
            yield event.raw

    def close(self) -> None:
        """Close the answer that is being read."""
        self._opened.stream.close()

    async def aclose(self) -> None:
        """Close the answer that is being read."""
        await self._opened.stream.aclose()


def _with_body(opened: Any) -> Any:
    """Return the answer that was opened, with a body that recovers."""
    if not isinstance(opened.stream, _Events):
        return opened.stream  # a compressed stream
    response = opened.stream.response
    response.http_response.stream = _Body(opened)
    return response

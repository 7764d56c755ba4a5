"""The anthropic SDK: a client middleware, for plain, streamed and asynchronous requests.

    client = Anthropic(middleware=[recovery_middleware(Recovery())])

The SDK runs its middleware for each HTTP attempt, and makes its typed errors afterwards. An
overflow that was not cured is raised as that error by the middleware itself, for only so can it
carry the report; every other answer is handed on. An error may also come as an event of a stream
that began with status 200, so that streams are read up to their first output.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
from anthropic import Middleware

from fetchstash.client._recovery import Recovery, overflow_report
from fetchstash.client._shapes import is_list, is_object

# The first event that is output or an error, in a stream of server-sent events (Anthropic API
# reference, "Streaming messages"). A tool call is output from its start: it may have no arguments
# to follow.
_FIRST = re.compile(
    rb"(?:^|\n)event: ?(content_block_delta|error|content_block_start(?=\r?\ndata:[^\n]*tool))\r?\ndata: ?([^\n]*)\n"
)


class RecoveryMiddleware(Middleware):
    """Sends a request that was too large once more, smaller."""

    def __init__(self, recovery: Recovery) -> None:
        self.recovery = recovery

    def handle(self, request: Any, call_next: Any) -> Any:
        """Do it for the synchronous client."""
        body = request.json
        if not _has_messages(request):
            return call_next(request)

        refused: dict[Exception, Any] = {}

        def send(messages: Any, **changes: Any) -> Any:
            for answer in refused.values():
                answer.close()
            response = call_next(_changed(request, messages, changes))
            said = (
                response.read()
                if response.status_code >= 400
                else _peek(response)
                if request.stream
                else None
            )
            if said is None:
                return response
            error = _error_of(response, said)
            refused[error] = response
            raise error

        try:
            return self.recovery.call(
                send, body["messages"], "anthropic", max_output=body.get("max_tokens")
            )
        except Exception as error:  # noqa: BLE001 - raised again, unless the SDK is to make its own of it
            return _handed_on(error, refused)

    async def handle_async(self, request: Any, call_next: Any) -> Any:
        """Do it for the asynchronous client."""
        body = request.json
        if not _has_messages(request):
            return await call_next(request)

        refused: dict[Exception, Any] = {}

        async def send(messages: Any, **changes: Any) -> Any:
            for answer in refused.values():
                await answer.close()
            response = await call_next(_changed(request, messages, changes))
            said = (
                await response.read()
                if response.status_code >= 400
                else await _apeek(response)
                if request.stream
                else None
            )
            if said is None:
                return response
            error = _error_of(response, said)
            refused[error] = response
            raise error

        try:
            return await self.recovery.acall(
                send, body["messages"], "anthropic", max_output=body.get("max_tokens")
            )
        except Exception as error:  # noqa: BLE001 - as in handle
            return _handed_on(error, refused)


def recovery_middleware(recovery: Recovery) -> RecoveryMiddleware:
    """Return a middleware for ``Anthropic`` and ``AsyncAnthropic``. Give a conversation a Recovery, and so a client, of its own."""
    return RecoveryMiddleware(recovery)


def _has_messages(request: Any) -> bool:
    """Return whether this asks for an answer; a request to count tokens is to be counted as it is."""
    body = request.json
    return is_object(body) and is_list(body.get("messages")) and "/count_tokens" not in request.url


def _error_of(response: Any, said: bytes) -> Any:
    """Return the error that the SDK makes of this answer, whose body or event ``said`` is."""
    raw, client = response.http_response, response._client  # noqa: SLF001 - nothing public leads to what makes the SDK's own errors
    if raw.status_code >= 400:
        return client._make_status_error_from_response(raw)  # noqa: SLF001 - as above
    text = said.decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except ValueError:
        body = text
    return client._make_status_error(str(body), body=body, response=raw)  # noqa: SLF001 - as above


def _handed_on(error: Any, refused: dict[Exception, Any]) -> Any:
    """Return the answer behind ``error``, for the SDK to treat as ever; raise what recovery has something to say about."""
    if error not in refused:
        raise error
    if overflow_report(error):
        error.response.headers["x-should-retry"] = (
            "false"  # which the SDK obeys, whatever the status is
        )
        raise error
    if error.__cause__:
        raise error
    return refused[error]


def _changed(request: Any, messages: Any, changes: dict[str, Any]) -> Any:
    body = request.json
    if messages is body["messages"] and not changes:
        return request
    limits = {"max_tokens": changes["max_output"]} if changes else {}
    return request.copy(body={**body, "messages": list(messages), **limits})


class _Replayed(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A body of which the first chunks were read already: it yields them first."""

    def __init__(self, read: list[bytes], rest: Any, stream: Any) -> None:
        self._read = read
        self._rest = rest
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._read
        yield from self._rest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._read:
            yield chunk
        async for chunk in self._rest:
            yield chunk

    def close(self) -> None:
        """Close the body."""
        self._stream.close()

    async def aclose(self) -> None:
        """Close the body."""
        await self._stream.aclose()


def _peek(response: Any) -> bytes | None:
    """Read a stream up to its first output or error, put what was read back, and return the error."""
    body = response.http_response
    if body.headers.get("content-encoding"):
        return None  # an encoded body cannot be looked into before it is decoded
    first, read, rest = None, list[bytes](), iter(body.stream)
    for chunk in rest:
        read.append(chunk)
        first = _FIRST.search(b"".join(read))
        if first:
            break
    body.stream = _Replayed(read, rest, body.stream)
    return first[2] if first and first[1] == b"error" else None


async def _apeek(response: Any) -> bytes | None:
    """Do as ``_peek`` does, with an asynchronous body."""
    body = response.http_response
    if body.headers.get("content-encoding"):
        return None  # as in _peek
    first, read, rest = None, list[bytes](), aiter(body.stream)
    async for chunk in rest:
        read.append(chunk)
        first = _FIRST.search(b"".join(read))
        if first:
            break
    body.stream = _Replayed(read, rest, body.stream)
    return first[2] if first and first[1] == b"error" else None

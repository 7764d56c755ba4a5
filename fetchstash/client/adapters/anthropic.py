"""The anthropic SDK: a client middleware, for plain, streamed and asynchronous requests.

    client = Anthropic(middleware=[recovery_middleware(Recovery())])

The SDK runs its middleware for each HTTP attempt and raises its typed errors afterwards: the second answer reaches the caller as
any other would. An error may also come as an event of a stream that began with status 200, so that streams are read up to their
first output.
"""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
from anthropic import Middleware

from fetchstash.client._recovery import Recovery
from fetchstash.client._shapes import is_list, is_object

# The first event that is output or an error, in a stream of server-sent events (Anthropic API reference, "Streaming messages").
_FIRST = re.compile(rb"(?:^|\n)event: ?(content_block_delta|error)\r?\ndata: ?([^\n]*)\n")


class _RefusedError(Exception):
    """An answer that is an error, on its way through Recovery."""

    def __init__(self, response: Any, body: Any) -> None:
        super().__init__(f"HTTP {response.status_code}")
        self.response = response
        self.status_code = response.status_code
        self.body = body


class RecoveryMiddleware(Middleware):
    """Sends a request that was too large once more, smaller."""

    def __init__(self, recovery: Recovery) -> None:
        self.recovery = recovery

    def handle(self, request: Any, call_next: Any) -> Any:
        """Do it for the synchronous client."""
        body = request.json
        if not _has_messages(body):
            return call_next(request)

        refusals: list[Any] = []

        def send(messages: Any, **changes: Any) -> Any:
            for refused in refusals:
                refused.close()
            response = call_next(_changed(request, messages, changes))
            error = response.read() if response.status_code >= 400 else _peek(response) if request.stream else None
            if error is None:
                return response
            refusals.append(response)
            raise _RefusedError(response, error)

        try:
            return self.recovery.call(send, body["messages"], "anthropic", max_output=body.get("max_tokens"))
        except _RefusedError as refused:
            return refused.response

    async def handle_async(self, request: Any, call_next: Any) -> Any:
        """Do it for the asynchronous client."""
        body = request.json
        if not _has_messages(body):
            return await call_next(request)

        refusals: list[Any] = []

        async def send(messages: Any, **changes: Any) -> Any:
            for refused in refusals:
                await refused.close()
            response = await call_next(_changed(request, messages, changes))
            error = await response.read() if response.status_code >= 400 else await _apeek(response) if request.stream else None
            if error is None:
                return response
            refusals.append(response)
            raise _RefusedError(response, error)

        try:
            return await self.recovery.acall(send, body["messages"], "anthropic", max_output=body.get("max_tokens"))
        except _RefusedError as refused:
            return refused.response


def recovery_middleware(recovery: Recovery) -> RecoveryMiddleware:
    """Return a middleware for ``Anthropic`` and ``AsyncAnthropic``. Give a conversation a Recovery, and so a client, of its own."""
    return RecoveryMiddleware(recovery)


def _has_messages(body: Any) -> bool:
    return is_object(body) and is_list(body.get("messages"))


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

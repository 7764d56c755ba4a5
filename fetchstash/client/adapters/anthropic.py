"""The anthropic SDK: a client middleware, for plain, streamed and asynchronous requests.

    client = Anthropic(middleware=[recovery_middleware(Recovery())])

The SDK runs its middleware for each HTTP attempt and raises its typed errors afterwards: the second answer reaches the caller as
any other would. An error inside a stream that began with status 200 comes too late for a middleware, and is the caller's.
"""

from typing import Any

from anthropic import Middleware

from fetchstash.client._recovery import Recovery
from fetchstash.client._shapes import is_list, is_object


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

        def send(messages: Any, **changes: Any) -> Any:
            response = call_next(_changed(request, messages, changes))
            if response.status_code >= 400:
                raise _RefusedError(response, response.read())
            return response

        try:
            return self.recovery.call(send, body["messages"], "anthropic", max_output=body.get("max_tokens"))
        except _RefusedError as refused:
            return refused.response

    async def handle_async(self, request: Any, call_next: Any) -> Any:
        """Do it for the asynchronous client."""
        body = request.json
        if not _has_messages(body):
            return await call_next(request)

        async def send(messages: Any, **changes: Any) -> Any:
            response = await call_next(_changed(request, messages, changes))
            if response.status_code >= 400:
                raise _RefusedError(response, await response.read())
            return response

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

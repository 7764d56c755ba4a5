"""Join the two protocol eras: questions of a server to the person or the model behind the host.

Before 2026-07-28 a server sends such a request in the middle of a call. Since then its result says
``input_required``, and the client asks again with the answers (SEP-2322).
"""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from fetchstash.config import mapped
from fetchstash.gateway._protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
)
from fetchstash.gateway._rpc import Params, RpcError, read_back, walked
from fetchstash.gateway._upstream import Upstream
from fetchstash.text.hygiene import clean
from fetchstash.text.untyped import as_object

ROUNDS = 10
"""How often a server may ask within one call."""

PENDING_SECONDS = 600.0
PENDING_CALLS = 64
Ask = Callable[[str, Params | None], Awaitable[dict[str, Any]]]


def signed(upstream: Upstream, method: str, params: Params | None) -> Params | None:
    """Return a server's question to the person or the model with the server's name in it.

    A person reads both before they answer, so no text in them hides, moves or clears another.
    """
    if method not in ("elicitation/create", "sampling/createMessage") or params is None:
        return params
    meta = {"_meta": params["_meta"]} if "_meta" in params else {}
    own = mapped({key: item for key, item in params.items() if key != "_meta"}, _clean, names=True)
    if method == "elicitation/create":
        return {
            **own,
            "message": f"The server {upstream.name} asks: {own.get('message', '')}",
            **meta,
        }
    theirs = own.get("systemPrompt")
    prompt = f"The server {upstream.name} asks for this." + (f"\n\n{theirs}" if theirs else "")
    return {**own, "systemPrompt": prompt, **meta}


def _clean(value: Any) -> Any:
    return clean(value).text if isinstance(value, str) else value


def with_signed_questions(upstream: Upstream, result: dict[str, Any]) -> dict[str, Any]:
    """Return a result; each question in it to the person names the server. Raises TooLarge."""
    if result.get("resultType") != "input_required":
        return result
    requests = dict(as_object(read_back(result.get("inputRequests"))))
    for key, request in requests.items():
        asked = as_object(request)
        if params := as_object(asked.get("params")):
            method = str(asked.get("method"))
            requests[key] = {**asked, "params": signed(upstream, method, params)}
    return {**result, "inputRequests": requests} if requests else result


async def answered(
    upstream: Upstream, method: str, params: Params | None, ask: Ask
) -> dict[str, Any]:
    """Call a server of the 2026 era for a host of an earlier one: ``ask`` asks the host."""
    sign = partial(with_signed_questions, upstream)
    result = await walked(sign, await upstream.request(method, params))
    for _ in range(ROUNDS):
        if result.get("resultType") != "input_required":
            result.pop("resultType", None)
            return result
        responses: dict[str, Any] = {}
        requests = as_object(result.get("inputRequests"))
        for key, request in requests.items():
            asked = as_object(request)
            responses[key] = await ask(str(asked.get("method")), asked.get("params"))
        again = dict(params or {})
        if responses:
            again["inputResponses"] = responses
        if "requestState" in result:
            again["requestState"] = result["requestState"]
        result = await walked(sign, await upstream.request(method, again))
    what = f"The server {upstream.name} asked for input more than {ROUNDS} times."
    raise RpcError(INTERNAL_ERROR, what)


@dataclass
class _Call:
    """A call to a server of an earlier era, which goes on while the host finds an answer."""

    upstream: Upstream
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    changed: anyio.Event = field(default_factory=anyio.Event)
    asked: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    answers: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    result: dict[str, Any] | None = None
    error: Exception | None = None

    def change(self) -> None:
        """Wake the tasks that wait for news of this call."""
        self.changed.set()
        self.changed = anyio.Event()


class PendingCalls:
    """The calls of a host of the 2026 era to servers that ask in the middle of one."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._running: list[_Call] = []
        self._pending: dict[str, _Call] = {}

    async def call(self, upstream: Upstream, method: str, params: Params | None) -> dict[str, Any]:
        """Start a call, or continue a pending one; return its result or its question."""
        own = dict(params or {})
        answers = own.pop("inputResponses", None)
        state = own.pop("requestState", None)
        call = self._pending.pop(state, None) if isinstance(state, str) else None
        if call is None:
            if state is not None:
                what = "The request state is unknown, or the call has ended."
                raise RpcError(INVALID_PARAMS, f"{what} Make the call anew.")
            call = _Call(upstream)
            self._running.append(call)
            self._tasks.start_soon(self._run, call, method, own)
        else:
            call.answers |= {key: as_object(value) for key, value in as_object(answers).items()}
            call.asked.clear()
            call.change()
        try:
            while call.result is None and call.error is None and not call.asked:
                await call.changed.wait()
        except anyio.get_cancelled_exc_class():
            call.scope.cancel()
            raise
        if call.error is not None:
            raise call.error
        return call.result if call.result is not None else self._keep(call)

    async def ask(self, upstream: Upstream, method: str, params: Params | None) -> dict[str, Any]:
        """Hand a server's request to the host with the newest call to it; return the answer."""
        calls = [call for call in self._running if call.upstream is upstream]
        if not calls:
            raise RpcError(METHOD_NOT_FOUND, "No call is under way that could ask.")
        call, key = calls[-1], secrets.token_hex(8)
        call.asked[key] = {"method": method, "params": dict(params or {})}
        call.change()
        try:
            while key not in call.answers:
                await call.changed.wait()
        finally:
            call.asked.pop(key, None)  # the server may have cancelled it
        return call.answers.pop(key)

    def _keep(self, call: _Call) -> dict[str, Any]:
        if len(self._pending) >= PENDING_CALLS:
            self._pending.pop(next(iter(self._pending))).scope.cancel()
        state = secrets.token_urlsafe(24)
        self._pending[state] = call
        call.scope.deadline = anyio.current_time() + PENDING_SECONDS
        return {
            "resultType": "input_required",
            "inputRequests": dict(call.asked),
            "requestState": state,
        }

    async def _run(self, call: _Call, method: str, params: Params) -> None:
        try:
            with call.scope:
                call.result = await call.upstream.request(method, params)
                return
            call.error = RpcError(REQUEST_TIMEOUT, "Nobody answered what the server asked.")
        except Exception as error:  # noqa: BLE001 - raised where the call is waited for
            call.error = error
        finally:
            self._running.remove(call)
            call.change()

"""JSON-RPC between a host, the gateway and its servers; long texts wait in files.

Only the envelope is read, so messages of both protocol eras pass as they are.
"""

import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus

from fetchstash.config import mapped
from fetchstash.errors import TooLarge
from fetchstash.gateway._protocol import INTERNAL_ERROR, INVALID_REQUEST, as_value
from fetchstash.text.untyped import as_object, as_objects, is_array, is_object


@dataclass(frozen=True, slots=True)
class Spooled:
    """A value that was too long to hold: a file with a string's text, or with JSON.

    ``chars`` is the length of the text; of JSON it is the number of bytes.
    """

    path: Path
    chars: int
    is_json: bool = False


HELD_CHARS = 2**24
"""What may be read back of the values of one message."""


class StandIns:
    """Placeholders in a message for its spooled values.

    A server cannot guess one, so no value of its own is taken for one that was spooled.
    """

    def __init__(self) -> None:
        self._mark, self._count = secrets.token_hex(16), 0
        self.values: dict[str, Spooled] = {}

    def name(self, value: Spooled) -> str:
        """Return the placeholder of a value."""
        self._count += 1
        name = f"{self._mark}:{self._count}"
        self.values[name] = value
        return name

    def filled(self, message: "Message") -> "Message":
        """Return a message with its values in place of their placeholders, and forget them."""

        def value(item: Any) -> Any:
            return self.values.pop(item, item) if isinstance(item, str) else item

        return cast("Message", mapped(message, value)) if self.values else message


def read_back(value: Any) -> Any:
    """Return a JSON value with the spooled values in it read, and remove their files.

    Raises TooLarge if they have more than ``HELD_CHARS`` together.
    """

    def read(item: Any) -> Any:
        if not isinstance(item, Spooled):
            return item
        text = item.path.read_text(encoding="utf-8")
        return as_value(text) if item.is_json else text

    try:
        if sum(spooled.chars for spooled in _spooled_in(value)) > HELD_CHARS:
            raise TooLarge("The message is too long.", "Ask for less.")
        return mapped(value, read)
    except (OSError, ValueError, RecursionError):
        raise TooLarge("The message cannot be read.", "Ask for less.") from None
    finally:
        drop_spooled(value)


def drop_spooled(value: Any) -> None:
    """Remove the files of the spooled values in a JSON value."""
    for spooled in _spooled_in(value):
        with suppress(OSError):
            spooled.path.unlink(missing_ok=True)


OURS = "fetchstash/"
_WITH_META = ("content", "contents", "tools", "resources", "resourceTemplates", "prompts", "tasks")


def drop_our_meta(result: dict[str, Any]) -> None:
    """Remove the ``_meta`` fields of fetchstash from what another server says.

    A host, and our client, take them for facts of an artifact that is kept here.
    """
    parts = [result, *(item for name in _WITH_META for item in as_objects(result.get(name)))]
    inner = [part[name] for part in parts for name in ("resource", "result") if name in part]
    parts += as_objects(inner)
    parts += [item for part in as_objects(inner) for item in as_objects(part.get("content"))]
    for part in parts:
        meta = part.get("_meta")
        if any(name.startswith(OURS) for name in as_object(meta)):
            kept = as_object(meta).items()
            part["_meta"] = {name: item for name, item in kept if not name.startswith(OURS)}


MANY_VALUES = 1_000
"""A JSON value that holds more values than this is walked in a thread, so that the loop goes on."""

T = TypeVar("T")
U = TypeVar("U")


async def walked(walk: Callable[[T], U], value: T) -> U:
    """Return ``walk(value)``; in a thread where the JSON value holds many values.

    A server's message has up to some millions, and a function of ours may look at each.
    """
    return walk(value) if _has_few(value) else await anyio.to_thread.run_sync(walk, value)


def _has_few(value: object) -> bool:
    left, count = [value], 0
    while left:
        count += 1
        item = left.pop()
        if is_object(item):
            left += item.values()
        elif is_array(item):
            left += item
        if count + len(left) > MANY_VALUES:
            return False
    return True


def _spooled_in(value: Any) -> Iterator[Spooled]:
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, Spooled):
            yield item
        elif isinstance(item, Mapping):
            left += cast("Mapping[str, Any]", item).values()
        elif isinstance(item, list):
            left += cast("Sequence[Any]", item)


AT_ONCE = 256
"""Requests of one peer that are worked on side by side; more wait."""

MAX_WAITING = 4_096
"""Requests of one peer whose answers it has not taken yet; more are refused.

Reading goes on in any case: what comes next may cancel one of them, or answer what it waits for.
"""

CANCEL_SECONDS = 5.0
"""How long a peer may take to accept the word that a request is cancelled."""

Message = dict[str, Any]
Params = Mapping[str, Any]
RequestId = int | str
Send = Callable[[Message], Awaitable[None]]
Connection = tuple[AsyncIterator[Message], Send]
"""What a peer sends, until it ends, and what sends it a message (raises ConnectionEnded)."""

OnRequest = Callable[[RequestId, str, Params | None], Awaitable[dict[str, Any]]]
OnNotify = Callable[[str, Params | None], Awaitable[None]]
OnAnswered = Callable[[str], None]

_log = logging.getLogger("fetchstash.gateway")


class RpcError(Exception):
    """An error as JSON-RPC has it."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @property
    def as_object(self) -> dict[str, Any]:
        """The error object; ``data`` is left out where there is none."""
        data = {} if self.data is None else {"data": self.data}
        return {"code": self.code, "message": self.message, **data}


class ConnectionEnded(Exception):
    """The connection to the peer has ended."""


_TOO_MANY = RpcError(INTERNAL_ERROR, "Too many requests are unanswered. Wait for some of them.")
_NO_PARAMS = RpcError(INVALID_REQUEST, "The parameters must be an object.")


@dataclass
class _Waiting:
    """A request of ours, and its answer once it is there."""

    done: anyio.Event = field(default_factory=anyio.Event)
    result: dict[str, Any] = field(default_factory=dict[str, Any])
    error: Exception | None = None


class Peer:
    """The other side of a connection. ``name`` is for the log."""

    def __init__(self, name: str, connection: Connection) -> None:
        self._name = name
        self._incoming, self._send_to_peer = connection
        self._last_id = 0
        self._ended = False
        self._running = anyio.CancelScope()
        # By the text of the id: some peers give back a number as a string.
        self._waiting: dict[str, _Waiting] = {}
        self._handled: dict[str, anyio.CancelScope] = {}
        self._unanswered = 0
        self._at_once = anyio.CapacityLimiter(AT_ONCE)
        self._on_answered: OnAnswered

    @property
    def takes_nothing(self) -> bool:
        """Whether a message could not be sent, so that the peer was taken for ended."""
        return self._running.cancel_called

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_answered: OnAnswered = lambda _: None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Take what the peer sends until it ends; its open requests are not answered then.

        Requests are answered side by side. Notifications keep their order, and come before an
        answer that was sent after them. ``on_answered`` is called with the method of each request
        whose answer was sent.
        """
        self._on_answered = on_answered
        try:
            with self._running:
                async with anyio.create_task_group() as tasks:
                    task_status.started()
                    async for message in self._incoming:
                        await self._take(message, tasks, on_request, on_notify)
                    self._end()
                    tasks.cancel_scope.cancel()
        finally:
            self._end()

    async def _send(self, message: Message) -> None:
        """Send a message. Raises ConnectionEnded; a peer that takes no message has ended."""
        try:
            await self._send_to_peer(message)
        except ConnectionEnded:
            self._running.cancel()
            raise

    async def request(
        self, method: str, params: Params | None, *, is_opening: bool = False
    ) -> dict[str, Any]:
        """Return the result of a request. Raises RpcError, ConnectionEnded.

        Cancelling the call cancels it at the peer, unless it opens the conversation.
        """
        if self._ended:
            raise ConnectionEnded
        self._last_id += 1
        number = self._last_id
        waiting = self._waiting[str(number)] = _Waiting()
        try:
            await self._send({"jsonrpc": "2.0", "id": number, **_call(method, params)})
            await waiting.done.wait()
        except anyio.get_cancelled_exc_class():
            if not is_opening:
                with anyio.move_on_after(CANCEL_SECONDS, shield=True):
                    await self.notify("notifications/cancelled", {"requestId": number})
            raise
        finally:
            del self._waiting[str(number)]
        if waiting.error is not None:
            raise waiting.error
        return waiting.result

    async def notify(self, method: str, params: Params | None) -> None:
        """Send a notification; a peer that is gone gets none."""
        with suppress(ConnectionEnded):
            await self._send({"jsonrpc": "2.0", **_call(method, params)})

    async def _take(
        self, message: Message, tasks: TaskGroup, on_request: OnRequest, on_notify: OnNotify
    ) -> None:
        if "result" not in message:
            # Only results are made short.
            try:
                message = await walked(read_back, message)
            except TooLarge as error:
                refusal = {"error": RpcError(INVALID_REQUEST, str(error)).as_object}
                if "method" not in message:
                    self._resolve(str(message.get("id")), refusal)
                elif "id" in message:
                    await self._reply(message["id"], refusal)
                return
        params = message.get("params")
        match message:
            case {"method": str() as method, "id": int() | str() as number}:
                if self._unanswered >= MAX_WAITING or not _are_params(params):
                    fault = _TOO_MANY if _are_params(params) else _NO_PARAMS
                    await self._reply(number, {"error": fault.as_object})
                    return
                self._unanswered += 1
                # Registered here, so that a cancellation that follows at once meets it.
                scope = self._handled[str(number)] = anyio.CancelScope()
                tasks.start_soon(self._answer, number, method, params, scope, on_request)
            case {"method": str() as method} if "id" not in message and _are_params(params):
                if method == "notifications/cancelled" and params:
                    cancelled = self._handled.get(str(params.get("requestId")))
                    if cancelled is not None:
                        cancelled.cancel()
                try:
                    await on_notify(method, params)
                except Exception:  # noqa: BLE001 - a fault of ours must not end the session
                    _log.exception("%s failed", method)
            case {"id": int() | str() as number} if "method" not in message:
                self._resolve(str(number), message)
            case _:
                drop_spooled(message)
                _log.warning("%s sent JSON that is no message of JSON-RPC.", self._name)

    async def _answer(
        self,
        number: RequestId,
        method: str,
        params: Params | None,
        scope: anyio.CancelScope,
        on_request: OnRequest,
    ) -> None:
        """Answer a request, unless the peer cancels it."""
        answer: dict[str, Any] | None = None
        try:
            with scope:
                async with self._at_once:
                    answer = {"result": await on_request(number, method, params)}
        except RpcError as error:
            answer = {"error": error.as_object}
        except ConnectionEnded:
            answer = {"error": RpcError(INTERNAL_ERROR, "The connection ended.").as_object}
        except Exception:  # noqa: BLE001 - a fault of ours must not end the session
            _log.exception("%s failed", method)
            text = "Something went wrong inside fetchstash; the log has the details."
            answer = {"error": RpcError(INTERNAL_ERROR, text).as_object}
        finally:
            if self._handled.get(str(number)) is scope:
                del self._handled[str(number)]
        if answer is not None:
            await self._reply(number, answer)
            self._on_answered(method)
        self._unanswered -= 1

    async def _reply(self, number: RequestId, answer: Message) -> None:
        """Send an answer; a peer that is gone gets none."""
        with suppress(ConnectionEnded):
            await self._send({"jsonrpc": "2.0", "id": number, **answer})

    def _resolve(self, number: str, message: Message) -> None:
        """Hand an answer to the request that waits for it; ignore other answers."""
        waiting = self._waiting.get(number)
        if waiting is None or waiting.done.is_set():
            drop_spooled(message)
            return
        match message:
            case {"error": {"code": int() as code, "message": str() as text, **more}}:
                waiting.error = RpcError(code, text, more.get("data"))
            case {"result": dict()}:
                waiting.result = message["result"]
            case _:
                text = f"{self._name} sent an answer that is neither a result nor an error."
                waiting.error = RpcError(INTERNAL_ERROR, text)
        waiting.done.set()

    def _end(self) -> None:
        """Fail all requests that still wait."""
        self._ended = True
        for waiting in self._waiting.values():
            if not waiting.done.is_set():
                waiting.error = ConnectionEnded()
                waiting.done.set()


def _call(method: str, params: Params | None) -> Message:
    return {"method": method} if params is None else {"method": method, "params": params}


def _are_params(params: object) -> bool:
    return params is None or isinstance(params, dict)

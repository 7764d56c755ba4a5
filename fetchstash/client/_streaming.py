"""Send a request once more, with a stream or without, as one conversation.

Until the answer is committed a retry may take over.
A retry is a new answer of the provider, and begins with the provider's own first event: OpenAI's
``response.created`` or a chunk with a role and a new id, Anthropic's ``message_start``, LangChain's
``on_chat_model_start``. What was passed on before that event (its lifecycle, and reasoning that was
shown) belongs to the answer that failed.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from threading import Lock
from typing import Any, Self, TypeVar

from fetchstash.client._parts import as_json
from fetchstash.client._policy import Message, State, content_hash
from fetchstash.client._streams import (
    aclose,
    an_object,
    close,
    commits,
    empty_answer,
    failure,
    is_collection,
    is_mapping,
    reasons,
)

LARGE_CHARS, LARGE_VALUES = 200_000, 50_000
"""A history with more text or more values is compacted in a thread."""

Result = TypeVar("Result")


def is_large(value: Any) -> bool:
    """Return whether a history holds more than ``LARGE_CHARS`` of text, and look no further."""
    chars, values, waiting = 0, 0, [value]
    while waiting and chars <= LARGE_CHARS and values <= LARGE_VALUES:
        current = waiting.pop()
        values += 1
        if isinstance(current, str | bytes):
            chars += len(current)
        elif is_mapping(current):
            waiting += current.values()
        elif is_collection(current):
            waiting += current
    return bool(waiting) or chars > LARGE_CHARS


async def off_loop(function: Callable[..., Result], *args: Any, large: bool) -> Result:
    """Return ``function(*args)``, called in a thread if ``large`` and the loop is asyncio's."""
    if large and _in_asyncio():
        return await asyncio.to_thread(function, *args)
    return function(*args)


def _in_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


Send = Callable[..., Any]
"""Sends messages and returns the response or stream.

Takes the messages, and ``max_output=`` where the caller gave that.
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The request to send. ``max_output``, in tokens, is None unless it has to be clamped."""

    messages: Sequence[Message]
    max_output: int | None = None

    def sent_by(self, send: Send) -> Any:
        """Return what ``send`` returns for these messages."""
        if self.max_output is None:
            return send(self.messages)
        return send(self.messages, max_output=self.max_output)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an attempt: a response or an error.

    An event that reports an error comes with its response.
    ``committed``: output was passed on already, so that it is too late for a retry.
    """

    response: Any = None
    error: Exception | None = None
    event: Any = None
    committed: bool = False

    @property
    def problem(self) -> Any:
        """The error or the failed event, None after a success."""
        return self.event if self.error is None else self.error


Steps = Generator[Attempt, Outcome, Outcome]
"""Yields what to send, takes what came of it, and returns the outcome that is the caller's."""


def step(steps: Steps, outcome: Outcome | None = None) -> Attempt | Outcome:
    """Return what to send next, or the outcome that ``steps`` end with."""
    try:
        return next(steps) if outcome is None else steps.send(outcome)
    except StopIteration as end:
        final: Outcome = end.value
        return final


async def astep(steps: Steps, outcome: Outcome | None = None, *, large: bool) -> Attempt | Outcome:
    """Do as ``step`` does; a ``large`` history is counted and made smaller in a thread."""
    return await off_loop(step, steps, outcome, large=large)


def drive(steps: Steps, attempt: Callable[[Attempt], Outcome]) -> Any:
    """Carry out ``steps``, and return the response or raise the error that they end with."""
    following = step(steps)
    while isinstance(following, Attempt):
        following = step(steps, attempt(following))
    return _response(following)


async def adrive(
    steps: Steps, attempt: Callable[[Attempt], Awaitable[Outcome]], *, large: bool
) -> Any:
    """Do as ``drive`` does, where an attempt is awaited. The history may be ``large``."""
    following = await astep(steps, large=large)
    while isinstance(following, Attempt):
        following = await astep(steps, await attempt(following), large=large)
    return _response(following)


def _response(outcome: Outcome) -> Any:
    if outcome.error is not None:
        raise outcome.error
    return outcome.response


MAX_CONVERSATIONS = 256
"""How many states are kept, the most recently used. A lost one costs a cold prompt cache."""


class States:
    """Finds the state of a conversation by its messages up to the first that a user wrote.

    Conversations that begin alike share a state. That is safe: a stub is known by the id of its
    call and the hash of its content, so a state never puts one where its content does not stand.
    """

    def __init__(self) -> None:
        self._states: OrderedDict[str, State] = OrderedDict()
        self._lock = Lock()

    def of(self, messages: Sequence[Message]) -> State:
        """Return the state of these messages' conversation, a new one for a new conversation."""
        first = (n for n, m in enumerate(messages, 1) if an_object(m).get("role") == "user")
        key = content_hash(as_json(messages[: next(first, len(messages))]))
        with self._lock:
            state = self._states.setdefault(key, State())
            self._states.move_to_end(key)
            while len(self._states) > MAX_CONVERSATIONS:
                self._states.popitem(last=False)
        return state


class _Stream:
    """What both kinds of stream share.

    ``read`` returns what an event of the SDK says, as an object or as plain data; it may raise the
    SDK's own error for an event that reports one. ``held``: nothing is passed on before the answer
    or its reasoning begins, for readers that cannot begin again.
    """

    def __init__(
        self,
        steps: Steps,
        send: Send,
        read: Callable[[Any], Any] | None = None,
        *,
        held: bool = False,
        on_end: Callable[[Any, Attempt], None] | None = None,
    ) -> None:
        self.stream: Any = None
        self._steps = steps
        self._send = send
        self._read = read
        self._settled = False
        self._reasoned = False
        self._held = held
        self._waiting = deque[Any]()
        self._last: Any = None
        self._attempt = Attempt(())
        self._on_end = on_end

    def outcome_of(self, event: Any) -> Outcome | None:
        """Return what this event decides, None as long as a retry may still take over."""
        said = self._read(event) if self._read else event
        problem = failure(said)
        if problem is None and not self._reasoned and empty_answer(said):
            problem = said
        if problem is not None:
            return Outcome(self.stream, event=problem)
        self._reasoned = self._reasoned or reasons(said)
        if commits(said) or (self._held and self._reasoned):
            return Outcome(self.stream)
        return None

    def next_attempt(self, outcome: Outcome | None) -> Attempt | None:
        """Report what came of an attempt; return the next, None if there is none."""
        return None if outcome is None else self._follow(step(self._steps, outcome))

    def _follow(self, following: Attempt | Outcome) -> Attempt | None:
        if not isinstance(following, Attempt):
            self._settled = True
            return None
        self._reasoned = False
        self._waiting.clear()
        return following

    @property
    def ready(self) -> bool:
        """Whether an event can be passed on."""
        return bool(self._waiting) and (self._settled or not self._held)

    def end(self) -> None:
        """Report that the stream ended, and what its last event says of the prompt."""
        if not self._settled:
            self.next_attempt(Outcome(self.stream))
        if self._on_end:
            self._on_end(self._last, self._attempt)


class RecoveringStream(_Stream):
    """Yields the events of a stream, and then those of its retry if there is one.

    In all else it is the SDK's stream. ``open`` sends the first attempt.
    """

    def open(self) -> Self:
        """Open the stream, and return it."""
        first = step(self._steps)
        assert isinstance(first, Attempt)
        self._open(first)
        return self

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while not self.ready:
            event: Any = None
            try:
                event = next(self._events)
                retry = None if self._settled else self.next_attempt(self.outcome_of(event))
            except StopIteration:
                self.end()
                if self._waiting:
                    break
                raise
            except Exception as error:
                retry = None if self._settled else self.next_attempt(Outcome(error=error))
                if retry is None:
                    raise
            if retry is None:
                self._waiting.append(event)
                self._last = event
            else:
                close(self.stream)
                self._open(retry)
        return self._waiting.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the SDK's stream."""
        closing = getattr(self.stream, "close", None)
        if closing:
            closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _open(self, attempt: Attempt) -> None:
        while True:
            self._attempt = attempt
            try:
                self.stream = attempt.sent_by(self._send)
                self._events = iter(self.stream)
            except Exception as error:
                retry = self.next_attempt(Outcome(error=error))
                if retry is None:
                    raise
                attempt = retry
            else:
                return


class AsyncRecoveringStream(_Stream):
    """The same, asynchronous. A large history is made smaller in a thread."""

    async def open(self, *, large: bool) -> Self:
        """Open the stream, and return it."""
        self._large = large
        first = await astep(self._steps, large=large)
        assert isinstance(first, Attempt)
        await self._open(first)
        return self

    async def _anext_attempt(self, outcome: Outcome | None) -> Attempt | None:
        if outcome is None:
            return None
        return self._follow(await astep(self._steps, outcome, large=self._large))

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        while not self.ready:
            event: Any = None
            try:
                event = await anext(self._events)
                retry = None if self._settled else await self._anext_attempt(self.outcome_of(event))
            except StopAsyncIteration:
                await off_loop(self.end, large=self._large)
                if self._waiting:
                    break
                raise
            except Exception as error:
                retry = None if self._settled else await self._anext_attempt(Outcome(error=error))
                if retry is None:
                    raise
            if retry is None:
                self._waiting.append(event)
                self._last = event
            else:
                await aclose(self.stream)
                await self._open(retry)
        return self._waiting.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the SDK's stream."""
        closing = getattr(self.stream, "close", None) or getattr(self.stream, "aclose", None)
        if closing:
            await closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    async def _open(self, attempt: Attempt) -> None:
        while True:
            self._attempt = attempt
            try:
                sent = attempt.sent_by(self._send)
                self.stream = await sent if isawaitable(sent) else sent
                self._events = aiter(self.stream)
            except Exception as error:
                retry = await self._anext_attempt(Outcome(error=error))
                if retry is None:
                    raise
                attempt = retry
            else:
                return
